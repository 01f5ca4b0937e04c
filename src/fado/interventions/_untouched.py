"""No intervention: what all others are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from fado.interventions._base import BaseIntervention
from fado.interventions._training_set import TrainingSet

__all__ = ["NoIntervention"]


class NoIntervention(BaseIntervention):
    """Leave every row as it is."""

    def _choose(
        self, labels: Any, groups: Any, utilities: Any, sample_weight: Any, generator: Any
    ) -> TrainingSet:
        return TrainingSet(np.arange(len(labels.codes)))
