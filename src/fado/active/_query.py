"""Select the rows of a pool to label next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sized
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from fado._checks import MOST_ROWS, check_count, check_instance, check_share
from fado._messages import list_names, warn_user
from fado.active._shares import (
    PoolGroups,
    binding_quotas,
    check_shares,
    expect_quotas,
    find_quotas,
    groups_that_have,
    join_groups,
    modelled_groups,
    pick_expected,
    told_groups,
    warn_if_far_off,
    whole_quotas,
)
from fado.tabular import Column, Table, one_column, take_rows
from fado.utility import LinearUtility
from fado.valuation import Valuation

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


class UtilityQuery(BaseEstimator):
    """Select the rows of an unlabelled pool to label next: those with the highest utility.

    Parameters
    ----------
    valuator : valuator or ValuationModels
        A valuator fitted with ``keep_models=True`` on the labelled rows, its saved models, or any other
        object whose ``value(X)`` gives the `Valuation` of new rows.
    utility : utility, optional
        How a row's values are combined. None means ``LinearUtility(0.75)``, or the value for the target
        alone if the valuator has no protected attribute.
    group_shares : mapping, "equal" or "pool", optional
        How much of the batch each group gets. The keys of a mapping are labels of a protected attribute (or
        tuples, with one label of each of several attributes), its values are shares (floats) or numbers of
        rows (integers). The rest of the batch goes by utility to the groups that are not named, or to all if
        all are named. ``"equal"`` gives every group the same share, ``"pool"`` its share of the pool. If the
        pool's groups are not known, the valuator's models of the attribute predict them, and the numbers of
        rows are expected ones.
    diversity : float, default=0.0
        In [0, 1]. 0 selects the rows with the highest utility, even if they are near-copies of each other.
        Above 0, rows are selected one after the other by
        ``utility ** (1 - diversity) * distance ** diversity``, with the utility scaled to [0, 1] and the
        distance to the nearest row that was selected before. Near-copies are then selected only if there are
        too few other rows.
    epistemic : bool, default=False
        Whether to use only the part of the entropy that more labels can reduce (models disagree), and not
        all of it (each model may be uncertain). It needs several models of each variable.

    Attributes
    ----------
    valuation_ : Valuation
        The values of the last pool.
    utilities_ : ndarray of shape (n_rows,)
        The utilities of its rows; NaN for a row without values. Such rows are selected last.
    expected_groups_ : dict
        How many rows of the last batch are in each group of `group_shares`, or else of the protected
        attributes; expected numbers if groups are predicted, and empty if groups are not known.

    See Also
    --------
    fado.active.UtilitySampling : A strategy for a loop of scikit-activeml.
    fado.active.UtilityStream : Rows that come one after the other.

    References
    ----------
    J. Pombal, P. Saleiro, M. A. T. Figueiredo and P. Bizarro, "Fairness-Aware Data Valuation for Supervised
    Learning", 2023, arXiv:2303.16963.

    B. Settles, "Active Learning Literature Survey", Computer Sciences Technical Report 1648, University of
    Wisconsin-Madison, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import LinearUtility, OutOfBagEntropy
    >>> from fado.active import UtilityQuery
    >>> rng = np.random.default_rng(0)
    >>> X, pool = rng.normal(size=(1000, 3)), rng.normal(size=(5000, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=1000) > 0
    >>> valuator = OutOfBagEntropy(keep_models=True, random_state=0).fit(X, y)
    >>> query = UtilityQuery(valuator, LinearUtility(alpha=1))
    >>> rows = query.query(pool, n=100)
    >>> near = np.abs(pool[:, 0]) < 0.5  # where labels are uncertain
    >>> print(near.mean().round(1), near[rows].mean().round(1))
    0.4 1.0
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
        unknown: Any = None,
        cost: Any = None,
        budget: float | None = None,
    ) -> Rows:
        """Select the rows of a pool to label; pass either `n` or `budget`.

        Parameters
        ----------
        X_pool : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The unlabelled rows, with the columns that the valuator was fitted on.
        n : int, optional
            How many rows to select; the whole pool, with a warning, if it has fewer.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X_pool, optional
            The protected attributes of the pool, if they are known, for `group_shares`. They do not change
            utilities, and may differ from those of the valuator.
        unknown : value or list of values, optional
            Values of the protected attributes that mean the same as a missing one, such as ``"?"`` or ``-1``.
        cost : array-like of shape (n_rows,), optional
            The cost of labelling each row, above 0. Rows are then selected by their utility per cost.
        budget : float, optional
            The total cost of the rows, instead of `n`; needs `cost`. A row that no longer fits is skipped.
            Shares in `group_shares` are then shares of the budget, and integers are costs.

        Returns
        -------
        ndarray of int
            The rows' positions in the pool, the best first; with `diversity`, in the order of selection.
            Rows of equal utility are in the order of the pool.
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
            raise ValueError("No row of the pool has a utility: fit the valuator on labelled rows first.")
        groups, quotas = self._quotas(X_pool, table, (sensitive_features, unknown), total)
        predicted = groups is not None and not groups.known
        if budget is not None and predicted:
            raise ValueError(
                "Shares of a `budget` need the groups of the pool: pass `sensitive_features`, or `n`."
            )
        scores = score_rows(utilities, costs)
        spending = np.ones(table.n_rows) if costs is None or budget is None else costs
        limits = Limits(spending, total)
        if groups is not None and groups.known:
            limits = limit_parts(groups, quotas, spending, total, counts_rows=budget is None)

        def pick(by: FloatArray) -> Rows:
            return pick_best(by, limits) if ruler is None else pick_diverse(by, limits, diversity, ruler)

        if groups is not None and predicted:
            quotas = binding_quotas(scores, groups.members, quotas, int(total))
            wanted = (scores, groups.members, quotas, int(total))
            chosen = pick(expect_quotas(*wanted)) if ruler is None else pick_expected(*wanted, pick)
            warn_if_far_off(groups, quotas, chosen, diverse=ruler is not None)
        else:
            chosen = pick(scores)
        self.valuation_, self.utilities_ = valuation, utilities
        self.expected_groups_ = self._expected(X_pool, table, (sensitive_features, unknown), groups, chosen)
        return chosen

    @property
    def _models(self) -> Any:
        """The models that predict groups: those that a valuator has kept, or the models given."""
        return getattr(self.valuator, "models_", self.valuator)

    def _quotas(
        self, X_pool: Any, table: Table, attributes: tuple[Any, Any], total: float
    ) -> tuple[PoolGroups | None, FloatArray]:
        """Give the groups that have shares, and how much of the batch each of them gets."""
        if self.group_shares is None:
            return None, np.empty(0)
        models, named = self._models, isinstance(self.group_shares, Mapping)
        found = told_groups(models, table, *attributes, all_of_classes=not named)
        if not found or (named and not groups_that_have(self.group_shares, list(found.values()))):
            found |= modelled_groups(models, X_pool, but=found)
            order = list(getattr(models, "variables", []))  # attributes without models come first
            names = sorted(found, key=lambda name: order.index(name) if name in order else -1)
            found = {name: found[name] for name in names}
        if not found:
            raise ValueError(
                "`group_shares` need the groups of the pool, which are not known: pass `sensitive_features` "
                "of classes, or a valuator that keeps models of them, like OutOfBagEntropy."
            )
        return find_quotas(self.group_shares, list(found.values()), total)

    def _expected(
        self, X_pool: Any, table: Table, attributes: tuple[Any, Any], groups: PoolGroups | None, chosen: Rows
    ) -> dict[Any, float]:
        """Count the selected rows of each group, as far as groups are known or predicted."""
        rows: Any = chosen
        if groups is None:
            found = told_groups(self._models, table, *attributes)
            if not found:
                found, rows = modelled_groups(self._models, take_rows(X_pool, chosen)), slice(None)
            if not found:
                return {}
            groups = join_groups(list(found.values()))
        counts = groups.expected(rows).tolist()
        return {label: count for label, count in zip(groups.labels, counts, strict=True) if count > 0}


def read_costs(cost: Any, n_rows: int) -> FloatArray | None:
    """Read the costs of rows."""
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
    """Give the size of the batch: a number of rows, or their total cost."""
    if (n is None) == (budget is None):
        raise ValueError("Pass either `n`, the number of rows to select, or `budget`, their total cost.")
    if n is not None:
        n = check_count("n", n, 1, MOST_ROWS)
        if n > n_rows:
            warn_user(f"`n={n}` is more than the {n_rows} rows of the pool: all of them are selected.")
        return float(min(n, n_rows))
    if costs is None:
        raise ValueError("`budget` needs the `cost` of each row: pass it, or the number of rows as `n`.")
    if isinstance(budget, bool) or not isinstance(budget, Real):
        raise TypeError(f"`budget` must be a number, got {budget!r}.")
    spent = float(budget)
    if not 0 < spent < np.inf:
        raise ValueError(f"`budget` must be positive and finite, got {budget}.")
    if costs.min() > spent:
        raise ValueError(f"`budget={spent:g}` is less than {costs.min():g}, the cost of the cheapest row.")
    return spent


def score_rows(utilities: FloatArray, costs: FloatArray | None) -> FloatArray:
    """Give the scores that order rows: utility, or utility per cost; rows without utility come last."""
    if costs is not None:  # which counts against a row whatever the sign of its utility
        utilities = np.where(utilities > 0, utilities / costs, utilities * costs)
    return np.where(np.isnan(utilities), -np.inf, utilities)


DEFAULT_ALPHA = 0.75  # of the default utility if there are protected attributes


def read_pool(X: Any, argument: str) -> Table:
    """Read the shape of a pool, which must have rows."""
    table = Table.from_input(X)
    if not table.n_rows:
        raise ValueError(f"`{argument}` has no rows: there is nothing to select from.")
    return table


def is_table_like(value: Any) -> bool:
    """Check whether an object can be a table: it has a length or a shape, or is a lazy table."""
    has_rows = isinstance(value, Sized) or hasattr(value, "shape") or hasattr(value, "collect")
    return has_rows and not isinstance(value, type | str)


def value_pool(valuator: Any, X: Any) -> Any:
    """Value rows that the valuator was not fitted on; their groups do not change values."""
    if isinstance(valuator, type) or not callable(getattr(valuator, "value", None)):
        raise TypeError(
            "`valuator` must have a method `value` for rows that it has not seen, like "
            f"OutOfBagEntropy(keep_models=True).fit(X, y), got {valuator!r}."
        )
    return valuator.value(X)


def pool_utilities(valuation: Any, utility: Any, *, epistemic: bool = False) -> FloatArray:
    """Give the utility of every row; NaN for a row that has none.

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
    if np.isnan(valuation["y"]).all():  # the valuator has seen no labels yet
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
    """Give the epistemic parts of entropies as values."""
    parts = {name: valuation.field("epistemic", name) for name in valuation.variables}
    if not np.nan_to_num(parts["y"]).any():
        raise ValueError(
            "`epistemic=True` needs several models of each variable, and the valuator keeps one: use "
            "OutOfBagEntropy, or `epistemic=False`."
        )
    return Valuation(parts, scales=valuation.scales)


