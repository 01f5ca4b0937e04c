"""What there is to do: every intervention with its settings, and every model after each."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from fado.experiment._settings import Config
from fado.experiment._space import drawn

__all__ = ["INTERVENTIONS", "Plan", "Setting", "key_of"]

NONE, RPS, RW, UAPS, UAR, CORRECTED = "none", "RPS", "RW", "UAPS", "UAR", "corrected UAR"
INTERVENTIONS = (NONE, RPS, RW, UAPS, UAR, CORRECTED)


@dataclass(frozen=True)
class Setting:
    """One intervention with its settings; those that do not concern it are None."""

    intervention: str
    algorithm: str | None = None
    utility: str | None = None
    alpha: float | None = None
    scaling: str | None = None
    strength: float | None = None
    floor: float | None = None
    correction: float | None = None

    def recipe(self, n_protected: int) -> Setting:
        """Give the setting that stands for all that give the same training set.

        At alpha 1 every utility is the value for performance; at alpha 0 the linear and the Cobb-Douglas
        utility are the value for fairness, if there is but one protected attribute.

        Examples
        --------
        >>> Setting("UAPS", "oob", "cobb-douglas", alpha=1.0).recipe(1).utility
        'linear'
        >>> Setting("UAPS", "oob", "difference", alpha=0.0).recipe(1).utility
        'difference'
        """
        one_left = self.alpha == 0 and n_protected == 1 and self.utility == "cobb-douglas"
        return replace(self, utility="linear") if self.alpha == 1 or one_left else self

    @property
    def key(self) -> str:
        """A name that only equal settings share."""
        return key_of(asdict(self))

    def __str__(self) -> str:
        about = {name: value for name, value in asdict(self).items() if value is not None}
        named = about.pop("intervention")
        return ", ".join([named, *(f"{name} {value}" for name, value in about.items())])


@dataclass(frozen=True)
class Plan:
    """Every setting and every model; the frame has a row for each pair.

    Parameters
    ----------
    settings : tuple of Setting
        The interventions, as often as the configuration asks for them.
    models : tuple of dict
        Their LightGBM parameters.
    n_protected : int
        How many protected attributes there are.
    """

    settings: tuple[Setting, ...]
    models: tuple[dict[str, Any], ...]
    n_protected: int

    @classmethod
    def of(cls, config: Config) -> Plan:
        """List what a configuration asks for."""
        models = drawn(config.models.space, config.models.count, config.models.seed)
        seeded = tuple(model | {"random_state": config.models.seed} for model in models)
        return cls(tuple(_settings(config)), seeded, len(config.data.protected))

    @property
    def recipes(self) -> list[Setting]:
        """The settings that give different training sets, in order."""
        return list(dict.fromkeys(setting.recipe(self.n_protected) for setting in self.settings))

    @property
    def n_rows(self) -> int:
        """How many rows the frame has."""
        return len(self.settings) * len(self.models)

    @property
    def n_fits(self) -> int:
        """How many models are trained: settings that give the same training set share theirs."""
        return len(self.recipes) * len(self.models)


def _settings(config: Config) -> list[Setting]:
    chosen, algorithms = config.interventions, config.valuation.algorithms
    settings = [Setting(name) for name, on in ((NONE, chosen.none), (RW, chosen.rw)) if on]
    if chosen.rps:
        settings.insert(int(chosen.none), Setting(RPS, strength=1.0))
    if uaps := chosen.uaps:
        settings += [
            Setting(UAPS, algorithm, utility, alpha, strength=strength)
            for algorithm in algorithms
            for utility in uaps.utilities
            for strength in uaps.strengths
            for alpha in uaps.alphas
        ]
    if uar := chosen.uar:
        settings += [
            Setting(UAR, algorithm, utility, alpha, scaling=scaling)
            for algorithm in algorithms
            for utility in uar.utilities
            for scaling in uar.scalings
            for alpha in uar.alphas
        ]
    if corrected := chosen.corrected_uar:
        settings += [
            Setting(
                CORRECTED, algorithm, utility, alpha, scaling="minmax", floor=floor, correction=correction
            )
            for algorithm in algorithms
            for utility in corrected.utilities
            for floor in corrected.floors
            for correction in corrected.corrections
            for alpha in corrected.alphas
        ]
    return settings


def key_of(content: Any) -> str:
    """Give a short name for plain data that other data do not share.

    Examples
    --------
    >>> key_of({"a": 1, "b": 2.5}) == key_of({"b": 2.5, "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
