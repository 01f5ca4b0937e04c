"""What a user would not expect of the rates that are matched, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names, warn_user
from fado.interventions._rates import MatchedRates
from fado.interventions._small import warn_of_small

__all__ = ["has_rates", "warn_of_one_group", "warn_of_rates"]

Counts = npt.NDArray[np.integer]


def has_rates(classes: Sequence[Any], n_groups: int) -> bool:
    """Tell whether there are rates to match: of two labels, and of more than one group."""
    if len(classes) < 2:
        raise ValueError(f"`y` has only one class ({classes[0]!r}): there are no positive rates to match.")
    if n_groups == 1:
        return False
    if len(classes) != 2:
        shown = ", ".join(map(repr, classes[:5])) + (", ..." if len(classes) > 5 else "")
        raise ValueError(
            f"`y` must hold two labels for a positive rate, got {len(classes)} ({shown}): pass one class "
            "against the others, for example `y == label`."
        )
    return True


def warn_of_one_group(name: str) -> None:
    """Say that there is nothing to match."""
    warn_user(
        f"There is only one group ({name}) and so no other rate to match: every row is kept. Pass protected "
        "attributes as `sensitive_features`."
    )


def warn_of_rates(
    names: Sequence[str], sizes: Counts, rates: MatchedRates, min_group_size: int, *, weighted: bool
) -> None:
    """Say which groups are left alone or lack a label, and if a thin one decides over the others.

    Parameters
    ----------
    names : sequence of str
        Of all groups.
    sizes : ndarray of int
        How many rows each has.
    rates : MatchedRates
        What was found.
    min_group_size : int
        By which groups are small.
    weighted : bool
        Whether rows have weights.
    """
    warn_of_small(
        names,
        sizes,
        rates.compared,
        min_group_size,
        outcome="all their rows are kept, and they count in no rate",
        alone="every row is kept",
    )
    if rates.compared.sum() > 1:
        if not rates.shrinking.any() and (rates.positives[rates.compared] > 0).all():
            warn_user(
                "The groups' positive rates are equal, or too near for `strength` to move one by a whole "
                "row: every row is kept."
            )
        _warn_of_extremes(names, rates, weighted=weighted)
        if min_group_size > 0:
            _warn_of_thin_lead(names, sizes, rates, weighted=weighted)


def _warn_of_extremes(names: Sequence[str], rates: MatchedRates, *, weighted: bool) -> None:
    """Say which of the compared groups lack a label."""
    of_weight = " of any weight" if weighted else ""
    none, only = (
        [names[group] for group in np.flatnonzero(rates.compared & (counts == 0)).tolist()]
        for counts in (rates.positives, rates.negatives)
    )
    if none:
        warn_user(
            f"No positives{of_weight} in group {list_names(none)}: no rate can be matched there, its rows "
            "are all kept."
        )
    if only and rates.target_rate == 1:
        warn_user(
            f"No negatives{of_weight} in group {list_names(only)}: the other groups lose theirs to match a "
            "rate of 1. Merge it with another group, or lower `strength`."
        )


def _warn_of_thin_lead(names: Sequence[str], sizes: Counts, rates: MatchedRates, *, weighted: bool) -> None:
    """Say if a thin group has the highest rate, and what that costs."""
    lead = rates.thin_lead()
    if lead is None:
        return

    def told(amount: float) -> str:
        if weighted:
            return f"{100 * amount / rates.total:.0f} % of the weight"
        return f"{amount:,.0f} of {rates.total:,.0f} rows"

    sized = [(names[group], int(sizes[group])) for group in lead.groups]
    who = list_names([f"{name} ({size} row{'' if size == 1 else 's'})" for name, size in sized])
    share = f"less than 5 % of the {'weight' if weighted else 'rows'}"
    subject = f"Group {who}, with {share}, has the highest positive rate, {lead.rate:.3g}"
    if lead.is_capped:
        warn_user(
            f"{subject}: to match it, {told(lead.wanted)} would go, more than half. The rate aimed at is "
            f"{rates.target_rate:.3g}, and {told(lead.going)} go. Merge the group with another; "
            "`min_group_size=0` matches its rate all the same."
        )
    elif lead.thick_rate is not None and 10 * (lead.going - lead.without) > rates.total:
        warn_user(
            f"{subject}: to match it, {told(lead.going)} go, and {told(lead.without)} would go to match "
            f"{lead.thick_rate:.3g}, the highest of the larger groups. Merge the group with another, or "
            "lower `strength`."
        )
