"""How much of a batch every group gets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import closest_names, list_names, warn_user
from fado.tabular import Table, group_rows, protected_columns, variable_from

FloatArray = npt.NDArray[np.float64]

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


def find_quotas(
    group_shares: Any, attributes: Sequence[PoolGroups], total: float
) -> tuple[PoolGroups, FloatArray]:
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
    if isinstance(group_shares, str):
        groups = join_groups(attributes)
        there = groups.expected()
        wanted = (there > 0).astype(np.float64) if group_shares == "equal" else there
        return groups, total * wanted / wanted.sum()
    fitting = groups_that_have(group_shares, attributes)
    names = list_names(list(map(repr, group_shares)))
    if len(fitting) > 1:
        raise ValueError(
            f"`group_shares` names {names}, which more than one protected attribute has: name a label of "
            "each, as a tuple."
        )
    if not fitting:
        labels = list(dict.fromkeys(label for own in _choices(attributes) for label in own.labels))
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
    groups, places = fitting[0]
    if len(set(places)) < len(places):
        raise ValueError(f"`group_shares` names a group twice: {names}.")
    quotas, shares = np.full(len(groups.labels), np.nan), list(group_shares.values())
    quotas[places] = [share if isinstance(share, Integral) else share * total for share in shares]
    if np.nansum(quotas) <= total * (1 + _ROUNDING):
        return groups, quotas
    if not any(isinstance(share, Integral) for share in shares):
        raise ValueError(f"`group_shares` sum to {sum(map(float, shares)):g}: they must sum to 1 at most.")
    raise ValueError(
        f"`group_shares` ask for {np.nansum(quotas):g} and the batch has {total:g}: ask for less, or for a "
        "larger batch."
    )


def whole_quotas(quotas: FloatArray) -> FloatArray:
    """Round numbers of rows and keep their sum: the largest remainders are rounded up.

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


def groups_that_have(
    group_shares: Mapping[Any, Any], attributes: Sequence[PoolGroups]
) -> list[tuple[PoolGroups, list[int]]]:
    """Find the groups, of one attribute or of combinations, that include all labels, and their places."""
    found = []
    for own in _choices(attributes):
        places = {_text(label): place for place, label in enumerate(own.labels)}
        places |= {label: place for place, label in enumerate(own.labels)}
        named = [places.get(label, places.get(_text(label), -1)) for label in group_shares]
        if -1 not in named:
            found.append((own, named))
    return found


def _choices(attributes: Sequence[PoolGroups]) -> list[PoolGroups]:
    return [*attributes, join_groups(attributes)] if len(attributes) > 1 else list(attributes)


def _text(label: Any) -> str | tuple[str, ...]:
    """Give a label as a command line would name it."""
    return tuple(map(str, label)) if isinstance(label, tuple) else str(label)


@dataclass(frozen=True, eq=False)
class PoolGroups:
    """The groups of rows: a code per row if they are known, else each row's probabilities of all groups.

    Examples
    --------
    >>> groups = PoolGroups(("f", "m"), np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]))
    >>> groups.expected([0, 1]).round(2)
    array([1.1, 0.9])
    """

    labels: tuple[Any, ...]
    members: npt.NDArray[Any]

    @property
    def known(self) -> bool:
        """Whether every row's group is known."""
        return self.members.ndim == 1

    def expected(self, rows: Any = slice(None)) -> FloatArray:
        """Give how many of some rows are in each group, or are expected to be."""
        if self.known:
            return np.bincount(self.members[rows], minlength=len(self.labels)).astype(np.float64)
        return np.asarray(self.members[rows].sum(axis=0), dtype=np.float64)


def join_groups(attributes: Sequence[PoolGroups]) -> PoolGroups:
    """Give the combinations of several attributes, labelled by tuples; those of one are its own groups.

    Examples
    --------
    >>> sex = PoolGroups(("f", "m"), np.array([0, 1, 1]))
    >>> old = PoolGroups((False, True), np.array([1, 0, 1]))
    >>> both = join_groups([sex, old])
    >>> both.labels[both.members[0]], both.expected()
    (('f', True), array([0., 1., 1., 1.]))
    """
    if len(attributes) == 1:
        return attributes[0]
    labels = tuple(product(*(own.labels for own in attributes)))
    if all(own.known for own in attributes):
        codes = np.zeros_like(attributes[0].members)
        for own in attributes:
            codes = codes * len(own.labels) + own.members
        return PoolGroups(labels, codes)
    joint, *others = (
        np.eye(len(own.labels))[own.members] if own.known else own.members for own in attributes
    )
    for other in others:
        joint = (joint[:, :, None] * other[:, None, :]).reshape(len(joint), -1)
    return PoolGroups(labels, joint)


