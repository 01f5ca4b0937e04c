"""The sampled rows as a problem to learn: with the levels and classes of the whole table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fado._messages import list_names, warn_user
from fado.tabular import Column, Problem, Table, Variable, column_from, weights_of
from fado.valuation.bulk._roles import Roles
from fado.valuation.bulk._scan import Scan
from fado.valuation.entropy._labels import label_codes

__all__ = ["problem_of", "smallest_of"]


def problem_of(scan: Scan, roles: Roles) -> Problem:
    """Read the sampled rows.

    Parameters
    ----------
    scan : Scan
        What the first pass told; its sample is read.
    roles : Roles
        What the columns are for.
    """
    sources = roles.variables(scan.sample)
    variables = [_labelled(own, column) for own, column in zip(scan.variables, sources, strict=True)]
    _tell_unseen(variables, len(scan.rows))
    columns = [
        _with_levels(column_from(name, scan.sample.column(name)), scan.levels) for name in roles.features
    ]
    return Problem(
        table=Table.of_columns(columns),
        target=variables[0],
        protected=tuple(variables[1:]),
        positions=tuple(None for _ in roles.attributes),
        names_given=True,
        sources=tuple(sources),
        sample_weight=weights_of(roles.weights(scan.sample), len(scan.rows)),
    ).with_mean_weight_one()


def smallest_of(hashes: npt.NDArray[np.uint64], n_rows: int) -> npt.NDArray[np.int64]:
    """Give the places in the sample of its rows of the smallest hashes, in the order of the table."""
    if n_rows >= len(hashes):
        return np.arange(len(hashes))
    return np.sort(np.argpartition(hashes, n_rows - 1)[:n_rows])


def _labelled(variable: Variable, column: Column) -> Variable:
    return Variable(
        variable.name,
        variable.kind,
        label_codes(variable, column),
        variable.classes,
        has_missing=variable.has_missing,
    )


def _with_levels(column: Column, levels: dict[str, tuple[str, ...]]) -> Column:
    return column if column.levels is None else column.with_levels(levels[column.name])


def _tell_unseen(variables: list[Variable], n_rows: int) -> None:
    """Say which classes are so rare that the sample has none of their rows."""
    for variable in variables:
        if variable.kind == "continuous":
            continue
        sizes = np.bincount(variable.labels, minlength=len(variable.classes))
        lacking = [repr(variable.classes[code]) for code in np.flatnonzero(sizes == 0)]
        if lacking:
            warn_user(
                f"Variable {variable.name!r} has classes of which no row is among the {n_rows:,} that models "
                f"learn from ({list_names(lacking)}): merge them with others to value their rows better."
            )
