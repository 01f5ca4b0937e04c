"""The lines that decisions must reach: which point of a curve reaches them, or why none does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._checks import check_choice
from fado._messages import list_names
from fado._typing import Floats
from fado.aim._curve import Coefficients, Counts, Limit, Point, Rows
from fado.aim._groups import Attribute
from fado.metrics import (
    RATIO_NAMES,
    RATIOS,
    Budget,
    best_first,
    is_above,
    least_times,
    measure,
    ratio_limits,
    share_limits,
)
from fado.models import digits_for

if TYPE_CHECKING:
    import pandas as pd

HARDLY_PREDICTED = 0.02  # of the uncertainty about groups: below, no decisions move a ratio
INTERVAL = 0.975  # the confidence of a lower bound if none was given
ALLOWANCE = 1.5  # counts are divided by this if models are fitted again
DRAWS = 200
_MUCH = 0.1  # of the true-positive rate, lost
_DRAWS = 4_000
_MOST = 1_000  # times as many rows
_TRIES = 300  # of equal rates, for the rows that are missing
_BOTH = "equalized_odds_ratio"  # the lower of two ratios
_PARTS_OF_BOTH = ("fpr_ratio", "tpr_ratio")


def read_lines(ratio: Any, at_least: Any = 0.8, argument: str = "ratio") -> dict[str, float]:
    """Give the line of each ratio.

    Parameters
    ----------
    ratio : str or mapping of str to float
        A ratio's name, or the line of each of several, also as text: ``"fpr_ratio=0.8, tpr_ratio=0.9"``.
    at_least : float
        The line of a ratio that is given without one.
    argument : str
        What messages call the ratios.

    Examples
    --------
    >>> read_lines("equalized_odds_ratio", 0.8)
    {'fpr_ratio': 0.8, 'tpr_ratio': 0.8}
    >>> read_lines("fpr_ratio=0.8, tpr_ratio", 0.7)
    {'fpr_ratio': 0.8, 'tpr_ratio': 0.7}
    >>> read_lines({"fpr_ratio": 0.8, "equalized_odds_ratio": 0.9})
    Traceback (most recent call last):
        ...
    ValueError: `ratio` gives 'fpr_ratio' two lines, 0.8 and 0.9: give it one.
    """
    if not isinstance(ratio, str | Mapping):
        raise TypeError(f"`{argument}` must be a name or a mapping of names to lines, got {ratio!r}.")
    if isinstance(ratio, str) and ("=" in ratio or "," in ratio):
        parts = [part.partition("=") for part in ratio.split(",")]
        names = [name.strip() for name, _, _ in parts]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"`{argument}` names {twice!r} twice: give it one line.")
        values = [_number(text) if sign else at_least for _, sign, text in parts]
        ratio = dict(zip(names, values, strict=True))
    pairs = ratio if isinstance(ratio, Mapping) else {ratio: at_least}
    if not pairs:
        raise ValueError(f"`{argument}` is empty: name at least one ratio and its line.")
    lines: dict[str, float] = {}
    for name, given in pairs.items():
        check_choice(argument, name, (*RATIO_NAMES, _BOTH))
        line = check_line(given, f"{argument}[{name!r}]" if isinstance(ratio, Mapping) else "at_least")
        for part in _PARTS_OF_BOTH if name == _BOTH else (name,):
            if lines.get(part, line) != line:
                raise ValueError(
                    f"`{argument}` gives {part!r} two lines, {lines[part]:g} and {line:g}: give it one."
                )
            lines[part] = line
    return lines


def _number(text: str) -> Any:
    """Read a line; text that is not a number is returned, and refused later."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def check_line(at_least: Any, name: str = "at_least") -> float:
    """Check a line, and give it as a float.

    Parameters
    ----------
    at_least : float
        The line.
    name : str, default="at_least"
        Its name in error messages.

    Raises
    ------
    TypeError
        If it is not a number.
    ValueError
        If it is not in (0, 1].
    """
    _check_number(name, at_least, "(0, 1]")
    if not 0 < float(at_least) <= 1:
        raise ValueError(f"`{name}` must be in (0, 1], as a ratio is, got {at_least}.")
    return float(at_least)