def told_groups(
    models: Any, table: Table, sensitive_features: Any, unknown: Any, *, all_of_classes: bool = False
) -> dict[str, PoolGroups]:
    """Read the groups of the protected attributes that are known, if they are classes."""
    found: dict[str, PoolGroups] = {}
    for column, _ in protected_columns(sensitive_features, table, unknown):
        own = variable_from(column)
        if all_of_classes:
            group_rows([own])  # raises an error for numbers
        if own.kind == "classes":
            modelled = hasattr(models, "classes") and own.name in models.variables[1:]
            absent = (
                [label for label in models.classes(own.name) if label not in own.classes] if modelled else []
            )
            found[own.name] = PoolGroups((*own.classes, *absent), own.labels.astype(np.int64))
    return found


def modelled_groups(models: Any, X: Any, but: Collection[str] = ()) -> dict[str, PoolGroups]:
    """Predict the groups of protected attributes, if they are classes."""
    if not hasattr(models, "probabilities"):
        return {}
    names = [name for name in models.variables[1:] if name not in but and models.classes(name)]
    return {name: PoolGroups(models.classes(name), models.probabilities(X, name)) for name in names}


Rows = npt.NDArray[np.int64]

_NEAR = 0.5  # rows
_ROUNDS = 20  # of selection, if quotas are missed
_SWEEPS = 10  # over the groups, whose bonuses depend on each other
_HALVINGS = 40
_BORDER = 50  # rows on either side that may change places
_TIES = 1e-6  # of the spread: separates rows of equal score and probability
_GOLDEN = (5**0.5 - 1) / 2  # its multiples are spread evenly between integers
_LARGEST = 2.0**20  # of a bonus, in spreads of the scores: then probabilities alone decide


def pick_expected(
    scores: FloatArray,
    probabilities: FloatArray,
    quotas: FloatArray,
    n: int,
    pick: Callable[[FloatArray], Rows],
) -> Rows:
    """Select a batch whose expected numbers of rows are the groups' quotas, or nearest to them."""
    aimed, step, before = quotas, np.ones(len(quotas)), np.zeros(len(quotas))
    picked, nearest = np.empty(0, dtype=np.int64), np.inf
    for _ in range(_ROUNDS):
        found = pick(expect_quotas(scores, probabilities, aimed, n))
        lacking = np.nan_to_num(quotas - probabilities[found].sum(axis=0))
        off = float(np.abs(lacking).max())
        if off < nearest:
            picked, nearest = found, off
        step[lacking * before < 0] /= 2
        further = np.clip(aimed + step * lacking, 0, n)
        if off <= _NEAR or np.array_equal(further, aimed, equal_nan=True):
            break
        aimed, before = further, lacking
    return picked


def binding_quotas(scores: FloatArray, probabilities: FloatArray, quotas: FloatArray, n: int) -> FloatArray:
    """Drop quotas that utility alone meets, if all groups have one and the batch has room.

    Examples
    --------
    >>> scores = np.array([0.9, 0.8, 0.7, 0.6])
    >>> p = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> binding_quotas(scores, p, np.array([1.0, 1.0]), n=3)
    array([nan, nan])
    >>> binding_quotas(scores, p, np.array([0.0, 2.0]), n=3)
    array([nan,  2.])
    """
    if np.isnan(quotas).any() or quotas.sum() >= n - _NEAR:
        return quotas
    binding = np.full(len(quotas), np.nan)
    while True:
        chosen = _top(expect_quotas(scores, probabilities, binding, n), n)
        short = np.isnan(binding) & (probabilities[chosen].sum(axis=0) < quotas - _NEAR)
        if not short.any():
            return binding
        binding[short] = quotas[short]


