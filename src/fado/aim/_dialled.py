"""Interventions with a dial: how far apart groups are moved, as experiments search it.

One number per group says whether its scores are to fall or to rise. Weights teach that to a model, which then
needs no group to decide; thresholds of each group do it to the scores of a model that is left alone, and need
the group of a row, or a guess at it, whenever one is decided.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from fado.aim._cells import cell_weights
from fado.interventions import BaseIntervention, NoIntervention, TrainingSet, register_intervention
from fado.tabular import Groups, Labels

__all__ = [
    "AimedWeights",
    "GroupThresholds",
    "InferredThresholds",
    "dial_settings",
    "log_factors_of",
    "move_scores",
]

FloatArray = npt.NDArray[np.float64]


def log_factors_of(strength: float, direction: str) -> FloatArray:
    """Give the log factor of each compared group: its number in `direction`, times `strength`.

    Parameters
    ----------
    strength : float
        How far apart the groups are moved.
    direction : str
        One number per compared group, separated by spaces.

    Returns
    -------
    ndarray of shape (n_compared,)
        Above 0, the group's scores fall.

    Examples
    --------
    >>> log_factors_of(2.0, "-0.25 0.75")
    array([-0.5,  1.5])
    """
    return strength * np.array([float(part) for part in direction.split()])


def dial_settings(log_factors: FloatArray) -> dict[str, Any]:
    """Give the `strength` and `direction` that stand for some log factors: `log_factors_of` backwards.

    Parameters
    ----------
    log_factors : ndarray of shape (n_compared,)
        One per compared group; not all equal.

    Returns
    -------
    dict
        ``strength``, the highest log factor less the lowest, and ``direction``, the log factors over it.

    Examples
    --------
    >>> dial_settings(np.array([-0.5, 1.5]))
    {'strength': 2.0, 'direction': '-0.25 0.75'}
    """
    strength = float(np.ptp(log_factors))
    return {"strength": strength, "direction": " ".join(map(repr, (log_factors / strength).tolist()))}


class _Dialled:
    """What all have: a strength, and the direction in which each compared group is moved."""

    strength: float
    direction: str

    @property
    def log_factors(self) -> FloatArray:
        """One per compared group: above 0, its scores fall."""
        return log_factors_of(self.strength, self.direction)


@register_intervention("aimed", dial=True, shape="cross", colour="#c0392b")
class AimedWeights(_Dialled, BaseIntervention):
    """Weigh rows so that the rates of groups move towards each other, as far as `strength` says.

    `AimedEstimator` and experiments search for the strength and the direction. The weights are those of
    `cell_weights`.

    Parameters
    ----------
    ratio : str, default="fpr_ratio"
        The ratio that a search aims at. The weights do not depend on it.
    strength : float, default=0.0
        How far apart the groups are moved.
    direction : str
        One number per group that is moved, separated by spaces. Times `strength` it is the group's log
        factor: above 0, the group's scores fall.
    memberships : ndarray of shape (n_rows, n_groups), optional
        Each row's probability of belonging to each group that is moved and, in the last column, to any other
        if there are others. None takes the group that a row has.
    compared : ndarray of bool, optional
        Which groups are moved; the rows of others weigh 1. None moves all.

    Attributes
    ----------
    sample_weight_ : ndarray of shape (n_rows,)
        The weights.

    Examples
    --------
    >>> X, y, sex = [[0.0]] * 4, [0, 1, 0, 1], ["f", "f", "m", "m"]
    >>> aimed = AimedWeights(strength=2 * np.log(3), direction="-0.5 0.5")
    >>> aimed.fit(X, y, sensitive_features=sex).sample_weight_
    array([0.5, 1.5, 1.5, 0.5])
    """

    changes: ClassVar[Literal["rows", "weights"]] = "weights"

    def __init__(
        self,
        ratio: str = "fpr_ratio",
        strength: float = 0.0,
        direction: str = "",
        memberships: FloatArray | None = None,
        compared: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self.ratio = ratio
        self.strength = strength
        self.direction = direction
        self.memberships = memberships
        self.compared = compared

    def _choose(
        self, labels: Labels, groups: Groups, utilities: Any, sample_weight: Any, generator: Any
    ) -> TrainingSet:
        compared = np.ones(len(groups), dtype=np.bool_) if self.compared is None else self.compared
        memberships, log_factors = self.memberships, self.log_factors
        if len(log_factors) != compared.sum():
            raise ValueError(
                f"`direction` must have a number for each of the {compared.sum()} groups, got "
                f"{len(log_factors)}."
            )
        untouched = ~compared[groups.codes]
        if memberships is None:
            place = np.where(compared, np.cumsum(compared) - 1, compared.sum())
            memberships = np.eye(int(compared.sum()) + 1)[place[groups.codes]]
        padded = np.append(log_factors, np.zeros(memberships.shape[1] - len(log_factors)))
        weights = cell_weights(
            padded, memberships, labels.is_positive, sample_weight=sample_weight, untouched=untouched
        )
        return TrainingSet(np.arange(len(weights)), weights)

    def _learned(self, chosen: TrainingSet, *_: Any) -> dict[str, Any]:
        return {"training_set_": chosen, "sample_weight_": chosen.weights}


@register_intervention("group thresholds", dial=True, needs_group=True, shape="cross", colour="#16a085")
class GroupThresholds(_Dialled, NoIntervention):
    """Leave the training rows as they are, and decide every group by a threshold of its own.

    An experiment lowers the log odds of a group's scores by the group's log factor (see `move_scores`) and
    then decides all groups by one threshold. Decisions need the group of a row.

    Parameters
    ----------
    ratio, strength, direction
        As for `AimedWeights`.
    """

    known: ClassVar[bool] = True

    def __init__(self, ratio: str = "fpr_ratio", strength: float = 0.0, direction: str = "") -> None:
        self.ratio = ratio
        self.strength = strength
        self.direction = direction


@register_intervention("inferred thresholds", dial=True, shape="cross", colour="#7f8c8d")
class InferredThresholds(GroupThresholds):
    """Do what `GroupThresholds` does, with each row's group guessed from its features.

    Decisions do not need the group of a row.

    Parameters
    ----------
    ratio, strength, direction
        As for `AimedWeights`.
    """

    known: ClassVar[bool] = False


def move_scores(scores: FloatArray, memberships: FloatArray, log_factors: FloatArray) -> FloatArray:
    """Lower the log odds of every score by the log factor of the row's group.

    Where a row's group is not sure, the mean log factor counts, by the row's probabilities of the groups.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Probabilities of the positive label.
    memberships : ndarray of shape (n_rows, n_groups)
        Each row's probability of belonging to each compared group and, in the last column, to any other
        group if there are others. Those are not moved.
    log_factors : ndarray of shape (n_compared,)
        By how much the log odds of each compared group fall.

    Returns
    -------
    ndarray of shape (n_rows,)
        Probabilities.

    Examples
    --------
    >>> move_scores(np.array([0.5, 0.5]), np.eye(2), np.array([0.0, np.log(3)]))
    array([0.5 , 0.25])
    """
    tiny = np.finfo(np.float64).tiny
    clipped = np.clip(scores, tiny, 1 - np.finfo(np.float64).epsneg)
    moved = np.log(clipped) - np.log1p(-clipped) - memberships[:, : len(log_factors)] @ log_factors
    moved_probabilities: FloatArray = np.exp(-np.logaddexp(0.0, -moved))
    return moved_probabilities
