"""The models that values came from, kept to value rows that were not there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import closest_names
from fado._progress import tracked
from fado.execution import ThreadExecutor, n_workers
from fado.tabular import Problem, Table, Variable
from fado.valuation._base import target_pattern
from fado.valuation._provenance import CLOSENESS, ENTROPY, FIELDS, Provenance
from fado.valuation._result import Valuation
from fado.valuation.entropy._labels import read_labels
from fado.valuation.entropy._learnt import Learnt
from fado.valuation.entropy._new_rows import (
    ROWS_AT_A_TIME,
    Part,
    VariableModels,
    mean_probabilities,
    parts_of,
    value_part,
)
from fado.valuation.entropy._statistics import largest_known

__all__ = ["NEW_ROWS", "ValuationModels", "digest_of_target", "keep_models", "table_of"]

FloatArray = npt.NDArray[np.float64]

NEW_ROWS = ", new rows"


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
        How many rows the valuator was given.
    target_digest : str
        A digest of the target of those rows, as `digest_of_target` gives it.
    provenance : Provenance
        How the models came about.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import OutOfBagEntropy
    >>> rng = np.random.default_rng(0)
    >>> X, X_new = rng.normal(size=(1000, 3)), np.array([[-2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> y = X[:, 0] + rng.normal(size=1000) > 0
    >>> valuator = OutOfBagEntropy(keep_models=True, random_state=0).fit(X, y)
    >>> valuator.models_
    ValuationModels(y: 10 models, of 1,000 rows)
    >>> far, near = valuator.models_.value(X_new)["y"]
    >>> bool(far < 0.6 < 0.9 < near)
    True
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

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {count} models" for name, count in self.n_models.items())
        return f"ValuationModels({counts}, of {self.n_rows:,} rows)"

    def classes(self, variable: str) -> tuple[Any, ...]:
        """Give the labels of a variable in the order of its probabilities; empty if it is continuous."""
        return self._of(variable).variable.classes

    def value(
        self,
        X: Any,
        y: Any = None,
        sensitive_features: Any = None,
        *,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> Valuation:
        """Value new rows: every model scores every row.

        A row's value is the mean entropy over the models. Without `y`, a model that sees the target predicts
        at every label, and its predictions are averaged by the probabilities that the target's models of the
        same bag give to these labels.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features. Columns are found by name, in any order; columns that no model has seen are ignored.
            If either table has no names, they are found by position. Categories that no model has seen count
            as missing.
        y : array-like of shape (n_rows,), optional
            The target's labels, if they are known, for the models that see the target.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            Protected attributes, all or some. They are used for `agreement` and change no value.
        n_jobs : int, optional
            How many threads score rows; None uses every core. It never changes a value.
        progress : bool, default=False
            Whether to show a progress bar.

        Returns
        -------
        Valuation
            `counts` are the numbers of models. `agreement` is known for variables whose labels are given.
            `epistemic` is the entropy of the mean prediction minus the mean entropy: the part that more rows
            to learn from could take away. It is NaN for a continuous variable, and if there is one model.

        Raises
        ------
        ValueError
            If a column that a model has seen is missing, or `y` holds a label that no model has learnt.
        """
        table = table_of(X)
        named = self.provenance.names_given
        labels = read_labels(y, sensitive_features, table, [own.variable for own in self.kept], named=named)
        arrays = {field: self._empty(field, table.n_rows) for field in FIELDS}
        for part, fields in _run(value_part, table, labels, self.kept, n_jobs, show=progress):
            rows = slice(part.start, part.start + part.table.n_rows)
            for field, by_name in fields.items():
                for name, own in by_name.items():
                    arrays[field][name][rows] = own
        target = self.kept[0].variable
        known = labels.get(target.name)
        pattern = target_pattern(known) if known is not None and target.kind == "classes" else None
        valuation = Valuation(
            **arrays,
            scales={own.variable.name: _scale(own.variable) for own in self.kept},
            provenance=replace(
                self.provenance,
                algorithm=self.provenance.algorithm + NEW_ROWS,
                settings={**self.provenance.settings, "y_given": known is not None},
            ),
        )
        return valuation.with_rows(table.index, pattern)

    def probabilities(self, X: Any, variable: str, y: Any = None, *, n_jobs: int | None = None) -> FloatArray:
        """Give the mean probabilities of a variable's classes over its models.

        Parameters
        ----------
        X : Table, or whatever `value` takes
            The features.
        variable : str
            ``"y"`` or a protected attribute; it must have classes.
        y : array-like of shape (n_rows,), optional
            The target's labels, if they are known, for the models that see the target.
        n_jobs : int, optional
            How many threads score rows; None uses every core.

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
        labels = read_labels(y, None, table, [each.variable for each in self.kept], named=True)
        kept = (own,) if own is self.kept[0] else (self.kept[0], own)
        found = _run(mean_probabilities, table, labels, kept, n_jobs, show=False)
        return np.concatenate([probabilities for _, probabilities in found])

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
        from fado.valuation.entropy._saved_models import write

        write(self, directory)

    def _empty(self, field: str, n_rows: int) -> dict[str, npt.NDArray[Any]]:
        kind = np.int32 if field == "counts" else np.float64
        return {name: np.empty(n_rows, dtype=kind) for name in self.variables}

    def _of(self, variable: str) -> VariableModels:
        for own in self.kept:
            if own.variable.name == variable:
                return own
        raise ValueError(
            f"The models have learnt no variable {variable!r}{closest_names(variable, self.variables)}"
        )