_CANDIDATES = 10  # times the batch, at most, if enough of them are not near-copies
_MORE, _MOST = 4.0, 100.0  # times as many if they do not, and what is too many
_NEAR = 0.01  # as the mean over columns: below, rows are near-copies


def pick_diverse(scores: FloatArray, limits: Limits, diversity: float, ruler: Ruler) -> Rows:
    """Select rows one after the other, each by its score and its distance from those before."""
    plain = pick_best(scores, limits)
    multiple = 1 + (_CANDIDATES - 1) * diversity
    while True:
        rows, points, there_are_more = _candidates(scores, limits, plain, multiple, ruler)
        picked, n_copies = _greedily(scores[rows], limits, rows, points, diversity)
        if not n_copies or not there_are_more or multiple >= _MOST:
            break
        multiple *= _MORE
    picked = rows[picked]
    rest = np.setdiff1d(np.arange(len(scores)), picked)
    spent = float(limits.spending[picked].sum())
    more = pick_best(scores[rest], Limits(limits.spending[rest], limits.total - spent))
    return np.concatenate([picked, rest[more]])


def _candidates(
    scores: FloatArray, limits: Limits, plain: Rows, multiple: float, ruler: Ruler
) -> tuple[Rows, Points, bool]:
    """Give the best rows of every part, `multiple` times its quota, and whether there are more."""
    found = []
    for part in range(len(limits.of_parts)):
        ordered = best_first(scores, np.flatnonzero(limits.parts == part))
        wanted = math.ceil(multiple * np.count_nonzero(limits.parts[plain] == part))
        found.append(_distinct(ordered, wanted, ruler))
    rows = best_first(scores, np.concatenate([own for own, _ in found]))
    return rows, ruler.points(rows), not all(seen_all for _, seen_all in found)