def expect_quotas(scores: FloatArray, probabilities: FloatArray, quotas: FloatArray, n: int) -> FloatArray:
    """Give scores whose n highest rows are expected to meet each group's quota.

    Examples
    --------
    >>> scores = np.array([0.9, 0.8, 0.7, 0.6])
    >>> p = np.array([[0.1, 0.9], [0.2, 0.8], [0.9, 0.1], [0.8, 0.2]])
    >>> changed = expect_quotas(scores, p, np.array([1.0, np.nan]), n=2)
    >>> chosen = np.argsort(-changed)[:2]
    >>> sorted(chosen.tolist()), p[chosen, 0].sum().round(1)
    ([0, 2], np.float64(1.0))
    """
    wanted = np.flatnonzero(~np.isnan(quotas))
    named, near = wanted, _NEAR
    if len(wanted) == len(quotas) > 1:  # what the others lack, the last has too much
        named, near = wanted[:-1], _NEAR / (len(wanted) - 1)
    known = scores[np.isfinite(scores)]
    spread = float(np.ptp(known)) or 1.0
    scores = scores + _TIES * spread * ((np.arange(len(scores)) * _GOLDEN) % 1.0)
    bonuses = np.zeros(len(quotas))
    changed, nearest = scores, np.inf
    for _ in range(_SWEEPS):
        for group in named:
            others = scores + probabilities @ np.where(np.arange(len(quotas)) == group, 0.0, bonuses)
            bonuses[group] = _bonus(others, probabilities[:, group], float(quotas[group]), n, spread, near)
        found: FloatArray = scores + probabilities @ bonuses
        off = np.abs(probabilities[_top(found, n)][:, wanted].sum(axis=0) - quotas[wanted]).max(initial=0.0)
        if off < nearest:
            changed, nearest = found, off
        if len(named) <= 1 or off <= _NEAR:
            return changed
    return _with_swaps(changed, probabilities[:, wanted], quotas[wanted], n)


def _with_swaps(scores: FloatArray, probabilities: FloatArray, quotas: FloatArray, n: int) -> FloatArray:
    """Exchange rows at the border of a batch while that brings groups nearer to their quotas."""
    scores = scores.copy()
    order = np.argsort(-scores, kind="stable")
    inside, outside = (
        rows[np.isfinite(scores[rows])] for rows in (order[max(n - _BORDER, 0) : n], order[n : n + _BORDER])
    )
    lacking = quotas - probabilities[order[:n]].sum(axis=0)
    while len(inside) and len(outside) and np.abs(lacking).max() > _NEAR:
        gains = probabilities[outside][None, :, :] - probabilities[inside][:, None, :]
        off = np.abs(lacking - gains).max(axis=2)
        out, into = np.unravel_index(np.argmin(off), off.shape)
        if off[out, into] >= np.abs(lacking).max():
            break
        lacking = lacking - gains[out, into]
        leaving, coming = inside[out], outside[into]
        scores[[leaving, coming]] = scores[[coming, leaving]]
        inside[out], outside[into] = coming, leaving
    return scores


def _bonus(
    scores: FloatArray, p: FloatArray, quota: float, n: int, spread: float, near_enough: float
) -> float:
    """Find the bonus that brings the expected number of one group near to its quota."""

    def excess(bonus: float) -> float:
        return float(p[_top(scores + bonus * p, n)].sum()) - quota

    at_zero = excess(0.0)
    if abs(at_zero) <= near_enough:
        return 0.0
    sign = -1.0 if at_zero > 0 else 1.0
    near, far = 0.0, spread
    while sign * excess(sign * far) < 0 and far < _LARGEST * spread:
        near, far = far, 2 * far
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        over = sign * excess(sign * middle)
        if abs(over) <= near_enough:
            return sign * middle
        near, far = (middle, far) if over < 0 else (near, middle)
    return sign * far


def _top(scores: FloatArray, n: int) -> npt.NDArray[np.intp]:
    return np.argpartition(-scores, n - 1)[:n]


_FAR_OFF = 0.02  # of the batch: how far an expected number may be from what was asked for


def warn_if_far_off(
    groups: PoolGroups, quotas: FloatArray, chosen: npt.NDArray[np.int64], *, diverse: bool
) -> None:
    """Warn about groups of a batch that are far from their quotas."""
    expected = groups.expected(chosen)
    far = np.nan_to_num(np.abs(expected - quotas)) > max(1.0, _FAR_OFF * len(chosen))
    told = [
        f"{label!r} (about {own:.0f}, not {quota:.0f})"
        for label, own, quota, off in zip(groups.labels, expected, quotas, far, strict=True)
        if off
    ]
    if told:
        lead = "no batch as diverse was found with" if diverse else "no batch of this pool has"
        warn_user(
            f"According to the models, {lead} the `group_shares` of {list_names(told)}: the nearest batch is "
            "selected."
        )