def keep_models(
    problem: Problem, variables: Sequence[Variable], learnt: Learnt, provenance: Provenance
) -> ValuationModels:
    """Gather what the fits have left.

    Parameters
    ----------
    problem : Problem
        What was valued.
    variables : sequence of Variable
        What was learnt, the target first.
    learnt : Learnt
        What the fits say, and their models.
    provenance : Provenance
        Of the values.
    """
    kept = []
    for variable in variables:
        moments, own = learnt.moments[variable.name], {}
        if variable.kind == "continuous":
            own = {"furthest": largest_known(moments.mean), "largest_error": largest_known(moments.agreement)}
        models = sorted(learnt.kept[variable.name], key=lambda model: model.bag)
        kept.append(VariableModels(replace(variable, labels=variable.labels[:0]), tuple(models), **own))
    return ValuationModels(tuple(kept), problem.n_rows, digest_of_target(problem.target), provenance)


def digest_of_target(target: Variable) -> str:
    """Give a digest of a target in the order of its rows, by which the same rows are recognised."""
    if target.kind == "classes":
        return target_pattern(target.labels)
    return hashlib.blake2b(np.ascontiguousarray(target.labels).data, digest_size=16).hexdigest()


def table_of(X: Any) -> Table:
    """Read the shape of new rows, of which there must be some."""
    table = X if isinstance(X, Table) else Table.from_input(X)
    if table.n_rows == 0:
        raise ValueError("`X` has 0 row(s) (n_samples = 0): there is nothing to value; give at least one.")
    return table


def _scale(variable: Variable) -> Any:
    return ENTROPY if variable.kind == "classes" else CLOSENESS


def _run(
    function: Any,
    table: Table,
    labels: dict[str, npt.NDArray[Any]],
    kept: tuple[VariableModels, ...],
    n_jobs: int | None,
    *,
    show: bool,
) -> Iterator[tuple[Part, Any]]:
    """Run a function for all rows part by part, in threads."""
    parts = parts_of(table, labels, ROWS_AT_A_TIME)
    count = -(-table.n_rows // ROWS_AT_A_TIME)
    with _one_thread_each(kept):
        done = ThreadExecutor(n_workers(n_jobs)).run(function, parts, kept)
        yield from tracked(done, count, what=f"parts of {ROWS_AT_A_TIME:,} rows", show=show)


def _one_thread_each(kept: Sequence[VariableModels]) -> AbstractContextManager[Any]:
    """Keep estimators to a thread each, from without: threads that each set it would undo it for others."""
    if all(model.scorer.kind != "sklearn" for own in kept for model in own.models):
        return nullcontext()
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits
