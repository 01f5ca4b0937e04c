"""Which point of the curve to hand over, and why none reaches the lines if none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado.aim._curve import RATES, Counts, Limit, Point
from fado.aim._learning import Attribute
from fado.metrics import Budget, ratio_limits, share_limits

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ALLOWANCE",
    "INTERVAL",
    "Lines",
    "chance_of_showing",
    "curve_frame",
    "expected_counts",
    "log_factors_frame",
    "missing_factor",
]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

HARDLY_PREDICTED = 0.02  # of the doubt about groups: below, nothing moves a ratio
INTERVAL = 0.975  # how sure a lower bound is where no confidence is asked for
_MUCH = 0.1  # of the true-positive rate, lost
_COUNTED = {0: "negatives", 1: "positives", None: "rows"}


@dataclass(frozen=True, eq=False)
class Lines:
    """What is asked of decisions: ratios with their lines, and how sure they are to reach them."""

    limits: tuple[Limit, ...]
    lines: tuple[float, ...]
    confidence: float | None
    allowance: float

    @classmethod
    def between(
        cls, attributes: Sequence[Attribute], asked: Mapping[str, float], confidence: float | None
    ) -> Lines:
        """Ask each ratio of every attribute that has two groups to compare."""
        limits = [
            (Limit(number, ratio, tuple(range(len(own.compared_names)))), line)
            for number, own in enumerate(attributes)
            for ratio, line in asked.items()
            if len(own.compared_names) > 1
        ]
        return cls(tuple(own for own, _ in limits), tuple(line for _, line in limits), confidence, 1.0)

    def figures(self, counts: Sequence[Counts]) -> list[float]:
        """Give what is held against each line: ratios, or their bounds."""
        if self.confidence is None:
            return [own.ratio for own in counts]
        return self.bounds(counts)

    def bounds(self, counts: Sequence[Counts]) -> list[float]:
        """Give the lower bound of each ratio."""
        level = INTERVAL if self.confidence is None else self.confidence
        return [own.bound(level, self.allowance) for own in counts]

    def lower_ends(self, point: Point, attributes: Sequence[Attribute]) -> dict[str, float]:
        """Give the lower bounds as the lower ends of metrics; of several attributes, the lowest as well."""
        found: dict[str, float] = {}
        for limit, bound in zip(self.limits, self.bounds(point.counts), strict=True):
            lowest = min(bound, found.get(f"{limit.ratio}_low", bound))
            found |= {f"{limit.ratio}_low": lowest, f"{_named(limit, attributes)}_low": bound}
        return found

    def reached(self, counts: Sequence[Counts]) -> bool:
        """Tell whether all lines are reached."""
        return all(figure >= line for figure, line in zip(self.figures(counts), self.lines, strict=True))

    def margin(self, figures: Sequence[float]) -> float:
        """Give how far the worst figure is above its line, in logarithms; -inf where one is undefined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            margins = np.log(np.asarray(figures)) - np.log(np.asarray(self.lines))
        return -np.inf if np.isnan(margins).any() else float(margins.min(initial=np.inf))

    def choose(self, points: Sequence[Point]) -> int:
        """Choose a point, from the untouched first to the most equal last."""
        ratios = [self.margin([own.ratio for own in point.counts]) for point in points]
        passed = [place for place, point in enumerate(points) if self.reached(point.counts)]
        if self.confidence is None:
            if 0 in passed:
                return 0
            if passed:
                return max(passed, key=lambda place: (points[place].tpr, ratios[place]))
            return int(np.argmax(ratios))
        place = int(np.argmax(ratios))
        if place not in passed:
            return int(np.argmax([self.margin(self.bounds(point.counts)) for point in points]))
        while place - 1 in passed:
            place -= 1
        return place

    def missing_rows(self, budget: Budget, positive: Bools, attributes: Sequence[Attribute]) -> int | None:
        """Give how many more rows even equal rates would need for their bounds; 0 if there are enough."""
        if self.confidence is None:
            return 0
        expected = [
            expected_counts(limit.ratio, budget, *_cells(limit, positive, attributes))
            for limit in self.limits
        ]
        known = [(own, line) for own, line in zip(expected, self.lines, strict=True) if own is not None]
        if not known:
            return None
        level = self.confidence

        def passes(factor: float) -> bool:
            return all(own.times(factor).bound(level, self.allowance) >= line for own, line in known)

        factor = missing_factor(passes)
        return -1 if np.isinf(factor) else int(np.ceil((factor - 1) * len(positive)))

    def reason(
        self,
        point: Point,
        positive: Bools,
        attributes: Sequence[Attribute],
        *,
        predictability: float,
        each_alone: bool,
        missing: int | None,
    ) -> str:
        """Say why the lines were not reached, and what came closest."""
        if not self.limits:
            return "There are no two groups to compare: the estimator is trained as it is."
        asked = zip(self.limits, self.lines, strict=True)
        lines = list_names([f"{_named(limit, attributes)} {line:g}" for limit, line in asked])
        one = len(self.lines) == 1
        start = f"The {'line' if one else 'lines'} {lines} {'was' if one else 'were'} not reached"
        n_rows, cell = self._smallest_cell(positive, attributes)
        if n_rows == 0:
            return f"{start}: {cell} among the validation rows."
        closest = (
            f"The closest has {self._shown(point, attributes)} at a true-positive rate of {point.tpr:.3f}."
        )
        if any(np.isnan(own.ratio) for own in point.counts):
            return f"{start}: at this budget a rate is 0 in every group. Allow more, or give more rows."
        if missing:
            return f"{start}: {self.too_few(positive, attributes, missing)} {closest}"
        if predictability < HARDLY_PREDICTED:
            return (
                f"{start}: the features take away only {predictability:.1%} of the doubt about the group, "
                f"and a rule that cannot tell groups apart cannot treat them differently. {closest}"
            )
        estimates = self.margin([own.ratio for own in point.counts]) >= 0
        if self.confidence is not None and estimates:
            return (
                f"{start} with {100 * self.confidence:g} % confidence: {len(positive):,} validation rows are "
                f"too few to be sure ({cell}). {closest} Give more rows, or ask for less."
            )
        if self._may_be_reached(point):
            return (
                f"{start} on {len(positive):,} validation rows, too few to tell whether "
                f"{'it is' if one else 'they are'} ({cell}). {closest}"
            )
        if each_alone:
            return f"{start} at once, though each is alone: they exclude each other here. {closest}"
        return f"{start}. {closest} Try another estimator, or a lower line."

    def caveat(self, untouched: Point, point: Point, predictability: float) -> str:
        """Say that lines are reached by worse decisions only, where features hardly tell the groups."""
        if predictability >= HARDLY_PREDICTED or point.tpr >= (1 - _MUCH) * untouched.tpr:
            return ""
        return (
            f"The features take away only {predictability:.1%} of the doubt about the group: rates become "
            f"equal as decisions become worse. The true-positive rate falls from {untouched.tpr:.3f} to "
            f"{point.tpr:.3f}."
        )

    def too_few(self, positive: Bools, attributes: Sequence[Attribute], missing: int) -> str:
        """Say that no result could pass, and how many rows are missing."""
        if missing < 0:
            return (
                f"with {len(positive):,} validation rows, or any number of them, no ratio could be shown to "
                "reach it."
            )
        return (
            f"{len(positive):,} validation rows are too few for any result to be sure of it "
            f"({self._smallest_cell(positive, attributes)[1]}); even equal rates would need about "
            f"{missing:,} more."
        )

    def _smallest_cell(self, positive: Bools, attributes: Sequence[Attribute]) -> tuple[int, str]:
        """Count the rows of the smallest group among those that a ratio counts, and say how many it has."""
        cells = []
        for limit in self.limits:
            label, _ = RATES[limit.ratio]
            negatives, positives = _cells(limit, positive, attributes)
            members = {0: negatives, 1: positives, None: negatives + positives}[label]
            names = attributes[limit.attribute].compared_titles
            cells += [
                (int(own), names[group], _COUNTED[label])
                for own, group in zip(members, limit.compared, strict=True)
            ]
        count, name, counted = min(cells, key=lambda cell: cell[0])
        return (
            count,
            f"group {name} has {f'{count:,}' if count else 'no'} {counted[: -1 if count == 1 else None]}",
        )

    def _may_be_reached(self, point: Point) -> bool:
        """Tell whether no ratio is below its line beyond doubt."""
        ends = [ratio_limits(own.rates, own.sizes, 1 - INTERVAL)[1] for own in point.counts]
        return all(end >= line for end, line in zip(ends, self.lines, strict=True))

    def _shown(self, point: Point, attributes: Sequence[Attribute]) -> str:
        """Say the ratios: with the bounds that decide, or with the interval that may take in the line."""
        told = []
        for limit, own, bound in zip(self.limits, point.counts, self.bounds(point.counts), strict=True):
            if self.confidence is None:
                high = ratio_limits(own.rates, own.sizes, 1 - INTERVAL)[1] if own.defined else np.nan
                beside = f"{100 * (2 * INTERVAL - 1):g} % interval {bound:.3f} to {high:.3f}"
            else:
                beside = f"lower bound {bound:.3f} at {100 * self.confidence:g} % confidence"
            told.append(f"{_named(limit, attributes)} {own.ratio:.3f} ({beside})")
        return list_names(told)


