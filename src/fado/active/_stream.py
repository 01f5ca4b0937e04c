"""A scikit-activeml strategy for streams: query rows as they come, within a budget."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from skactiveml.base import BudgetManager, SingleAnnotatorStreamQueryStrategy
from skactiveml.stream.budgetmanager import BalancedIncrementalQuantileFilter
from skactiveml.utils import call_func, check_budget_manager, check_random_state

from fado.active._utilities import is_table_like, pool_utilities, read_pool, value_pool
from fado.tabular import Table, note_features, read_rows

__all__ = ["UtilityStream"]

FloatArray = npt.NDArray[np.float64]


class UtilityStream(SingleAnnotatorStreamQueryStrategy):
    """Query the rows of a stream whose utility is high compared with the rows before them.

    With a budget of 0.1, a row's label is asked for if its utility is in the highest tenth of the last 100
    rows. The bar is lowered while less has been spent than the budget allows, and raised while more has been
    spent. Before anything has been learnt, rows have no utility, and labels are asked for at random.

    Parameters
    ----------
    valuator : valuator
        A valuator fitted with ``keep_models=True``, an `OnlineEntropy`, or any other object whose
        ``value(X)`` gives the `Valuation` of new rows. Every query calls it, and it may learn in between.
    utility : utility, optional
        How a row's values combine. None means ``LinearUtility(0.75)``, or the value for the target alone if
        the valuator knows no protected attribute.
    budget_manager : BudgetManager, optional
        A budget manager of scikit-activeml; None means its `BalancedIncrementalQuantileFilter`, which works
        as described above.
    budget : float, optional
        The share of the rows to label; None means 0.1, or the budget of `budget_manager`.
    random_state : int, RandomState or None, default=None
        Seed of the draws before anything has been learnt.

    Attributes
    ----------
    budget_manager_ : BudgetManager
        The budget manager with its state.
    n_seen_ : int
        How many rows `update` was given so far.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import OutOfBagEntropy
    >>> from fado.active import UtilityStream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=3000) > 0
    >>> valuator = OutOfBagEntropy(keep_models=True, random_state=0).fit(X[:1000], y[:1000])
    >>> stream = UtilityStream(valuator, budget=0.1)
    >>> asked = []
    >>> for start in range(1000, 3000, 50):
    ...     batch = X[start : start + 50]
    ...     rows = stream.query(batch)
    ...     stream = stream.update(batch, rows)
    ...     asked.extend(start + rows)
    >>> bool(180 < len(asked) < 220), bool(np.abs(X[asked, 0]).mean() < 0.3)
    (True, True)
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
        """Choose which of the rows that have come to label; call `update` afterwards to record the choice.

        Parameters
        ----------
        candidates : array, sparse matrix, pandas, polars or pyarrow table of shape (n_candidates, n_features)
            The rows, in the order in which they came.
        return_utilities : bool, default=False
            Whether to give the utilities as well.

        Returns
        -------
        queried_indices : ndarray of shape (n_queried_indices,)
            The positions of the rows whose labels to ask for.
        utilities : ndarray of shape (n_candidates,)
            The utilities of all candidates; only with `return_utilities`.
        """
        table = read_pool(candidates, "candidates")
        if not isinstance(return_utilities, bool):
            raise TypeError(f"`return_utilities` must be True or False, got {return_utilities!r}.")
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
        """Record which of the rows that have come were queried.

        Parameters
        ----------
        candidates : array, sparse matrix, pandas, polars or pyarrow table of shape (n_candidates, n_features)
            The rows, as `query` was given them.
        queried_indices : array of int
            The positions of those whose labels were asked for.
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
        told = (
            {"utilities": self._utilities(table)}
            if budget_manager_param_dict is None
            else dict(budget_manager_param_dict)
        )
        rows = np.arange(table.n_rows)[:, None]  # which a manager counts
        call_func(manager.update, candidates=rows, queried_indices=positions, **told)
        self.budget_manager_ = manager
        self.n_seen_ = getattr(self, "n_seen_", 0) + table.n_rows
        return self

    def _manager(self) -> Any:
        """Give the budget manager, at first a copy of the one that was set."""
        if hasattr(self, "budget_manager_"):
            return self.budget_manager_
        manager = self.budget_manager
        if manager is not None and not isinstance(manager, BudgetManager):
            raise TypeError(
                f"`budget_manager` must be a budget manager of scikit-activeml or None, got {manager!r}."
            )
        budget = _read_budget(self.budget)
        if manager is not None:
            _read_budget(manager.budget, "budget_manager.budget")
        return check_budget_manager(budget, manager, BalancedIncrementalQuantileFilter)

    def _utilities(self, table: Table) -> FloatArray:
        """Give the rows' utilities; where there are none, numbers that `query` and `update` draw alike."""
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
    if isinstance(budget, bool) or not isinstance(budget, Real):
        raise TypeError(f"`{name}` must be the share of rows to label, in (0, 1], got {budget!r}.")
    if not 0 < float(budget) <= 1:
        raise ValueError(f"`{name}` must be the share of rows to label, in (0, 1], got {budget}.")
    return float(budget)


def _read_positions(queried_indices: Any, n_rows: int) -> npt.NDArray[np.int64]:
    try:
        return read_rows(queried_indices, n_rows, "`queried_indices`")
    except (TypeError, ValueError) as error:
        raise IndexError(str(error)) from None  # as scikit-activeml's strategies do
