"""Prevalence sampling of rows that are read block by block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fado.interventions._prevalence import RandomPrevalenceSampler, UtilityAwarePrevalenceSampler
from fado.interventions._rate_checks import has_rates, warn_of_one_group, warn_of_rates
from fado.interventions._rates import MatchedRates
from fado.interventions.bulk._cells import Cells, Passes, Rows
from fado.interventions.bulk._selection import Entries, ordered_keys, select_least
from fado.interventions.bulk._streams import Factors, streams
from fado.tabular import row_hash, small_groups
from fado.valuation import seed_from

__all__ = ["drop_negatives"]

FloatArray = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]


@streams(RandomPrevalenceSampler, UtilityAwarePrevalenceSampler)
def drop_negatives(
    sampler: RandomPrevalenceSampler | UtilityAwarePrevalenceSampler, cells: Cells, passes: Passes
) -> Factors:
    """Find per group the last negative that goes, in the order of utilities.

    Ties, and all rows where there are no utilities, fall by a hash of the seed and a row's place in the
    table. It takes two passes, more where utilities tie much, and none where no group loses any.
    """
    if not has_rates(cells.classes, len(cells.names)) or cells.positive is None:
        warn_of_one_group(cells.names[0])
        return _keep_all
    weighted = cells.weights is not None
    amounts = cells.rows if cells.weights is None else cells.weights
    rates = MatchedRates(
        amounts[:, cells.positive],
        amounts[:, 1 - cells.positive],
        ~small_groups(cells.sizes, sampler.min_group_size),
        sampler.strength,
        weighted=weighted,
        capped=sampler.min_group_size > 0,
    )
    if sampler.strength > 0:
        warn_of_rates(cells.names, cells.sizes, rates, sampler.min_group_size, weighted=weighted)
    shrinking = rates.shrinking
    if not shrinking.any():
        return _keep_all
    seed, negative = seed_from(sampler.random_state), 1 - cells.positive

    def entries() -> Iterator[Entries]:
        for rows in passes("blocks searched"):
            mine = np.flatnonzero((rows.labels == negative) & shrinking[rows.groups] & _weighs(rows))
            weights = np.ones(len(mine)) if rows.weights is None else rows.weights[mine]
            keys, ties = _order(rows, seed)
            yield Entries(rows.groups[mine], keys[mine], ties[mine], weights)

    ends = [0.0, 0.0] if cells.span is None else [cells.span.low, cells.span.high]
    low, high = ordered_keys(np.array(ends)).tolist()
    going = np.where(shrinking, rates.negatives - rates.kept, 0.0)
    cuts = select_least(entries, going, cells.rows[:, negative], low, high)

    def factors(rows: Rows) -> FloatArray:
        gone = (rows.labels == negative) & cuts.go(rows.groups, *_order(rows, seed))
        return np.where(gone, 0.0, 1.0)

    return factors


def _keep_all(rows: Rows) -> FloatArray:
    return np.ones(len(rows))


def _order(rows: Rows, seed: int) -> tuple[Keys, Keys]:
    """Give what rows are ordered by, and what decides where that is equal."""
    utilities = np.zeros(len(rows)) if rows.utilities is None else rows.utilities
    return ordered_keys(utilities), row_hash(seed, rows.places)


def _weighs(rows: Rows) -> npt.NDArray[np.bool_]:
    return np.ones(len(rows), dtype=bool) if rows.weights is None else rows.weights > 0
