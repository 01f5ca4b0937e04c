"""Strategies for scikit-activeml: query the candidates with the highest utility."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sized
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from skactiveml.base import (
    BudgetManager,
    SingleAnnotatorPoolQueryStrategy,
    SingleAnnotatorStreamQueryStrategy,
)
from skactiveml.stream.budgetmanager import BalancedIncrementalQuantileFilter
from skactiveml.utils import (
    MISSING_LABEL,
    call_func,
    check_budget_manager,
    check_missing_label,
    check_random_state,
    is_labeled,
)
from sklearn.utils import column_or_1d

from fado._checks import MOST_ROWS, check_count
from fado._messages import warn_user
from fado.active._query import is_table_like, pool_utilities, read_pool, value_pool
from fado.tabular import Problem, Table, note_features, read_problem, read_rows, take_rows
from fado.valuation import OutOfBagEntropy

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_FEWEST = 20  # labels: the default models learn nothing from fewer


class UtilitySampling(SingleAnnotatorPoolQueryStrategy):
    """Query the rows with the highest utility to a model and its fairness; a scikit-activeml strategy.

    Every query trains the models of `OutOfBagEntropy` on the labelled rows, values the candidates with them,
    and selects those with the highest utility; ties are broken at random. With fewer than 20 labels, or while
    all labelled rows are of one class or one group, candidates are drawn at random. To use other models, use
    `UtilityQuery`.

    Parameters
    ----------
    utility : utility, optional
        How a row's values are combined. None means ``LinearUtility(0.75)`` with `sensitive_features`, and
        the value for the target alone without.
    missing_label : scalar, str, None or nan, default=nan
        The marker of a missing label in `y`.
    random_state : int, RandomState or None, default=None
        Seed of the models and of draws between equal utilities.

    See Also
    --------
    fado.active.UtilityQuery : Queries with any valuator, group shares, diversity and costs.

    References
    ----------
    D. Kottke et al., "scikit-activeml: A Library and Toolbox for Active Learning Algorithms", Preprints,
    2021.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.active import UtilitySampling
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> sex = np.where(X[:, 1] + rng.normal(size=2000) > 1, "f", "m")
    >>> labels = (X[:, 0] + 0.3 * rng.normal(size=2000) > 0).astype(float)
    >>> y = np.where(np.arange(2000) < 500, labels, np.nan)
    >>> strategy = UtilitySampling(random_state=0)
    >>> rows = strategy.query(X, y, batch_size=50, sensitive_features=sex)
    >>> near = np.abs(X[:, 0]) < 0.5  # where labels are uncertain
    >>> print((rows < 500).sum(), near.mean().round(1), near[rows].mean().round(1))
    0 0.4 1.0
    """

    def __init__(
        self, utility: Any = None, missing_label: Any = MISSING_LABEL, random_state: Any = None
    ) -> None:
        super().__init__(missing_label=missing_label, random_state=random_state)
        self.utility = utility

    def query(
        self,
        X: Any,
        y: Any,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
        sensitive_features: Any = None,
        unknown: Any = None,
    ) -> Any:
        """Select the candidates to label next.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_samples, n_features)
            The features of labelled and unlabelled rows. Text, categories and missing values are allowed.
        y : array-like of shape (n_samples,)
            Their labels; `missing_label` for unlabelled rows.
        candidates : None, array of int, or table of shape (n_candidates, n_features), default=None
            The rows to select from: None means all unlabelled rows of `X`, integers are positions of rows of
            `X`, and a table contains other rows.
        batch_size : int, default=1
            How many to select; all candidates, with a warning, if there are fewer.
        return_utilities : bool, default=False
            Whether to return the utilities as well.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            The protected attributes of the rows of `X`. The models use those of labelled rows.
        unknown : value or list of values, optional
            Values of the protected attributes that mean the same as a missing one, such as ``"?"`` or ``-1``.

        Returns
        -------
        query_indices : ndarray of shape (batch_size,)
            Positions of the selected rows in `X`, or in `candidates` if that is a table.
        utilities : ndarray of shape (batch_size, n_samples) or (batch_size, n_candidates)
            Only with `return_utilities`: the utilities from which each row of the batch was selected; NaN
            for rows that are not candidates, or were selected before.
        """
        table = read_pool(X, "X")
        labels, missing_label = _read_labels(y, table.n_rows, self.missing_label)
        check_missing_label(missing_label, target_type=labels.dtype)
        labelled = is_labeled(labels, missing_label)
        rows, asked = _read_candidates(candidates, table, labelled)
        n_candidates = asked.n_rows if rows is None else len(rows)
        batch_size = check_count("batch_size", batch_size, 1, MOST_ROWS)
        if batch_size > n_candidates:
            there = f"the {n_candidates} candidates: all of them are selected."
            warn_user(f"`batch_size={batch_size}` is more than {there}")
        _check_bool(return_utilities)
        generator = check_random_state(self.random_state, int((~labelled).sum()) + 1)
        seed = int(generator.randint(2**31 - 1))
        problem = _labelled_problem(table, labels, labelled, sensitive_features, unknown)
        utilities = np.zeros(n_candidates)
        if problem is not None:
            pool = asked.source if rows is None else take_rows(table.source, rows)
            utilities = self._utilities(problem, pool, seed)
        note_features(self, table)
        self.missing_label_, self.random_state_ = self.missing_label, generator
        chosen = np.lexsort((generator.random_sample(n_candidates), -utilities))[:batch_size]
        of_all = utilities
        if rows is not None:
            chosen, of_all = rows[chosen], np.full(table.n_rows, np.nan)
            of_all[rows] = utilities
        return (chosen, _by_turn(of_all, chosen)) if return_utilities else chosen

    def _utilities(self, problem: Problem, pool: Any, seed: int) -> FloatArray:
        """Train models on the labelled rows, and give the utilities of the pool."""
        valuator = OutOfBagEntropy(keep_models=True, random_state=seed)
        with warnings.catch_warnings():  # with few labels, a class often has one row
            warnings.filterwarnings("ignore", message=".* has a class with one member")
            valuator.fit_problem(problem)
        utilities = pool_utilities(value_pool(valuator, pool), self.utility)
        least = np.nanmin(utilities) if not np.isnan(utilities).all() else 0.0
        return np.where(np.isnan(utilities), least, utilities)


def _check_bool(return_utilities: Any) -> None:
    if not isinstance(return_utilities, bool):
        raise TypeError(f"`return_utilities` must be True or False, got {return_utilities!r}.")


def _read_labels(y: Any, n_rows: int, missing_label: Any) -> tuple[npt.NDArray[Any], Any]:
    """Give the labels and the marker of a missing one, which is always None for objects."""
    if isinstance(y, type | str) or not isinstance(y, Sized):
        raise TypeError(f"`y` must hold one label per row, or `missing_label`, got {y!r}.")
    labels: npt.NDArray[Any] = column_or_1d(np.asarray(y), warn=True)
    if len(labels) != n_rows:
        raise ValueError(f"`y` has {len(labels)} entries and X has {n_rows} rows: pass one entry per row.")
    is_nan = isinstance(missing_label, Real) and np.isnan(float(missing_label))
    if labels.dtype == object and (missing_label is None or is_nan):
        import pandas as pd

        return np.where(pd.isna(labels), np.array(None), labels), None
    return labels, missing_label


def _read_candidates(
    candidates: Any, table: Table, labelled: npt.NDArray[np.bool_]
) -> tuple[Rows | None, Table]:
    """Give the candidates as rows of the table, or as a separate table."""
    if candidates is None:
        rows = np.flatnonzero(~labelled)
    elif isinstance(candidates, Real) or not is_table_like(candidates):
        error = ValueError if isinstance(candidates, Real) else TypeError
        raise error(f"`candidates` must be rows of X, or a table of other rows, got {candidates!r}.")
    elif _n_dimensions(candidates) != 1:
        return None, read_pool(candidates, "candidates")
    else:
        rows = np.unique(read_rows(candidates, table.n_rows, "`candidates`"))
    if not len(rows):
        raise ValueError("There is no candidate: every row has a label, or `candidates` is empty.")
    return rows, table


def _n_dimensions(candidates: Any) -> int:
    """Give the number of dimensions; a lazy table has no shape yet."""
    if hasattr(candidates, "collect"):
        return 2
    return len(candidates.shape) if hasattr(candidates, "shape") else np.ndim(candidates)


def _labelled_problem(
    table: Table,
    labels: npt.NDArray[Any],
    labelled: npt.NDArray[np.bool_],
    sensitive_features: Any,
    unknown: Any,
) -> Problem | None:
    """Give the labelled rows; None if they are too few, or all of one class or group."""
    rows = np.flatnonzero(labelled)
    if not len(rows):
        return None
    filled = np.where(labelled, labels, labels[rows[0]])
    given = read_problem(table.source, filled, sensitive_features, unknown=unknown)
    problem = given.take(rows)
    pairs = zip(given.protected, problem.protected, strict=True)
    alike = any(_varies(whole) and not _varies(own) for whole, own in pairs)
    return problem if len(rows) >= _FEWEST and _varies(problem.target) and not alike else None


def _varies(variable: Any) -> bool:
    known = variable.labels[variable.known]
    return bool(len(known)) and bool((known != known[0]).any())


def _by_turn(utilities: FloatArray, chosen: Rows) -> FloatArray:
    """Give the utilities at every turn; NaN for rows that were selected before."""
    by_turn = np.tile(utilities, (len(chosen), 1))
    for turn, row in enumerate(chosen):
        by_turn[turn + 1 :, row] = np.nan
    return by_turn


class UtilityStream(SingleAnnotatorStreamQueryStrategy):
    """Query the rows of a stream whose utility is high compared with the rows before them.

    With a budget of 0.1, a row is queried if its utility is in the highest tenth of the last 100 rows. The
    threshold is lowered while fewer rows have been queried than the budget allows, and raised while there
    were more. Before the valuator has seen labels, rows have no utility and are queried at random.

    Parameters
    ----------
    valuator : valuator
        A valuator fitted with ``keep_models=True``, an `OnlineEntropy`, or any other object whose
        ``value(X)`` gives the `Valuation` of new rows. Every query calls it; it may be updated in between.
    utility : utility, optional
        How a row's values are combined. None means ``LinearUtility(0.75)``, or the value for the target
        alone if the valuator has no protected attribute.
    budget_manager : BudgetManager, optional
        A budget manager of scikit-activeml; None means its `BalancedIncrementalQuantileFilter`, which works
        as described above.
    budget : float, optional
        The share of the rows to label; None means 0.1, or the budget of `budget_manager`.
    random_state : int, RandomState or None, default=None
        Seed of the draws before the valuator has seen labels.

    Attributes
    ----------
    budget_manager_ : BudgetManager
        The budget manager with its state.
    n_seen_ : int
        How many rows `update` was given so far.

    See Also
    --------
    fado.OnlineEntropy : A valuator that learns from a stream.
    fado.active.UtilityQuery : Select rows of a complete pool.

    References
    ----------
    D. Kottke, G. Krempl and M. Spiliopoulou, "Probabilistic Active Learning in Datastreams", IDA 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import OutOfBagEntropy
    >>> from fado.active import UtilityStream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=3000) > 0
    >>> valuator = OutOfBagEntropy(keep_models=True, random_state=0)
    >>> valuator = valuator.fit(X[:1000], y[:1000])
    >>> stream = UtilityStream(valuator, budget=0.1)
    >>> asked = []
    >>> for start in range(1000, 3000, 50):
    ...     batch = X[start : start + 50]
    ...     rows = stream.query(batch)
    ...     stream = stream.update(batch, rows)
    ...     asked.extend(start + rows)
    >>> near = np.abs(X[:, 0]) < 0.5  # where labels are uncertain
    >>> print(round(len(asked) / 2000, 1), near[asked].mean().round(1))
    0.1 1.0
    """

    def __init__(
        self,
        valuator: Any,
        utility: Any = None,
        *,
        budget_manager: Any = None,
        budget: float | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(budget=budget, random_state=random_state)
        self.valuator = valuator
        self.utility = utility
        self.budget_manager = budget_manager

    def query(self, candidates: Any, return_utilities: bool = False) -> Any:
        """Select which of the new rows to label; call `update` afterwards to record the selection.

        Parameters
        ----------
        candidates : array, sparse matrix, pandas, polars or pyarrow table of shape (n_candidates, n_features)
            The rows, in the order of the stream.
        return_utilities : bool, default=False
            Whether to return the utilities as well.

        Returns
        -------
        queried_indices : ndarray of shape (n_queried_indices,)
            The positions of the rows to label.
        utilities : ndarray of shape (n_candidates,)
            The utilities of all candidates; only with `return_utilities`.
        """
        table = read_pool(candidates, "candidates")
        _check_bool(return_utilities)
        manager = self._manager()
        utilities = self._utilities(table)
        queried = np.asarray(manager.query_by_utility(utilities), dtype=np.int64)
        self.budget_manager_ = manager
        note_features(self, table)
        return (queried, utilities) if return_utilities else queried

    def update(
        self,
        candidates: Any,
        queried_indices: Any,
        budget_manager_param_dict: Mapping[str, Any] | None = None,
    ) -> UtilityStream:
        """Record which of the new rows were queried.

        Parameters
        ----------
        candidates : array, sparse matrix, pandas, polars or pyarrow table of shape (n_candidates, n_features)
            The rows, as they were passed to `query`.
        queried_indices : array of int
            The positions of the rows that were queried.
        budget_manager_param_dict : mapping, optional
            Arguments for the `update` of the budget manager. None passes the rows' utilities, which the
            default manager needs; they are computed again.

        Returns
        -------
        self
        """
        if not is_table_like(candidates):
            raise TypeError(f"`candidates` must be a table of rows, got {candidates!r}.")
        table = Table.from_input(candidates)
        positions = _read_positions(queried_indices, table.n_rows)
        manager = self._manager()
        told = budget_manager_param_dict
        if told is None:
            told = {"utilities": self._utilities(table)}
        rows = np.arange(table.n_rows)[:, None]  # a manager only counts them
        call_func(manager.update, candidates=rows, queried_indices=positions, **told)
        self.budget_manager_ = manager
        self.n_seen_ = getattr(self, "n_seen_", 0) + table.n_rows
        return self

    def _manager(self) -> Any:
        """Give the budget manager; before the first query, a copy of the one that was set."""
        if hasattr(self, "budget_manager_"):
            return self.budget_manager_
        manager = self.budget_manager
        if manager is not None and not isinstance(manager, BudgetManager):
            raise TypeError(
                f"`budget_manager` must be a budget manager of scikit-activeml or None, got {manager!r}."
            )
        budget = _read_budget(self.budget)
        _read_budget(getattr(manager, "budget", None), "budget_manager.budget")
        return check_budget_manager(budget, manager, BalancedIncrementalQuantileFilter)

    def _utilities(self, table: Table) -> FloatArray:
        """Give the rows' utilities, or random numbers that are the same for `query` and `update`."""
        seed = self.random_state
        if seed is None:
            if not hasattr(self, "_drawn_seed"):
                self._drawn_seed = int(np.random.default_rng().integers(2**31))
            seed = self._drawn_seed
        generator = check_random_state(seed, getattr(self, "n_seen_", 0) + 1)
        utilities = pool_utilities(value_pool(self.valuator, table.source), self.utility)
        return np.where(np.isnan(utilities), generator.random_sample(table.n_rows), utilities)


def _read_budget(budget: Any, name: str = "budget") -> float | None:
    """Give the share of rows that may be labelled, as the float that scikit-activeml asks for."""
    if budget is None:
        return None
    wrong = f"`{name}` must be the share of rows to label, in (0, 1], got"
    if isinstance(budget, bool) or not isinstance(budget, Real):
        raise TypeError(f"{wrong} {budget!r}.")
    if not 0 < float(budget) <= 1:
        raise ValueError(f"{wrong} {budget}.")
    return float(budget)


def _read_positions(queried_indices: Any, n_rows: int) -> npt.NDArray[np.int64]:
    try:
        return read_rows(queried_indices, n_rows, "`queried_indices`")
    except (TypeError, ValueError) as error:
        raise IndexError(str(error)) from None  # as scikit-activeml's strategies do
