"""A model's card: what is known of how it was made and chosen, and what is said of that, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_share
from fado._messages import list_names
from fado._records import decode, encode, simplify
from fado._version import __version__, library_versions
from fado.engine import Schema
from fado.metrics import RATIO_NAMES, RATIO_TITLES, Budget
from fado.tabular import MIN_GROUP_SIZE, Groups

__all__ = ["Facts", "GroupCount", "GroupRates", "Part", "card_content"]

FEW = 10  # members below which a group's numbers are not kept
_RATES = {
    "tpr": "true-positive rate",
    "fpr": "false-positive rate",
    "selection_rate": "selection rate",
}
_INFERRING = {"aimed", "aimed scores"}  # interventions that ask a model of the groups about every row
_MOVED = _INFERRING | {"aimed student", "student"}  # those after which scores are no probabilities
_NAMED = 20  # columns that the card lists


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
        ``tpr``, ``fpr`` and ``selection_rate`` of the model, NaN where there are no rows to count.
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

        Examples
        --------
        >>> groups = Groups(np.repeat([0, 1], [12, 4]), ("'f'", "'m'"), ("f", "m"))
        >>> positive = np.arange(16) % 2 == 0
        >>> women, men = GroupRates.of("test", positive, groups, np.arange(16) < 3)
        >>> women.after
        {'tpr': 0.3333333333333333, 'fpr': 0.16666666666666666, 'selection_rate': 0.25}
        >>> men.rows, men.after
        (None, {})
        """
        weights = np.ones(len(positive)) if sample_weight is None else sample_weight
        found = []
        for code in np.flatnonzero(groups.sizes).tolist():
            own = groups.codes == code
            rates = [
                {} if selected is None else _rates(selected[own], positive[own], weights[own])
                for selected in (after, before)
            ]
            found.append(cls(part, groups.titles[code], int(own.sum()), int(positive[own].sum()), *rates))
        return found


