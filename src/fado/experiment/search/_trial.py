"""A trial: one intervention with its settings, and one model after it; and what came of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fado.utility import utility_class, utility_names

__all__ = ["PENDING", "UNTOUCHED", "Outcome", "Proposer", "Recipe", "Trial", "key_of"]

PENDING = "pending"


@dataclass(frozen=True)
class Recipe:
    """How a training set is made: an intervention with its settings.

    Parameters
    ----------
    intervention : str
        The name of its entry in the registry.
    settings : mapping
        Plain data by name, only what concerns it: ``algorithm``, ``utility`` and ``alpha`` if it uses values,
        and its own settings, those that its entry fixes among them.
    """

    intervention: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def simplest(self, n_protected: int) -> Recipe:
        """Give the same recipe with the plainest of the utilities that are equal here.

        Utilities know of each other where they are the same, as all are at alpha 1.

        Examples
        --------
        >>> Recipe("UAPS", {"utility": "cobb-douglas", "alpha": 1.0}).simplest(1).settings["utility"]
        'linear'
        >>> Recipe("UAPS", {"utility": "difference", "alpha": 0.0}).simplest(1).settings["utility"]
        'difference'
        """
        if "utility" not in self.settings:
            return self
        utility = utility_class(self.settings["utility"])(alpha=self.settings["alpha"]).simplest(n_protected)
        names = (name for name in utility_names() if utility_class(name) is type(utility))
        return Recipe(self.intervention, {**self.settings, "utility": next(names, self.settings["utility"])})

    @property
    def key(self) -> str:
        """A name that only equal recipes share."""
        return key_of([self.intervention, dict(self.settings)])

    def __str__(self) -> str:
        return ", ".join([self.intervention, *(f"{name} {value}" for name, value in self.settings.items())])


UNTOUCHED = Recipe("none")


@dataclass(frozen=True)
class Trial:
    """What is tried: a model that is trained after an intervention. The frame has a row for each.

    Parameters
    ----------
    intervention : str
        Its name, as of a `Recipe`.
    settings : mapping
        Its settings, as of a `Recipe`.
    model : int
        The model's number.
    parameters : mapping
        The model's parameters.
    """

    intervention: str
    settings: Mapping[str, Any]
    model: int
    parameters: Mapping[str, Any]

    @property
    def recipe(self) -> Recipe:
        """How the training set is made."""
        return Recipe(self.intervention, self.settings)

    @property
    def key(self) -> str:
        """A name that only equal trials share."""
        return key_of([self.intervention, dict(self.settings), self.model, dict(self.parameters)])


@dataclass(frozen=True)
class Outcome:
    """What came of a trial so far.

    Parameters
    ----------
    trial : Trial
        What was tried.
    status : {"pending", "done", "failed", "no training set"}
        How far it is; the last if the intervention leaves nothing to train on.
    metrics : mapping or None
        What the model achieves, by the names of the frame's columns; None unless it is done.
    scores : callable or None
        Reads the model's scores of the rows that models are chosen on, those of the validation part, or of
        the test part if there is none; None if none are kept.
    training_rows : int or None
        How many rows it was trained on, if its training set is made.
    error : str or None
        Why there is no model.
    """

    trial: Trial
    status: str = PENDING
    metrics: Mapping[str, float] | None = None
    scores: Callable[[], npt.NDArray[np.float64]] | None = None
    training_rows: int | None = None
    error: str | None = None


class Proposer(Protocol):
    """Says what to try next. The runner keeps whatever it says in the store before it runs it.

    A proposer must be a function of what it is made of and of what it is asked: a run that is resumed asks
    again, with what the store holds.
    """

    def ask(self, outcomes: Sequence[Outcome], n: int | None = None) -> list[Trial]:
        """Give new trials; none when there is nothing left to try.

        Parameters
        ----------
        outcomes : sequence of Outcome
            What was proposed before, in order, and what came of it: a run asks when all of it was run.
        n : int, optional
            How many at most; None for as many as may run side by side.
        """
        ...


def key_of(content: Any) -> str:
    """Give a short name for plain data that other data do not share.

    Examples
    --------
    >>> key_of({"a": 1, "b": 2.5}) == key_of({"b": 2.5, "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
