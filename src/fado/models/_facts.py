"""What is known of how a model was made and chosen: all that its card tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._plain import decode, encode, simplify
from fado._validation import check_share
from fado._versions import library_versions
from fado.metrics import RATIO_NAMES, Budget
from fado.tabular import MIN_GROUP_SIZE, Groups

__all__ = ["FEW", "Facts", "GroupCount", "Part"]

FEW = 10  # members below which a group's numbers are not kept


@dataclass(frozen=True)
class GroupCount:
    """How many rows a group has, and how many of them are positive.

    Neither number is kept for a group of fewer than 10 rows.

    Parameters
    ----------
    group : str
        The group's name.
    rows, positives : int or None
        The numbers of rows; None for a group of fewer than 10 rows.
    """

    group: str
    rows: int | None
    positives: int | None

    def __post_init__(self) -> None:
        if self.rows is None or self.rows < FEW:
            object.__setattr__(self, "rows", None)
            object.__setattr__(self, "positives", None)


@dataclass(frozen=True)
class Part:
    """The rows that a model was trained on, chosen by or tested on, counted by group.

    Parameters
    ----------
    name : str
        The name of the part, such as "training", "validation" or "test".
    groups : tuple of GroupCount
        The groups that have rows in this part.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.tabular import Groups
    >>> groups = Groups(np.repeat([0, 1], [30, 3]), ("'f'", "'m'"), ("f", "m"))
    >>> part = Part.of("test", np.arange(33) % 3 == 0, groups)
    >>> part.groups
    (GroupCount(group='f', rows=30, positives=10), GroupCount(group='m', rows=None, positives=None))
    """

    name: str
    groups: tuple[GroupCount, ...]

    @classmethod
    def of(cls, name: str, positive: npt.NDArray[np.bool_], groups: Groups) -> Part:
        """Count the rows of a part by group.

        Parameters
        ----------
        name : str
            The name of the part.
        positive : ndarray of bool
            Which rows have the positive label.
        groups : Groups
            The rows' groups.
        """
        positives = np.bincount(groups.codes[positive], minlength=len(groups))
        counts = zip(groups.titles, groups.sizes.tolist(), positives.tolist(), strict=True)
        return cls(name, tuple(GroupCount(*own) for own in counts if own[1]))


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that a model's card tells, as plain data.

    Entries of `parameters` and `settings` that are neither text, number, boolean, None, list nor mapping are
    replaced by the name of their class.

    Parameters
    ----------
    target : str
        The name of what is predicted.
    protected : sequence of str
        The protected attributes whose groups are compared, by name or as they were written (``age >= 50``).
    ratio : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}
        The ratio that was aimed at.
    at_least : float
        The line: the lowest ratio that was asked for.
    budget : Budget
        What set the threshold.
    reached : bool
        Whether the line was reached on the rows by which the model was chosen.
    confidence : float, optional
        If given, the ratio's lower bound at this confidence had to reach the line; if None, the ratio.
    why : str
        If the line was not reached, a sentence that says why.
    estimator : str
        The name of the estimator's class.
    parameters : mapping
        The estimator's parameters.
    intervention : str
        The name of the intervention on the training rows; empty for none.
    settings : mapping
        The intervention's settings.
    fits, models : int
        How many fits were made, and from how many models this one was chosen.
    chosen : str
        A sentence that says how the model was chosen.
    parts : sequence of Part
        The parts of the data, in the order in which the card shows them.
    measured : mapping of str to mapping
        For the name of each part, the metrics that `fado.metrics.measure` gave there, with their intervals.
    left_out : sequence of str
        The groups that were too small to be compared.
    min_group_size : int, default=30
        Groups of fewer rows that are also less than 1 % of the table were too small to be compared.
    seed : int, optional
        The seed of all random numbers.
    versions : mapping of str to str
        The versions of the libraries; by default, those that are installed.
    """

    target: str
    protected: Sequence[str]
    ratio: str
    at_least: float
    budget: Budget
    reached: bool
    confidence: float | None = None
    why: str = ""
    estimator: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    intervention: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    fits: int = 1
    models: int = 1
    chosen: str = ""
    parts: Sequence[Part] = ()
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    left_out: Sequence[str] = ()
    min_group_size: int = MIN_GROUP_SIZE
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=library_versions)

    def __post_init__(self) -> None:
        if self.ratio not in RATIO_NAMES:
            raise ValueError(f"`ratio` must be one of {', '.join(RATIO_NAMES)}, got {self.ratio!r}.")
        check_share("at_least", self.at_least)
        if self.confidence is not None and not 0.5 < check_share("confidence", self.confidence) < 1:
            raise ValueError(f"`confidence` must be above 0.5 and below 1, got {self.confidence}.")
        if not isinstance(self.budget, Budget):
            raise TypeError(f"`budget` must be a fado.metrics.Budget, got {self.budget!r}.")
        for name in ("protected", "left_out", "parts"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("parameters", "settings", "measured", "versions"):
            object.__setattr__(self, name, simplify(getattr(self, name)))

    def to_plain(self) -> dict[str, Any]:
        """Give all facts as plain data that JSON can hold."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        told["budget"] = [self.budget.kind, self.budget.limit]
        told["parts"] = [
            {"name": part.name, "groups": [[own.group, own.rows, own.positives] for own in part.groups]}
            for part in self.parts
        ]
        return encode(told)

    @classmethod
    def from_plain(cls, told: Any) -> Facts:
        """Read what `to_plain` gave; anything else raises a ValueError."""
        try:
            told = dict(decode(told))
            told["budget"] = Budget.read(told["budget"])
            told["parts"] = [
                Part(part["name"], tuple(GroupCount(*own) for own in part["groups"]))
                for part in told["parts"]
            ]
            facts = cls(**told)
            facts._check_types()
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise ValueError(f"What it tells of how it was made is broken: {error}") from error
        return facts

    def _check_types(self) -> None:
        """Refuse what a card could not be written of."""
        texts = [self.target, self.why, self.estimator, self.intervention, self.chosen]
        texts += [*self.protected, *self.left_out, *self.versions.values()]
        texts += [name for part in self.parts for name in (part.name, *(g.group for g in part.groups))]
        counts = [self.fits, self.models, self.min_group_size, *([] if self.seed is None else [self.seed])]
        counts += [
            n for part in self.parts for g in part.groups for n in (g.rows, g.positives) if n is not None
        ]
        numbers = [number for metrics in self.measured.values() for number in metrics.values()]
        if not (
            all(isinstance(text, str) for text in texts)
            and all(isinstance(count, int) for count in counts)
            and all(isinstance(number, int | float) for number in numbers)
            and isinstance(self.reached, bool)
            and isinstance(self.parameters, dict)
            and isinstance(self.settings, dict)
        ):
            raise TypeError("an entry is of another type than it should be.")
