"""A trial: one intervention with its settings, one model after it, and what came of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fado.interventions import (
    BaseIntervention,
    NoIntervention,
    RandomPrevalenceSampler,
    Reweigher,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    intervention_entries,
    intervention_named,
)
from fado.utility import utility_class, utility_names

__all__ = ["DONE", "FAILED", "IMPOSSIBLE", "PENDING", "UNTOUCHED", "Trial", "key_of"]

PENDING, DONE, FAILED, IMPOSSIBLE = "pending", "done", "failed", "no training set"
_SAMPLERS = (RandomPrevalenceSampler, UtilityAwarePrevalenceSampler)


@dataclass(frozen=True)
class Trial:
    """What is tried, a model that is trained after an intervention, and what came of it so far.

    Parameters
    ----------
    intervention : str
        The name of its entry in the registry.
    settings : mapping
        Plain data by name, only what concerns it: ``algorithm``, ``utility`` and ``alpha`` if it uses values,
        and its own settings, those that its entry fixes among them.
    model : int
        The model's number.
    parameters : mapping
        The model's parameters.
    status : {"pending", "done", "failed", "no training set"}
        How far it is; the last if the intervention leaves nothing to train on.
    training_rows : int or None
        How many rows it was trained on, once that is known.
    metrics : mapping or None
        What the model achieves, by the names of the frame's columns; None unless it is done.
    error : str or None
        Why there is no model.
    fit : str
        The name of the fit, made of all that it depends on; "" until the training set was made.
    seconds : float
        How long the fit took.
    number : int
        Its place in the store. A model that only others need has a negative one, and no row of the frame.
    scores : ndarray, callable or None
        Scores of the validation rows, then the test rows: on the way to the bench those that an intervention
        is to change, on the way back those to keep. For a proposer, a function that reads those of the rows
        that models are chosen on.
    """

    intervention: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    model: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    status: str = PENDING
    training_rows: int | None = None
    metrics: Mapping[str, float] | None = None
    error: str | None = None
    fit: str = ""
    seconds: float = field(default=0.0, compare=False)
    number: int = field(default=0, compare=False)
    scores: Any = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> str:
        """A name that only equal trials share, whatever came of them."""
        return key_of([self.intervention, dict(self.settings), self.model, dict(self.parameters)])

    @property
    def set_key(self) -> str:
        """A name that only trials of the same intervention and settings share."""
        return key_of([self.intervention, dict(self.settings)])

    @property
    def fit_key(self) -> str:
        """A name that only trials of the same intervention, settings and parameters share."""
        return key_of([self.set_key, dict(self.parameters)])

    @property
    def changes_scores(self) -> bool:
        """Whether the intervention changes scores of the model, and trains on all rows as they are."""
        return intervention_named(self.intervention).changes_scores

    @property
    def recipe(self) -> str:
        """The intervention and its settings, in words."""
        return ", ".join([self.intervention, *(f"{name} {value}" for name, value in self.settings.items())])

    def untouched(self) -> Trial:
        """Give the trial of the same model without an intervention."""
        return Trial(UNTOUCHED.intervention, {}, self.model, self.parameters)

    def told(self, found: Trial) -> Trial:
        """Give this trial with what came of one that shares its fit."""
        return replace(
            self,
            status=found.status,
            training_rows=found.training_rows,
            metrics=found.metrics,
            error=found.error,
            fit=found.fit,
            seconds=found.seconds,
        )

    def simplest(self, n_protected: int) -> Trial:
        """Give the same trial with the plainest of the utilities that are equal here.

        Utilities know of each other where they are the same, as all are at alpha 1.

        Examples
        --------
        >>> Trial("UAPS", {"utility": "cobb-douglas", "alpha": 1.0}).simplest(1).settings["utility"]
        'linear'
        >>> Trial("UAPS", {"utility": "difference", "alpha": 0.0}).simplest(1).settings["utility"]
        'difference'
        """
        if "utility" not in self.settings:
            return self
        utility = utility_class(self.settings["utility"])(alpha=self.settings["alpha"]).simplest(n_protected)
        names = (name for name in utility_names() if utility_class(name) is type(utility))
        plainest = next(names, self.settings["utility"])
        return replace(self, settings={**self.settings, "utility": plainest})

    def shared(self, n_protected: int) -> Trial:
        """Give the trial that stands for all that make the same training set.

        A sampler of strength 0 leaves every row; so does a reweigher whose floor is 1, which is blind to
        utilities, and with a correction of 1 it is Kamiran's and Calders'.

        Examples
        --------
        >>> settings = {"utility": "difference", "alpha": 0.5, "floor": 1.0}
        >>> Trial("corrected UAR", {**settings, "prevalence_correction": 1.0}).shared(1).recipe
        'RW'
        >>> Trial("corrected UAR", {**settings, "prevalence_correction": 2.0}).shared(1).recipe
        'corrected UAR, utility linear, alpha 1.0, floor 1.0, prevalence_correction 2.0'
        >>> Trial("UAPS", {"utility": "difference", "alpha": 0.5, "strength": 0.0}).shared(1).recipe
        'none'
        """
        kind = {entry.name: entry.kind for entry in intervention_entries()}.get(self.intervention)
        if kind in _SAMPLERS and self.settings.get("strength") == 0:
            return self._after(NoIntervention)
        if kind is UtilityAwareReweigher and self.settings.get("floor") == 1:
            power = self.settings.get("prevalence_correction", 0.0)
            if power in (0, 1):
                return self._after(Reweigher if power else NoIntervention)
            return replace(self, settings={**self.settings, "utility": "linear", "alpha": 1.0})
        return self.simplest(n_protected)

    def _after(self, kind: type[BaseIntervention]) -> Trial:
        """Give the trial after an intervention that has no settings, if that is registered."""
        for entry in intervention_entries():
            if entry.kind is kind and not entry.settings:
                return replace(self, intervention=entry.name, settings={})
        return self


UNTOUCHED = Trial("none")


def key_of(content: Any) -> str:
    """Give a short name for plain data that other data do not share.

    Examples
    --------
    >>> key_of({"a": 1, "b": 2.5}) == key_of({"b": 2.5, "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