def curve_frame(
    points: Sequence[Point], lines: Lines, attributes: Sequence[Attribute], chosen: int | None
) -> pd.DataFrame:
    """Give one row per point, the untouched one first."""
    import pandas as pd

    rows = []
    for place, point in enumerate(points):
        bounds = lines.bounds(point.counts)
        over = [own.ratio / line for own, line in zip(point.counts, lines.lines, strict=True)]
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
            "reached": lines.reached(point.counts),
            "chosen": place == chosen,
        }
        for limit, own, bound in zip(lines.limits, point.counts, bounds, strict=True):
            name = _named(limit, attributes)
            row |= {name: own.ratio, f"{name}_low": bound}
            titles = attributes[limit.attribute].compared_titles
            for group, rate in zip(limit.compared, own.rates, strict=True):
                row[f"{limit.ratio.removesuffix('_ratio')}[{titles[group]}]"] = rate
        rows.append(row | _log_factors(point, attributes))
    return pd.DataFrame(rows)


def log_factors_frame(point: Point, attributes: Sequence[Attribute]) -> pd.DataFrame:
    """Give the log factors of every compared group, one row each; -inf where a coefficient is negative."""
    import pandas as pd

    rows = []
    for own, negative, positive in zip(
        attributes, point.coefficients.negative, point.coefficients.positive, strict=True
    ):
        for group in np.flatnonzero(own.compared).tolist():
            number = own.classes[group]
            rows.append(
                {
                    "attribute": own.name,
                    "group": own.titles[group],
                    "negative": _log_factor(negative[number]),
                    "positive": _log_factor(positive[number]),
                }
            )
    return pd.DataFrame(rows, columns=["attribute", "group", "negative", "positive"])


