"""Which rows utility-aware prevalence sampling drops, for one utility after another.

How many negatives each group loses does not depend on the utility, so the sampler is asked once; which ones
go is then a matter of selecting the least useful.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from fado.exploration._groups import Groups
from fado.exploration._material import Material
from fado.interventions import UtilityAwarePrevalenceSampler

__all__ = ["Sampling"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Sampling:
    """Drop the least useful negatives of the groups with too few positives, as the sampler does.

    Parameters
    ----------
    material : Material
        The rows.
    positive : ndarray of bool
        Which of them have the positive label.
    fine : Groups
        The groups whose positive rates are to match.
    """

    def __init__(self, material: Material, positive: Bools, fine: Groups) -> None:
        n_rows = len(material)
        self.positive = positive
        sampler = UtilityAwarePrevalenceSampler(lambda _: np.zeros(n_rows), random_state=material.seed)
        with warnings.catch_warnings():  # groups without positives or negatives show on the page
            warnings.simplefilter("ignore")
            sampler.fit(
                np.zeros((n_rows, 1)),
                positive.astype(np.int64),
                sensitive_features=fine.codes.astype(str),
                valuation=material.valuation,
            )
        kept = np.bincount(fine.codes[sampler.sample_indices_], minlength=len(fine))
        self.n_dropped = np.bincount(fine.codes, minlength=len(fine)) - kept
        self._order = check_random_state(material.seed).permutation(n_rows)
        self._negatives = [
            np.flatnonzero(~positive & (fine.codes == group)) if dropped else np.empty(0, dtype=np.intp)
            for group, dropped in enumerate(self.n_dropped)
        ]
        self.droppable: Bools = np.zeros(n_rows, dtype=bool)
        for negatives in self._negatives:
            self.droppable[negatives] = True

    def dropped(self, utilities: FloatArray) -> Bools:
        """Mark the rows that go: per group the negatives of least utility, ties by the seeded shuffle."""
        gone: Bools = np.zeros(len(utilities), dtype=bool)
        for negatives, n_dropped in zip(self._negatives, self.n_dropped, strict=True):
            if not n_dropped:
                continue
            here = utilities[negatives]
            limit = np.partition(here, n_dropped - 1)[n_dropped - 1]
            gone[negatives[here < limit]] = True
            tied: npt.NDArray[Any] = negatives[here == limit]
            left = n_dropped - int((here < limit).sum())
            gone[tied[np.argsort(self._order[tied], kind="stable")[:left]]] = True
        return gone