def check_confidence(confidence: Any) -> float | None:
    """Check the confidence of a lower bound, and give it as a float.

    Parameters
    ----------
    confidence : float or None
        None means that no bound is needed, and is returned unchanged.

    Raises
    ------
    TypeError
        If it is neither a number nor None.
    ValueError
        If it is not in (0.5, 1).
    """
    if confidence is None:
        return None
    _check_number("confidence", confidence, "(0.5, 1)")
    if not 0.5 < float(confidence) < 1:
        raise ValueError(f"`confidence` must be in (0.5, 1), got {confidence}.")
    return float(confidence)


def _check_number(name: str, value: Any, interval: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number in {interval}, got {value!r}.")


@dataclass(frozen=True, eq=False)
class Lines:
    """Ratios between the groups of some rows, their lines, and the confidence of bounds."""

    attributes: tuple[Attribute, ...]
    limits: tuple[Limit, ...]
    confidence: float | None
    budget: Budget
    seed: int
    allowance: float = 1.0

    @classmethod
    def between(
        cls,
        attributes: Sequence[Attribute],
        lines: Mapping[str, float],
        confidence: float | None,
        budget: Budget,
        seed: int,
        allowance: float = 1.0,
    ) -> Lines:
        """Set a line for each ratio of every attribute that has two groups to compare."""
        limits = []
        for number, attribute in enumerate(attributes):
            compared = tuple(np.flatnonzero(attribute.compared).tolist())
            for ratio, line in lines.items() if len(compared) > 1 else ():
                name = f"{ratio}[{attribute.name}]" if len(attributes) > 1 else ratio
                limits.append(Limit(number, ratio, compared, line, name, attribute.titles))
        return cls(tuple(attributes), tuple(limits), confidence, budget, seed, allowance)

    def bounds(self, counts: Sequence[Counts]) -> list[float]:
        """Give the lower bound of each ratio."""
        level = INTERVAL if self.confidence is None else self.confidence
        return [of_ratio.bound(level, self.allowance) for of_ratio in counts]

    def lower_ends(self, point: Point) -> dict[str, float]:
        """Give the lower bounds as lower ends of metrics; for several attributes also the lowest of each."""
        ends: dict[str, float] = {}
        for limit, bound in zip(self.limits, self.bounds(point.counts), strict=True):
            lowest = min(bound, ends.get(f"{limit.ratio}_low", bound))
            ends |= {f"{limit.ratio}_low": lowest, f"{limit.name}_low": bound}
        return ends

    def reached(self, counts: Sequence[Counts]) -> bool:
        """Check whether all lines are reached: by ratios, or by their bounds."""
        figures = [of_ratio.ratio for of_ratio in counts] if self.confidence is None else self.bounds(counts)
        return all(is_above(figure, limit.line) for figure, limit in zip(figures, self.limits, strict=True))

    def margin(self, figures: Sequence[float]) -> float:
        """Give how far the worst figure is above its line, in logarithms; -inf if one is undefined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            margins = np.log(np.asarray(figures)) - np.log([limit.line for limit in self.limits])
        return -np.inf if np.isnan(margins).any() else float(margins.min(initial=np.inf))

    def choose(self, points: Sequence[Point]) -> int:
        """Select a point; the untouched point is the first, the most equal one the last."""
        ratios = np.array([self.margin([counts.ratio for counts in point.counts]) for point in points])
        reached = np.array([self.reached(point.counts) for point in points])
        if self.confidence is None:
            rates = np.array([point.tpr for point in points])
            return int(best_first(rates, ratios, reached, keep_first=True)[0])
        place = int(np.argmax(ratios))
        if not reached[place]:
            return int(np.argmax([self.margin(self.bounds(point.counts)) for point in points]))
        while place and reached[place - 1]:
            place -= 1
        return place

    def missing_rows(self, rows: Rows) -> int | None:
        """Give how many more rows equal rates need in four of five tries; 0 if they may pass, -1 if never."""
        level = self.confidence
        if level is None:
            return 0
        expected = [
            (expected_counts(limit.ratio, self.budget, *self._cells(limit, rows)), limit.line)
            for limit in self.limits
        ]
        known = [(counts, line) for counts, line in expected if counts is not None]
        if not known:
            return None
        if all(counts.bound(level, self.allowance) >= line for counts, line in known):
            return 0

        def share_passing(factor: float) -> float:
            generator = np.random.default_rng([self.seed, 6])
            passed = np.ones(_TRIES, dtype=np.bool_)
            for counts, line in known:
                members = np.maximum(np.rint(counts.members * factor), 1.0)
                tries = generator.binomial(members.astype(np.int64), counts.rates, (_TRIES, len(members)))
                bounds = [
                    Counts.of_rows(events, members).bound(level, self.allowance) for events in tries * 1.0
                ]
                passed &= np.array(bounds) >= line
            return float(passed.mean())

        factor = least_times(share_passing, _MOST)
        return -1 if np.isinf(factor) else int(np.ceil((factor - 1) * len(rows.positive)))

    def reason(
        self, point: Point, rows: Rows, *, predictability: float, each_alone: bool, missing: int | None
    ) -> str:
        """Explain why the lines were not reached, and what came closest."""
        if not self.limits:
            return "There are no two groups to compare: the estimator is trained unchanged."
        lines = list_names([f"{limit.name} {limit.line:g}" for limit in self.limits])
        one, n_rows = len(self.limits) == 1, len(rows.positive)
        start = f"The {'line' if one else 'lines'} {lines} {'was' if one else 'were'} not reached"
        smallest, cell = self._smallest_cell(rows)
        if smallest == 0:
            return f"{start}: {cell} among the validation rows."
        if any(np.isnan(counts.ratio) for counts in point.counts):
            return f"{start}: at this budget a rate is 0 in every group. Allow more, or give more rows."
        ends = [ratio_limits(counts.rates, counts.sizes, 1 - INTERVAL)[1] for counts in point.counts]
        closest = f"The closest has {self._shown(point, ends)} at a true-positive rate of {point.tpr:.3f}."
        if missing:
            return f"{start}: {self.too_few(rows, missing)} {closest}"
        open_yet = all(end >= limit.line for end, limit in zip(ends, self.limits, strict=True))
        if predictability < HARDLY_PREDICTED:
            few = f" {n_rows:,} validation rows are also too few to rule it out ({cell})."
            return (
                f"{start}: with this model of the groups, the features remove only {predictability:.1%} of "
                "the uncertainty about the group, and a rule that cannot distinguish groups cannot treat "
                "them differently. "
                f"{closest}{few if open_yet and one else ''}"
            )
        if self.confidence is not None and self.margin([counts.ratio for counts in point.counts]) >= 0:
            return (
                f"{start} with {100 * self.confidence:g} % confidence: {n_rows:,} validation rows are "
                f"too few ({cell}). {closest} Give more rows, or set a lower line or confidence."
            )
        if open_yet:
            return (
                f"{start} on {n_rows:,} validation rows, which are too few to rule "
                f"{'it' if one else 'them'} out ({cell}). {closest}"
            )
        if each_alone:
            return f"{start} together, although each is reached alone: they conflict on these data. {closest}"
        return f"{start}. {closest} Try another estimator, or a lower line."

    def caveat(self, untouched: Point, point: Point, predictability: float) -> str:
        """Warn if lines are reached only by worse decisions, as features hardly predict the groups."""
        if predictability >= HARDLY_PREDICTED or point.tpr >= (1 - _MUCH) * untouched.tpr:
            return ""
        return (
            f"With this model of the groups, the features remove only {predictability:.1%} of the "
            "uncertainty about the group, so rates become equal only because decisions become worse: the "
            "true-positive rate falls from "
            f"{untouched.tpr:.3f} to {point.tpr:.3f}."
        )

    def too_few(self, rows: Rows, missing: int) -> str:
        """Say that no model could pass, and how many more rows equal rates need in four of five tries."""
        if missing < 0:
            return "not even 1,000 times as many validation rows could show that a ratio reaches it."
        return (
            f"{len(rows.positive):,} validation rows are too few for any model to reach it "
            f"({self._smallest_cell(rows)[1]}); even equal rates would need about {missing:,} more rows "
            "to pass in four of five tries."
        )

    def _smallest_cell(self, rows: Rows) -> tuple[int, str]:
        """Find the smallest group among the rows that a ratio counts, with a phrase that states its size."""
        cells = []
        for limit in self.limits:
            rate = RATIOS[limit.ratio]
            negatives, positives = self._cells(limit, rows)
            members = {0: negatives, 1: positives, None: negatives + positives}[rate.label].astype(int)
            cells += [
                (count, title, rate.members)
                for count, title in zip(members.tolist(), limit.titles, strict=True)
            ]
        count, title, counted = min(cells, key=lambda cell: cell[0])
        n_rows, counted = f"{count:,}" if count else "no", counted[: -1 if count == 1 else None]
        return count, f"group {title} has {n_rows} {counted}"

    def _cells(self, limit: Limit, rows: Rows) -> tuple[Floats, Floats]:
        """Count the negatives and the positives of each compared group."""
        codes, compared = rows.groups[limit.attribute], self.attributes[limit.attribute].compared
        negatives, positives = (
            np.bincount(codes[rows.positive == label], minlength=len(compared))[compared]
            for label in (False, True)
        )
        return negatives.astype(np.float64), positives.astype(np.float64)

    def _shown(self, point: Point, ends: Sequence[float]) -> str:
        """List the ratios with the bounds that decide, or with their intervals."""
        shown = []
        for limit, counts, low, high in zip(
            self.limits, point.counts, self.bounds(point.counts), ends, strict=True
        ):
            digits = max(digits_for(figure, limit.line) for figure in (counts.ratio, low, high))
            beside = f"{100 * (2 * INTERVAL - 1):g} % interval {low:.{digits}f} to {high:.{digits}f}"
            if self.confidence is not None:
                beside = f"lower bound {low:.{digits}f} at {100 * self.confidence:g} % confidence"
            shown.append(f"{limit.name} {counts.ratio:.{digits}f} ({beside})")
        return list_names(shown)

    def frame(self, points: Sequence[Point], chosen: int | None) -> pd.DataFrame:
        """Give one row per point, the untouched one first."""
        import pandas as pd

        rows = []
        for place, point in enumerate(points):
            bounds = self.bounds(point.counts)
            pairs = zip(point.counts, self.limits, strict=True)
            over = [counts.ratio / limit.line for counts, limit in pairs]
            worst = int(np.argmin(over)) if over else None
            low, high = share_limits(np.array([point.tpr]), np.array([point.positives]), 1 - INTERVAL)
            row = {
                "tpr": point.tpr,
                "tpr_low": float(low[0]),
                "tpr_high": float(high[0]),
                "ratio": np.nan if worst is None else point.counts[worst].ratio,
                "low": np.nan if worst is None else bounds[worst],
                "fpr": point.fpr,
                "selection_rate": point.selection_rate,
                "threshold": point.threshold,
                "reached": self.reached(point.counts),
                "chosen": place == chosen,
            }
            for limit, counts, bound in zip(self.limits, point.counts, bounds, strict=True):
                rate_of = limit.ratio.removesuffix("_ratio")
                row |= {limit.name: counts.ratio, f"{limit.name}_low": bound}
                row |= {
                    f"{rate_of}[{title}]": rate
                    for title, rate in zip(limit.titles, counts.rates, strict=True)
                }
            for moved in self.log_factors(point.coefficients):
                name = moved["group"]
                name = name if len(self.attributes) == 1 else f"{moved['attribute']}: {name}"
                row |= {f"log_factor[{name}, {label}]": moved[label] for label in ("negative", "positive")}
            rows.append(row)
        return pd.DataFrame(rows)

    def log_factors(self, moved: Coefficients) -> list[dict[str, Any]]:
        """Give the log factors of every compared group; -inf where a coefficient is negative."""
        sides = moved.negative, moved.positive
        return [
            {"attribute": attribute.name, "group": title}
            | {
                label: float(np.log1p(side[number][place])) if side[number][place] > -1 else -np.inf
                for label, side in zip(("negative", "positive"), sides, strict=True)
            }
            for number, attribute in enumerate(self.attributes)
            for place, title in enumerate(attribute.titles)
        ]

    @property
    def level(self) -> float:
        """The confidence level of intervals."""
        return 2 * (self.confidence or INTERVAL) - 1

    def measure(self, rows: Rows, scores: Floats, threshold: float) -> dict[str, float]:
        """Give all metrics of the rows, with intervals; of several attributes, the lowest ratios."""
        even = (rows.weights == rows.weights[0]).all()
        by_attribute = {
            attribute.name: measure(
                rows.positive,
                scores,
                codes,
                attribute.groups.names,
                budget=self.budget,
                threshold=threshold,
                n_boot=DRAWS,
                random_state=self.seed,
                sample_weight=None if even else rows.weights,
                left_out=~attribute.compared,
                confidence=self.level,
            )[0]
            for attribute, codes in zip(self.attributes, rows.groups, strict=True)
        }
        metrics = dict(next(iter(by_attribute.values())))
        if len(by_attribute) == 1:
            return metrics
        for ratio in RATIO_NAMES:
            lowest = min(by_attribute.values(), key=lambda one: np.nan_to_num(one[ratio], nan=-1.0))
            for end in ("", "_low", "_high"):
                key = f"{ratio}{end}"
                metrics[key] = lowest[key]
                metrics |= {f"{ratio}[{name}]{end}": one[key] for name, one in by_attribute.items()}
        return metrics


def expected_counts(ratio: str, budget: Budget, negatives: Floats, positives: Floats) -> Counts | None:
    """Give the counts of a perfectly equal model before any fit; None if the budget does not set them."""
    members = negatives if ratio == "fpr_ratio" else negatives + positives
    limited = {
        "fpr_ratio": ("fpr", "selection_rate", "top_k"),
        "selection_rate_ratio": ("selection_rate", "top_k"),
    }
    if budget.kind not in limited.get(ratio, ()):
        return None
    n_rows = int((negatives + positives).sum())
    share = budget.share(n_rows)
    if ratio == "fpr_ratio" and budget.kind != "fpr":  # at the most, all that is selected is negative
        share = min(share * n_rows / max(float(negatives.sum()), 1.0), 1.0)
    return Counts.of_rows(share * members, members)


def chance_of_showing(
    counts: Sequence[Counts], lines: Sequence[float], share: float, *, seed: int, allowance: float = 1.0
) -> float:
    """Estimate how likely a test set of `share` times as many rows shows all ratios at their lines.

    Examples
    --------
    Equal rates of 500 events each, far above a line of 0.8:

    >>> counts = Counts.of_rows(np.array([500.0, 500.0]), np.array([10_000.0, 10_000.0]))
    >>> round(chance_of_showing([counts], [0.8], 1.0, seed=0), 1)
    1.0
    """
    shown = np.ones(_DRAWS, dtype=np.bool_)
    generator = np.random.default_rng([seed, 5])
    for of_ratio, line in zip(counts, lines, strict=True):
        if not of_ratio.defined:
            return float("nan")
        sizes = of_ratio.sizes / allowance
        events = of_ratio.rates * sizes
        rates = generator.beta(events + 0.5, np.maximum(sizes - events, 0.0) + 0.5, (_DRAWS, len(sizes)))
        drawn = np.maximum(np.rint(of_ratio.sizes * share), 1).astype(np.int64)
        tested = generator.binomial(drawn, rates) / drawn
        highest = tested.max(axis=1)
        shown &= (highest > 0) & (tested.min(axis=1) >= line * highest)
    return float(shown.mean())
