"""Batches of which a group is expected to have its share, where only probabilities tell who is in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["binding_quotas", "expect_quotas", "pick_expected"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_NEAR = 0.5  # rows
_ROUNDS = 20  # of picking, where quotas are missed
_SWEEPS = 10  # over the groups, whose bonuses depend on each other
_HALVINGS = 40
_BORDER = 50  # rows on either side that may change places
_TIES = 1e-6  # of the spread: rows of equal score and probability must not all come in, or out, at once
_GOLDEN = (5**0.5 - 1) / 2  # whose multiples lie evenly between whole numbers
_LARGEST = 2.0**20  # of a bonus, in spreads of the scores: then probabilities alone decide


def pick_expected(
    scores: FloatArray,
    probabilities: FloatArray,
    quotas: FloatArray,
    n: int,
    pick: Callable[[FloatArray], Rows],
) -> Rows:
    """Pick a batch that is expected to hold each group's quota, or is nearest to it.

    For a way of picking that goes by more than scores, and so misses what they were made for. What the batch
    is off by is added to that, time and again, and half of it whenever it went too far.

    Parameters
    ----------
    scores, probabilities, quotas, n
        As for `expect_quotas`.
    pick : function
        Picks n rows by scores.
    """
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
    """Leave out quotas that are met by utility alone, where all groups have one and rows are left.

    Quotas are then the least that each group is to have. Parameters are those of `expect_quotas`.

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
    """Give scores whose n highest rows are expected to hold each group's quota.

    The batch of most utility among those whose expected numbers are the quotas is the top of ``score + sum_g
    bonus_g * p_g``, for one bonus per group (the multipliers of the constraints). With probabilities of 0 and
    1 that is each group's best rows. Where rows are too few for bonuses to get near the quotas of several
    groups, rows at the border of the batch change places.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        The rows' utilities; ``-inf`` where a row has none.
    probabilities : ndarray of shape (n_rows, n_groups)
        How probably each row is in each group.
    quotas : ndarray of shape (n_groups,)
        How many rows of each group are wanted; NaN leaves a group to its utility.
    n : int
        How many rows will be chosen.

    Returns
    -------
    ndarray of shape (n_rows,)
        The scores with the groups' bonuses, and all but equal ones apart.

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
    """Let rows at the border of a batch change places while that brings groups nearer to their quotas."""
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
    """Find the bonus with which the expected number of one group is near to its quota."""

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
