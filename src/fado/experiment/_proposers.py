"""Who says what to try next: the protocol, and the grid of all that a configuration lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Protocol

from fado.experiment._estimators import LIGHTGBM
from fado.experiment._section import draw_models
from fado.experiment._settings import Config
from fado.experiment._trial import UNTOUCHED, Trial
from fado.interventions import Entry, intervention_entries

__all__ = ["GridProposer", "Proposer"]


class Proposer(Protocol):
    """Says what to try next. The runner keeps whatever it says in the store before it runs it.

    A proposer must be a function of what it is made of and of what it is asked: a run that is resumed asks
    again, with what the store holds.
    """

    def ask(self, outcomes: Sequence[Trial], n: int | None = None) -> list[Trial]:
        """Give new trials; none when there is nothing left to try.

        Parameters
        ----------
        outcomes : sequence of Trial
            What was proposed before, in order, with what came of it: a run asks when all of it was run.
        n : int, optional
            How many at most; None for as many as may run side by side.
        """
        ...


@dataclass(frozen=True)
class GridProposer:
    """Proposes every intervention with every model.

    Parameters
    ----------
    recipes : tuple of Trial
        The interventions, as often as the configuration asks for them.
    models : tuple of dict
        Their parameters.
    n_protected : int
        How many protected attributes there are.
    """

    recipes: tuple[Trial, ...]
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

    def ask(self, outcomes: Sequence[Trial], n: int | None = None) -> list[Trial]:
        """Give what was not proposed before, in the order of the interventions, then of the models."""
        known = {outcome.key for outcome in outcomes}
        new = (
            replace(recipe, model=number, parameters=parameters)
            for recipe in self.recipes
            for number, parameters in enumerate(self.models)
        )
        return [trial for trial in new if trial.key not in known][:n]

    @property
    def simplest_recipes(self) -> list[Trial]:
        """The interventions that make different training sets, in order."""
        shared = [
            UNTOUCHED if recipe.changes_scores else recipe.shared(self.n_protected) for recipe in self.recipes
        ]
        return list({recipe.set_key: recipe for recipe in shared}.values())

    @property
    def n_rows(self) -> int:
        """How many rows the frame has."""
        return len(self.recipes) * len(self.models)

    @property
    def n_fits(self) -> int:
        """How many models are trained: interventions that make the same training set share theirs.

        Those on scores take those of no intervention; what they train beside is not counted.
        """
        return len(self.simplest_recipes) * len(self.models)


def _recipes(config: Config) -> Iterator[Trial]:
    for entry in intervention_entries():
        grid = config.interventions.get(entry.key)
        if grid:
            yield from _combinations(entry, grid if isinstance(grid, dict) else {}, config)


def _combinations(entry: Entry, grid: dict[str, Any], config: Config) -> Iterator[Trial]:
    """Give every combination; alpha changes fastest."""
    axes: dict[str, Any] = {}
    if entry.uses_values:
        axes = {"algorithm": config.valuation.algorithms, "utility": grid["utilities"]}
    axes |= {name: (value,) for name, value in entry.fixed.items()}
    for setting in entry.settings:
        axes[setting.name] = (grid[setting.name],) if setting.plural is None else grid[setting.plural]
    if entry.uses_values:
        axes["alpha"] = grid["alphas"]
    first = [name for name in ("algorithm", "utility", "alpha") if name in axes]
    for chosen in product(*axes.values()):
        settings = dict(zip(axes, chosen, strict=True))
        yield Trial(entry.name, {name: settings[name] for name in dict.fromkeys([*first, *settings])})