def _distinct(ordered: Rows, wanted: int, ruler: Ruler) -> tuple[Rows, bool]:
    """Give the first distinct rows, as many as wanted, and whether all rows were seen."""
    looked_at = wanted
    while True:
        rows, seen_all = ordered[:looked_at], looked_at >= len(ordered)
        numbers, codes = ruler.points(rows)
        rounded = np.hstack([np.rint(numbers * _FINE).astype(np.int32), codes])
        first = np.sort(np.unique(rounded, axis=0, return_index=True)[1])  # of near-copies
        if len(first) >= wanted or seen_all:
            copies = np.setdiff1d(np.arange(len(rows)), first)
            return rows[np.append(first, copies)[:wanted]], seen_all
        looked_at *= 4


def _greedily(
    scores: FloatArray, limits: Limits, rows: Rows, points: Points, diversity: float
) -> tuple[Rows, int]:
    """Select candidates one by one: first within the limits of parts, then within the total."""
    worth = _on_unit(scores) ** (1 - diversity)
    nearest = np.ones(len(rows))
    spending, parts = limits.spending[rows], limits.parts[rows]
    free = np.ones(len(rows), dtype=bool)
    picked: list[int] = []
    n_copies = 0
    total, of_parts = limits.total, limits.of_parts.copy()
    for by_part in (True, False):
        while True:
            fits = free & (spending <= (np.minimum(of_parts[parts], total) if by_part else total))
            if not fits.any():
                break
            gains = worth * nearest**diversity - (nearest < _NEAR)  # near-copies come after all others
            best = int(np.argmax(np.where(fits, gains, -np.inf)))
            n_copies += bool(nearest[best] < _NEAR)
            picked.append(best)
            free[best] = False
            total -= spending[best]
            of_parts[parts[best]] -= spending[best]
            nearest = np.minimum(nearest, points.distances_from(best))
    return np.asarray(picked, dtype=np.int64), n_copies


