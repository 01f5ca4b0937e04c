"""What is known of how a model was made and chosen, and of what it reached, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_share
from fado._records import decode, encode, simplify
from fado._version import library_versions
from fado.metrics import RATIO_NAMES, Budget, effective_sizes, share_limits
from fado.tabular import MIN_GROUP_SIZE, Groups

FEW = 10  # members below which a group's numbers are not kept
RATES = {"tpr": "true-positive rate", "fpr": "false-positive rate", "selection_rate": "selection rate"}
STATED = ("purpose", "owner", "data", "contact", "date")  # what only people can tell


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


@dataclass(frozen=True)
class GroupRates:
    """The rates of a group in a part, before an intervention and after it.

    None is kept for a group of fewer than 10 rows.

    Parameters
    ----------
    part, group : str
        Their names.
    rows, positives : int or None
        The numbers of rows; None for a group of fewer than 10 rows.
    after : mapping of str to float
        ``tpr``, ``fpr`` and ``selection_rate`` of the model, NaN where there are no rows to count. The ends
        of intervals have ``_low`` and ``_high`` appended.
    before : mapping of str to float
        Those of the best model without an intervention; empty if that is not known.
    """

    part: str
    group: str
    rows: int | None
    positives: int | None
    after: Mapping[str, float] = field(default_factory=dict)
    before: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rows is None or self.rows < FEW:
            for name, nothing in (("rows", None), ("positives", None), ("after", {}), ("before", {})):
                object.__setattr__(self, name, nothing)

    @classmethod
    def of(
        cls,
        part: str,
        positive: npt.NDArray[np.bool_],
        groups: Groups,
        after: npt.NDArray[np.bool_],
        before: npt.NDArray[np.bool_] | None = None,
        sample_weight: npt.NDArray[np.float64] | None = None,
        level: float = 0.95,
    ) -> list[GroupRates]:
        """Count the decisions of a part by group.

        Parameters
        ----------
        part : str
            The name of the part.
        positive : ndarray of bool
            Which rows have the positive label.
        groups : Groups
            The rows' groups.
        after, before : ndarray of bool
            Which rows are predicted positive, by the model and by the one without an intervention.
        sample_weight : ndarray, optional
            How much each row counts; None counts all alike.
        level : float, default=0.95
            The confidence level of the intervals, which are Clopper and Pearson's.

        Examples
        --------
        >>> groups = Groups(np.repeat([0, 1], [12, 4]), ("'f'", "'m'"), ("f", "m"))
        >>> positive = np.arange(16) % 2 == 0
        >>> women, men = GroupRates.of("test", positive, groups, np.arange(16) < 3)
        >>> {name: round(rate, 3) for name, rate in women.after.items() if name.startswith("tpr")}
        {'tpr': 0.333, 'tpr_low': 0.043, 'tpr_high': 0.777}
        >>> men.rows, men.after
        (None, {})
        """
        weights = np.ones(len(positive)) if sample_weight is None else sample_weight
        found = []
        for code in np.flatnonzero(groups.sizes).tolist():
            own = groups.codes == code
            rates = [
                {} if selected is None else _rates(selected[own], positive[own], weights[own], level)
                for selected in (after, before)
            ]
            found.append(cls(part, groups.titles[code], int(own.sum()), int(positive[own].sum()), *rates))
        return found


def _rates(
    selected: npt.NDArray[np.bool_],
    positive: npt.NDArray[np.bool_],
    weights: npt.NDArray[np.float64],
    level: float,
) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, of in {"tpr": positive, "fpr": ~positive, "selection_rate": np.ones_like(positive)}.items():
        weighed, events = weights[of], weights[of & selected]
        sums = [np.array([own.sum()]) for own in (events, weighed, events**2, weighed**2)]
        share = sums[0] / sums[1] if sums[1] else np.array([np.nan])
        low, high = share_limits(share, effective_sizes(*sums), (1 - level) / 2)
        found |= {name: float(share[0]), f"{name}_low": float(low[0]), f"{name}_high": float(high[0])}
    return found


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
        The ratio that was aimed at, the first of several.
    at_least : float
        Its line: the lowest ratio that was asked for.
    lines : mapping of str to float
        All ratios that were aimed at, and the line of each; by default `ratio` and `at_least`.
    budget : Budget
        What set the threshold.
    reached : bool
        Whether the line was reached on the rows by which the model was chosen.
    chosen_on : str, default="validation"
        The part by which the model was chosen, and which set its threshold.
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
        For the name of each part, the metrics that `fado.metrics.measure` gave there, with their intervals,
        which are of `level`. In the part by which the model was chosen, the lower ends of the ratios in
        `lines` are the bounds that were held against the lines.
    before : mapping of str to mapping
        The same of the best model without an intervention, at its own threshold; empty if that is not known.
    rates : sequence of GroupRates
        The rates of each group in each part.
    giveaways : sequence of str
        The features that each alone determine a protected attribute, as far as that is known.
    left_out : sequence of str
        The groups that were too small to be compared.
    min_group_size : int, default=30
        Groups of fewer rows that are also less than 1 % of the table were too small to be compared.
    seed : int, optional
        The seed of all random numbers.
    versions : mapping of str to str
        The versions of the libraries; by default, those that are installed.
    stated : mapping of str to str
        What only people can tell: ``purpose``, ``owner``, ``data``, ``contact``, ``date``, or some of it.
    """

    target: str
    protected: Sequence[str]
    ratio: str
    at_least: float
    budget: Budget
    reached: bool
    lines: Mapping[str, float] = field(default_factory=dict)
    chosen_on: str = "validation"
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
    before: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    rates: Sequence[GroupRates] = ()
    giveaways: Sequence[str] = ()
    left_out: Sequence[str] = ()
    min_group_size: int = MIN_GROUP_SIZE
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=library_versions)
    stated: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", dict(self.lines) or {self.ratio: self.at_least})
        for ratio, line in {self.ratio: self.at_least, **self.lines}.items():
            if ratio not in RATIO_NAMES:
                raise ValueError(f"`ratio` must be one of {', '.join(RATIO_NAMES)}, got {ratio!r}.")
            check_share("at_least", line)
        if self.confidence is not None and not 0.5 < check_share("confidence", self.confidence) < 1:
            raise ValueError(f"`confidence` must be above 0.5 and below 1, got {self.confidence}.")
        if not isinstance(self.budget, Budget):
            raise TypeError(f"`budget` must be a fado.metrics.Budget, got {self.budget!r}.")
        for name in ("protected", "giveaways", "left_out", "parts", "rates"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("parameters", "settings", "measured", "before", "versions"):
            object.__setattr__(self, name, simplify(getattr(self, name)))
        stated = {key: str(own) if isinstance(own, date) else own for key, own in self.stated.items()}
        for name, text in stated.items():
            if name not in STATED:
                raise TypeError(f"A card has fields for {', '.join(STATED)}, got {name!r}.")
            if not isinstance(text, str):
                raise TypeError(f"`{name}` must be text, got {text!r}.")
        object.__setattr__(self, "stated", stated)

    @property
    def level(self) -> float:
        """The confidence level of intervals: each of their ends holds as surely as the lines must."""
        return 0.95 if self.confidence is None else 2 * self.confidence - 1

    def to_plain(self) -> dict[str, Any]:
        """Give all facts as plain data that JSON can hold."""
        return encode(asdict(self) | {"budget": [self.budget.kind, self.budget.limit]})

    @classmethod
    def from_plain(cls, told: Any) -> Facts:
        """Read what `to_plain` gave; anything else raises a ValueError."""
        try:
            told = dict(decode(told))
            told["budget"] = Budget.read(told["budget"])
            told["parts"] = [
                Part(part["name"], tuple(GroupCount(**own) for own in part["groups"]))
                for part in told["parts"]
            ]
            told["rates"] = [GroupRates(**own) for own in told["rates"]]
            facts = cls(**told)
            facts._check_types()
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise ValueError(f"What it tells of how it was made is broken: {error}") from error
        return facts

    def _check_types(self) -> None:
        """Refuse what a card could not be written of."""
        counted: list[GroupCount | GroupRates] = [own for part in self.parts for own in part.groups]
        counted += self.rates
        texts = [self.target, self.why, self.estimator, self.intervention, self.chosen, self.chosen_on]
        texts += [*self.protected, *self.giveaways, *self.left_out, *self.versions.values()]
        texts += [own.name for own in self.parts] + [own.group for own in counted]
        texts += [own.part for own in self.rates]
        known = [self.seed, *(n for own in counted for n in (own.rows, own.positives))]
        counts = [self.fits, self.models, self.min_group_size, *(n for n in known if n is not None)]
        told = [*self.measured.values(), *self.before.values()]
        told += [rates for own in self.rates for rates in (own.after, own.before)]
        if not (
            all(isinstance(text, str) for text in texts)
            and all(isinstance(count, int) for count in counts)
            and all(isinstance(number, int | float) for rates in told for number in rates.values())
            and isinstance(self.reached, bool)
            and isinstance(self.parameters, dict)
            and isinstance(self.settings, dict)
        ):
            raise TypeError("an entry is of another type than it should be.")