def _rates(
    selected: npt.NDArray[np.bool_], positive: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64]
) -> dict[str, float]:
    counted = {"tpr": positive, "fpr": ~positive, "selection_rate": np.ones_like(positive)}
    return {
        name: float(np.average(selected[of], weights=weights[of])) if weights[of].any() else float("nan")
        for name, of in counted.items()
    }


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
    before : mapping of str to mapping
        The same of the best model without an intervention, at its own threshold; empty if that is not known.
    rates : sequence of GroupRates
        The rates of each group in each part.
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
    lines: Mapping[str, float] = field(default_factory=dict)
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
    left_out: Sequence[str] = ()
    min_group_size: int = MIN_GROUP_SIZE
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=library_versions)

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
        for name in ("protected", "left_out", "parts", "rates"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("parameters", "settings", "measured", "before", "versions"):
            object.__setattr__(self, name, simplify(getattr(self, name)))

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
        texts = [self.target, self.why, self.estimator, self.intervention, self.chosen]
        texts += [*self.protected, *self.left_out, *self.versions.values()]
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


def card_content(
    facts: Facts, labels: tuple[Any, Any], threshold: float, schema: Schema | None
) -> dict[str, Any]:
    """Give the card: a title, a lead, and sections of texts, points and tables of text."""
    return {
        "title": "Model card",
        "lead": _lead(facts),
        "sections": [
            _decisions(facts, labels, threshold, schema),
            _data(facts),
            _tried(facts),
            _measured(facts),
            _limits(facts),
            _making(facts, threshold),
        ],
        "footer": f"FADO {__version__}",
    }


def _lead(facts: Facts) -> list[str]:
    lines = " and a ".join(f"{ratio} of at least {line:g}" for ratio, line in facts.lines.items())
    asked = f"{lines} between the groups of {_attributes(facts)}"
    if facts.confidence is not None:
        asked += f", with a confidence of {100 * facts.confidence:g} %"
    outcome = "reached it" if facts.reached else "did not reach it"
    why = "" if facts.reached or not facts.why else f" {facts.why}"
    return [
        f"This model predicts {facts.target!r}. Asked for was a {asked}.",
        _verdict(facts),
        f"On the rows that it was chosen by, the model {outcome}.{why}",
    ]


def _verdict(facts: Facts) -> str:
    """Say what test rows show, or that there are none."""
    tested = facts.measured.get("test")
    if tested is None:
        return "No test rows were measured: what follows stands on the rows that the model was chosen by."
    shown = " and ".join(f"{ratio} {_with_interval(tested, ratio)}" for ratio in facts.lines)
    ratios = {ratio: tested.get(ratio, float("nan")) for ratio in facts.lines}
    if any(np.isnan(own) for own in ratios.values()):
        return f"Test rows cannot tell whether it is reached: {shown}."
    reached = all(ratios[ratio] >= line for ratio, line in facts.lines.items())
    measured = {"fpr", "selected"} & set(tested) or facts.budget.kind == "threshold"
    over = "" if not measured or facts.budget.kept(tested) else f" They exceed the budget: {facts.budget}."
    return (
        f"On test rows, which had no part, the model {'reaches' if reached else 'misses'} it: {shown}.{over}"
    )


def _decisions(
    facts: Facts, labels: tuple[Any, Any], threshold: float, schema: Schema | None
) -> dict[str, Any]:
    _, positive = labels
    probability = f"the probability that {facts.target!r} is {positive!r}"
    if facts.intervention in _MOVED:
        probability = "which orders rows and is no probability"
    texts = [
        f"Every row gets a score, {probability}. It is decided {positive!r} from a score of "
        f"{threshold:.6g} on, and {labels[0]!r} below. What set this threshold, on the rows that the model "
        f"was chosen by: {facts.budget}.",
        "One threshold holds for all: a row's group is not asked for when it is decided.",
    ]
    if facts.intervention in _INFERRING:
        texts.append("A second model infers from the features how likely each group is, and moves the score.")
    if schema is not None:
        texts.append(_columns(facts, schema))
    return _section("What it decides", texts)


def _columns(facts: Facts, schema: Schema) -> str:
    names = [repr(name) for name in schema.names]
    told = f"The model learnt from {len(names)} column{'s' if len(names) > 1 else ''}"
    if not schema.named:
        return f"{told} without names."
    seen = [name for name in schema.names if any(_mentions(own, name) for own in facts.protected)]
    if seen:
        return (
            f"{told}: {list_names(names, _NAMED)}. Among them is "
            f"{list_names([repr(name) for name in seen])}, of which a protected attribute is made."
        )
    told = f"{told}: {list_names(names, _NAMED)}."
    return f"{told} No protected attribute is among them, but they may tell of it."


def _mentions(attribute: str, column: str) -> bool:
    """Tell whether an attribute is a column, or a comparison that begins with it."""
    rest = attribute.strip().strip("\"'`")
    if not rest.startswith(column):
        return False
    after = rest[len(column) :].lstrip("\"'` ")
    return not after or after[0] in "<>=!" or after.startswith("in ")


def _data(facts: Facts) -> dict[str, Any]:
    groups = list(dict.fromkeys(own.group for part in facts.parts for own in part.groups))
    counts = [{own.group: own for own in part.groups} for part in facts.parts]
    header = ["group"]
    for part in facts.parts:
        header += [f"{part.name} rows", f"{part.name} positive rate"]
    rows = [[group, *(text for part in counts for text in _counted(part.get(group)))] for group in groups]
    texts = [f"Groups are those of {_attributes(facts)}."]
    if any(own.rows is None for part in facts.parts for own in part.groups):
        texts.append(f"Numbers of groups of fewer than {FEW} rows are not told.")
    if facts.left_out:
        few = f"fewer than {facts.min_group_size} rows and less than 1 %"
        names = list_names([repr(name) for name in facts.left_out])
        texts.append(f"Too small to be compared, with {few}: {names}.")
    return _section("Data and groups", texts, header=header, rows=rows)


def _counted(count: GroupCount | None) -> tuple[str, str]:
    if count is None:
        return "0", ""
    if count.rows is None or count.positives is None:
        return f"fewer than {FEW}", ""
    return f"{count.rows:,}", f"{count.positives / count.rows:.4f}"


def _tried(facts: Facts) -> dict[str, Any]:
    tries = f"{facts.models:,} {'tries' if facts.models != 1 else 'try'}"
    fits = f"{facts.fits:,} fit{'s' if facts.fits != 1 else ''}"
    texts = [f"The model was chosen among {tries}, at the cost of {fits}."]
    return _section("What was tried", [*texts, *([facts.chosen] if facts.chosen else [])])


def _measured(facts: Facts) -> dict[str, Any]:
    if not facts.measured:
        return _section("What it reached", ["Nothing was measured."])
    told = list(facts.measured.values())
    rows = [
        [_title(name, facts), *(_with_interval(metrics, name) for metrics in told)]
        for name in (*_RATES, *RATIO_NAMES)
        if any(name in metrics for metrics in told)
    ]
    share = 0.95 if facts.confidence is None else 2 * facts.confidence - 1
    text = (
        "At this threshold, on rows of each part. A ratio is the lowest rate of a group over the highest: 1 "
        f"is equal rates. In brackets: {100 * share:g} % intervals, where they can be given."
    )
    return _section("What it reached", [text], header=["metric", *facts.measured], rows=rows)


def _title(name: str, facts: Facts) -> str:
    if name in _RATES:
        return _RATES[name]
    return f"{RATIO_TITLES[name]}{', aimed at' if name in facts.lines else ''}"


def _with_interval(metrics: Any, name: str) -> str:
    number, low, high = (metrics.get(f"{name}{end}", float("nan")) for end in ("", "_low", "_high"))
    if np.isnan(number):
        return "undefined"
    return f"{number:.3f}" if np.isnan(low) else f"{number:.3f} ({low:.3f} to {high:.3f})"


def _limits(facts: Facts) -> dict[str, Any]:
    points = [
        "What is told here was measured on rows like those above. On other people, at other times or at "
        "another threshold it may not hold: check it on new rows, again and again.",
        f"Only {' and '.join(facts.lines)} between the groups of {_attributes(facts)} was aimed at. Other "
        "ratios, other groups and groups within these groups may be far from equal.",
        "A ratio compares rates of errors or decisions. It is no proof that decisions are fair or lawful.",
    ]
    if facts.models > 1:
        points.append(
            f"It is the best of {facts.models:,} tries. What it was chosen by flatters it; rows that had no "
            "part in the choice do not."
        )
    if facts.left_out:
        points.append("Of groups that were too small to be compared nothing is known.")
    points.append("Labels are taken as they are: if they are biased, equal rates against them are too.")
    return _section("What it does not promise", [], points=points)


def _making(facts: Facts, threshold: float) -> dict[str, Any]:
    about = {
        "estimator": facts.estimator,
        **{f"estimator: {name}": value for name, value in facts.parameters.items()},
        "intervention": facts.intervention or "none",
        **{f"intervention: {name}": value for name, value in facts.settings.items()},
        "threshold": threshold,
        "seed": facts.seed,
        **{f"version of {name}": value for name, value in facts.versions.items()},
    }
    rows = [[name, str(value)] for name, value in about.items() if value not in (None, "")]
    return _section("How it was made", [], header=["setting", "value"], rows=rows)


def _attributes(facts: Facts) -> str:
    return " and ".join(repr(name) for name in facts.protected)


def _section(
    title: str, texts: list[str], points: Sequence[str] = (), header: Sequence[str] = (), rows: Any = ()
) -> dict[str, Any]:
    return {
        "title": title,
        "texts": texts,
        "points": list(points),
        "header": list(header) if rows else [],
        "rows": list(rows),
    }
