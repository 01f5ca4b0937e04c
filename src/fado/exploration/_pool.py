"""A pool of slices, found once, that every setting of the slider is ranked against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.utils import check_random_state

from fado.exploration._groups import FEWEST_MEMBERS, ShownGroups
from fado.exploration._material import Material
from fado.exploration._search import MOST_OVERLAP, SIGNIFICANCE, Slice, corrected, permutation_z
from fado.exploration._slices import SliceFinder
from fado.interventions import PrevalenceSampling
from fado.tabular import Groups
from fado.utility import LinearUtility, utility_class, utility_names

__all__ = ["Dropping", "SlicePool"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FROM_EACH_SEARCH = 6
MOST_SHOWN = 4


class Dropping:
    """Which rows utility-aware prevalence sampling drops, for one utility after another.

    Parameters
    ----------
    positive : ndarray of bool
        Which rows have the positive label.
    fine : Groups
        All groups.
    min_group_size : int
        Below it a group may be small: its rows stay, and its rate is not matched.
    seed : int
        Of the shuffle by which ties in utility fall.
    """

    def __init__(self, positive: Bools, fine: Groups, min_group_size: int, seed: int) -> None:
        self.positive = positive
        self._sampling = PrevalenceSampling(positive, fine, min_group_size=min_group_size)
        self._shuffled = check_random_state(seed).permutation(len(positive))
        self.droppable = self._sampling.droppable
        self.target_rate = self._sampling.target_rate

    def dropped(self, utilities: FloatArray) -> Bools:
        """Mark the rows that go."""
        return self._sampling.dropped(utilities, self._shuffled)


class SlicePool:
    """Slices that are high, low or dropped under some utility, to be ranked under any.

    Parameters
    ----------
    material : Material
        The rows.
    finder : SliceFinder
        Of the same rows.
    names : sequence of str
        The protected attributes that utilities weigh.
    sampling : Dropping or None
        Says which rows would be dropped, if that is defined.
    """

    def __init__(
        self, material: Material, finder: SliceFinder, names: Sequence[str], sampling: Dropping | None
    ) -> None:
        self._finder, self._names = finder, names
        self._droppable = None if sampling is None else sampling.droppable
        found: dict[tuple[Any, ...], Slice] = {}
        for one in _searched(material, finder, names, sampling):
            found.setdefault(one.conditions, one)
        self._slices = list(found.values())
        masks = [finder.rows(one) for one in self._slices]
        self._members = _membership(masks, len(material))
        self._rows = np.asarray(self._members.sum(axis=1)).ravel()
        both = (self._members @ self._members.T).toarray()
        either = self._rows[:, None] + self._rows[None, :] - both
        self._overlap = both / np.maximum(either, 1.0)

    def described(self, groups: ShownGroups) -> list[dict[str, Any]]:
        """Describe every slice."""
        return [self._finder.described(one, self._names, groups) for one in self._slices]

    def ranked(self, utilities: FloatArray, dropped: Bools | None) -> dict[str, list[list[float]]]:
        """Rank the slices that stand out clearly: by mean utility, and by the share that is dropped.

        Returns
        -------
        dict
            ``highest``, ``lowest`` and ``dropped``, each a list of pairs: a slice's number and its mean
            utility, or which share of its droppable rows is dropped.
        """
        if not self._slices:
            return {"highest": [], "lowest": [], "dropped": []}
        sums = self._members @ utilities
        means = sums / np.maximum(self._rows, 1.0)
        z = permutation_z(
            self._rows, sums - self._rows * utilities.mean(), len(utilities), float(utilities.var())
        )
        ranked = {
            "highest": self._clear(means, z),
            "lowest": self._clear(-means, -z),
            "dropped": [] if dropped is None else self._most_dropped(dropped),
        }
        ranked["lowest"] = [[number, -mean] for number, mean in ranked["lowest"]]
        return ranked

    def _most_dropped(self, dropped: Bools) -> list[list[float]]:
        droppable = self._droppable
        if droppable is None or not droppable.any():
            return []
        counts = self._members @ droppable.astype(np.float64)
        gone = self._members @ dropped.astype(np.float64)
        n_rows, overall = int(droppable.sum()), float(dropped.sum() / droppable.sum())
        z = permutation_z(counts, gone - counts * overall, n_rows, overall * (1 - overall))
        shares = np.where(counts >= FEWEST_MEMBERS, gone / np.maximum(counts, 1.0), 0.0)
        return self._clear(shares, np.where(counts >= FEWEST_MEMBERS, z, 0.0))

    def _clear(self, scores: FloatArray, z: FloatArray) -> list[list[float]]:
        """List the slices of the highest scores that chance does not explain, none half inside another."""
        chosen: list[int] = []
        for number in np.argsort(-scores, kind="stable"):
            if len(chosen) == MOST_SHOWN:
                break
            if corrected(float(z[number]), self._slices[number].tested) > SIGNIFICANCE:
                continue
            if all(self._overlap[number, other] <= MOST_OVERLAP for other in chosen):
                chosen.append(int(number))
        return [[number, float(scores[number])] for number in chosen]


def _searched(
    material: Material, finder: SliceFinder, names: Sequence[str], sampling: Dropping | None
) -> Iterator[Slice]:
    """Search under utilities from all over the slider."""
    valuation = material.valuation

    def utilities(kind: Any, alpha: float) -> FloatArray:
        return kind(alpha=alpha).over(names)(valuation)

    signed = any(valuation.scales[name].is_signed for name in ("y", *names))
    kinds = [kind for kind in map(utility_class, utility_names()) if kind.takes_signed or not signed]
    middle = [utilities(kind, 0.5) for kind in kinds]
    ends = [utilities(LinearUtility, alpha) for alpha in (0.0, 1.0)]
    for target in (*middle, *ends):
        for highest in (True, False):
            yield from finder.find(target, highest=highest, most=FROM_EACH_SEARCH)
    if sampling is not None and sampling.droppable.any():
        for target in (*middle[:2], *ends):
            gone = sampling.dropped(target).astype(np.float64)
            yield from finder.find(gone, highest=True, most=FROM_EACH_SEARCH, among=sampling.droppable)


def _membership(masks: Sequence[Bools], n_rows: int) -> Any:
    """Lay out which rows each slice holds, as a sparse matrix of ones."""
    if not masks:
        return scipy.sparse.csr_array((0, n_rows))
    rows = [np.flatnonzero(mask) for mask in masks]
    ends = np.cumsum([0, *map(len, rows)])
    ones = np.ones(ends[-1])
    return scipy.sparse.csr_array((ones, np.concatenate(rows), ends), shape=(len(masks), n_rows))
