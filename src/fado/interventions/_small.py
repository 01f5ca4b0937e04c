"""Small groups: what interventions leave as it is, and say so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fado._messages import warn_user
from fado.tabular import tell_small

__all__ = ["warn_of_small"]


def warn_of_small(
    names: Sequence[str],
    sizes: npt.NDArray[np.integer],
    compared: npt.NDArray[np.bool_],
    min_group_size: int,
    *,
    outcome: str,
    alone: str,
) -> None:
    """Say which groups are too small to be compared, what becomes of them, and if too few others are left.

    Parameters
    ----------
    names : sequence of str
        Of all groups.
    sizes : ndarray of int
        How many rows each has.
    compared : ndarray of bool
        Those that are not small.
    min_group_size : int
        By which the others are.
    outcome : str
        What becomes of small groups' rows.
    alone : str
        What becomes of all rows if there are no two groups to compare.
    """
    if compared.all():
        return
    subject = tell_small(names, sizes, ~compared, min_group_size)
    warn_user(f"{subject} cannot be compared: {outcome}. `min_group_size=0` compares them too.")
    if compared.sum() < 2:
        left = [names[group] for group in np.flatnonzero(compared).tolist()]
        only = f"Only group {left[0]} is" if left else "No group is"
        warn_user(f"{only} left to compare, and so there is no other rate to match: {alone}.")
