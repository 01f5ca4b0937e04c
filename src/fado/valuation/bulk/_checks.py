"""What is refused in the rows of a table in files, as they are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado.tabular import Column, Source, Variable, check_weights, column_from
from fado.valuation.bulk._classes import Classes
from fado.valuation.bulk._reading import BLOCK_ROWS
from fado.valuation.bulk._roles import Roles

__all__ = ["check_comparisons", "check_group_names", "check_rows"]


def check_rows(target: Column, weights: npt.NDArray[np.float64] | None, where: str) -> None:
    """Refuse a target that is missing or infinite, and weights that are none.

    Parameters
    ----------
    target : Column
        Of some rows.
    weights : ndarray or None
        Theirs.
    where : str
        What the place that they were read from is called.
    """
    if target.levels is None or target.data.null_count:
        numbers = target.numbers()
        missing = int(np.isnan(numbers).sum())
        if missing:
            raise ValueError(
                f"The target is missing in {missing} or more rows of {where!r}: drop those rows or label "
                "them first."
            )
        if np.isinf(numbers).any():
            raise ValueError(f"The target contains infinity in {where!r}: drop or mend those rows first.")
    if weights is not None:
        check_weights(weights, "weight", f" of {where!r}")


def check_comparisons(variables: Sequence[Variable], roles: Roles) -> None:
    """Refuse comparisons, of the target or an attribute, that come out alike in every row."""
    for variable, own in zip(variables, (roles.target, *roles.attributes), strict=True):
        known = variable.classes[:-1] if variable.has_missing else variable.classes
        if own.is_column or len(known) > 1:
            continue
        where = "is missing in every row"
        if known:
            where = f"is true in {'every' if known[0] in (True, own.group_titles[0]) else 'no'} row"
        raise ValueError(
            f"`{own.argument}` {own.name!r} {where}: look at {list_names(list(own.sources))}, or leave it "
            "out."
        )


def check_group_names(source: Source, roles: Roles) -> None:
    """Refuse names of groups that no row is in; only columns whose groups have names are read for it."""
    named = {own.sources[0]: own for own in roles.attributes if own.is_column and own.names}
    seen = {name: Classes(name) for name in named}
    for block in source.rows(list(named), BLOCK_ROWS) if named else ():
        for name, own in seen.items():
            own.add(column_from(name, block.column(name)))
    for name, attribute in named.items():
        attribute.check_named(seen[name].variable())
