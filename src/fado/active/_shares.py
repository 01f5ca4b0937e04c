"""How much of a batch every group gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral, Real
from typing import Any

import numpy as np

from fado._messages import closest_names, list_names, warn_user
from fado._typing import Floats, Integers
from fado.tabular import Table, group_rows, protected_columns, variable_from

Parts = tuple[Integers, Integers]  # the part of each row, and how many rows each part gets

_WORDS = ("equal", "pool")
_ROUNDING = 1e-9


def check_shares(group_shares: Any) -> None:
    """Refuse group shares that are not valid."""
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
        if isinstance(share, Integral) and share < 0:
            raise ValueError(f"`group_shares[{label!r}]` must be at least 0 rows, got {share}.")
        if not isinstance(share, Integral) and not 0 <= float(share) <= 1:
            raise ValueError(
                f"`group_shares[{label!r}]` must be in [0, 1], or a whole number of rows, got {share}."
            )


def find_quotas(group_shares: Any, attributes: Sequence[PoolGroups], n: int) -> tuple[PoolGroups, Floats]:
    """Find the groups that have shares, and how many rows of a batch each gets; NaN for groups not named.

    Examples
    --------
    >>> groups = PoolGroups(("a", "b", "c"), np.array([0, 0, 0, 1]))
    >>> for shares in ("equal", "pool", {"b": 0.25, "c": 3}):
    ...     print(find_quotas(shares, [groups], 10)[1])
    [5. 5. 0.]
    [7.5 2.5 0. ]
    [nan 2.5 3. ]
    """
    choices = [*attributes, join_groups(attributes)] if len(attributes) > 1 else list(attributes)
    if isinstance(group_shares, str):
        there = np.bincount(choices[-1].codes, minlength=len(choices[-1].labels)).astype(np.float64)
        wanted = (there > 0).astype(np.float64) if group_shares == "equal" else there
        return choices[-1], n * wanted / wanted.sum()
    fitting = []  # groups, of one attribute or of combinations, that include all labels, and their places
    for groups in choices:
        places = {_text(label): place for place, label in enumerate(groups.labels)}
        places |= {label: place for place, label in enumerate(groups.labels)}
        named = [places.get(label, places.get(_text(label), -1)) for label in group_shares]
        if -1 not in named:
            fitting.append((groups, named))
    names = list_names(list(map(repr, group_shares)))
    if len(fitting) > 1:
        raise ValueError(
            f"`group_shares` names {names}, which more than one protected attribute has: name a label of "
            "each, as a tuple."
        )
    if not fitting:
        labels = list(dict.fromkeys(label for groups in choices for label in groups.labels))
        known = set(map(_text, labels))
        strange = next((label for label in group_shares if _text(label) not in known), None)
        if strange is None:
            raise ValueError(
                f"`group_shares` names groups of several protected attributes ({names}): name those of one, "
                "or a label of each, as a tuple."
            )
        there_are = f"; there are {list_names(list(map(repr, labels)))}."
        closest = closest_names(str(strange), list(map(str, labels)), there_are)
        raise ValueError(f"`group_shares` names {strange!r}, which is not a group{closest}")
    groups, named = fitting[0]
    if len(set(named)) < len(named):
        raise ValueError(f"`group_shares` names a group twice: {names}.")
    quotas, shares = np.full(len(groups.labels), np.nan), list(group_shares.values())
    quotas[named] = [share if isinstance(share, Integral) else share * n for share in shares]
    if np.nansum(quotas) <= n * (1 + _ROUNDING):
        return groups, quotas
    if not any(isinstance(share, Integral) for share in shares):
        raise ValueError(f"`group_shares` sum to {sum(map(float, shares)):g}: they must sum to 1 at most.")
    raise ValueError(
        f"`group_shares` ask for {np.nansum(quotas):g} and the batch has {n}: ask for less, or for a "
        "larger batch."
    )


def _text(label: Any) -> str | tuple[str, ...]:
    """Give a label as a command line would name it."""
    return tuple(map(str, label)) if isinstance(label, tuple) else str(label)


@dataclass(frozen=True, eq=False)
class PoolGroups:
    """The groups of rows: their labels, and a code per row.

    Examples
    --------
    >>> PoolGroups(("f", "m", "x"), np.array([0, 1, 1])).counts(np.array([0, 1, 2]))
    {'f': 1, 'm': 2}
    """

    labels: tuple[Any, ...]
    codes: Integers

    def counts(self, rows: Integers) -> dict[Any, int]:
        """Count some rows by group."""
        counts = np.bincount(self.codes[rows], minlength=len(self.labels)).tolist()
        return {label: count for label, count in zip(self.labels, counts, strict=True) if count}


def join_groups(attributes: Sequence[PoolGroups]) -> PoolGroups:
    """Give the combinations of several attributes, labelled by tuples; those of one are its own groups.

    Examples
    --------
    >>> sex = PoolGroups(("f", "m"), np.array([0, 1, 1]))
    >>> old = PoolGroups((False, True), np.array([1, 0, 1]))
    >>> join_groups([sex, old]).counts(np.array([0, 1, 2]))
    {('f', True): 1, ('m', False): 1, ('m', True): 1}
    """
    if len(attributes) == 1:
        return attributes[0]
    codes = np.zeros_like(attributes[0].codes)
    for attribute in attributes:
        codes = codes * len(attribute.labels) + attribute.codes
    return PoolGroups(tuple(product(*(attribute.labels for attribute in attributes))), codes)


def read_groups(
    sensitive_features: Any, table: Table, models: Any, *, unknown: Any, all_of_classes: bool
) -> list[PoolGroups]:
    """Read the groups of the protected attributes that are classes; models may know more labels."""
    groups = []
    for column, _ in protected_columns(sensitive_features, table, unknown):
        variable = variable_from(column)
        if all_of_classes:
            group_rows([variable])  # raises an error for numbers
        if variable.kind == "classes":
            modelled = hasattr(models, "classes") and variable.name in models.variables[1:]
            known = models.classes(variable.name) if modelled else ()
            labels = dict.fromkeys([*variable.classes, *known])
            groups.append(PoolGroups(tuple(labels), variable.labels.astype(np.int64)))
    return groups


def parts_of(groups: PoolGroups, quotas: Floats, n: int) -> Parts:
    """Give each group that has a quota a part of its own, and all others one part together.

    Quotas are rounded so that they keep their sum: the largest remainders are rounded up.

    Examples
    --------
    >>> groups = PoolGroups(("a", "b", "c", "d"), np.repeat([0, 1, 2, 3], 4))
    >>> parts_of(groups, np.array([3.3, 3.3, 3.4, np.nan]), 12)[1]
    array([3, 3, 4, 2])
    """
    whole = np.floor(quotas + _ROUNDING)
    missing = round(float(np.nansum(quotas) - np.nansum(whole)))
    largest = np.argsort(-np.nan_to_num(quotas - whole, nan=-1.0), kind="stable")
    whole[largest[:missing]] += 1
    named = ~np.isnan(whole)
    there = np.bincount(groups.codes, minlength=len(quotas))
    lacking = [
        f"{groups.labels[group]!r} ({there[group]} of {whole[group]:g})"
        for group in np.flatnonzero(named & (there < np.nan_to_num(whole))).tolist()
    ]
    if lacking:
        warn_user(
            f"The pool has less than `group_shares` ask for of {list_names(lacking)}: the rest of the batch "
            "is filled with other rows, by utility."
        )
    part_of = np.where(named, np.cumsum(named) - 1, named.sum())
    sizes = np.append(whole[named], n - np.nansum(whole)).astype(np.int64)
    return part_of[groups.codes], sizes
