"""Readable conditions on columns: equal to a level, up to or over a cut, missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fado.exploration._material import Material
from fado.exploration._wording import written
from fado.tabular import MISSING, Column, Variable

__all__ = ["BinnedColumn", "Condition", "binned_columns", "binned_features", "binned_target"]

Rows = npt.NDArray[np.intp]

MOST_LEVELS = 30
FEW_NUMBERS = 10  # so many distinct numbers, or fewer, are levels
CUTS = (0.1, 0.25, 0.5, 0.75, 0.9)
OTHER = 254
ABSENT = 255


@dataclass(frozen=True)
class Condition:
    """Rows whose code in a column lies between two ends; `text` says it in the column's own values."""

    column: int
    low: int
    high: int
    text: str

    def holds(self, codes: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Mark the rows, given their codes in the column, that meet the condition."""
        return (codes >= self.low) & (codes <= self.high)


@dataclass(frozen=True)
class BinnedColumn:
    """A column as small codes, and the conditions that can be asked of it.

    Codes 254 and 255 stand for levels too rare to be asked for and for missing entries.
    """

    number: int  # among the binned columns, as its conditions name it
    name: str
    codes: npt.NDArray[np.uint8]
    conditions: tuple[Condition, ...]
    feature: int | None  # position among the feature columns; None for a protected attribute beside them


def binned_columns(material: Material) -> list[BinnedColumn]:
    """Cut every feature, and every protected attribute that is not among them, into readable parts."""
    found = binned_features(material.columns, material.sample)
    for attribute in material.attributes:
        if attribute.position is None and not material.table.positions(attribute.name):
            found.append(_bin_variable(attribute.variable, len(found), material.sample))
    return found


def binned_features(columns: Sequence[Column], sample: Rows) -> list[BinnedColumn]:
    """Cut features into readable parts, by what some of the rows hold."""
    return [_bin(column, position, position, sample) for position, column in enumerate(columns)]


def binned_target(material: Material, number: int) -> BinnedColumn:
    """Cut the target into readable parts, under the name that the user has for it."""
    return _bin_variable(replace(material.target, name=material.target_name), number, material.sample)


def _bin(column: Column, number: int, feature: int, sample: Rows) -> BinnedColumn:
    if column.levels is not None:
        codes = column.codes()
        return _levels(column.name, codes, column.levels, number, feature, sample)
    numbers = column.numbers()
    drawn = numbers[sample]
    distinct = np.unique(drawn[~np.isnan(drawn)])
    if len(distinct) <= FEW_NUMBERS:
        codes = np.searchsorted(distinct, numbers).astype(np.int32)
        inside = codes < len(distinct)
        inside[inside] &= distinct[codes[inside]] == numbers[inside]
        codes[~inside] = len(distinct)
        codes[np.isnan(numbers)] = -1
        names = [str(column.label_of(value)) for value in distinct]
        return _levels(column.name, codes, names, number, feature, sample)
    return _cuts(column.name, numbers, drawn, number, feature)


def _bin_variable(variable: Variable, number: int, sample: Rows) -> BinnedColumn:
    if variable.kind == "continuous":
        return _cuts(variable.name, variable.labels, variable.labels[sample], number, None)
    codes, names = variable.labels.astype(np.int32), [str(value) for value in variable.classes]
    if names[-1] == MISSING:
        codes = np.where(codes == len(names) - 1, np.int32(-1), codes)
        names.pop()
    return _levels(variable.name, codes, names, number, None, sample)


def _levels(
    name: str,
    codes: npt.NDArray[np.int32],
    levels: Sequence[str],
    number: int,
    feature: int | None,
    sample: Rows,
) -> BinnedColumn:
    """Keep the most frequent levels; a code beyond all levels stands for one that the sample lacks."""
    drawn = codes[sample]
    frequency = np.bincount(drawn[(drawn >= 0) & (drawn < len(levels))], minlength=len(levels))
    kept = np.sort(np.argsort(-frequency, kind="stable")[:MOST_LEVELS])
    place = np.full(len(levels) + 2, OTHER, dtype=np.uint8)
    place[kept] = np.arange(len(kept))
    place[-1] = ABSENT
    conditions = [Condition(number, j, j, f"{name} = {levels[level]}") for j, level in enumerate(kept)]
    return BinnedColumn(number, name, place[codes], (*conditions, _missing(name, number)), feature)


def _cuts(
    name: str,
    numbers: npt.NDArray[np.float64],
    drawn: npt.NDArray[np.float64],
    number: int,
    feature: int | None,
) -> BinnedColumn:
    known = drawn[~np.isnan(drawn)]
    edges = np.unique(np.quantile(known, CUTS, method="inverted_cdf"))
    edges = edges[edges < known.max()]
    codes = np.searchsorted(edges, numbers).astype(np.uint8)  # how many edges a number is over
    codes[np.isnan(numbers)] = ABSENT
    conditions = []
    for j, edge in enumerate(edges):
        conditions.append(Condition(number, 0, j, f"{name} ≤ {written(edge)}"))
        conditions.append(Condition(number, j + 1, len(edges), f"{name} > {written(edge)}"))
    return BinnedColumn(number, name, codes, (*conditions, _missing(name, number)), feature)


def _missing(name: str, number: int) -> Condition:
    return Condition(number, ABSENT, ABSENT, f"{name} is missing")
