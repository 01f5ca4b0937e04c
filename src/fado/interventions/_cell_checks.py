"""What no weight can mend in the cells of group and label, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names, warn_user
from fado.interventions._small import warn_of_small
from fado.tabular import small_groups

__all__ = ["compared_groups", "warn_of_equal_weights", "warn_of_weightless_cells"]

Counts = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def compared_groups(names: Sequence[str], classes: Sequence[Any], rows: Counts, min_group_size: int) -> Bools:
    """Mark the groups whose cells count; warn of the others, and of cells without rows.

    Parameters
    ----------
    names : sequence of str
        Of the groups.
    classes : sequence
        The labels.
    rows : ndarray of shape (n_groups, n_classes)
        How many rows each cell has.
    min_group_size : int
        By which groups are small.
    """
    sizes = rows.sum(axis=1)
    compared = ~small_groups(sizes, min_group_size)
    warn_of_small(
        names,
        sizes,
        compared,
        min_group_size,
        outcome="their rows get the factor 1, and they count in no rate",
        alone="every row gets the factor 1",
    )
    if len(names) == 1:
        warn_user(
            f"There is only one group ({names[0]}) and so no other rate to equalise: its rows all get the "
            "factor 1. Pass protected attributes as `sensitive_features`."
        )
    lacking = (rows == 0) & compared[:, None] & rows[compared].any(axis=0)
    for label, named in _marked(lacking, names, classes):
        warn_user(
            f"No rows with label {label} in group {named}: no weights can equalise the rate of that label "
            "there."
        )
    return compared


def warn_of_weightless_cells(
    names: Sequence[str], classes: Sequence[Any], rows: Counts, heavy: Counts
) -> None:
    """Say which cells have rows, and none that weigh anything.

    Parameters
    ----------
    names, classes, rows
        As `compared_groups` takes them.
    heavy : ndarray of shape (n_groups, n_classes)
        How many rows of each cell weigh anything.
    """
    for label, named in _marked((rows > 0) & (heavy == 0), names, classes):
        warn_user(
            f"All rows with label {label} in group {named} have the weight 0, which no correction can raise: "
            "set `floor` above 0 to equalise the rate of that label there."
        )


def _marked(cells: Bools, names: Sequence[str], classes: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Name per label the groups whose cell is marked."""
    for label, marked in zip(classes, cells.T, strict=True):
        if marked.any():
            yield repr(label), list_names([names[group] for group in np.flatnonzero(marked).tolist()])


def warn_of_equal_weights(weights: npt.NDArray[np.float64]) -> None:
    """Say that no row weighs more than another, as groups have the same share of each label."""
    if np.ptp(weights) <= 1e-9:
        warn_user("The groups have equal shares of each label already: every row weighs the same.")
