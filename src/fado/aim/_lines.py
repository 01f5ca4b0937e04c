"""The lines that decisions must reach: which point of a curve reaches them, or why none does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._messages import list_names
from fado._typing import Bools, Floats, Integers
from fado.aim._curve import Coefficients, Counts, Limit, Point, Rows
from fado.aim._learning import Attribute, groups_of, numbered_as
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
from fado.tabular import Groups, Problem, title_in_full

if TYPE_CHECKING:
    import pandas as pd

HARDLY_PREDICTED = 0.02  # of the uncertainty about groups: below, no decisions move a ratio
INTERVAL = 0.975  # the confidence of a lower bound if none was given
DRAWS = 200
_MUCH = 0.1  # of the true-positive rate, lost


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
        asked: Mapping[str, float],
        confidence: float | None,
        budget: Budget,
        seed: int,
    ) -> Lines:
        """Set a line for each ratio of every attribute that has two groups to compare."""
        limits = tuple(
            Limit(number, ratio, tuple(range(own.compared.sum())), line)
            for number, own in enumerate(attributes)
            for ratio, line in asked.items()
            if own.compared.sum() > 1
        )
        return cls(tuple(attributes), limits, confidence, budget, seed)

    def bounds(self, counts: Sequence[Counts]) -> list[float]:
        """Give the lower bound of each ratio."""
        level = INTERVAL if self.confidence is None else self.confidence
        return [own.bound(level, self.allowance) for own in counts]

    def lower_ends(self, point: Point) -> dict[str, float]:
        """Give the lower bounds as lower ends of metrics; for several attributes also the lowest of each."""
        found: dict[str, float] = {}
        for limit, bound in zip(self.limits, self.bounds(point.counts), strict=True):
            lowest = min(bound, found.get(f"{limit.ratio}_low", bound))
            found |= {f"{limit.ratio}_low": lowest, f"{self._named(limit)}_low": bound}
        return found

    def reached(self, counts: Sequence[Counts]) -> bool:
        """Check whether all lines are reached: by ratios, or by their bounds."""
        figures = [own.ratio for own in counts] if self.confidence is None else self.bounds(counts)
        return all(is_above(figure, limit.line) for figure, limit in zip(figures, self.limits, strict=True))

    def margin(self, figures: Sequence[float]) -> float:
        """Give how far the worst figure is above its line, in logarithms; -inf if one is undefined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            margins = np.log(np.asarray(figures)) - np.log([limit.line for limit in self.limits])
        return -np.inf if np.isnan(margins).any() else float(margins.min(initial=np.inf))

    def choose(self, points: Sequence[Point]) -> int:
        """Select a point; the untouched point is the first, the most equal one the last."""
        ratios = np.array([self.margin([own.ratio for own in point.counts]) for point in points])
        reached = np.array([self.reached(point.counts) for point in points])
        if self.confidence is None:
            return int(best_first(np.array([own.tpr for own in points]), ratios, reached, keep_first=True)[0])
        place = int(np.argmax(ratios))
        if not reached[place]:
            return int(np.argmax([self.margin(self.bounds(point.counts)) for point in points]))
        while place and reached[place - 1]:
            place -= 1
        return place

    def missing_rows(self, positive: Bools) -> int | None:
        """Give how many more rows equal rates need in four of five tries; 0 if they may pass, -1 if never."""
        level = self.confidence
        if level is None:
            return 0
        expected = [
            (expected_counts(limit.ratio, self.budget, *self._cells(limit, positive)), limit.line)
            for limit in self.limits
        ]
        known = [(own, line) for own, line in expected if own is not None]
        if not known:
            return None
        if all(own.bound(level, self.allowance) >= line for own, line in known):
            return 0

        def share_passing(factor: float) -> float:
            generator = np.random.default_rng([self.seed, 6])
            passed = np.ones(_TRIES, dtype=np.bool_)
            for own, line in known:
                members = np.maximum(np.rint(own.members * factor), 1.0)
                events = generator.binomial(members.astype(np.int64), own.rates, (_TRIES, len(members)))
                bounds = [Counts.of_rows(row, members).bound(level, self.allowance) for row in events * 1.0]
                passed &= np.array(bounds) >= line
            return float(passed.mean())

        factor = least_times(share_passing, _MOST)
        return -1 if np.isinf(factor) else int(np.ceil((factor - 1) * len(positive)))

    def reason(
        self, point: Point, positive: Bools, *, predictability: float, each_alone: bool, missing: int | None
    ) -> str:
        """Explain why the lines were not reached, and what came closest."""
        if not self.limits:
            return "There are no two groups to compare: the estimator is trained unchanged."
        lines = list_names([f"{self._named(limit)} {limit.line:g}" for limit in self.limits])
        one = len(self.limits) == 1
        start = f"The {'line' if one else 'lines'} {lines} {'was' if one else 'were'} not reached"
        n_rows, cell = self._smallest_cell(positive)
        if n_rows == 0:
            return f"{start}: {cell} among the validation rows."
        if any(np.isnan(own.ratio) for own in point.counts):
            return f"{start}: at this budget a rate is 0 in every group. Allow more, or give more rows."
        ends = [ratio_limits(own.rates, own.sizes, 1 - INTERVAL)[1] for own in point.counts]
        closest = f"The closest has {self._shown(point, ends)} at a true-positive rate of {point.tpr:.3f}."
        if missing:
            return f"{start}: {self.too_few(positive, missing)} {closest}"
        open_yet = all(end >= limit.line for end, limit in zip(ends, self.limits, strict=True))
        if predictability < HARDLY_PREDICTED:
            few = f" {len(positive):,} validation rows are also too few to rule it out ({cell})."
            return (
                f"{start}: with this model of the groups, the features remove only {predictability:.1%} of "
                "the uncertainty about the group, and a rule that cannot distinguish groups cannot treat "
                "them differently. "
                f"{closest}{few if open_yet and one else ''}"
            )
        if self.confidence is not None and self.margin([own.ratio for own in point.counts]) >= 0:
            return (
                f"{start} with {100 * self.confidence:g} % confidence: {len(positive):,} validation rows are "
                f"too few ({cell}). {closest} Give more rows, or set a lower line or confidence."
            )
        if open_yet:
            return (
                f"{start} on {len(positive):,} validation rows, which are too few to rule "
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

    def too_few(self, positive: Bools, missing: int) -> str:
        """Say that no model could pass, and how many more rows equal rates need in four of five tries."""
        if missing < 0:
            return "not even 1,000 times as many validation rows could show that a ratio reaches it."
        return (
            f"{len(positive):,} validation rows are too few for any model to reach it "
            f"({self._smallest_cell(positive)[1]}); even equal rates would need about {missing:,} more rows "
            "to pass in four of five tries."
        )

    def _smallest_cell(self, positive: Bools) -> tuple[int, str]:
        """Find the smallest group among the rows that a ratio counts, with a phrase that states its size."""
        cells = []
        for limit in self.limits:
            rate = RATIOS[limit.ratio]
            negatives, positives = self._cells(limit, positive)
            members = (
                {0: negatives, 1: positives, None: negatives + positives}[rate.label].astype(int).tolist()
            )
            names = self.attributes[limit.attribute].compared_titles
            cells += [(own, name, rate.members) for own, name in zip(members, names, strict=True)]
        count, name, counted = min(cells, key=lambda cell: cell[0])
        n_rows, counted = f"{count:,}" if count else "no", counted[: -1 if count == 1 else None]
        return count, f"group {name} has {n_rows} {counted}"

    def _shown(self, point: Point, ends: Sequence[float]) -> str:
        """List the ratios with the bounds that decide, or with their intervals."""
        told = []
        for limit, own, low, high in zip(
            self.limits, point.counts, self.bounds(point.counts), ends, strict=True
        ):
            digits = max(digits_for(figure, limit.line) for figure in (own.ratio, low, high))
            beside = f"{100 * (2 * INTERVAL - 1):g} % interval {low:.{digits}f} to {high:.{digits}f}"
            if self.confidence is not None:
                beside = f"lower bound {low:.{digits}f} at {100 * self.confidence:g} % confidence"
            told.append(f"{self._named(limit)} {own.ratio:.{digits}f} ({beside})")
        return list_names(told)

    def frame(self, points: Sequence[Point], chosen: int | None) -> pd.DataFrame:
        """Give one row per point, the untouched one first."""
        import pandas as pd

        rows = []
        for place, point in enumerate(points):
            bounds = self.bounds(point.counts)
            pairs = zip(point.counts, self.limits, strict=True)
            over = [own.ratio / limit.line for own, limit in pairs]
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
            for limit, own, bound in zip(self.limits, point.counts, bounds, strict=True):
                name, rate_of = self._named(limit), limit.ratio.removesuffix("_ratio")
                titles = self.attributes[limit.attribute].compared_titles
                row |= {name: own.ratio, f"{name}_low": bound}
                row |= {f"{rate_of}[{title}]": rate for title, rate in zip(titles, own.rates, strict=True)}
            for moved in self.log_factors(point.coefficients):
                name = moved["group"]
                name = name if len(self.attributes) == 1 else f"{moved['attribute']}: {name}"
                row |= {f"log_factor[{name}, {label}]": moved[label] for label in ("negative", "positive")}
            rows.append(row)
        return pd.DataFrame(rows)

    def log_factors(self, moved: Coefficients) -> list[dict[str, Any]]:
        """Give the log factors of every compared group; -inf where a coefficient is negative."""
        return [
            {
                "attribute": own.name,
                "group": title,
                "negative": _log_factor(negative[place]),
                "positive": _log_factor(positive[place]),
            }
            for own, negative, positive in zip(self.attributes, moved.negative, moved.positive, strict=True)
            for place, title in enumerate(own.compared_titles)
        ]

    @property
    def level(self) -> float:
        """The confidence level of intervals."""
        return 2 * (self.confidence or INTERVAL) - 1

    def measure(self, positive: Bools, scores: Floats, threshold: float, weights: Floats) -> dict[str, float]:
        """Give all metrics of the rows, with intervals."""
        by_attribute = {
            own.name: measure(
                positive,
                scores,
                own.validation,
                own.names,
                budget=self.budget,
                threshold=threshold,
                n_boot=DRAWS,
                random_state=self.seed,
                sample_weight=None if (weights == weights[0]).all() else weights,
                left_out=~own.compared,
                confidence=self.level,
            )[0]
            for own in self.attributes
        }
        found = dict(next(iter(by_attribute.values())))
        if len(by_attribute) == 1:
            return found
        for ratio in RATIO_NAMES:
            lowest = min(by_attribute.values(), key=lambda own: np.nan_to_num(own[ratio], nan=-1.0))
            for end in ("", "_low", "_high"):
                found[f"{ratio}{end}"] = lowest[f"{ratio}{end}"]
                found |= {f"{ratio}[{name}]{end}": own[f"{ratio}{end}"] for name, own in by_attribute.items()}
        return found

    def at(self, codes: Sequence[Integers]) -> Lines:
        """Give the same lines for other rows, whose groups have the same numbers."""
        pairs = zip(self.attributes, codes, strict=True)
        return replace(self, attributes=tuple(replace(own, validation=theirs) for own, theirs in pairs))

    def rows(self, positive: Bools, weights: Floats) -> Rows:
        """Give the rows with their groups as models number them."""
        return Rows(positive, tuple(own.classes[own.validation] for own in self.attributes), weights)

    def without_rows(self) -> Lines:
        """Give the same lines without any rows, to be stored."""
        nobody = np.empty(0, dtype=np.int64)
        attributes = tuple(replace(own, codes=nobody, validation=nobody) for own in self.attributes)
        return replace(self, attributes=attributes)

    def of_rows(self, rows: Problem, how: str) -> Lines:
        """Give the same lines for rows that were set apart; new groups are not compared."""
        theirs = groups_of(rows.protected, how, rows.n_rows)
        if len(theirs) != len(self.attributes):
            raise ValueError(
                f"The rows have {len(rows.protected)} protected attributes, unlike the training rows: give "
                "both the same."
            )
        found = []
        for number, own in enumerate(self.attributes):
            every = numbered_as(own, theirs.get(own.name, list(theirs.values())[number]))
            compared = np.append(own.compared, np.zeros(len(every) - len(own.compared), dtype=np.bool_))
            names = every.names, every.titles
            found.append(Attribute(own.name, *names, own.codes, every.codes, compared, every.unknown))
        return replace(self, attributes=tuple(found))

    def groups(self, codes: Sequence[Integers]) -> list[Groups]:
        """Give some rows' groups of each attribute, with titles for people."""
        pairs = list(zip(self.attributes, codes, strict=True))
        found = [(own.name, Groups(theirs, own.names, own.titles, own.unknown)) for own, theirs in pairs]
        return [title_in_full(name, own) if len(found) > 1 else own for name, own in found]

    def _named(self, limit: Limit) -> str:
        several = len(self.attributes) > 1
        return f"{limit.ratio}[{self.attributes[limit.attribute].name}]" if several else limit.ratio

    def _cells(self, limit: Limit, positive: Bools) -> tuple[Floats, Floats]:
        """Count the negatives and the positives of each compared group among the validation rows."""
        own = self.attributes[limit.attribute]
        negatives, positives = (
            np.bincount(own.validation[positive == label], minlength=len(own.names))[own.compared]
            for label in (False, True)
        )
        return negatives.astype(np.float64), positives.astype(np.float64)


def log_factors_frame(lines: Lines, point: Point) -> pd.DataFrame:
    """Give the log factors of every compared group, one row each."""
    import pandas as pd

    columns = ["attribute", "group", "negative", "positive"]
    return pd.DataFrame(lines.log_factors(point.coefficients), columns=columns)


def _log_factor(coefficient: float) -> float:
    return float(np.log1p(coefficient)) if coefficient > -1 else -np.inf


ALLOWANCE = 1.5  # counts are divided by this if models are fitted again
_DRAWS = 4_000
_MOST = 1_000  # times as many rows
_TRIES = 300  # of equal rates, for the rows that are missing


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
