"""The models that values came from, kept to value new rows, and saved in directories."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import closest_names, insert_parameters, list_names
from fado._progress import tracked
from fado._records import decode, encode, label_from, label_to
from fado._storage import DamagedError, Manifest, digest_of, replacing_directory, write_file
from fado._typing import Floats
from fado._version import __version__, library_versions
from fado.engine import scorer_from
from fado.execution import ThreadExecutor, n_workers
from fado.tabular import (
    TARGET,
    UNSEEN,
    Column,
    Problem,
    Table,
    Variable,
    label_codes,
    match_names,
    protected_columns,
    target_column,
)
from fado.valuation._base import target_pattern
from fado.valuation._probabilities import (
    KeptModel,
    RowsToScore,
    VariableModels,
    largest_known,
    mean_probabilities,
    score_rows,
)
from fado.valuation._provenance import CLOSENESS, ENTROPY, FIELDS, Provenance, of_new_rows
from fado.valuation._result import Valuation
from fado.valuation.entropy._fits import VariableResult

Labels = npt.NDArray[Any]

ROWS_AT_A_TIME = 1 << 15  # that one worker scores
SAVED = Manifest(name="models.json", kind="fado valuation models", layout=1, what="set of models")
# The ending of a model's file, by the kind of its scorer; a constant model has no file.
ENDINGS = {"lightgbm": "txt", "sklearn": "skops"}
_CONTENT = re.compile(rf"\d+-\d+\.({'|'.join(ENDINGS.values())})")


@dataclass(frozen=True, eq=False)
class ValuationModels:
    """The models of the target and of protected attributes, without the rows that they learnt from.

    An entropy valuator with ``keep_models=True`` has them as `models_`; `save` writes them, and
    `fado.valuation.load_models` reads them.

    Parameters
    ----------
    kept : tuple of VariableModels
        The models of each variable, those of the target first.
    n_rows : int
        How many rows the valuator was fitted on.
    target_digest : str
        A digest of the target of those rows, as `digest_of_target` returns it.
    provenance : Provenance
        How the models were trained.

    See Also
    --------
    fado.OutOfBagEntropy : Trains the models.
    fado.valuation.load_models : Reads saved models.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import OutOfBagEntropy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X[:, 0] + rng.normal(size=1000) > 0
    >>> valuator = OutOfBagEntropy(keep_models=True, random_state=0).fit(X, y)
    >>> valuator.models_
    ValuationModels(y: 10 models, of 1,000 rows)
    >>> valuator.models_.value([[-3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])["y"].round()
    array([0., 1.])
    """

    kept: tuple[VariableModels, ...]
    n_rows: int
    target_digest: str
    provenance: Provenance

    @property
    def variables(self) -> list[str]:
        """The variables' names: ``"y"``, then the protected attributes."""
        return [own.variable.name for own in self.kept]

    @property
    def n_models(self) -> dict[str, int]:
        """How many models each variable has."""
        return {own.variable.name: len(own.models) for own in self.kept}

    @property
    def scales(self) -> dict[str, Any]:
        """The scale of each variable's values."""
        return {
            own.variable.name: ENTROPY if own.variable.kind == "classes" else CLOSENESS for own in self.kept
        }

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {count} models" for name, count in self.n_models.items())
        return f"ValuationModels({counts}, of {self.n_rows:,} rows)"

    def classes(self, variable: str) -> tuple[Any, ...]:
        """Return the labels of a variable in the order of its probabilities; empty if it is continuous."""
        return self._of(variable).variable.classes

    @insert_parameters()
    def value(
        self,
        X: Any,
        y: Any = None,
        sensitive_features: Any = None,
        *,
        unknown: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> Valuation:
        """Value new rows: every model scores every row.

        A row's value is the mean entropy over the models. Without `y`, a model that sees the target predicts
        for every label, and its predictions are averaged with the probabilities that the target's models of
        the same bag give to these labels.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features of the new rows. Columns are matched by name, in any order, or by position if a table
            has no names. Columns that no model has seen are ignored. New categories count as missing.
        y : array-like of shape (n_rows,), optional
            The labels of the target, if they are known, for the models that see the target.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            Protected attributes, all or some. They are used for `agreement` and do not change values.
        unknown : value or list of values, optional
            Values of the attributes that mean the same as a missing one; None means those of the fit.
        {n_jobs, progress}

        Returns
        -------
        Valuation
            `counts` are the numbers of models. `agreement` is known for variables whose labels are given.
            `epistemic` is the entropy of the mean prediction minus the mean entropy: the part that more
            training rows could reduce. It is NaN for a continuous variable, and if there is one model.

        Raises
        ------
        ValueError
            If a column that a model has seen is missing, or `y` has a label that no model has learnt.
        """
        table = table_of(X)
        variables = [own.variable for own in self.kept]
        labels = read_labels(y, sensitive_features, table, variables, self.provenance, unknown)
        parts = list(_run(score_rows, table, labels, self.kept, n_jobs, show=progress))
        arrays: dict[str, Any] = {
            field: {name: np.concatenate([own[field][name] for own in parts]) for name in self.variables}
            for field in FIELDS
        }
        target = self.kept[0].variable
        known = labels.get(target.name)
        pattern = target_pattern(known) if known is not None and target.kind == "classes" else None
        valuation = Valuation(
            **arrays, scales=self.scales, provenance=of_new_rows(self.provenance, y_given=known is not None)
        )
        return valuation.with_rows(table.index, target_pattern=pattern)

    @insert_parameters()
    def probabilities(self, X: Any, variable: str, y: Any = None, *, n_jobs: int | None = None) -> Floats:
        """Return the mean probabilities of a variable's classes over its models.

        Parameters
        ----------
        X : Table, or whatever `value` takes
            The features.
        variable : str
            ``"y"`` or a protected attribute; it must have classes.
        y : array-like of shape (n_rows,), optional
            The labels of the target, if they are known, for the models that see the target.
        {n_jobs}

        Returns
        -------
        ndarray of shape (n_rows, K)
            One column per class, in the order of `classes`.

        Raises
        ------
        ValueError
            If there are no models of the variable, or it is continuous.
        """
        own = self._of(variable)
        if own.variable.kind != "classes":
            raise ValueError(f"{variable!r} is a number, which has no probabilities of classes.")
        table = table_of(X)
        labels = read_labels(y, None, table, [each.variable for each in self.kept], self.provenance)
        kept = (own,) if own is self.kept[0] else (self.kept[0], own)
        return np.concatenate(list(_run(mean_probabilities, table, labels, kept, n_jobs, show=False)))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the models into a directory, whole or not at all; `fado.valuation.load_models` reads it.

        Parameters
        ----------
        directory : path-like
            A new directory, an empty one, or one that an earlier `save` wrote, which is replaced.

        Raises
        ------
        FileExistsError
            If the directory holds anything else.
        ValueError
            If an estimator is of a class that cannot be saved.
        """
        final = SAVED.check_directory(Path(directory), lambda name: _CONTENT.fullmatch(name) is not None)
        schemas: list[Any] = []
        files: dict[str, bytes] = {}
        variables = []
        for number, own in enumerate(self.kept):
            models = [
                _describe(model, f"{number}-{place}", schemas, files)
                for place, model in enumerate(own.models)
            ]
            variables.append({**_describe_variable(own), "models": models})
        with replacing_directory(final, "The models") as temporary:
            for name, content in files.items():
                write_file(temporary / name, content, "A model")
            SAVED.write(
                temporary,
                {
                    "fado": __version__,
                    "versions": library_versions(),
                    "n_rows": self.n_rows,
                    "target": self.target_digest,
                    "provenance": encode(self.provenance.to_dict()),
                    "schemas": schemas,
                    "variables": variables,
                    "files": {name: digest_of(content) for name, content in files.items()},
                },
            )

    def _of(self, variable: str) -> VariableModels:
        for own in self.kept:
            if own.variable.name == variable:
                return own
        raise ValueError(
            f"The models have learnt no variable {variable!r}{closest_names(variable, self.variables)}"
        )


def keep_models(
    problem: Problem, results: Sequence[VariableResult], provenance: Provenance
) -> ValuationModels:
    """Collect the models of all fits."""
    kept = []
    for result in results:
        furthest = largest_error = 1.0
        if result.variable.kind == "continuous":
            furthest = largest_known(result.moments.mean)
            largest_error = largest_known(result.moments.label_probability)
        variable = replace(result.variable, labels=result.variable.labels[:0])
        models = sorted(result.models, key=lambda model: model.bag)
        kept.append(VariableModels(variable, tuple(models), furthest, largest_error))
    return ValuationModels(tuple(kept), problem.n_rows, digest_of_target(problem.target), provenance)


def digest_of_target(target: Variable) -> str:
    """Return a digest of a target in the order of its rows; it identifies the rows."""
    if target.kind == "classes":
        return target_pattern(target.labels)
    return hashlib.blake2b(np.ascontiguousarray(target.labels).data, digest_size=16).hexdigest()


def table_of(X: Any) -> Table:
    """Read new rows; there must be at least one."""
    table = X if isinstance(X, Table) else Table.from_input(X)
    if table.n_rows == 0:
        raise ValueError("`X` has 0 row(s) (n_samples = 0): there is nothing to value; give at least one.")
    return table


def _run(
    function: Any,
    table: Table,
    labels: dict[str, Labels],
    kept: tuple[VariableModels, ...],
    n_jobs: int | None,
    *,
    show: bool,
) -> Iterator[Any]:
    """Run a function for all rows part by part, in threads."""
    starts = range(0, table.n_rows, ROWS_AT_A_TIME)
    ends = ((start, min(start + ROWS_AT_A_TIME, table.n_rows)) for start in starts)
    parts = (
        RowsToScore(
            table.slice(start, stop),
            {name: own[start:stop] for name, own in labels.items()},
            f", from row {start:,} on",
        )
        for start, stop in ends
    )
    with _one_thread_each(kept):
        done = ThreadExecutor(n_workers(n_jobs)).run(function, parts, kept)
        yield from tracked(done, len(starts), what=f"parts of {ROWS_AT_A_TIME:,} rows", show=show)


def _one_thread_each(kept: Sequence[VariableModels]) -> AbstractContextManager[Any]:
    """Limit estimators to one thread each, for all worker threads at once."""
    if all(model.scorer.kind != "sklearn" for own in kept for model in own.models):
        return nullcontext()
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


def read_labels(
    y: Any,
    sensitive_features: Any,
    table: Table,
    variables: Sequence[Variable],
    provenance: Provenance,
    unknown: Any = None,
) -> dict[str, Labels]:
    """Read the known labels of new rows, with the names and unknown values of the rows that were learnt."""
    target, *protected = variables
    found = {}
    if y is not None:
        found[target.name] = _target_labels(target, target_column(y, table.n_rows))
    values = provenance.unknown if unknown is None else unknown
    columns = [column for column, _ in protected_columns(sensitive_features, table, values)]
    names, known = [column.name for column in columns], [variable.name for variable in protected]
    unnamed = not (provenance.names_given and all(column.named for column in columns))
    listed = f"they know {list_names([repr(name) for name in known])}" if known else "they know none"
    places = match_names(
        names,
        known,
        by_name=len(names) != len(known) or not unnamed,
        counts="",
        lacking=lambda name: (
            f"`sensitive_features` names {name!r}, a protected attribute that the models have not learnt "
            f"({listed}){closest_names(name, known)}"
        ),
    )
    for place, column in zip(places, columns, strict=True):
        found[protected[place].name] = _protected_labels(protected[place], column)
    return found


def known_labels(variable: Variable, column: Column) -> Labels:
    """Encode labels with the codes that models learnt; numbers are returned unchanged.

    Examples
    --------
    >>> from fado.tabular import column_from, variable_from
    >>> sex = variable_from(column_from("sex", ["m", "f"]))
    >>> known_labels(sex, column_from("sex", ["f", "m", "x", None]))
    array([ 0,  1, -1, -2], dtype=int32)
    """
    if variable.kind == "continuous":
        if column.levels is not None:
            raise ValueError(
                f"The labels of {variable.name!r} hold text, and its models learnt numbers: convert them."
            )
        return column.numbers()
    if variable.has_missing:
        return label_codes(column, variable.classes[:-1], missing=len(variable.classes) - 1)
    return label_codes(column, variable.classes)


def _target_labels(target: Variable, column: Column) -> Labels:
    labels = known_labels(target, column)
    if target.kind == "classes" and (labels == UNSEEN).any():
        codes, entries = column.encode()
        strange = column.label_of(entries[codes[np.argmax(labels == UNSEEN)]])
        shown = list_names([repr(label) for label in target.classes])
        raise ValueError(
            f"`y` holds the label {strange!r}, which the models have not learnt (they know {shown}): correct "
            "it, or leave `y` out."
        )
    return labels


def _protected_labels(attribute: Variable, column: Column) -> Labels:
    """Encode the labels of an attribute; raise an error if all are new and of another type."""
    labels = known_labels(attribute, column)
    if attribute.kind == "continuous":
        return labels
    codes, entries = column.encode()
    told = codes >= 0
    if told.any() and (labels[told] == UNSEEN).all():
        strange = column.label_of(entries[codes[told][0]])
        if isinstance(strange, str) is not isinstance(attribute.classes[0], str):
            shown = list_names([repr(label) for label in attribute.classes])
            raise ValueError(
                f"`sensitive_features` holds the label {strange!r} of {attribute.name!r}, whose labels are "
                f"{shown}: give it the same type, or leave the attribute out."
            )
    return labels


def load_models(directory: str | os.PathLike[str]) -> ValuationModels:
    """Read models that `ValuationModels.save` wrote.

    No code from the directory is run. Estimators other than LightGBM's are read only if they consist of
    classes on an explicit list.

    Parameters
    ----------
    directory : path-like
        The directory that `save` wrote.

    Returns
    -------
    ValuationModels
        They give exactly the same values as the models that were saved.

    Raises
    ------
    ValueError
        If the directory has no saved models, or a file is missing, damaged or of other models; the message
        names the file.

    See Also
    --------
    fado.valuation.ValuationModels : The models and what they can do.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fado import OutOfBagEntropy
    >>> from fado.valuation import load_models
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> valuator = OutOfBagEntropy(keep_models=True, random_state=0)
    >>> valuator = valuator.fit(X, X[:, 0] > 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     valuator.models_.save(f"{folder}/models")
    ...     models = load_models(f"{folder}/models")
    >>> int((models.value(X)["y"] != valuator.value(X)["y"]).sum())  # differences
    0
    """
    folder, told = Path(directory), SAVED.open(directory)
    try:
        return _models_of(folder, told)
    except DamagedError as error:
        raise ValueError(str(error)) from error.__cause__
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError(f"{str(folder / SAVED.name)!r} cannot be read as models: {error}") from error


def _describe(model: KeptModel, name: str, schemas: list[Any], files: dict[str, bytes]) -> dict[str, Any]:
    """Describe a model; its columns and its content are added to `schemas` and `files`."""
    plain, content = model.scorer.parts()
    if "schema" in plain:
        if plain["schema"] not in schemas:
            schemas.append(plain["schema"])
        plain = {**plain, "schema": schemas.index(plain["schema"])}
    if model.scorer.kind in ENDINGS:
        files[f"{name}.{ENDINGS[model.scorer.kind]}"] = content
    return {"bag": model.bag, "training_mean": model.training_mean.hex(), "scorer": plain}


def _describe_variable(own: VariableModels) -> dict[str, Any]:
    variable = own.variable
    return {
        "name": variable.name,
        "kind": variable.kind,
        "classes": [label_to(label) for label in variable.classes],
        "has_missing": variable.has_missing,
        "excluded": sorted(variable.excluded),
        "sees_target": variable.sees_target,
        "furthest": own.furthest.hex(),
        "largest_error": own.largest_error.hex(),
    }


def _models_of(folder: Path, told: Mapping[str, Any]) -> ValuationModels:
    """Make the models that a manifest describes."""
    read: set[str] = set()
    kept = []
    for number, entry in enumerate(told["variables"]):
        variable = _variable_of(entry)
        models = []
        for place, own in enumerate(entry["models"]):
            model, name = _model_of(folder, told, own, f"{number}-{place}")
            _check_fits(model, variable)
            models.append(model)
            read |= {name} if name else set()
        ends = [float.fromhex(entry[name]) for name in ("furthest", "largest_error")]
        if not models or not all(0 < end < np.inf for end in ends):
            raise ValueError(f"its description of the models of {variable.name!r} is broken.")
        kept.append(VariableModels(variable, tuple(models), *ends))
    if set(told["files"]) != read:
        raise ValueError("its list of files is not that of its models.")
    _check_variables(kept)
    n_rows, digest = told["n_rows"], told["target"]
    if type(n_rows) is not int or n_rows < 1 or not isinstance(digest, str):
        raise ValueError("its description of the training rows is broken.")
    return ValuationModels(tuple(kept), n_rows, digest, Provenance.from_dict(decode(told["provenance"])))


def _model_of(
    folder: Path, told: Mapping[str, Any], own: Mapping[str, Any], name: str
) -> tuple[KeptModel, str]:
    """Read one model, and return the name of its file; empty if it needs none."""
    plain = dict(own["scorer"])
    if "schema" in plain:
        plain["schema"] = _entry(told["schemas"], plain["schema"])
    ending = ENDINGS.get(plain["kind"])
    file = f"{name}.{ending}" if ending else ""
    content = SAVED.read_file(folder / file, told["files"].get(file)) if file else b""
    try:
        scorer = scorer_from(plain, content)
    except ValueError as error:
        raise DamagedError(f"{str(folder / (file or SAVED.name))!r} cannot be read: {error}") from error
    bag = own["bag"]
    if type(bag) is not int or bag < 0:
        raise ValueError("the number of a bag is broken.")
    return KeptModel(bag, scorer, float.fromhex(own["training_mean"])), file


def _entry(schemas: Any, number: Any) -> Any:
    if type(number) is not int or not 0 <= number < len(schemas):
        raise ValueError("its description of a model's columns is broken.")
    return schemas[number]


def _variable_of(entry: Mapping[str, Any]) -> Variable:
    name, kind, classes = entry["name"], entry["kind"], tuple(map(label_from, entry["classes"]))
    flags = entry["has_missing"], entry["sees_target"]
    fits = len(classes) >= 2 if kind == "classes" else kind == "continuous" and not classes
    if not isinstance(name, str) or not fits or not all(isinstance(own, bool) for own in flags):
        raise ValueError("its description of a variable is broken.")
    excluded = frozenset(int(j) for j in entry["excluded"])
    return Variable(name, kind, np.zeros(0), classes, excluded, flags[1], flags[0])


def _check_fits(model: KeptModel, variable: Variable) -> None:
    """Raise an error for a model of another number of classes, or one that sees hidden columns."""
    scorer = model.scorer
    if scorer.n_classes != len(variable.classes) or (scorer.sees_target and not variable.sees_target):
        raise ValueError(f"a model does not fit the variable {variable.name!r}.")
    if variable.kind == "continuous" and not np.isfinite(model.training_mean):
        raise ValueError(f"a model of {variable.name!r} has no training mean.")


def _check_variables(kept: list[VariableModels]) -> None:
    names = [own.variable.name for own in kept]
    if names[:1] != [TARGET] or len(set(names)) != len(names) or kept[0].variable.sees_target:
        raise ValueError(f"its variables must have different names, {TARGET!r} first.")
    bags = {model.bag for model in kept[0].models}
    if any(model.bag not in bags for own in kept for model in own.models):
        raise ValueError(f"every bag must have a model of {TARGET!r}.")
