"""Values of a stream: every batch is valued before its labels are known, and learnt when they are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from fado._checks import MOST_ROWS, check_count, check_share, seed_from
from fado._messages import insert_parameters, warn_user, warning_once
from fado.tabular import (
    TARGET,
    UNSEEN,
    Column,
    Problem,
    Table,
    join_problems,
    label_codes,
    protected_columns,
    read_problem,
)
from fado.valuation._base import valuator_parameters
from fado.valuation._result import Valuation
from fado.valuation.entropy import OutOfBagEntropy, ValuationModels
from fado.valuation.online._drift import DriftCheck, Reference, check_drift
from fado.valuation.online._state import State, blank_columns, read, write

if TYPE_CHECKING:
    import pandas as pd

_FEWEST_ROWS = 5  # of which a fifth can be out of bag
_EARLY = 100  # rows; with fewer, a variable with almost a class per row may be continuous
_MOST_CHECKS = 10_000  # that are remembered


@insert_parameters(valuator_parameters)
@dataclass(eq=False, repr=False)
class OnlineEntropy(BaseEstimator):
    """Value rows that arrive in batches, before their labels are known, with models of earlier batches.

    The last labelled rows are kept in a window. The models are those that `OutOfBagEntropy` trains on the
    window; they are retrained as rows arrive. Of the ways of updating that were tried, only this one came
    close to the values that `OutOfBagEntropy` gives to a complete table. Before a labelled batch is learnt,
    the models predict its labels. If they do worse than expected, a warning reports drift.

    Parameters
    ----------
    {estimators}
    window : int, default=100_000
        How many rows the window holds at most. The oldest rows are dropped first.
    refresh : float, default=0.1
        Models are retrained once the rows that arrived since are this share of the rows that they learnt
        from; 0 retrains them with every batch. After a new label or drift they are retrained at once.
    n_bags : int, default=10
        How many bags; each leaves out a fifth of the rows.
    {z_sees_target, z_exclude, kinds, random_state, n_jobs, progress}

    See Also
    --------
    fado.OutOfBagEntropy : Values of one complete table.

    {References}

    Examples
    --------
    >>> import numpy as np
    >>> from fado import OnlineEntropy
    >>> rng = np.random.default_rng(0)
    >>> online = OnlineEntropy(random_state=0)
    >>> for _ in range(3):
    ...     X = rng.normal(size=(400, 3))
    ...     y, old = X[:, 0] + rng.normal(size=400) > 0, X[:, 1] + X[:, 2] > 1
    ...     valuation = online.value(X)  # before the labels are known
    ...     online = online.learn(X, y, sensitive_features={"old": old})
    >>> valuation.variables, valuation.metadata["model_version"]
    (['y', 'old'], 2)
    >>> online.value([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]])["y"].round()
    array([1., 0.])
    """

    estimators: Any = None
    _: KW_ONLY
    window: int = 100_000
    refresh: float = 0.1
    n_bags: int = 10
    z_sees_target: bool = True
    z_exclude: Sequence[str] | Mapping[str, Sequence[str]] | None = None
    kinds: Mapping[str, str] | None = None
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool = False

    def value(
        self, X: Any, y: Any = None, sensitive_features: Any = None, *, unknown: Any = None
    ) -> Valuation:
        """Value the rows of a batch with the models so far.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features. Columns are matched by name, in any order, or by position if they have no names.
        y : array-like of shape (n_rows,), optional
            The target, if it is known, for the models of protected attributes that see the target.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            Protected attributes, if they are known. They are used for `label_probability` and do not change
            values.
        unknown : value or list of values, optional
            Values of the attributes that mean the same as a missing one; None means those of the first batch.

        Returns
        -------
        Valuation
            As `OutOfBagEntropy.value` returns it. Its `metadata` also hold ``model_version``, ``rows_learnt``
            (by these models), ``batches_seen`` and ``rows_seen``. Before there are models, all values are
            NaN with counts of 0; `waits_for_` describes what is missing.
        """
        table, state = Table.from_input(_as_dense(X)), self._state
        if state.models is None or table.n_rows == 0:
            if state.window is None:
                names = [TARGET, *(column.name for column, _ in protected_columns(sensitive_features, table))]
            else:
                names = [column.name for column in state.window.sources]
            unknown = {name: np.full(table.n_rows, np.nan) for name in names}
            counts = {name: np.zeros(table.n_rows, dtype=np.int32) for name in names}
            valuation = Valuation(unknown, unknown, counts, unknown, unknown)
        else:
            valuation = state.models.value(
                state.as_learnt(table),
                y,
                sensitive_features,
                unknown=unknown,
                n_jobs=self.n_jobs,
                progress=self.progress,
            )
        settings = {
            **valuation.provenance.settings,
            "model_version": state.version,
            "rows_learnt": 0 if state.models is None else state.models.n_rows,
            "batches_seen": state.batches,
            "rows_seen": state.rows,
        }
        return valuation.with_rows(table.index, algorithm="online", settings=settings)

    @insert_parameters()
    def learn(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        unknown: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Add a labelled batch to the window, check it for drift, and retrain the models if it is time.

        A batch that raises an error changes nothing.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features, with the columns of the first batch. New categories are allowed. A sparse matrix is
            made dense. A batch without rows is ignored.
        y : array-like of shape (n_rows,)
            The target. New labels are allowed, and so is a batch with only one label.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            The protected attributes, the same as in the first batch.
        {unknown}
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts in the models' fits, relative to the rows of other batches; a row
            without a weight counts 1. The weights of the window are scaled to a mean of 1 for the fits.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the columns or the protected attributes are not those of the first batch.

        Warns
        -----
        UserWarning
            If drift is detected, with every batch in which it lasts; or if a variable changes from classes to
            continuous or back. Warnings of the training are given once.
        """
        most = check_count("window", self.window, _FEWEST_ROWS, MOST_ROWS)
        refresh = check_share("refresh", self.refresh)
        if Table.from_input(_as_dense(X)).n_rows == 0:
            return self
        before = self._state
        self._warned: set[str] = getattr(self, "_warned", set())
        with warning_once(self._warned):
            batch = window = read_problem(
                _as_dense(X),
                y,
                sensitive_features,
                unknown=unknown,
                sample_weight=sample_weight,
                warn_of_columns=True,
            )
            if before.window is not None:
                window = join_problems(before.window, batch, f"Batch {before.batches + 1}")
            state = replace(
                before,
                window=_last_rows(window, most),
                waiting=before.waiting + batch.n_rows,
                batches=before.batches + 1,
                rows=before.rows + batch.n_rows,
            )
            due = before.models is None or state.waiting >= refresh * before.models.n_rows
            state, urgent = self._check_batch(state, batch, (y, sensitive_features))
            self._take_over(state, train=due or urgent)
        for check in self._state.checks:
            if check.drift and check.batch > before.batches:
                warn_user(
                    f"Drift in batch {check.batch}: the uncertainty about labels of {check.variable!r} is "
                    f"{check.loss:.3f} on average, and was {check.expected:.3f} before "
                    f"({check.statistic:.1f} standard errors). Models are retrained with the new rows; if "
                    "older rows no longer apply, drop them with `forget`."
                )
        for name, (old, new) in _changed_kinds(before.models, self._state.models).items():
            warn_user(
                f"Variable {name!r} was valued as {old} and is now valued as {new}, by the number of its "
                f'labels: set `kinds={{{name!r}: "classes"}}` or "continuous", whichever it is.'
            )
        return self

    def forget(self, keep: int) -> Self:
        """Drop all but the last rows from the window, and retrain the models on these.

        If models cannot learn from the remaining rows (`waits_for_` describes why), the old models stay until
        a later batch makes it possible.

        Parameters
        ----------
        keep : int
            How many rows to keep, for example those that arrived since drift was detected.

        Returns
        -------
        self
        """
        keep = check_count("keep", keep, 1, MOST_ROWS)
        state = self._state
        if state.window is not None:
            # the models are due, if not now then with the next batch
            waiting = state.waiting if state.models is None else state.models.n_rows
            state = replace(state, window=_last_rows(state.window, keep), pools={}, waiting=waiting)
            self._take_over(state, train=True)
        return self

    @property
    def models_(self) -> ValuationModels | None:
        """The models, as `ValuationModels`; None before there are any."""
        return self._state.models

    @property
    def n_rows_(self) -> int:
        """How many rows the window holds."""
        return 0 if self._state.window is None else self._state.window.n_rows

    @property
    def waits_for_(self) -> str:
        """What models still need before they can learn from the window, as text; empty if nothing."""
        window = self._state.window
        return "a first batch" if window is None else what_is_lacking(window, self.kinds)

    @property
    def drift_(self) -> pd.DataFrame:
        """The last 10,000 checks for drift, one row for each check of a variable.

        A check compares the models' uncertainty about labels that they had not learnt with their uncertainty
        out of bag; uncertainty is 1 minus `label_probability`. `loss` is its mean over the last `rows` rows
        up to batch number `batch`, `expected` its mean out of bag, and `statistic` the difference in standard
        errors. `drift` is whether that is more than chance explains. While rows do not change, at most about
        1 check in 1,000 detects drift in any variable.
        """
        import pandas as pd

        columns = [field.name for field in fields(DriftCheck)]
        return pd.DataFrame([vars(check) for check in self._state.checks], columns=columns)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the window, the models and the settings into a directory, completely or not at all.

        The directory holds the rows of the window themselves. `estimators` are not saved.

        Parameters
        ----------
        directory : path-like
            A new directory, an empty one, or one that an earlier `save` wrote, which is replaced.

        Raises
        ------
        FileExistsError
            If the directory holds anything else.
        """
        write(self, self._state, directory)

    @classmethod
    def load(
        cls,
        directory: str | os.PathLike[str],
        *,
        estimators: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> OnlineEntropy:
        """Read what `save` wrote, and continue with exactly the same values.

        Parameters
        ----------
        directory : path-like
            The directory that `save` wrote. No code from it is run.
        estimators : estimator or list of estimators, optional
            The estimators that it was made with, if any were passed: they are not saved.
        n_jobs, progress
            As in the constructor.

        Returns
        -------
        OnlineEntropy
            In the state in which it was saved.

        Raises
        ------
        ValueError
            If the directory has no saved state, `estimators` are not those that it was made with, or a file
            is missing, damaged or of another state. The message names the file.
        """
        settings, state, seed = read(directory, estimators)
        online = cls(estimators, **settings, random_state=seed, n_jobs=n_jobs, progress=progress)
        online._learnt = state
        if seed is not None:
            online.seed_ = seed
        return online

    @property
    def _state(self) -> State:
        state: State = getattr(self, "_learnt", State())
        return state

    def _check_batch(self, state: State, batch: Problem, labels: tuple[Any, Any]) -> tuple[State, bool]:
        """Check a batch of the window for drift; return also whether models must be retrained at once.

        `labels` are the batch's target and protected attributes, as they were given. Models must be retrained
        if they miss something: a label that they do not know, or drift.
        """
        models, window = state.models, state.window
        if models is None or window is None or has_new_label(batch.sources[0], models.classes(TARGET)):
            return state, True
        valued = models.value(
            state.as_learnt(batch.table), *labels, unknown=batch.unknown, n_jobs=self.n_jobs
        )
        doubts = {name: 1.0 - valued.field("label_probability", name) for name in models.variables}
        pools, checks = check_drift(doubts, state.references, state.pools, state.batches)
        state = replace(state, pools=pools, checks=(*state.checks, *checks)[-_MOST_CHECKS:])
        strange = any(has_new_label(column, models.classes(column.name)) for column in window.sources)
        return state, strange or any(check.drift for check in checks)

    def _take_over(self, state: State, *, train: bool) -> None:
        """Train models, if it is time and there are enough rows, and only then change anything."""
        seed = getattr(self, "seed_", None)
        seed = seed_from(self.random_state) if seed is None else seed
        if train and state.window is not None and not what_is_lacking(state.window, self.kinds):
            settings = self.get_params(deep=False)
            del settings["window"], settings["refresh"]
            valuator = OutOfBagEntropy(**{**settings, "random_state": seed, "keep_models": True})
            valuation, models = valuator.fit_problem(state.window).valuation_, valuator.models_
            changed = _changed_kinds(state.models, models)
            state = replace(
                state,
                models=models,
                references={
                    name: Reference.of(1.0 - valuation.field("label_probability", name))
                    for name in models.variables
                },
                blank=blank_columns(state.window.table),
                version=state.version + 1,
                waiting=0,
                pools={name: pool for name, pool in state.pools.items() if name not in changed},
            )
        self.seed_, self._learnt = seed, state


def _last_rows(problem: Problem, most: int) -> Problem:
    """Return the last rows, without the rest of their tables."""
    return problem.take(np.arange(max(problem.n_rows - most, 0), problem.n_rows), alone=True)


def _changed_kinds(
    before: ValuationModels | None, after: ValuationModels | None
) -> dict[str, tuple[str, str]]:
    """Return the variables whose kind differs between models, with both kinds."""
    if before is None or after is None:
        return {}
    pairs = [(old.variable, new.variable) for old, new in zip(before.kept, after.kept, strict=True)]
    return {old.name: (old.kind, new.kind) for old, new in pairs if old.kind != new.kind}


def has_new_label(column: Column, classes: tuple[Any, ...]) -> bool:
    """Return whether a column has a label that is not among these classes; numbers have no classes."""
    return bool(classes) and bool((label_codes(column, classes) == UNSEEN).any())


def _as_dense(X: Any) -> Any:
    """Return a sparse matrix as a dense array, and anything else unchanged."""
    import scipy.sparse

    return X.toarray() if scipy.sparse.issparse(X) else X


def what_is_lacking(problem: Problem, kinds: Mapping[str, str] | None) -> str:
    """Describe what is missing before models can learn from these rows; empty if nothing is.

    Examples
    --------
    >>> from fado.tabular import read_problem
    >>> what_is_lacking(read_problem([[0.0]] * 6, [1, 1, 1, 1, 1, 1]), None)
    "a second label of 'y'"
    """
    if problem.n_rows < _FEWEST_ROWS:
        return f"{_FEWEST_ROWS} rows"
    for variable in problem.with_kinds(kinds).variables:
        distinct = len(variable.classes)
        if variable.kind == "continuous":
            known = variable.labels[variable.known]
            distinct = 0 if not len(known) else 1 if (known == known[0]).all() else 2
        if distinct < 2:
            return f"a second label of {variable.name!r}"
        if distinct > 2 and 2 * distinct > problem.n_rows and problem.n_rows < _EARLY:
            return f"more rows for each of the {distinct} labels of {variable.name!r}"
    return ""
