"""A batch in which every group has what it is to have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fado._messages import list_names, warn_user
from fado.active._batch import Limits
from fado.active._groups import KnownGroups, ProbableGroups
from fado.active._shares import whole_quotas

__all__ = ["limit_parts", "warn_if_far_off"]

FloatArray = npt.NDArray[np.float64]

_FAR_OFF = 0.02  # of the batch: how far an expected number may be from what was asked for


def limit_parts(
    groups: KnownGroups, quotas: FloatArray, spending: FloatArray, total: float, *, counts_rows: bool
) -> Limits:
    """Give each group that has a quota a part of its own, and the others one together."""
    if counts_rows:
        quotas = whole_quotas(quotas)
    named = ~np.isnan(quotas)
    part_of = np.where(named, np.cumsum(named) - 1, named.sum())
    of_parts = np.append(quotas[named], max(total - np.nansum(quotas), 0.0))
    there = np.bincount(groups.codes, weights=spending, minlength=len(quotas))
    lacking = np.flatnonzero(named & (there < np.nan_to_num(quotas) * (1 - 1e-9)))
    if len(lacking):
        told = [
            f"{groups.labels[group]!r} ({there[group]:g} of {quotas[group]:g})" for group in lacking.tolist()
        ]
        warn_user(
            f"The pool has less than `group_shares` ask for of {list_names(told)}: the rest of the batch "
            "goes to other rows, by utility."
        )
    return Limits(spending, total, part_of[groups.codes], of_parts)


def warn_if_far_off(
    groups: ProbableGroups, quotas: FloatArray, chosen: npt.NDArray[np.int64], *, diverse: bool
) -> None:
    """Say which groups of a batch are far from what they are to have."""
    expected = groups.expected(chosen)
    off = np.nan_to_num(np.abs(expected - quotas))
    far = np.flatnonzero(off > max(1.0, _FAR_OFF * len(chosen)))
    if len(far):
        told = [
            f"{groups.labels[group]!r} (about {expected[group]:.0f}, not {quotas[group]:.0f})"
            for group in far.tolist()
        ]
        lead = "no batch as diverse was found that holds" if diverse else "no batch of this pool holds"
        warn_user(
            f"By the models' word, {lead} what `group_shares` ask for of {list_names(told)}: the nearest is "
            "taken."
        )
