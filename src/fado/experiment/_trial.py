"""A trial: one intervention with its settings, one model after it, and what came of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Protocol

from fado.experiment._estimators import LIGHTGBM
from fado.experiment._section import draw_models
from fado.experiment._settings import Config
from fado.interventions import (
    BaseIntervention,
    Entry,
    NoIntervention,
    RandomPrevalenceSampler,
    Reweigher,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    intervention_entries,
    intervention_named,
)
from fado.utility import utility_class, utility_names

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
    scores : ndarray or None
        Scores of the validation rows, then the test rows: on the way to the bench those that an intervention
        is to change, on the way back those to keep.
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
        names = ("status", "training_rows", "metrics", "error", "fit", "seconds")
        return replace(self, **{name: getattr(found, name) for name in names})

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


class Proposer(Protocol):
    """Says what to try next. The runner keeps whatever it says in the store before it runs it.

    A proposer must be a function of what it is made of and of what it is asked: a run that is resumed asks
    again, with what the store holds.
    """

    def ask(self, outcomes: Sequence[Trial]) -> list[Trial]:
        """Give new trials; none when there is nothing left to try.

        Parameters
        ----------
        outcomes : sequence of Trial
            What was proposed before, in order, with what came of it: a run asks when all of it was run.
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

    def ask(self, outcomes: Sequence[Trial]) -> list[Trial]:
        """Give what was not proposed before, in the order of the interventions, then of the models."""
        known = {outcome.key for outcome in outcomes}
        new = (
            replace(recipe, model=number, parameters=parameters)
            for recipe in self.recipes
            for number, parameters in enumerate(self.models)
        )
        return [trial for trial in new if trial.key not in known]

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
