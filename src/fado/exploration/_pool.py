"""Unlabelled rows next to the labelled ones: values, columns, and where labels are worth most.

Columns with another distribution than among the labelled rows are reported. Numbers are compared by the
Kolmogorov-Smirnov distance, the widest gap between the two distribution functions; levels by the total
variation, the share of rows that would have to change. Both lie in [0, 1]. Missing entries are a level, and
count as larger than all numbers.

Two samples of one distribution differ too. With n and m rows and r = 1/n + 1/m, in all but a share a of cases

- the Kolmogorov-Smirnov distance stays below sqrt(r log(2/a) / 2), by Massart's inequality;
- the total variation stays within sqrt(r log(1/a) / 2) of its expectation, by McDiarmid's, which is at most
  half the sum of sqrt(p (1 - p) r) over all levels with shares p.

Since all columns are tested, a is 5 % divided by their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado.engine import Schema
from fado.exploration._material import (
    FEWEST_MEMBERS,
    Material,
    Protected,
    known_mean,
    percent,
    quoted,
    sample_rows,
    written,
)
from fado.exploration._slices import SIGNIFICANCE, SliceSearch, binned_features
from fado.exploration._values import BINS, binned, pool_plane
from fado.tabular import Column, Table
from fado.utility import LinearUtility
from fado.valuation import Valuation

Counts = npt.NDArray[np.int64]

ALPHA = 0.5  # where the page's slider starts
MOST_COLUMNS = 60


@dataclass(frozen=True)
class Unlabelled:
    """Unlabelled rows: the table that was passed, and the columns that the labelled rows have too."""

    source: Any
    columns: tuple[Column, ...]  # in the labelled rows' order; none if these came as a sparse matrix
    n_rows: int  # of the table, with a value or without
    valuation: Any  # a Valuation; None until the rows are valued

    def cut_to_valued(self, labelled: Valuation, names: Sequence[str]) -> Unlabelled:
        """Keep the rows with values of all variables, which must mean the same as for the labelled rows."""
        values = self.valuation
        if len(values) != self.n_rows:
            raise ValueError(
                f"The valuation of `pool` has {len(values)} rows and its table has {self.n_rows}: pass the "
                "valuation of the same rows."
            )
        for name in names:
            if name not in values.variables:
                raise ValueError(
                    f"The valuation of `pool` has no values for {name!r}; it has {values.variables}: value "
                    "the pool with the valuator of the labelled rows."
                )
            own, theirs = values.scales[name], labelled.scales[name]
            if own != theirs:
                raise ValueError(
                    f"The values for {name!r} mean one thing in `pool` ({own.meaning}) and another in the "
                    f"labelled rows ({theirs.meaning}): value both with one valuator."
                )
            mine, others = _classes(values, name), _classes(labelled, name)
            if mine and others and mine != others:
                raise ValueError(
                    f"The values for {name!r} have other classes in `pool` ({list_names(mine)}) than in "
                    f"the labelled rows ({list_names(others)}): value both with one valuator."
                )
        rows = np.flatnonzero(~np.isnan([values[name] for name in names]).any(axis=0))
        if not len(rows):
            raise ValueError("The valuation of `pool` has no value for any row: value the rows first.")
        if len(rows) == self.n_rows:
            return self
        columns = tuple(column.take(rows) for column in self.columns)
        return replace(self, columns=columns, valuation=values.take(rows))


def _classes(valuation: Valuation, name: str) -> list[str]:
    """Give the classes of values as text; none if they are unknown."""
    note = valuation.provenance.variables.get(name)
    return [] if note is None else [str(label) for label in note.classes or ()]


def read_pool(pool: Any, labelled: Table, *, valued: bool) -> Unlabelled:
    """Read a table, or a table and the values of its rows if those of the labelled rows were passed.

    Examples
    --------
    >>> import pandas as pd
    >>> labelled = Table.from_input(pd.DataFrame({"age": [30, 40], "job": ["clerk", "nurse"]}))
    >>> pool = pd.DataFrame({"job": ["cook"], "age": [50], "more": [1]})
    >>> [column.name for column in read_pool(pool, labelled, valued=False).columns]
    ['age', 'job']
    """
    paired = isinstance(pool, tuple)
    if isinstance(pool, Valuation) or (
        paired and [isinstance(own, Valuation) for own in pool] != [False, True]
    ):
        raise TypeError("`pool` must be a table, or a tuple of a table and the Valuation of its rows.")
    source, valuation = pool if paired else (pool, None)
    if valued and not paired:
        raise ValueError(
            "`valuation` was given, so `pool` needs values too: pass `(table, valuator.value(table))`, with "
            "a valuator that was fitted with `keep_models=True`."
        )
    if paired and not valued:
        raise ValueError(
            "`pool` has values, and the labelled rows have none: pass their `valuation` too, or only the "
            "table of the pool."
        )
    try:
        table = Table.from_input(source)
        columns = tuple(_columns(table, Schema.of(labelled), sparse=labelled.is_sparse))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"`pool`: {error}") from None
    if not table.n_rows:
        raise ValueError("`pool` has no rows: pass some, or leave it out.")
    return Unlabelled(source, columns, table.n_rows, valuation)


def _columns(table: Table, schema: Schema, *, sparse: bool) -> Iterator[Column]:
    """Find the columns of the labelled rows; levels that only the pool has are kept."""
    places = schema.find(table, range(len(schema.names)))
    for j, place in enumerate(() if sparse else places):
        column = schema.column(table, j, place)
        own = column if place is None else table.column(place)
        yield column if own.levels is None or column.levels is None else own


def pool_part(material: Material, pool: Unlabelled) -> dict[str, Any]:
    """Compare a pool with the labelled rows: shifts of columns, and values and slices per attribute."""
    sample = sample_rows(len(pool.valuation), material.max_rows, material.seed)
    search = SliceSearch(binned_features(pool.columns, sample), sample)
    return {
        "rows": len(pool.valuation),
        "rows_without_value": pool.n_rows - len(pool.valuation),
        "rows_searched": len(sample),
        "caution": _caution(pool.valuation, material.target_name),
        "shifts": shifts_part(material.columns, pool.columns),
        "attributes": [_attribute(material, one, pool.valuation, search) for one in material.attributes],
    }


def _caution(pool: Valuation, target: str) -> str | None:
    """Say how values of unlabelled rows differ in general; None if there is nothing to say."""
    settings = pool.provenance.settings
    if settings.get("y_given", True):
        return None
    if pool.scales["y"].is_signed:
        return (
            f"Without {quoted(target)}, effects are averaged over its possible labels: they are closer to 0 "
            "in the pool, even for similar rows."
        )
    if not settings.get("z_sees_target"):
        return None
    return (
        f"The attribute's models use {quoted(target)} if it is known, and average over its possible labels "
        "if not: v_z is slightly higher in the pool, even for similar rows."
    )


def _attribute(
    material: Material, attribute: Protected, pool: Valuation, search: SliceSearch
) -> dict[str, Any]:
    plane = pool_plane(material, attribute, pool)
    corner = plane["corners"][0]
    return {
        "name": attribute.name,
        "sentence": (
            f"{percent(corner['share'])} of the pool are in the corner {quoted(corner['name'])}, compared "
            f"with {percent(corner['labelled_share'])} of the labelled rows."
        ),
        "v_y": _beside(material, pool, "y"),
        "v_z": _beside(material, pool, attribute.name),
        "plane": plane,
        "utility": _worth_most(pool, search, attribute.name),
    }


def _beside(material: Material, pool: Valuation, name: str) -> dict[str, Any]:
    """Describe the values of labelled rows and of a pool, over the same bins."""
    described = {}
    for which, valuation in (("labelled", material.valuation), ("pool", pool)):
        values = valuation[name]
        counts = np.bincount(binned(values, material.span(name)), minlength=BINS)
        described[which] = {
            "rows": len(values),
            "shares": (counts / len(values)).tolist(),
            "mean": float(values.mean()),
            "quartiles": np.quantile(values, [0.25, 0.5, 0.75]).tolist(),
            "epistemic": known_mean(valuation.field("epistemic", name)),
        }
    return described


def _worth_most(pool: Valuation, search: SliceSearch, attribute: str) -> dict[str, Any]:
    """Give the slices whose labels are worth most by linear utility, the clearest first, and the mean."""
    utilities = LinearUtility(alpha=ALPHA).over([attribute])(pool)
    slices = []
    for one in search.find(utilities, highest=True):
        rows = one.rows(search.columns)
        slices.append(
            {
                "conditions": one.texts,
                "rows": int(rows.sum()),
                "share": float(rows.mean()),
                "p_value": one.p_value,
                "mean_utility": float(utilities[rows].mean()),
                "mean_v_y": float(pool["y"][rows].mean()),
                "mean_v_z": float(pool[attribute][rows].mean()),
            }
        )
    return {"alpha": ALPHA, "mean": float(utilities.mean()), "slices": slices}


@dataclass(frozen=True)
class Shift:
    """How much the distribution of a column differs between the pool and the labelled rows."""

    column: str
    distance: float  # between 0 and 1
    chance: float  # the distance that chance alone does not exceed in any column, 95 times out of 100
    where: str  # the gap is widest; empty if there is none, or if the level has too few rows to be named
    labelled_share: float
    pool_share: float

    @property
    def is_clear(self) -> bool:
        """Whether chance does not explain the distance."""
        return self.distance > self.chance


def shifts_part(labelled: Sequence[Column], pool: Sequence[Column]) -> dict[str, Any]:
    """Compare the columns of labelled rows and of a pool; those farthest beyond chance come first."""
    shifts = [shift_of(own, other, len(labelled)) for own, other in zip(labelled, pool, strict=True)]
    shifts.sort(key=lambda shift: shift.chance - shift.distance)
    n_clear = sum(shift.is_clear for shift in shifts)
    if not shifts:
        sentence = "The features are a matrix without column names."
    elif not n_clear:
        sentence = "No column has a distribution that differs from the labelled rows beyond chance."
    else:
        first = shifts[0]
        holds = (
            f": {quoted(first.where)} is true for {percent(first.pool_share)} of the pool and "
            f"{percent(first.labelled_share)} of the labelled rows"
        )
        sentence = (
            f"{n_clear} of {len(shifts)} columns {'has' if n_clear == 1 else 'have'} a distribution that "
            f"differs from the labelled rows beyond chance, most of all {quoted(first.column)}"
            f"{holds if first.where else ''}."
        )
    return {
        "columns": [asdict(shift) | {"is_clear": shift.is_clear} for shift in shifts[:MOST_COLUMNS]],
        "compared": len(shifts),
        "clear": n_clear,
        "sentence": sentence,
    }


def shift_of(labelled: Column, pool: Column, n_columns: int = 1) -> Shift:
    """Compare a column of labelled rows with the same column of a pool, one of `n_columns` columns.

    Examples
    --------
    >>> from fado.tabular import column_from
    >>> shift = shift_of(column_from("age", [1, 2, 3, 4]), column_from("age", [3, 4, 5, 6]))
    >>> shift.distance, shift.where, shift.is_clear
    (0.5, 'age ≤ 2', False)
    >>> jobs = ["clerk", "cook"]
    >>> shift = shift_of(column_from("job", jobs * 100), column_from("job", ["cook"] * 100))
    >>> shift.distance, shift.where, shift.pool_share, shift.is_clear
    (0.5, 'job = clerk', 0.0, True)
    """
    name, odds = labelled.name, n_columns / SIGNIFICANCE
    if labelled.levels is None and not (labelled.is_boolean and pool.is_boolean):
        numbers = np.concatenate([labelled.numbers(), pool.numbers()])
        entries, places = np.unique(numbers, return_inverse=True)  # NaN comes last
        counts, noise = _counted(places[: len(labelled)], places[len(labelled) :], len(entries))
        upto = counts.cumsum(axis=1) / counts.sum(axis=1, keepdims=True)
        widest = int(np.argmax(np.abs(upto[1] - upto[0])))
        first, second = upto[:, widest]
        where = f"{name} ≤ {written(entries[widest])}"
        if widest + 2 == len(entries) and np.isnan(entries[-1]):  # at the largest known number
            first, second, where = 1 - first, 1 - second, f"{name} is missing"
        distance = abs(float(first - second))
        chance = math.sqrt(noise * math.log(2 * odds) / 2)
    else:
        levels, of_labelled, of_pool = _level_codes(labelled, pool)
        counts, noise = _counted(of_labelled, of_pool, len(levels) + 1)
        shares = counts / counts.sum(axis=1, keepdims=True)
        gaps = np.abs(shares[1] - shares[0])
        widest, distance = int(np.argmax(gaps)), float(gaps.sum() / 2)
        first, second = shares[:, widest]
        where = f"{name} is missing"
        if widest < len(levels):
            where = "" if counts[:, widest].sum() < FEWEST_MEMBERS else f"{name} = {levels[widest]}"
        common = counts.sum(axis=0) / counts.sum()
        expected = float(np.sqrt(common * (1 - common) * noise).sum() / 2)
        chance = expected + math.sqrt(noise * math.log(odds) / 2)
    return Shift(name, distance, chance, where if distance else "", float(first), float(second))


def _level_codes(labelled: Column, pool: Column) -> tuple[list[str], Counts, Counts]:
    """Give the levels that either has, and each row's code; one more code marks a missing entry."""
    if labelled.levels is None:  # booleans
        first, second = (np.nan_to_num(own.numbers(), nan=2.0).astype(np.int64) for own in (labelled, pool))
        return ["False", "True"], first, second
    levels = sorted({*labelled.levels, *(pool.levels or ())})
    first, second = (own.with_levels(levels).codes().astype(np.int64) for own in (labelled, pool))
    first[first < 0] = second[second < 0] = len(levels)
    return levels, first, second


def _counted(labelled: Counts, pool: Counts, n_entries: int) -> tuple[Counts, float]:
    """Count entries, and give 1/n + 1/m, a factor of the variance of a gap between two shares."""
    counts = np.stack([np.bincount(places, minlength=n_entries) for places in (labelled, pool)])
    return counts, float((1 / counts.sum(axis=1)).sum())
