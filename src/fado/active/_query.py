"""Which rows of a pool to label next."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from fado._checks import MOST_ROWS, check_count, check_instance, check_share
from fado._messages import warn_user
from fado.active._diversity import Limits, Ruler, pick_best, pick_diverse
from fado.active._shares import (
    KnownGroups,
    PoolGroups,
    ProbableGroups,
    binding_quotas,
    check_shares,
    expect_quotas,
    groups_named,
    join_groups,
    limit_parts,
    modelled_groups,
    names_groups_of,
    pick_expected,
    quotas_of,
    told_groups,
    warn_if_far_off,
)
from fado.tabular import Table, one_column, take_rows
from fado.utility import LinearUtility
from fado.valuation import Valuation


FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


class UtilityQuery(BaseEstimator):
    """Choose which rows of a pool without labels to label next: those of the highest utility.

    Parameters
    ----------
    valuator : valuator or ValuationModels
        A valuator fitted with ``keep_models=True`` on the rows that have labels, its saved models, or any
        other object whose ``value(X)`` gives the `Valuation` of new rows.
    utility : utility, optional
        How a row's values combine. None means ``LinearUtility(0.75)``, or the value for the target alone if
        the valuator knows no protected attribute.
    group_shares : mapping, "equal" or "pool", optional
        How much of the batch each group gets. A mapping has labels of a protected attribute as keys (or
        tuples, with one label of each of several attributes), and as values shares (floats) or numbers of
        rows (whole numbers). What these leave goes by utility to the groups that are not named, or to all if
        all are named. ``"equal"`` gives every group the same share, ``"pool"`` its share of the pool. If the
        pool's groups are not known, the valuator's models of the attribute predict them, and the numbers of
        rows are expected ones.
    diversity : float, default=0.0
        In [0, 1]. 0 takes the rows of the highest utility, even if they are near-copies of each other. Above
        0, rows are chosen one after the other by ``utility ** (1 - diversity) * distance ** diversity``, with
        the utility scaled to [0, 1] and the distance to the nearest row chosen before. Near-copies are then
        only taken if there are too few other rows.
    epistemic : bool, default=False
        Whether to use only the part of the entropy that more labels would take away (the models disagree),
        not all of it (each model may be unsure). It needs several models of each variable.

    Attributes
    ----------
    valuation_ : Valuation
        The values of the last pool.
    utilities_ : ndarray of shape (n_rows,)
        The utilities of its rows; NaN for a row without values. Such rows are chosen last.
    expected_groups_ : dict
        How many rows of the last batch are in each group of `group_shares`, or else of the protected
        attributes; expected numbers if groups are predicted, and empty if groups cannot be told.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import LinearUtility, OutOfBagEntropy
    >>> from fado.active import UtilityQuery
    >>> rng = np.random.default_rng(0)
    >>> X, pool = rng.normal(size=(1000, 3)), rng.normal(size=(5000, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=1000) > 0
    >>> valuator = OutOfBagEntropy(keep_models=True, random_state=0).fit(X, y)
    >>> rows = UtilityQuery(valuator, LinearUtility(alpha=1)).query(pool, n=100)
    >>> bool(np.abs(pool[rows, 0]).max() < 0.6)  # where the labels are hard to tell
    True
    """

    def __init__(
        self,
        valuator: Any,
        utility: Any = None,
        *,
        group_shares: Any = None,
        diversity: float = 0.0,
        epistemic: bool = False,
    ) -> None:
        self.valuator = valuator
        self.utility = utility
        self.group_shares = group_shares
        self.diversity = diversity
        self.epistemic = epistemic

    def query(
        self,
        X_pool: Any,
        n: int | None = None,
        *,
        sensitive_features: Any = None,
        cost: Any = None,
        budget: float | None = None,
    ) -> Rows:
        """Choose the rows of a pool to label; pass either `n` or `budget`.

        Parameters
        ----------
        X_pool : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The rows without labels, with the columns that the valuator was fitted on.
        n : int, optional
            How many rows to choose; all of the pool, with a warning, if it has fewer.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X_pool, optional
            The protected attributes of the pool, if they are known, for `group_shares`. They change no
            utility, and need not be those that the valuator knows.
        cost : array-like of shape (n_rows,), optional
            What labelling each row costs, above 0. Rows are then taken by their utility per cost.
        budget : float, optional
            What the rows may cost together, instead of `n`; needs `cost`. A row that no longer fits is passed
            over. Shares in `group_shares` are then shares of the budget, and whole numbers are costs.

        Returns
        -------
        ndarray of int
            The rows' positions in the pool, the best first; with `diversity`, in the order of choice. Among
            rows of equal utility, the order of the pool decides.
        """
        table = read_pool(X_pool, "X_pool")
        check_shares(self.group_shares)
        diversity = check_share("diversity", self.diversity)
        costs = read_costs(cost, table.n_rows)
        total = batch_size(n, budget, costs, table.n_rows)
        ruler = Ruler(table) if diversity else None
        valuation = value_pool(self.valuator, X_pool)
        utilities = pool_utilities(valuation, self.utility, epistemic=self.epistemic)
        if np.isnan(utilities).all():
            raise ValueError("No row of the pool has a utility: have the valuator learn from labels first.")
        groups, quotas = self._quotas(X_pool, table, sensitive_features, total)
        if budget is not None and isinstance(groups, ProbableGroups):
            raise ValueError(
                "Shares of a `budget` need the groups of the pool: pass `sensitive_features`, or `n`."
            )
        scores = score_rows(utilities, costs)
        spending = np.ones(table.n_rows) if costs is None or budget is None else costs
        limits = Limits(spending, total)
        if isinstance(groups, KnownGroups):
            limits = limit_parts(groups, quotas, spending, total, counts_rows=budget is None)

        def pick(by: FloatArray) -> Rows:
            return pick_best(by, limits) if ruler is None else pick_diverse(by, limits, diversity, ruler)

        if isinstance(groups, ProbableGroups):
            quotas = binding_quotas(scores, groups.probabilities, quotas, int(total))
            wanted = (scores, groups.probabilities, quotas, int(total))
            chosen = pick(expect_quotas(*wanted)) if ruler is None else pick_expected(*wanted, pick)
            warn_if_far_off(groups, quotas, chosen, diverse=ruler is not None)
        else:
            chosen = pick(scores)
        self.valuation_ = valuation
        self.utilities_ = utilities
        self.expected_groups_ = _expected(self.valuator, X_pool, table, sensitive_features, groups, chosen)
        return chosen

    def _quotas(
        self, X_pool: Any, table: Table, sensitive_features: Any, total: float
    ) -> tuple[PoolGroups | None, FloatArray]:
        """Give the groups that have shares, if some have, and how much each of them is to have."""
        if self.group_shares is None:
            return None, np.empty(0)
        models = _models(self.valuator)
        named = isinstance(self.group_shares, Mapping)
        found = told_groups(models, table, sensitive_features, all_of_classes=not named)
        if not found or (named and not names_groups_of(self.group_shares, list(found.values()))):
            found = _in_order(models, found | modelled_groups(models, X_pool, but=found))
        if not found:
            raise ValueError(
                "`group_shares` need groups, and nothing tells the pool's: pass `sensitive_features` of "
                "classes, or a valuator that keeps models of them, like OutOfBagEntropy."
            )
        if named:
            groups, shares = groups_named(self.group_shares, list(found.values()))
        else:
            groups, shares = join_groups(list(found.values())), {}
        return groups, quotas_of(self.group_shares, shares, groups, total)


def _models(valuator: Any) -> Any:
    """Give what tells the probabilities of groups: models that a valuator has kept, or the models given."""
    return getattr(valuator, "models_", valuator)


def _in_order(models: Any, groups: dict[str, PoolGroups]) -> dict[str, PoolGroups]:
    """Order attributes as the models have them, after those that they do not know."""
    order = list(getattr(models, "variables", []))
    return dict(sorted(groups.items(), key=lambda own: order.index(own[0]) if own[0] in order else -1))


def _expected(
    valuator: Any,
    X_pool: Any,
    table: Table,
    sensitive_features: Any,
    groups: PoolGroups | None,
    chosen: Rows,
) -> dict[Any, float]:
    """Give how many of the chosen rows are in each group, as far as something tells."""
    rows: Any = chosen
    if groups is None:
        models = _models(valuator)
        found = told_groups(models, table, sensitive_features)
        if not found:
            found, rows = modelled_groups(models, take_rows(X_pool, chosen)), slice(None)
        if not found:
            return {}
        groups = join_groups(list(found.values()))
    counts = groups.expected(rows).tolist()
    return {label: count for label, count in zip(groups.labels, counts, strict=True) if count > 0}


def read_costs(cost: Any, n_rows: int) -> FloatArray | None:
    """Read what the rows cost."""
    if cost is None:
        return None
    column = one_column(cost, "cost")
    if column.levels is not None:
        raise ValueError("`cost` must hold numbers, got text.")
    costs = column.numbers()
    if len(costs) != n_rows:
        raise ValueError(f"`cost` has {len(costs)} entries and the pool has {n_rows} rows: pass one per row.")
    wrong = np.flatnonzero(~(np.isfinite(costs) & (costs > 0)))
    if len(wrong):
        raise ValueError(
            f"`cost` must be a positive number in every row, got {costs[wrong[0]]:g} in row {wrong[0]}, "
            "counted from 0."
        )
    return costs


def batch_size(n: Any, budget: Any, costs: FloatArray | None, n_rows: int) -> float:
    """Give what the batch may hold: a number of rows, or what they cost."""
    if (n is None) == (budget is None):
        raise ValueError("Say how many rows to choose by `n`, or what they may cost by `budget`.")
    if n is not None:
        n = check_count("n", n, 1, MOST_ROWS)
        if n > n_rows:
            warn_user(f"`n={n}` is more than the {n_rows} rows of the pool: all of them are chosen.")
        return float(min(n, n_rows))
    if costs is None:
        raise ValueError("`budget` is for rows that have a `cost`: pass it, or say how many rows by `n`.")
    if isinstance(budget, bool) or not isinstance(budget, Real):
        raise TypeError(f"`budget` must be a number, got {budget!r}.")
    spent = float(budget)
    if not 0 < spent < np.inf:
        raise ValueError(f"`budget` must be positive and finite, got {budget}.")
    if costs.min() > spent:
        raise ValueError(f"`budget={spent:g}` is less than {costs.min():g}, what the cheapest row costs.")
    return spent


def score_rows(utilities: FloatArray, costs: FloatArray | None) -> FloatArray:
    """Give what rows are ordered by: utility, or utility per cost; those without come last."""
    if costs is not None:  # which counts against a row whatever the sign of its utility
        utilities = np.where(utilities > 0, utilities / costs, utilities * costs)
    return np.where(np.isnan(utilities), -np.inf, utilities)


DEFAULT_ALPHA = 0.75  # of the utility where none is chosen and there are protected attributes


def read_pool(X: Any, argument: str) -> Table:
    """Read the shape of a pool, which must have rows."""
    table = Table.from_input(X)
    if not table.n_rows:
        raise ValueError(f"`{argument}` has no rows: there is nothing to choose from.")
    return table


def is_table_like(value: Any) -> bool:
    """Tell whether this may hold rows: it has a length or a shape, or is a lazy table."""
    has_rows = isinstance(value, Sized) or hasattr(value, "shape") or hasattr(value, "collect")
    return has_rows and not isinstance(value, type | str)


def value_pool(valuator: Any, X: Any) -> Any:
    """Have a valuator value rows that it was not fitted on; their own groups change no value."""
    if isinstance(valuator, type) or not callable(getattr(valuator, "value", None)):
        raise TypeError(
            "`valuator` must have a method `value` for rows that it has not seen, like "
            f"OutOfBagEntropy(keep_models=True).fit(X, y), got {valuator!r}."
        )
    return valuator.value(X)


def pool_utilities(valuation: Any, utility: Any, *, epistemic: bool = False) -> FloatArray:
    """Give the utility of every row, NaN where it has none.

    Examples
    --------
    >>> valuation = Valuation.from_probabilities([0.5, 1.0], {"sex": [0.5, 0.5]})
    >>> pool_utilities(valuation, None)
    array([1.  , 0.25])
    """
    check_instance("utility", utility)
    if utility is not None and not callable(utility):
        raise TypeError(
            "`utility` must be a utility like LinearUtility(alpha=0.75), or another function of a valuation, "
            f"got {utility!r}."
        )
    if np.isnan(valuation["y"]).all():  # nothing has been learnt yet
        return np.full(len(valuation), np.nan)
    if utility is None:
        utility = LinearUtility(DEFAULT_ALPHA if valuation.protected else 1.0)
    utilities = np.asarray(utility(_epistemic(valuation) if epistemic else valuation), dtype=np.float64)
    if utilities.shape != (len(valuation),):
        raise ValueError(
            f"`utility` gave numbers of shape {utilities.shape} for {len(valuation)} rows: it must give one "
            "per row."
        )
    return np.where(np.isfinite(utilities), utilities, np.nan)


def _epistemic(valuation: Any) -> Valuation:
    """Give the epistemic parts as values."""
    parts = {name: valuation.field("epistemic", name) for name in valuation.variables}
    if not np.nan_to_num(parts["y"]).any():
        raise ValueError(
            "`epistemic=True` needs what several models say of a row, and the valuator keeps one of each "
            "variable: use OutOfBagEntropy, or `epistemic=False`."
        )
    return Valuation(parts, scales=valuation.scales)
