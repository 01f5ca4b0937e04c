"""Deal rows out to parts, so that each gets its share of every kind of row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["deal_rows"]

Codes = npt.NDArray[np.int64]


def deal_rows(
    cells: Codes, shares: Sequence[float], generator: np.random.Generator, blocks: Codes | None = None
) -> Codes:
    """Give each row the number of its part; every part gets its share of every cell.

    Parameters
    ----------
    cells : ndarray of int
        Each row's kind, such as its combination of label and group.
    shares : sequence of float
        Of the rows, for each part; they sum to 1.
    generator : numpy.random.Generator
        Of the draws.
    blocks : ndarray of int, optional
        Which rows belong together, 0, 1, 2, ...: whole blocks go to a part, so that shares are kept about. A
        block counts for the rarest of its rows' cells.

    Examples
    --------
    >>> cells = np.repeat([0, 1], [8, 4])
    >>> dealt = deal_rows(cells, [0.75, 0.25], np.random.default_rng(0))
    >>> np.bincount(cells[dealt == 0]), np.bincount(cells[dealt == 1])
    (array([6, 3]), array([2, 1]))
    """
    blocks = np.arange(len(cells)) if blocks is None else blocks
    sizes = np.bincount(blocks)
    rarest = np.lexsort((cells, np.bincount(cells)[cells], blocks))[np.cumsum(sizes) - sizes]
    stratum = cells[rarest]
    drawn = np.empty(len(sizes), dtype=np.int64)
    edges = np.cumsum(shares)[:-1]
    for cell in np.unique(stratum):
        members = generator.permutation(np.flatnonzero(stratum == cell))
        before = np.cumsum(sizes[members]) - sizes[members]
        place = (before + generator.random() * sizes[members]) / sizes[members].sum()
        drawn[members] = np.searchsorted(edges, place, side="right")
    return drawn[blocks]
