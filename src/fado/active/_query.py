"""Select the rows of a pool to label next."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from fado._checks import MOST_ROWS, check_count, check_instance, check_share
from fado._messages import warn_user
from fado._typing import Floats, Integers
from fado.active._shares import Parts, check_shares, find_quotas, join_groups, parts_of, read_groups
from fado.tabular import Column, Table
from fado.utility import LinearUtility
from fado.valuation import Valuation


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
        all are named. ``"equal"`` gives every group the same share, ``"pool"`` its share of the pool. It
        needs the `sensitive_features` of the pool.
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
    group_counts_ : dict
        How many rows of the last batch are in each group of `group_shares`, or else of the
        `sensitive_features`; empty without them.

    See Also
    --------
    fado.active.UtilitySampling : A strategy for a loop of scikit-activeml.

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

    def query(self, X_pool: Any, n: int, *, sensitive_features: Any = None, unknown: Any = None) -> Integers:
        """Select the rows of a pool to label.

        Parameters
        ----------
        X_pool : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The unlabelled rows, with the columns that the valuator was fitted on.
        n : int
            How many rows to select; the whole pool, with a warning, if it has fewer.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X_pool, optional
            The protected attributes of the pool, which `group_shares` needs. They do not change utilities,
            and may differ from those of the valuator.
        unknown : value or list of values, optional
            Values of the protected attributes that mean the same as a missing one, such as ``"?"`` or ``-1``.

        Returns
        -------
        ndarray of int
            The rows' positions in the pool, the best first; with `diversity`, in the order of selection.
            Rows of equal utility are in the order of the pool.
        """
        table = read_pool(X_pool, "X_pool")
        check_shares(self.group_shares)
        diversity = check_share("diversity", self.diversity)
        n = check_count("n", n, 1, MOST_ROWS)
        if n > table.n_rows:
            warn_user(f"`n={n}` is more than the {table.n_rows} rows of the pool: all of them are selected.")
            n = table.n_rows
        coordinates = Coordinates(table) if diversity else None
        valuation = value_pool(self.valuator, X_pool)
        utilities = pool_utilities(valuation, self.utility, epistemic=self.epistemic)
        if np.isnan(utilities).all():
            raise ValueError("No row of the pool has a utility: fit the valuator on labelled rows first.")
        models = getattr(self.valuator, "models_", self.valuator)
        all_of_classes = self.group_shares in ("equal", "pool")
        attributes = read_groups(
            sensitive_features, table, models, unknown=unknown, all_of_classes=all_of_classes
        )
        groups = join_groups(attributes) if attributes else None
        parts: Parts = np.zeros(table.n_rows, dtype=np.int64), np.array([n])
        if self.group_shares is not None:
            if groups is None:
                raise ValueError(
                    "`group_shares` need the groups of the pool: pass `sensitive_features` of classes."
                )
            groups, quotas = find_quotas(self.group_shares, attributes, n)
            parts = parts_of(groups, quotas, n)
        scores = np.where(np.isnan(utilities), -np.inf, utilities)  # rows without utility come last
        if coordinates is None:
            chosen = pick_best(scores, n, parts)
        else:
            chosen = pick_diverse(scores, n, parts, diversity, coordinates)
        self.valuation_, self.utilities_ = valuation, utilities
        self.group_counts_ = {} if groups is None else groups.counts(chosen)
        return chosen


DEFAULT_ALPHA = 0.75  # of the default utility if there are protected attributes


def read_pool(X: Any, argument: str) -> Table:
    """Read the shape of a pool, which must have rows."""
    table = Table.from_input(X)
    if not table.n_rows:
        raise ValueError(f"`{argument}` has no rows: there is nothing to select from.")
    return table


def value_pool(valuator: Any, X: Any) -> Any:
    """Value rows that the valuator was not fitted on; their groups do not change values."""
    if isinstance(valuator, type) or not callable(getattr(valuator, "value", None)):
        raise TypeError(
            "`valuator` must have a method `value` for rows that it has not seen, like "
            f"OutOfBagEntropy(keep_models=True).fit(X, y), got {valuator!r}."
        )
    return valuator.value(X)


def pool_utilities(valuation: Any, utility: Any, *, epistemic: bool = False) -> Floats:
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
    if epistemic:  # the epistemic parts of entropies as values
        parts = {name: valuation.field("epistemic", name) for name in valuation.variables}
        if not np.nan_to_num(parts["y"]).any():
            raise ValueError(
                "`epistemic=True` needs several models of each variable, and the valuator keeps one: use "
                "OutOfBagEntropy, or `epistemic=False`."
            )
        valuation = Valuation(parts, scales=valuation.scales)
    utilities = np.asarray(utility(valuation), dtype=np.float64)
    if utilities.shape != (len(valuation),):
        raise ValueError(
            f"`utility` gave numbers of shape {utilities.shape} for {len(valuation)} rows: it must give one "
            "per row."
        )
    return np.where(np.isfinite(utilities), utilities, np.nan)


_CANDIDATES = 10  # times the batch, at most, if enough of them are not near-copies
_MORE, _MOST = 4.0, 100.0  # times as many if they do not, and what is too many
_NEAR = 0.01  # as the mean over columns: below, rows are near-copies
_MISSING = 2.0  # numbers are in [0, 1]: this is far from all of them, and equal to other missing ones
_TAILS = (0.01, 0.99)  # numbers beyond these quantiles count as if equal to them
_FINE = 100  # numbers that differ by less than a hundredth of their range are nearly the same


def pick_diverse(
    scores: Floats, n: int, parts: Parts, diversity: float, coordinates: Coordinates
) -> Integers:
    """Select rows one after the other, each by its score and its distance from those before."""
    of_row, sizes = parts
    plain = pick_best(scores, n, parts)
    multiple = 1 + (_CANDIDATES - 1) * diversity
    while True:
        candidates = []
        for part in range(len(sizes)):
            wanted = math.ceil(multiple * np.count_nonzero(of_row[plain] == part))
            ordered = by_score(scores, np.flatnonzero(of_row == part))
            candidates.append(_distinct(ordered, wanted, coordinates))
        rows = by_score(scores, np.concatenate([members for members, _ in candidates]))
        picked, n_copies = _greedily(scores[rows], n, of_row[rows], sizes, coordinates.of(rows), diversity)
        if not n_copies or all(seen_all for _, seen_all in candidates) or multiple >= _MOST:
            break
        multiple *= _MORE
    picked = rows[picked]
    rest = np.setdiff1d(np.arange(len(scores)), picked)
    return np.concatenate([picked, by_score(scores, rest)[: n - len(picked)]])


def _distinct(ordered: Integers, wanted: int, coordinates: Coordinates) -> tuple[Integers, bool]:
    """Give the first distinct rows, as many as wanted, and whether all rows were seen."""
    looked_at = wanted
    while True:
        rows, seen_all = ordered[:looked_at], looked_at >= len(ordered)
        numbers, codes = coordinates.of(rows)
        rounded = np.hstack([np.rint(numbers * _FINE).astype(np.int32), codes])
        first = np.sort(np.unique(rounded, axis=0, return_index=True)[1])  # of near-copies
        if len(first) >= wanted or seen_all:
            copies = np.setdiff1d(np.arange(len(rows)), first)
            return rows[np.append(first, copies)[:wanted]], seen_all
        looked_at *= 4


def _greedily(
    scores: Floats, n: int, of_row: Integers, sizes: Integers, points: Points, diversity: float
) -> tuple[Integers, int]:
    """Select candidates one by one: first as many of each part as it has places, then any."""
    known = np.isfinite(scores)
    scaled = (known if known.any() else ~known).astype(np.float64)
    if known.any() and scores[known].min() < scores[known].max():
        low, high = scores[known].min(), scores[known].max()
        scaled[known] = (scores[known] - low) / (high - low)
    worth = scaled ** (1 - diversity)
    nearest = np.ones(len(scores))
    free = np.ones(len(scores), dtype=bool)
    picked: list[int] = []
    n_copies = 0
    left = sizes.copy()
    for by_part in (True, False):
        while len(picked) < n:
            fits = free & (left[of_row] > 0) if by_part else free
            if not fits.any():
                break
            gains = worth * nearest**diversity - (nearest < _NEAR)  # near-copies come after all others
            best = int(np.argmax(np.where(fits, gains, -np.inf)))
            n_copies += bool(nearest[best] < _NEAR)
            picked.append(best)
            free[best] = False
            left[of_row[best]] -= 1
            nearest = np.minimum(nearest, points.distances_from(best))
    return np.asarray(picked, dtype=np.int64), n_copies


class Points(NamedTuple):
    """Rows in the form in which distances are computed."""

    numbers: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]

    def distances_from(self, row: int) -> Floats:
        """Give every row's distance from one: the mean over columns of how far they differ, in [0, 1]."""
        differing = np.minimum(np.abs(self.numbers - self.numbers[row]), 1.0).sum(axis=1, dtype=np.float64)
        differing += (self.codes != self.codes[row]).sum(axis=1)
        return np.asarray(differing / (self.numbers.shape[1] + self.codes.shape[1]))


