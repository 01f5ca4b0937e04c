"""From an intervention to the rows and weights that models are trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.experiment._plan import NONE, RPS, RW, UAPS, Setting
from fado.interventions import (
    RandomPrevalenceSampler,
    Reweigher,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
)
from fado.utility import CobbDouglasUtility, DifferenceUtility, LinearUtility
from fado.valuation import Valuation

__all__ = ["TrainingSet", "training_set"]

_UTILITIES: dict[str, Any] = {
    "linear": LinearUtility,
    "difference": DifferenceUtility,
    "cobb-douglas": CobbDouglasUtility,
}


@dataclass(frozen=True)
class TrainingSet:
    """Rows of the training part, by position, and their weights; None stands for equal weights."""

    rows: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32] | None = None

    def digest(self) -> str:
        """Give a name that only equal training sets share."""
        digest = hashlib.sha256(self.rows.data)
        if self.weights is not None:
            digest.update(self.weights.data)
        return digest.hexdigest()[:32]


def training_set(
    setting: Setting,
    positive: npt.NDArray[np.bool_],
    groups: npt.NDArray[Any],
    valuations: Mapping[str, Valuation],
    *,
    negative: str,
    seed: int,
) -> TrainingSet:
    """Apply an intervention to the training part.

    Parameters
    ----------
    setting : Setting
        The intervention.
    positive : ndarray of bool
        The labels of the training part.
    groups : ndarray of str
        Each row's group.
    valuations : mapping of str to Valuation
        The training part's values by each algorithm.
    negative : {"raise", "clip"}
        What becomes of negative utilities without scaling.
    seed : int
        Of the samplers.

    Raises
    ------
    ValueError
        If the intervention leaves nothing to train on, such as weights that are all zero.
    """
    everything = np.arange(len(positive), dtype=np.int32)
    if setting.intervention == NONE:
        return TrainingSet(everything)
    intervention = _intervention(setting, negative, seed)
    # Interventions look at no feature: a column of nothing stands for all of them.
    features = np.zeros((len(positive), 1))
    given = {"valuation": valuations[setting.algorithm]} if setting.algorithm is not None else {}
    intervention.fit(features, positive, sensitive_features={"group": groups}, **given)
    if setting.intervention in (RPS, UAPS):
        return TrainingSet(intervention.sample_indices_.astype(np.int32))
    return TrainingSet(everything, _checked(intervention.sample_weight_))


def _intervention(setting: Setting, negative: str, seed: int) -> Any:
    strength: Any = {"strength": setting.strength}
    if setting.intervention == RPS:
        return RandomPrevalenceSampler(**strength, random_state=seed)
    if setting.intervention == RW:
        return Reweigher()
    utility = _UTILITIES[str(setting.utility)](alpha=setting.alpha)
    if setting.intervention == UAPS:
        return UtilityAwarePrevalenceSampler(utility, **strength, random_state=seed)
    return UtilityAwareReweigher(
        utility,
        scaling=str(setting.scaling),
        negative=negative,
        floor=setting.floor or 0.0,
        prevalence_correction=setting.correction or 0.0,
    )


def _checked(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Give weights as LightGBM holds them, refusing what it would take in silence."""
    with np.errstate(over="ignore", under="ignore"):
        single = weights.astype(np.float32)
    if not np.isfinite(single).all() or (single < 0).any() or not single.any():
        raise ValueError("The weights are all zero, negative, or beyond what a 32-bit float can hold.")
    return single
