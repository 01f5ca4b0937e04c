"""Which recipes make the same training set, though their interventions go about it in different ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fado.experiment.search._trial import Recipe
from fado.interventions import (
    BaseIntervention,
    NoIntervention,
    RandomPrevalenceSampler,
    Reweigher,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    intervention_entries,
)

__all__ = ["shared_recipe"]

_SAMPLERS = (RandomPrevalenceSampler, UtilityAwarePrevalenceSampler)


def shared_recipe(recipe: Recipe, n_protected: int) -> Recipe:
    """Give the recipe that stands for all that make the same training set.

    Utilities know of each other where they are the same. A sampler of strength 0 leaves every row; so does a
    reweigher whose floor is 1, which is blind to utilities, and with a correction of 1 it is Kamiran's and
    Calders'.

    Examples
    --------
    >>> settings = {"utility": "difference", "alpha": 0.5, "floor": 1.0}
    >>> shared_recipe(Recipe("corrected UAR", {**settings, "prevalence_correction": 1.0}), 1)
    Recipe(intervention='RW', settings={})
    >>> str(shared_recipe(Recipe("corrected UAR", {**settings, "prevalence_correction": 2.0}), 1))
    'corrected UAR, utility linear, alpha 1.0, floor 1.0, prevalence_correction 2.0'
    >>> str(shared_recipe(Recipe("UAPS", {"utility": "difference", "alpha": 0.5, "strength": 0.0}), 1))
    'none'
    """
    kind = {entry.name: entry.kind for entry in intervention_entries()}.get(recipe.intervention)
    settings = dict(recipe.settings)
    if kind in _SAMPLERS and settings.get("strength") == 0:
        return _plain(NoIntervention, recipe)
    if kind is UtilityAwareReweigher and settings.get("floor") == 1:
        power = settings.get("prevalence_correction", 0.0)
        if power in (0, 1):
            return _plain(Reweigher if power else NoIntervention, recipe)
        blind: Mapping[str, Any] = {**settings, "utility": "linear", "alpha": 1.0}
        return Recipe(recipe.intervention, blind)
    return recipe.simplest(n_protected)


def _plain(kind: type[BaseIntervention], otherwise: Recipe) -> Recipe:
    """Give the recipe of an intervention that has no settings."""
    names = (entry.name for entry in intervention_entries() if entry.kind is kind and not entry.settings)
    name = next(names, None)
    return otherwise if name is None else Recipe(name)