class Coordinates:
    """Rows of a table in the form of `Points`: numbers relative to their range, categories as codes.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table.from_input(pd.DataFrame({"size": [0.0, 1.0, None], "colour": ["red", "red", "blue"]}))
    >>> Coordinates(table).of(np.arange(3)).distances_from(0)
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

    def of(self, rows: npt.NDArray[np.integer]) -> Points:
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


def by_score(scores: Floats, rows: Integers) -> Integers:
    """Order rows by their scores, the highest first; equal scores keep the order of rows."""
    return rows[np.lexsort((rows, -scores[rows]))]


def pick_best(scores: Floats, n: int, parts: Parts) -> Integers:
    """Select the rows with the highest scores in every part, then of all.

    Examples
    --------
    >>> scores = np.array([0.9, 0.8, 0.7, 0.6])
    >>> pick_best(scores, 2, (np.array([0, 0, 1, 1]), np.array([1, 1])))
    array([0, 2])
    """
    ordered = by_score(scores, np.arange(len(scores)))
    of_row, sizes = parts
    taken = np.zeros(len(scores), dtype=bool)
    for part, size in enumerate(sizes):
        taken[ordered[of_row[ordered] == part][:size]] = True
    taken[ordered[~taken[ordered]][: n - taken.sum()]] = True
    return ordered[taken[ordered]]
