"""What is refused in the rows of a table in files, as they are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado.tabular import Column, Variable, check_weights
from fado.valuation.bulk._roles import Roles

__all__ = ["check_comparisons", "check_rows"]


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
    """Refuse comparisons that come out alike in every row."""
    for variable, attribute in zip(variables, roles.attributes, strict=True):
        if variable.kind == "continuous" or attribute.is_column:
            continue
        known = variable.classes[:-1] if variable.has_missing else variable.classes
        if len(known) < 2:
            where = "is missing in every row" if not known else f"is {str(known[0]).lower()} in every row"
            raise ValueError(
                f"`protected` {attribute.name!r} {where}: look at {list_names(list(attribute.sources))}, or "
                "leave it out."
            )
