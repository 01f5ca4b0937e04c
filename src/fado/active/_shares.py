"""How much of a batch every group is to have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import closest_names, list_names
from fado.active._groups import PoolGroups, join_groups

__all__ = ["check_shares", "groups_named", "names_groups_of", "quotas_of", "whole_quotas"]

FloatArray = npt.NDArray[np.float64]

_WORDS = ("equal", "pool")
_ROUNDING = 1e-9


def check_shares(group_shares: Any) -> None:
    """Refuse what says nothing of how much each group is to have."""
    if group_shares is None or (isinstance(group_shares, str) and group_shares in _WORDS):
        return
    if not isinstance(group_shares, Mapping):
        raise TypeError(
            "`group_shares` must map groups to shares or numbers of rows, or be 'equal' or 'pool', got "
            f"{group_shares!r}."
        )
    if not group_shares:
        raise ValueError("`group_shares` names no group: name one or more, or leave it out.")
    for label, share in group_shares.items():
        if isinstance(share, bool) or not isinstance(share, Real):
            raise TypeError(f"`group_shares[{label!r}]` must be a number, got {share!r}.")
        if isinstance(share, Integral):
            if share < 0:
                raise ValueError(f"`group_shares[{label!r}]` must be at least 0 rows, got {share}.")
        elif not 0 <= float(share) <= 1:
            raise ValueError(
                f"`group_shares[{label!r}]` must be in [0, 1], or a whole number of rows, got {share}."
            )


def groups_named(group_shares: Any, attributes: Sequence[PoolGroups]) -> tuple[PoolGroups, dict[int, Any]]:
    """Find the groups that shares are given for: those of one attribute, or the combinations of all.

    Parameters
    ----------
    group_shares : mapping
        Labels of one attribute to shares; or tuples, with a label of each attribute.
    attributes : sequence of PoolGroups
        The protected attributes.

    Returns
    -------
    groups : PoolGroups
        The groups of that attribute, or the combinations.
    shares : dict of int to number
        By the places of the groups that were named.

    Examples
    --------
    >>> from fado.active._groups import KnownGroups
    >>> sex = KnownGroups(("f", "m"), np.array([0, 1]))
    >>> old = KnownGroups((False, True), np.array([1, 0]))
    >>> groups, shares = groups_named({"m": 0.5}, [sex, old])
    >>> groups.labels, shares
    (('f', 'm'), {1: 0.5})
    """
    choices = _choices(attributes)
    fitting = _fitting(group_shares, choices)
    if len(fitting) > 1:
        raise ValueError(
            f"`group_shares` names {list_names(list(map(repr, group_shares)))}, which more than one "
            "protected attribute has: name a label of each, as a tuple."
        )
    if not fitting:
        raise ValueError(_unknown(group_shares, choices))
    groups, places = fitting[0]
    shares = dict(zip(places, group_shares.values(), strict=True))
    if len(shares) < len(group_shares):
        raise ValueError(f"`group_shares` names a group twice: {list_names(list(map(repr, group_shares)))}.")
    return groups, {int(place): share for place, share in shares.items() if place is not None}


def quotas_of(group_shares: Any, shares: Mapping[int, Any], groups: PoolGroups, total: float) -> FloatArray:
    """Give how many rows of a batch each group is to have; NaN for those that were not named.

    Parameters
    ----------
    group_shares : {"equal", "pool"} or mapping
        What the user wants. A float is a share of the batch, a whole number is a number of rows.
    shares : mapping of int to number
        The same by the groups' places, if it is a mapping.
    groups : PoolGroups
        The groups.
    total : float
        How many rows the batch has; or what it may cost, and shares are of that.

    Examples
    --------
    >>> from fado.active._groups import KnownGroups
    >>> groups = KnownGroups(("a", "b", "c"), np.array([0, 0, 0, 1]))
    >>> quotas_of("equal", {}, groups, 10), quotas_of("pool", {}, groups, 10)
    (array([5., 5., 0.]), array([7.5, 2.5, 0. ]))
    >>> quotas_of({"b": 0.25, "c": 3}, {1: 0.25, 2: 3}, groups, 10)
    array([nan, 2.5, 3. ])
    """
    if isinstance(group_shares, str):
        there = groups.expected()
        wanted = (there > 0).astype(np.float64) if group_shares == "equal" else there
        return total * wanted / wanted.sum()
    quotas = np.full(len(groups.labels), np.nan)
    for place, share in shares.items():
        quotas[place] = share if isinstance(share, Integral) else share * total
    if np.nansum(quotas) > total * (1 + _ROUNDING):
        if all(not isinstance(share, Integral) for share in shares.values()):
            raise ValueError(
                f"`group_shares` sum to {sum(map(float, shares.values())):g}: they must sum to 1 at most."
            )
        raise ValueError(
            f"`group_shares` ask for {np.nansum(quotas):g} and the batch has {total:g}: ask for less, or for "
            "a larger batch."
        )
    return quotas


def whole_quotas(quotas: FloatArray) -> FloatArray:
    """Round numbers of rows such that their sum is kept: the largest remainders are rounded up.

    Examples
    --------
    >>> whole_quotas(np.array([3.3, 3.3, 3.4, np.nan]))
    array([ 3.,  3.,  4., nan])
    """
    whole = np.floor(quotas + _ROUNDING)
    missing = round(float(np.nansum(quotas) - np.nansum(whole)))
    largest = np.argsort(-np.nan_to_num(quotas - whole, nan=-1.0), kind="stable")
    whole[largest[:missing]] += 1
    return whole


def names_groups_of(group_shares: Mapping[Any, Any], attributes: Sequence[PoolGroups]) -> bool:
    """Tell whether all labels are those of one attribute, or of combinations."""
    return bool(_fitting(group_shares, _choices(attributes)))


def _choices(attributes: Sequence[PoolGroups]) -> list[PoolGroups]:
    return [*attributes, join_groups(attributes)] if len(attributes) > 1 else list(attributes)


def _fitting(
    group_shares: Mapping[Any, Any], choices: Sequence[PoolGroups]
) -> list[tuple[PoolGroups, list[int | None]]]:
    """Find the groups that hold all labels, and the labels' places."""
    found = [(own, _places(group_shares, own.labels)) for own in choices]
    return [(own, places) for own, places in found if None not in places]


def _places(named: Mapping[Any, Any], labels: Sequence[Any]) -> list[int | None]:
    by_text = {_text(label): place for place, label in enumerate(labels)}
    by_label = {label: place for place, label in enumerate(labels)}
    return [by_label.get(label, by_text.get(_text(label))) for label in named]


def _text(label: Any) -> str | tuple[str, ...]:
    """Give a label as a command line would name it."""
    return tuple(map(str, label)) if isinstance(label, tuple) else str(label)


def _unknown(named: Mapping[Any, Any], choices: Sequence[PoolGroups]) -> str:
    labels = list(dict.fromkeys(label for own in choices for label in own.labels))
    known = set(map(_text, labels))
    strange = next((label for label in named if _text(label) not in known), None)
    if strange is None:
        return (
            f"`group_shares` names groups of several protected attributes "
            f"({list_names(list(map(repr, named)))}): name those of one, or a label of each, as a tuple."
        )
    there = f"; there are {list_names(list(map(repr, labels)))}."
    return (
        f"`group_shares` names {strange!r}, which is no group"
        f"{closest_names(str(strange), [str(label) for label in labels], there)}"
    )
