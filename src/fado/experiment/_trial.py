"""A trial: one intervention with its settings, one model after it, and the outcome."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Protocol

from fado.experiment._config import Config
from fado.experiment._models import LIGHTGBM, draw_models
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
    """A model that is trained after an intervention, and the outcome so far.

    Parameters
    ----------
    intervention : str
        The name of its entry in the registry.
    settings : mapping
        The settings of the intervention: ``algorithm``, ``utility`` and ``alpha`` if it uses values, and its
        own settings, including those that its entry fixes.
    model : int
        The model's number.
    parameters : mapping
        The model's parameters.
    status : {"pending", "done", "failed", "no training set"}
        The status; "no training set" if the intervention leaves nothing to train on.
    training_rows : int or None
        The number of training rows, once known.
    metrics : mapping or None
        The metrics, by the names of the frame's columns; None unless the trial is done.
    error : str or None
        Why there is no model.
    fit : str
        The name of the fit, made of all that it depends on; "" until the training set is known.
    seconds : float
        The duration of the fit.
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

    @property
    def key(self) -> str:
        """A name that only equal trials share, whatever their outcome."""
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
        """Whether the intervention changes the scores of a model that is trained on all rows."""
        return intervention_named(self.intervention).changes_scores

    @property
    def recipe(self) -> str:
        """The intervention and its settings, in words."""
        return ", ".join([self.intervention, *(f"{name} {value}" for name, value in self.settings.items())])

    def untouched(self) -> Trial:
        """Return the trial of the same model without an intervention."""
        return Trial(UNTOUCHED.intervention, {}, self.model, self.parameters)

    def with_outcome(self, other: Trial) -> Trial:
        """Return this trial with the outcome of one that shares its fit."""
        names = ("status", "training_rows", "metrics", "error", "fit", "seconds")
        return replace(self, **{name: getattr(other, name) for name in names})

    def simplest(self, n_protected: int) -> Trial:
        """Return the same trial with the simplest of the utilities that are equal here.

        All utilities are equal at alpha 1, for example.

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
        """Return one trial for all that make the same training set.

        A sampler of strength 0 keeps every row. A reweigher with a floor of 1 ignores utilities; with a
        correction of 1 it is that of Kamiran and Calders.

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
        """Return the trial after an intervention without settings, if it is registered."""
        for entry in intervention_entries():
            if entry.kind is kind and not entry.settings:
                return replace(self, intervention=entry.name, settings={})
        return self


UNTOUCHED = Trial("none")


def key_of(content: Any) -> str:
    """Return a short name for plain data, different for different data.

    Examples
    --------
    >>> key_of({"a": 1, "b": 2.5}) == key_of({"b": 2.5, "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Proposer(Protocol):
    """Proposes the next trials. The runner saves them in the store before it runs them.

    The answer must depend only on the proposer's own arguments and on the outcomes: a resumed run asks again,
    with the outcomes of the store.
    """

    def ask(self, outcomes: Sequence[Trial]) -> list[Trial]:
        """Return new trials; none when there is nothing left to try.

        Parameters
        ----------
        outcomes : sequence of Trial
            The earlier trials in order, with their outcomes: a run asks when all of them were run.
        """
        ...


@dataclass(frozen=True)
class GridProposer:
    """Proposes every intervention with every model.

    Parameters
    ----------
    recipes : tuple of Trial
        The interventions with their settings.
    models : tuple of dict
        The parameters of the models.
    n_protected : int
        The number of protected attributes.
    """

    recipes: tuple[Trial, ...]
    models: tuple[dict[str, Any], ...]
    n_protected: int

    @classmethod
    def of(cls, config: Config) -> GridProposer:
        """List the trials of a configuration."""
        settings = config.models
        models = draw_models(settings.space, settings.count, settings.seed)
        if settings.estimator == LIGHTGBM and not settings.pipeline:  # others are seeded as they are fitted
            models = [model | {"random_state": settings.seed} for model in models]
        return cls(tuple(_recipes(config)), tuple(models), len(config.data.protected))

    def ask(self, outcomes: Sequence[Trial]) -> list[Trial]:
        """Return the trials that were not proposed yet, by intervention, then by model."""
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
        """The number of rows of the frame."""
        return len(self.recipes) * len(self.models)

    @property
    def n_fits(self) -> int:
        """The number of models to train: interventions with the same training set share them.

        Interventions on scores use the models without an intervention; see `n_changes`.
        """
        return len(self.simplest_recipes) * self._n_models

    @property
    def n_changes(self) -> int:
        """How often the scores of a model are changed."""
        return sum(recipe.changes_scores for recipe in self.recipes) * self._n_models

    @property
    def _n_models(self) -> int:
        """The number of models with different parameters, which small spaces draw more than once."""
        return len({key_of(model) for model in self.models})


def _recipes(config: Config) -> Iterator[Trial]:
    for entry in intervention_entries():
        grid = config.interventions.get(entry.key)
        if grid:
            yield from _combinations(entry, grid if isinstance(grid, dict) else {}, config)


def _combinations(entry: Entry, grid: dict[str, Any], config: Config) -> Iterator[Trial]:
    """Return every combination; alpha changes fastest."""
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
