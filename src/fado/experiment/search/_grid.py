"""The grid: every combination of settings that a configuration lists, and every model after each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from fado.experiment.config import LIGHTGBM, Config, draw_models
from fado.experiment.search._shared import shared_recipe
from fado.experiment.search._trial import UNTOUCHED, Outcome, Recipe, Trial
from fado.interventions import Entry, intervention_entries, intervention_named

__all__ = ["GridProposer"]


@dataclass(frozen=True)
class GridProposer:
    """Proposes every recipe with every model.

    Parameters
    ----------
    recipes : tuple of Recipe
        The interventions, as often as the configuration asks for them.
    models : tuple of dict
        Their parameters.
    n_protected : int
        How many protected attributes there are.
    """

    recipes: tuple[Recipe, ...]
    models: tuple[dict[str, Any], ...]
    n_protected: int

    @classmethod
    def of(cls, config: Config) -> GridProposer:
        """List what a configuration asks for."""
        asked = config.models
        models = draw_models(asked.space, asked.count, asked.seed)
        if asked.estimator == LIGHTGBM and not asked.pipeline:  # others are seeded as they are fitted
            models = [model | {"random_state": asked.seed} for model in models]
        return cls(tuple(_recipes(config)), tuple(models), len(config.data.protected))

    def ask(self, outcomes: Sequence[Outcome], n: int | None = None) -> list[Trial]:
        """Give what was not proposed before, in the order of the recipes, then of the models."""
        known = {outcome.trial.key for outcome in outcomes}
        new = (
            Trial(recipe.intervention, recipe.settings, number, parameters)
            for recipe in self.recipes
            for number, parameters in enumerate(self.models)
        )
        return [trial for trial in new if trial.key not in known][:n]

    @property
    def simplest_recipes(self) -> list[Recipe]:
        """The recipes that make different training sets, in order."""
        shared = [
            UNTOUCHED
            if intervention_named(recipe.intervention).changes_scores
            else shared_recipe(recipe, self.n_protected)
            for recipe in self.recipes
        ]
        return list({recipe.key: recipe for recipe in shared}.values())

    @property
    def n_rows(self) -> int:
        """How many rows the frame has."""
        return len(self.recipes) * len(self.models)

    @property
    def n_fits(self) -> int:
        """How many models are trained: recipes that make the same training set share theirs.

        Interventions on scores take those of no intervention; what they train beside is not counted.
        """
        return len(self.simplest_recipes) * len(self.models)


def _recipes(config: Config) -> Iterator[Recipe]:
    for entry in intervention_entries():
        grid = config.interventions.get(entry.key)
        if grid:
            yield from _combinations(entry, grid if isinstance(grid, dict) else {}, config)


def _combinations(entry: Entry, grid: dict[str, Any], config: Config) -> Iterator[Recipe]:
    """Give every combination; alpha changes fastest."""
    values = (
        {"algorithm": config.valuation.algorithms, "utility": grid["utilities"]} if entry.uses_values else {}
    )
    own = {
        setting.name: (grid[setting.name],) if setting.plural is None else grid[setting.plural]
        for setting in entry.settings
    }
    fixed = {name: (value,) for name, value in entry.fixed.items()}
    alphas = {"alpha": grid["alphas"]} if entry.uses_values else {}
    axes = {**values, **fixed, **own, **alphas}
    for chosen in product(*axes.values()):
        settings = dict(zip(axes, chosen, strict=True))
        first = [name for name in ("algorithm", "utility", "alpha") if name in settings]
        yield Recipe(entry.name, {name: settings[name] for name in dict.fromkeys([*first, *settings])})