def _on_unit(scores: FloatArray) -> FloatArray:
    known = np.isfinite(scores)
    if not known.any():
        return np.ones(len(scores))
    low, high = scores[known].min(), scores[known].max()
    if low == high:
        return known.astype(np.float64)
    return np.where(known, (np.where(known, scores, low) - low) / (high - low), 0.0)


_MISSING = 2.0  # numbers are in [0, 1]: this is far from all of them, and equal to other missing ones
_TAILS = (0.01, 0.99)  # numbers beyond these quantiles count as if equal to them
_FINE = 100  # numbers that differ by less than a hundredth of their range are nearly the same


class Points(NamedTuple):
    """Rows in the form in which distances are computed."""

    numbers: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]

    def distances_from(self, row: int) -> FloatArray:
        """Give every row's distance from one: the mean over columns of how far they differ, in [0, 1]."""
        differing = np.minimum(np.abs(self.numbers - self.numbers[row]), 1.0).sum(axis=1, dtype=np.float64)
        differing += (self.codes != self.codes[row]).sum(axis=1)
        return np.asarray(differing / (self.numbers.shape[1] + self.codes.shape[1]))


class Ruler:
    """Prepares rows of a table for distances: numbers relative to their range, categories as equal or not.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table.from_input(pd.DataFrame({"size": [0.0, 1.0, None], "colour": ["red", "red", "blue"]}))
    >>> Ruler(table).points(np.arange(3)).distances_from(0)
    array([0. , 0.5, 1. ])
    """

    def __init__(self, table: Table) -> None:
        if table.is_sparse:
            raise ValueError(
                "`diversity` compares rows column by column, and a sparse matrix has too many columns: set "
                "`diversity=0`, or pass a dense table."
            )
        self._numbers = [(column, *_range(column)) for column in table.columns if column.levels is None]
        self._categories = [column for column in table.columns if column.levels is not None]

    def points(self, rows: npt.NDArray[np.integer]) -> Points:
        """Give some rows."""
        numbers = np.empty((len(rows), len(self._numbers)), dtype=np.float32)
        for j, (column, low, width) in enumerate(self._numbers):
            with np.errstate(over="ignore"):
                scaled = np.clip((column.take(rows).numbers() - low) / width, 0.0, 1.0)
            numbers[:, j] = np.where(np.isnan(scaled), _MISSING, scaled)
        codes = np.empty((len(rows), len(self._categories)), dtype=np.int32)
        for j, column in enumerate(self._categories):
            codes[:, j] = column.take(rows).codes()
        return Points(numbers, codes)


