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

from fado._messages import closest_names, insert_parameters
from fado._progress import tracked
from fado._records import encode, label_from, label_to, record_from
from fado._storage import DamagedError, Manifest, digest_of, replacing_directory, write_file
from fado._typing import Floats
from fado._version import __version__, library_versions
from fado.engine import scorer_from
from fado.execution import ThreadExecutor, n_workers
from fado.tabular import Problem, Table, Variable
from fado.valuation._base import target_pattern
from fado.valuation._new_rows import Labels, read_labels, table_of
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
        return [kept.variable.name for kept in self.kept]

    @property
    def n_models(self) -> dict[str, int]:
        """How many models each variable has."""
        return {kept.variable.name: len(kept.models) for kept in self.kept}

    @property
    def scales(self) -> dict[str, Any]:
        """The scale of each variable's values."""
        return {
            kept.variable.name: ENTROPY if kept.variable.kind == "classes" else CLOSENESS
            for kept in self.kept
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
            Protected attributes, all or some. They are used for `label_probability` and do not change values.
        unknown : value or list of values, optional
            Values of the attributes that mean the same as a missing one; None means those of the fit.
        {n_jobs, progress}

        Returns
        -------
        Valuation
            `counts` are the numbers of models. `label_probability` is known for variables whose labels are
            given. `epistemic` is the entropy of the mean prediction minus the mean entropy: the part that
            more training rows could reduce. It is NaN for a continuous variable, and if there is one model.

        Raises
        ------
        ValueError
            If a column that a model has seen is missing, or `y` has a label that no model has learnt.
        """
        table = table_of(X)
        variables = [kept.variable for kept in self.kept]
        labels = read_labels(y, sensitive_features, table, variables, self.provenance, unknown)
        chunks = list(_run(score_rows, table, labels, self.kept, n_jobs, show=progress))
        arrays: dict[str, Any] = {
            field: {name: np.concatenate([chunk[field][name] for chunk in chunks]) for name in self.variables}
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
        models = self._of(variable)
        if models.variable.kind != "classes":
            raise ValueError(f"{variable!r} is a number, which has no probabilities of classes.")
        table = table_of(X)
        labels = read_labels(y, None, table, [models.variable for models in self.kept], self.provenance)
        kept = (models,) if models is self.kept[0] else (self.kept[0], models)
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
        for number, kept in enumerate(self.kept):
            models = []
            for place, model in enumerate(kept.models):
                plain, content = model.scorer.parts()
                if "schema" in plain:
                    if plain["schema"] not in schemas:
                        schemas.append(plain["schema"])
                    plain = {**plain, "schema": schemas.index(plain["schema"])}
                if model.scorer.kind in ENDINGS:
                    files[f"{number}-{place}.{ENDINGS[model.scorer.kind]}"] = content
                training_mean = model.training_mean.hex()
                models.append({"bag": model.bag, "training_mean": training_mean, "scorer": plain})
            variables.append(
                {
                    "name": kept.variable.name,
                    "kind": kept.variable.kind,
                    "classes": [label_to(label) for label in kept.variable.classes],
                    "has_missing": kept.variable.has_missing,
                    "excluded": sorted(kept.variable.excluded),
                    "sees_target": kept.variable.sees_target,
                    "furthest": kept.furthest.hex(),
                    "largest_error": kept.largest_error.hex(),
                    "models": models,
                }
            )
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
                    "provenance": encode(self.provenance),
                    "schemas": schemas,
                    "variables": variables,
                    "files": {name: digest_of(content) for name, content in files.items()},
                },
            )

    def _of(self, variable: str) -> VariableModels:
        for models in self.kept:
            if models.variable.name == variable:
                return models
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


def _run(
    function: Any,
    table: Table,
    labels: dict[str, Labels],
    kept: tuple[VariableModels, ...],
    n_jobs: int | None,
    *,
    show: bool,
) -> Iterator[Any]:
    """Run a function for all rows chunk by chunk, in threads; estimators have one thread each."""
    starts = range(0, table.n_rows, ROWS_AT_A_TIME)
    ends = ((start, min(start + ROWS_AT_A_TIME, table.n_rows)) for start in starts)
    chunks = (
        RowsToScore(
            table.slice(start, stop),
            {name: codes[start:stop] for name, codes in labels.items()},
            f", from row {start:,} on",
        )
        for start, stop in ends
    )
    limits: AbstractContextManager[Any] = nullcontext()
    if any(model.scorer.kind == "sklearn" for models in kept for model in models.models):
        from threadpoolctl import threadpool_limits

        limits = threadpool_limits(1)
    with limits:
        done = ThreadExecutor(n_workers(n_jobs)).run(function, chunks, kept)
        yield from tracked(done, len(starts), what=f"parts of {ROWS_AT_A_TIME:,} rows", show=show)


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
    folder, manifest = Path(directory), SAVED.open(directory)
    try:
        kept = tuple(
            _variable_from(folder, manifest, number, entry)
            for number, entry in enumerate(manifest["variables"])
        )
        provenance = record_from(Provenance, manifest["provenance"], "their provenance")
        return ValuationModels(kept, manifest["n_rows"], manifest["target"], provenance)
    except DamagedError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError(f"{str(folder / SAVED.name)!r} cannot be read as models: {error}") from error


def _variable_from(
    folder: Path, manifest: Mapping[str, Any], number: int, entry: Mapping[str, Any]
) -> VariableModels:
    """Read the models of a variable that a manifest describes."""
    variable = Variable(
        entry["name"],
        entry["kind"],
        np.zeros(0),
        tuple(map(label_from, entry["classes"])),
        frozenset(entry["excluded"]),
        entry["sees_target"],
        entry["has_missing"],
    )
    models = []
    for place, model in enumerate(entry["models"]):
        plain = dict(model["scorer"])
        if "schema" in plain:
            plain["schema"] = manifest["schemas"][plain["schema"]]
        file, content = SAVED.name, b""
        if plain["kind"] in ENDINGS:
            file = f"{number}-{place}.{ENDINGS[plain['kind']]}"
            content = SAVED.read_file(folder / file, manifest["files"].get(file))
        try:
            scorer = scorer_from(plain, content)
        except ValueError as error:
            raise DamagedError(f"{str(folder / file)!r} cannot be read: {error}") from error
        models.append(KeptModel(model["bag"], scorer, float.fromhex(model["training_mean"])))
    ends = float.fromhex(entry["furthest"]), float.fromhex(entry["largest_error"])
    return VariableModels(variable, tuple(models), *ends)
