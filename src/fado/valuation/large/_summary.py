"""The groups of a table in files: sums that every part of values holds, and what they say of the whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from fado._typing import Floats
from fado.tabular import TARGET, Variable, positive_code
from fado.valuation._saved import open_parts, read_lazily

SUMS_KEY = b"fado.sums"
_MOST_GROUPS = 100  # of an attribute: more are no summary
_GRAIN = 2.0**30  # values are cut to multiples of 1 / 2**30, whose sums are exact in any order


@dataclass(frozen=True)
class GroupLine:
    """One group of a protected attribute.

    Parameters
    ----------
    title : str
        Its label.
    n_rows : int
        How many rows it has.
    share : float
        Its share of all rows, by weight if rows have weights.
    positive : float or None
        Its positive rate, by weight if rows have weights; None if the target has no positive label.
    mean_y, mean_z : float
        The mean values of its rows for the target and for the attribute, without weights.

    See Also
    --------
    fado.valuation.summarise_files : Returns such lines.
    """

    title: str
    n_rows: int
    share: float
    positive: float | None
    mean_y: float
    mean_z: float


def group_sums(
    values: pa.Table,
    variables: Sequence[Variable],
    labels: Mapping[str, npt.NDArray[Any]],
    weights: Floats | None,
) -> dict[str, Floats]:
    """Add up over the groups of attributes of classes: rows, values with their counts, weights by label."""
    target, *attributes = variables
    weights = np.ones(values.num_rows) if weights is None else weights
    by_label = [weights]
    if 0 < len(target.classes) <= _MOST_GROUPS:
        by_label = [weights * (labels[TARGET] == code) for code in range(len(target.classes))]
    sums = {}
    for place, attribute in enumerate(attributes, start=1):
        if 0 < len(attribute.classes) <= _MOST_GROUPS:
            amounts = [np.ones(values.num_rows)]
            for numbers in (values.column(0).to_numpy(), values.column(place).to_numpy()):
                known = np.isfinite(numbers)
                amounts += [known, np.where(known, np.floor(_GRAIN * numbers) / _GRAIN, 0.0)]
            codes, n_groups = labels[attribute.name], len(attribute.classes)
            sums[attribute.name] = np.array(
                [np.bincount(codes, each, n_groups) for each in amounts + by_label]
            )
    return sums


def read_sums(path: Path) -> list[Any]:
    """Read the sums over groups of a file of values, part by part."""
    sums = (pa.parquet.read_metadata(path).metadata or {}).get(SUMS_KEY)
    if sums is None:
        raise ValueError(f"{str(path)!r} has no sums of groups: `value_files` did not write it.")
    return list(json.loads(sums))


def summarise_files(path: str | os.PathLike[str], positive: Any = None) -> dict[str, list[GroupLine]]:
    """Summarise the groups of every protected attribute of classes, without reading the rows.

    Parameters
    ----------
    path : path-like
        The directory, or the file, that `value_files` wrote.
    positive : label, optional
        The target's positive label; None means the larger of two.

    Returns
    -------
    dict of str to list of GroupLine
        Per attribute, its groups, the largest first. Attributes with more than 100 groups are left out.

    See Also
    --------
    fado.value_files : Value the rows of these files.
    """
    final = Path(path)
    files = [part.path for part in open_parts(final)[0]] if final.is_dir() else [final]
    notes = read_lazily(final).provenance.variables
    classes = {name: note.classes or () for name, note in notes.items()}
    code = positive_code(classes[TARGET], positive) if classes[TARGET] else None
    totals: dict[str, Any] = {}
    for part in (sums for file in files for sums in read_sums(file)):
        for name, sums in part.items():
            totals[name] = totals.get(name, 0.0) + np.array(sums)
    return {name: _group_lines(classes[name], sums, code) for name, sums in totals.items()}


def _group_lines(labels: Sequence[Any], sums: Floats, positive: int | None) -> list[GroupLine]:
    """Return the groups of an attribute, the largest first."""
    rows, count_y, sum_y, count_z, sum_z, *by_label = sums
    weights, rates = np.sum(by_label, axis=0), None
    with np.errstate(invalid="ignore"):
        means_y, means_z = sum_y / count_y, sum_z / count_z
        if positive is not None and 1 < len(by_label) > positive:
            rates = (by_label[positive] / weights).tolist()
    shares = (weights / weights.sum()).tolist()
    return [
        GroupLine(
            str(labels[code]),
            int(rows[code]),
            shares[code],
            None if rates is None else rates[code],
            float(means_y[code]),
            float(means_z[code]),
        )
        for code in np.argsort(-rows, kind="stable")
        if rows[code]
    ]