def _range(column: Column) -> tuple[float, float]:
    """Give the start and the width of a column's range without tails; the width is 1 if all are equal."""
    numbers = column.numbers()
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return 0.0, 1.0
    low, high = np.quantile(known, _TAILS)
    if low == high:
        low, high = known.min(), known.max()
    return float(low), float(high - low) or 1.0


_ROUNDING = 1e-12  # of limits


class Limits:
    """The size limits of a batch: for every part of the pool, and in total."""

    def __init__(
        self,
        spending: FloatArray,
        total: float,
        parts: npt.NDArray[np.int64] | None = None,
        of_parts: FloatArray | None = None,
    ) -> None:
        self.spending, self.total = spending, total * (1 + _ROUNDING)
        self.parts = np.zeros(len(spending), dtype=np.int64) if parts is None else parts
        self.of_parts = (np.array([total]) if of_parts is None else of_parts) * (1 + _ROUNDING)


def best_first(scores: FloatArray, rows: Rows | None = None) -> Rows:
    """Order rows by their scores, the highest first; equal scores keep the order of rows."""
    rows = np.arange(len(scores)) if rows is None else rows
    return rows[np.lexsort((rows, -scores[rows]))]


def pick_best(scores: FloatArray, limits: Limits) -> Rows:
    """Select the rows with the highest scores in every part, then of all, within the limits.

    Examples
    --------
    >>> scores = np.array([0.9, 0.8, 0.7, 0.6])
    >>> pick_best(scores, Limits(np.ones(4), 2))
    array([0, 1])
    >>> pick_best(scores, Limits(np.ones(4), 2, np.array([0, 0, 1, 1]), np.array([1.0, 1.0])))
    array([0, 2])
    >>> pick_best(scores, Limits(np.array([5.0, 3.0, 3.0, 1.0]), 4))
    array([1, 3])
    """
    ordered = best_first(scores)
    taken = np.zeros(len(scores), dtype=bool)
    for part, limit in enumerate(limits.of_parts):
        members = ordered[limits.parts[ordered] == part] if len(limits.of_parts) > 1 else ordered
        taken[members[_that_fit(limits.spending[members], limit)]] = True
    left = limits.total - limits.spending[taken].sum()
    rest = ordered[~taken[ordered]]
    taken[rest[_that_fit(limits.spending[rest], left)]] = True
    return ordered[taken[ordered]]


def _that_fit(spending: FloatArray, limit: float) -> Rows:
    """Find the places that fit into a limit, added one after the other."""
    places = np.flatnonzero(spending <= limit)
    found = []
    while len(places):
        sums = np.cumsum(spending[places])
        n_fitting = int(np.searchsorted(sums, limit, side="right"))
        found.append(places[:n_fitting])
        limit -= float(sums[n_fitting - 1])
        places = places[n_fitting:]
        places = places[spending[places] <= limit]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def limit_parts(
    groups: PoolGroups, quotas: FloatArray, spending: FloatArray, total: float, *, counts_rows: bool
) -> Limits:
    """Give each group that has a quota a separate part, and all others one part together."""
    if counts_rows:
        quotas = whole_quotas(quotas)
    named = ~np.isnan(quotas)
    part_of = np.where(named, np.cumsum(named) - 1, named.sum())
    of_parts = np.append(quotas[named], max(total - np.nansum(quotas), 0.0))
    there = np.bincount(groups.members, weights=spending, minlength=len(quotas))
    lacking = np.flatnonzero(named & (there < np.nan_to_num(quotas) * (1 - 1e-9))).tolist()
    if lacking:
        told = [f"{groups.labels[group]!r} ({there[group]:g} of {quotas[group]:g})" for group in lacking]
        warn_user(
            f"The pool has less than `group_shares` ask for of {list_names(told)}: the rest of the batch is "
            "filled with other rows, by utility."
        )
    return Limits(spending, total, part_of[groups.members], of_parts)