def _log_factors(point: Point, attributes: Sequence[Attribute]) -> dict[str, float]:
    frame = log_factors_frame(point, attributes)
    several = len(attributes) > 1
    found: dict[str, float] = {}
    for _, row in frame.iterrows():
        name = f"{row['attribute']}: {row['group']}" if several else row["group"]
        found |= {f"log_factor[{name}, {label}]": row[label] for label in ("negative", "positive")}
    return found


def _log_factor(coefficient: float) -> float:
    return float(np.log1p(coefficient)) if coefficient > -1 else -np.inf


def _named(limit: Limit, attributes: Sequence[Attribute]) -> str:
    return limit.ratio if len(attributes) == 1 else f"{limit.ratio}[{attributes[limit.attribute].name}]"


def _cells(limit: Limit, positive: Bools, attributes: Sequence[Attribute]) -> tuple[FloatArray, FloatArray]:
    """Count the negatives and the positives of each compared group among the validation rows."""
    own, places = attributes[limit.attribute], list(limit.compared)
    counts = [
        np.bincount(own.classes[own.validation[positive == label]], minlength=len(own.names) + 1)[
            places
        ].astype(np.float64)
        for label in (False, True)
    ]
    return counts[0], counts[1]


ALLOWANCE = 1.5  # by how much counts are divided where models are fitted again
_DRAWS = 4_000
_MOST = 1e6  # times as many rows: more are never told
_ROUNDS = 60


def expected_counts(
    ratio: str, budget: Budget, negatives: FloatArray, positives: FloatArray
) -> Counts | None:
    """Give the counts of a perfectly equal model, before anything is fitted; None if they cannot be told."""
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


def missing_factor(passes: Callable[[float], bool]) -> float:
    """Give how many times as many rows would let a perfectly equal model pass; 1 if there are enough."""
    if passes(1.0):
        return 1.0
    low, high = 1.0, 2.0
    while not passes(high):
        low, high = high, 2 * high
        if high > _MOST:
            return float("inf")
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def chance_of_showing(
    counts: Sequence[Counts], lines: Sequence[float], share: float, *, seed: int, allowance: float = 1.0
) -> float:
    """Give how likely other rows, so many times as many as were counted, show all ratios at their lines.

    Examples
    --------
    Equal rates of 500 events each, where a line of 0.8 is not close:

    >>> counts = Counts.of_rows(np.array([500.0, 500.0]), np.array([10_000.0, 10_000.0]))
    >>> chance_of_showing([counts], [0.8], 1.0, seed=0) > 0.98
    True
    """
    shown = np.ones(_DRAWS, dtype=np.bool_)
    generator = np.random.default_rng([seed, 5])
    for own, line in zip(counts, lines, strict=True):
        if not own.defined:
            return float("nan")
        sizes = own.sizes / allowance
        events = own.rates * sizes
        rates = generator.beta(events + 0.5, np.maximum(sizes - events, 0.0) + 0.5, (_DRAWS, len(sizes)))
        drawn = np.maximum(np.rint(own.sizes * share), 1).astype(np.int64)
        found = generator.binomial(drawn, rates) / drawn
        highest = found.max(axis=1)
        shown &= (highest > 0) & (found.min(axis=1) >= line * highest)
    return float(shown.mean())
