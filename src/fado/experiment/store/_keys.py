"""The keys of an experiment's tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fado.experiment.search import Recipe, key_of

__all__ = ["Keys"]


class Keys:
    """Names of tasks, made of all that their results depend on.

    Parameters
    ----------
    about : dict
        What a store says of its experiment.
    """

    def __init__(self, about: dict[str, Any]) -> None:
        self._settings = about["settings"]
        self.identity = key_of([about["format"], about["fingerprint"], about["versions"]])

    def values(self, algorithm: str) -> str:
        """Give the key of the values by an algorithm."""
        return key_of([self.identity, self._of("seed", "data.exclude", "valuation"), algorithm])

    def set(self, recipe: Recipe) -> str:
        """Give the key of the training set that a recipe makes."""
        return key_of([self.identity, recipe.key])

    def fit(self, digest: str, parameters: Mapping[str, Any]) -> str:
        """Give the key of a model that is trained on a training set."""
        settings = self._of("seed", "evaluation", "models.estimator", "models.pipeline")
        return key_of([self.identity, settings, digest, dict(parameters)])

    def _of(self, *places: str) -> dict[str, Any]:
        return {name: value for name, value in self._settings.items() if name.startswith(places)}
