"""No intervention: what all others are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from fado._checks import check_share
from fado.interventions._base import BaseIntervention
from fado.interventions._training_set import TrainingSet
from fado.tabular import deal_rows

__all__ = ["NoIntervention"]


class NoIntervention(BaseIntervention):
    """Leave every row as it is.

    Parameters
    ----------
    share : float, default=1.0
        The share of rows that is kept, in (0, 1], drawn at random, the same of every label and group. Below 1
        it gives a first look at many models.
    random_state : int, RandomState or None, default=None
        Seed of the draw.
    """

    share: float = 1.0

    def __init__(self, share: float = 1.0, random_state: Any = None) -> None:
        self.share = share
        self.random_state = random_state

    def _check_settings(self) -> None:
        if check_share("share", self.share) == 0:
            raise ValueError("`share` must be above 0: no row would be kept.")

    def _choose(
        self, labels: Any, groups: Any, utilities: Any, sample_weight: Any, generator: Any
    ) -> TrainingSet:
        rows = np.arange(len(labels.codes))
        if self.share == 1:
            return TrainingSet(rows)
        cells = groups.codes * len(labels.classes) + labels.codes
        drawn = np.random.default_rng(generator.randint(2**31 - 1))
        return TrainingSet(rows[deal_rows(cells, [self.share, 1 - self.share], drawn) == 0])
