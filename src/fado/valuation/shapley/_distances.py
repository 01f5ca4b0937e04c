"""Distances between the rows of mixed tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._typing import Floats, Integers
from fado.tabular import Column, Table, match_names

_CACHED = 1 << 15  # numbers of valued rows that stay near the processor while others are compared with them
_FARTHEST = 1e100  # in the largest number of the valued rows, so that squares stay finite
_ROUNDING = 1e-12  # of two norms: what is left of a distance between equal rows


@dataclass(frozen=True, eq=False)
class TablePoints:
    """Rows in the form that distances need.

    `numbers` are the columns of numbers without missing entries, `gaps` the others, `codes` the columns of
    categories, 0 if they are missing; `weights` and `gap_weights` are the weights of squared differences. A
    sparse table has its numbers in standard deviations, with the squared length of each row, and
    nothing else.
    """

    n_rows: int
    numbers: Floats
    weights: Floats
    gaps: tuple[Floats, ...] = ()
    gap_weights: tuple[float, ...] = ()
    codes: tuple[npt.NDArray[np.unsignedinteger[Any]], ...] = ()
    sparse: Any = None
    norms: Floats | None = None

    @property
    def width(self) -> int:
        """How many numbers a row has in dense memory."""
        return self.numbers.shape[1] if self.sparse is None else self.sparse.shape[1]

    def take(self, rows: Integers) -> TablePoints:
        """Return some of the rows."""
        return replace(
            self,
            n_rows=len(rows),
            numbers=self.numbers[rows],
            gaps=tuple(gap[rows] for gap in self.gaps),
            codes=tuple(codes[rows] for codes in self.codes),
            sparse=None if self.sparse is None else self.sparse[rows],
            norms=None if self.norms is None else self.norms[rows],
        )


def read_points(valued: Table, validated: Table | None = None) -> tuple[TablePoints, TablePoints]:
    """Read the rows to value, and the validation rows, in one form.

    The squared distance of two rows is a sum over columns, as `KNNShapley` has it. Columns are matched by
    their names if both tables have any, else by position. A level that no valued row has differs from all.

    Examples
    --------
    >>> import pandas as pd
    >>> from fado.tabular import Table
    >>> valued = Table.from_input(pd.DataFrame({"size": [1.0, 3.0, None], "colour": ["red", "blue", "red"]}))
    >>> validated = Table.from_input(pd.DataFrame({"colour": ["green"], "size": [2.0]}))
    >>> points, others = read_points(valued, validated)
    >>> squared_distances(others, points)  # the known sizes vary by 1
    array([[2., 2., 2.]])
    """
    other = valued if validated is None else validated
    places = match_names(
        valued.names,
        other.names,
        by_name=valued.given_names is not None and other.given_names is not None,
        first="the valued rows have",
        second="The validation rows have",
    )
    if valued.is_sparse or other.is_sparse:
        if not (valued.is_sparse and other.is_sparse):
            raise ValueError(
                "One of the valued and the validated tables is sparse and the other is not: give both alike."
            )
        return _sparse_points(valued, other)
    numbers: list[tuple[Floats, Floats]] = []
    gaps: list[tuple[Floats, Floats]] = []
    codes: list[tuple[Any, Any]] = []
    weights: list[float] = []
    gap_weights: list[float] = []
    for j, place in enumerate(places):
        column, theirs = valued.column(j), other.column(place)
        if column.levels is not None or column.is_boolean:
            codes.append(_as_codes(column, theirs))
            continue
        pair, weight = _as_numbers(column, theirs)
        missing = np.isnan(pair[0])
        if missing.all() or (weight == 0 and not missing.any()):
            continue  # it is the same for all valued rows
        if missing.any() or np.isnan(pair[1]).any():
            gaps.append(pair)
            gap_weights.append(weight)
        else:
            numbers.append(pair)
            weights.append(weight)

    def points(side: int, n_rows: int) -> TablePoints:
        parts = [np.empty((n_rows, 0)), *(pair[side] for pair in numbers)]
        return TablePoints(
            n_rows,
            np.column_stack(parts),
            np.asarray(weights),
            tuple(pair[side] for pair in gaps),
            tuple(gap_weights),
            tuple(pair[side] for pair in codes),
        )

    read = points(0, valued.n_rows)
    return read, read if validated is None else points(1, validated.n_rows)


def squared_distances(validated: TablePoints, valued: TablePoints) -> Floats:
    """Return the squared distance of every validation row from every valued one.

    Pairs of equal entries have equal distances to the last bit, wherever they are, except for sparse ones,
    whose distances are computed from products.
    """
    if valued.sparse is not None:
        norms = validated.norms[:, None] + valued.norms  # type: ignore[index,operator]
        products = (valued.sparse @ validated.sparse.toarray().T).T
        distances = np.ascontiguousarray(norms - 2.0 * products)
        distances[distances <= _ROUNDING * norms] = 0.0
        return distances
    from scipy.spatial.distance import cdist

    distances = np.zeros((validated.n_rows, valued.n_rows))
    step = max(64, _CACHED // max(1, valued.width))
    for start in range(0, valued.n_rows if valued.width else 0, step):
        part = slice(start, start + step)
        distances[:, part] = cdist(validated.numbers, valued.numbers[part], "sqeuclidean", w=valued.weights)
    for theirs, gap, weight in zip(validated.gaps, valued.gaps, valued.gap_weights, strict=True):
        difference = theirs[:, None] - gap
        difference *= difference
        difference *= weight
        difference[np.isnan(difference)] = 1.0
        difference[np.ix_(np.isnan(theirs), np.isnan(gap))] = 0.0
        distances += difference
    if valued.codes:
        differing = np.zeros(distances.shape, dtype=np.uint8 if len(valued.codes) < 256 else np.uint32)
        for their_codes, codes in zip(validated.codes, valued.codes, strict=True):
            differing += their_codes[:, None] != codes
        distances += differing
    return distances


def _as_numbers(column: Column, theirs: Column) -> tuple[tuple[Floats, Floats], float]:
    """Return the numbers of both sides, and the weight of their squared difference; 0 if they do not vary."""
    if theirs.levels is not None and theirs.data.null_count < len(theirs):
        raise ValueError(
            f"Column {column.name!r} holds text among validation rows and numbers among the valued: convert "
            "it."
        )
    pair = column.numbers(), np.full(len(theirs), np.nan) if theirs.levels is not None else theirs.numbers()
    for numbers in pair:
        if np.isinf(numbers).any():
            raise ValueError(
                f"Column {column.name!r} contains infinity, and nothing is near it: correct or drop those "
                "rows first, or mark the entries as missing."
            )
    known = pair[0][~np.isnan(pair[0])]
    if not len(known) or known.min() == known.max():
        return (np.where(np.isnan(pair[0]), np.nan, 0.0), np.where(np.isnan(pair[1]), np.nan, 0.0)), 0.0
    # A power of two changes no digit of a number, and keeps squares of large and small ones in range.
    exponent = int(np.frexp(np.abs(known).max())[1])
    with np.errstate(over="ignore", under="ignore"):
        valued, validated = (np.ldexp(numbers, -exponent) for numbers in pair)
        variance = float(np.var(np.ldexp(known, -exponent)))
    validated = np.clip(validated, -_FARTHEST, _FARTHEST)
    return (valued, validated), 1.0 / variance if variance > 0 else 0.0


def _as_codes(column: Column, theirs: Column) -> tuple[Any, Any]:
    """Return the categories of both sides as numbers: 0 is missing, and the last is new."""
    codes, levels = _levels(column)
    their_codes, their_levels = _levels(theirs)
    if len(levels) and len(their_levels) and (column.levels is None) != (theirs.levels is None):
        kinds = ("text", "numbers") if column.levels is not None else ("booleans", "text")
        raise ValueError(
            f"Column {column.name!r} holds {kinds[0]} among the valued rows and {kinds[1]} among the "
            "validated: convert it."
        )
    place = {level: number for number, level in enumerate(levels, 1)}
    strange = len(levels) + 1
    translated = np.array([0, *(place.get(level, strange) for level in their_levels)])
    kind = np.min_scalar_type(strange)
    return (codes + 1).astype(kind), translated[their_codes + 1].astype(kind)


def _levels(column: Column) -> tuple[npt.NDArray[np.int32], Sequence[Any]]:
    if column.levels is not None:
        return column.codes(), column.levels
    codes, entries = column.encode()
    return codes, [float(entry) for entry in entries]


def _sparse_points(valued: Table, validated: Table) -> tuple[TablePoints, TablePoints]:
    from scipy import sparse
    from sklearn.utils.sparsefuncs import mean_variance_axis

    sides = []
    for table in (valued, validated):
        matrix = sparse.csr_matrix(table.source, dtype=np.float64)
        matrix.sum_duplicates()
        if not np.isfinite(matrix.data).all():
            raise ValueError(
                "A sparse table of features must hold finite numbers, without missing ones: correct those "
                "rows, or pass a dense table."
            )
        sides.append(matrix)
    _, variance = mean_variance_axis(sides[0], axis=0)
    varies = (sides[0].max(axis=0) - sides[0].min(axis=0)).toarray()[0] > 0
    varies &= variance > 0
    scale = np.zeros(len(variance))
    scale[varies] = 1.0 / np.sqrt(variance[varies])
    read = []
    for matrix in sides[:1] if validated is valued else sides:
        scaled, n_rows = sparse.csr_matrix(matrix.multiply(scale[None, :])), matrix.shape[0]
        norms = np.asarray(scaled.multiply(scaled).sum(axis=1), dtype=np.float64).ravel()
        read.append(TablePoints(n_rows, np.empty((n_rows, 0)), np.empty(0), sparse=scaled, norms=norms))
    return read[0], read[-1]
