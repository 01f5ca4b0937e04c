"""What was measured of an aimed model, and what its card tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.aim._learning import Attribute, groups_of, labels_apart, numbered_as, read_rows_apart
from fado.aim._lines import INTERVAL, log_factors_frame
from fado.aim._scores import Aimed
from fado.engine import Scorer
from fado.metrics import RATIO_NAMES, Budget, measure
from fado.models import Facts, GroupRates, Part
from fado.tabular import Groups, Problem, title_in_full

__all__ = ["Yardstick", "tell_facts", "with_test_rows"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

DRAWS = 200


@dataclass(frozen=True, eq=False)
class Yardstick:
    """How rows of any part are measured."""

    attributes: tuple[Attribute, ...]
    budget: Budget
    confidence: float | None
    seed: int

    def measure(
        self, positive: Bools, scores: FloatArray, threshold: float, weights: FloatArray
    ) -> dict[str, float]:
        """Give all metrics of some rows, with intervals."""
        level = 2 * (self.confidence or INTERVAL) - 1
        by_attribute = {}
        for own in self.attributes:
            by_attribute[own.name], _ = measure(
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
                confidence=level,
            )
        found = dict(next(iter(by_attribute.values())))
        if len(by_attribute) == 1:
            return found
        for ratio in RATIO_NAMES:
            lowest = min(by_attribute.values(), key=lambda own: np.nan_to_num(own[ratio], nan=-1.0))
            for end in ("", "_low", "_high"):
                found[f"{ratio}{end}"] = lowest[f"{ratio}{end}"]
                found |= {f"{ratio}[{name}]{end}": own[f"{ratio}{end}"] for name, own in by_attribute.items()}
        return found

    def without_rows(self) -> Yardstick:
        """Give the same without the groups of any rows, to be kept."""
        nobody = np.empty(0, dtype=np.int64)
        return replace(
            self, attributes=tuple(replace(own, codes=nobody, validation=nobody) for own in self.attributes)
        )

    def of_rows(self, rows: Problem, how: str) -> Yardstick:
        """Give the same with the groups of other rows; groups that are new are not compared."""
        theirs = groups_of(rows.protected, how, rows.n_rows)
        if len(theirs) != len(self.attributes):
            raise ValueError(
                f"The rows have {len(rows.protected)} protected attributes, unlike the training rows: give "
                "both the same."
            )
        found = []
        for number, own in enumerate(self.attributes):
            groups = theirs.get(own.name, list(theirs.values())[number])
            every = numbered_as(own.names, own.titles, groups)
            compared = np.append(own.compared, np.zeros(len(every) - len(own.compared), dtype=np.bool_))
            found.append(
                replace(
                    own, names=every.names, titles=every.titles, validation=every.codes, compared=compared
                )
            )
        return replace(self, attributes=tuple(found))

    def groups(self, codes: Sequence[npt.NDArray[np.int64]]) -> list[Groups]:
        """Give the rows' groups of each attribute, by what people call them."""
        pairs = zip(self.attributes, codes, strict=True)
        found = {own.name: Groups(theirs, own.names, own.titles) for own, theirs in pairs}
        if len(found) > 1:
            return [title_in_full(name, groups) for name, groups in found.items()]
        return list(found.values())

    def part(self, name: str, positive: Bools, codes: Sequence[npt.NDArray[np.int64]]) -> Part:
        """Count the rows of a part, every group once."""
        parts = [Part.of(name, positive, own) for own in self.groups(codes)]
        return Part(name, tuple(group for own in parts for group in own.groups))


def tell_facts(
    aimed: Aimed,
    yardstick: Yardstick,
    *,
    by: str,
    lines: dict[str, float],
    estimator: Any,
    problem: Problem,
    target: Any,
    metrics: dict[str, float],
    reason: str,
    n_fits: int,
    min_group_size: int,
) -> Facts:
    """Gather what the card of an aimed model tells."""
    ratio = next(iter(lines))
    moved = log_factors_frame(aimed.point, aimed.attributes)
    untouched = aimed.point.coefficients.moves_nothing
    factors = {
        f"log factor of {label}s, {row['group']}": float(row[label])
        for _, row in moved.iterrows()
        for label in ("negative", "positive")
    }
    facts = Facts(
        target=target if isinstance(target, str) and target else "y",
        protected=[variable.name for variable in problem.protected],
        ratio=ratio,
        at_least=lines[ratio],
        lines=lines,
        budget=yardstick.budget,
        reached=aimed.reached,
        confidence=aimed.lines.confidence,
        why=reason,
        estimator=type(estimator).__name__,
        parameters=estimator.get_params(deep=True),
        intervention="" if untouched else f"aimed {by}",
        settings={} if untouched else factors,
        fits=n_fits,
        models=len(aimed.points),
        chosen=_how_chosen(aimed, by),
        parts=[
            yardstick.part("training", problem.labels.is_positive, [own.codes for own in aimed.attributes])
        ],
        left_out=[
            title
            for own in aimed.attributes
            for title, kept in zip(own.titles, own.compared, strict=True)
            if not kept
        ],
        min_group_size=min_group_size,
        seed=yardstick.seed,
    )
    return with_part(
        facts,
        yardstick,
        "validation",
        aimed.rows.positive,
        aimed.rows.weights,
        (aimed.scores, aimed.point.threshold),
        (aimed.untouched_scores, aimed.untouched_threshold(yardstick.budget)),
        metrics,
    )


def _how_chosen(aimed: Aimed, by: str) -> str:
    """Say how the point was chosen."""
    every = f"{len(aimed.points)} {'fits' if by == 'weights' else 'points of the trade-off'}"
    line = "the line" if len(aimed.lines.lines) == 1 else "all lines"
    if aimed.point.coefficients.moves_nothing and aimed.reached:
        return f"The untouched model reaches {line}, and is left as it is."
    if not aimed.reached:
        return f"None of {every} reached {line}; the closest was kept."
    if by == "student":
        return f"Of {every}, a student learnt the one that was likely to reach {line}."
    if aimed.lines.confidence is not None and by == "scores":
        return f"Of {every}, tested from the most equal one back, it is the last to reach {line} for sure."
    return f"Of {every}, it has the highest true-positive rate of those that reach {line}."


def with_test_rows(
    facts: Facts,
    yardstick: Yardstick,
    how: str,
    test: Any,
    labels: tuple[Any, Any],
    model: tuple[Scorer, float],
    untouched: tuple[Scorer, float],
) -> Facts:
    """Give the facts with what the model and the untouched one do on test rows, by their thresholds."""
    rows = read_rows_apart(test, "test")
    return with_part(
        facts,
        yardstick.of_rows(rows, how),
        "test",
        labels_apart(labels, rows, "test"),
        np.ones(rows.n_rows) if rows.sample_weight is None else rows.sample_weight,
        (model[0].score(rows.table), model[1]),
        (untouched[0].score(rows.table), untouched[1]),
    )


def with_part(
    facts: Facts,
    yardstick: Yardstick,
    name: str,
    positive: Bools,
    weights: FloatArray,
    after: tuple[FloatArray, float],
    before: tuple[FloatArray, float],
    metrics: dict[str, float] | None = None,
) -> Facts:
    """Give the facts with what was measured on another part."""
    codes = [own.validation for own in yardstick.attributes]
    found = metrics or yardstick.measure(positive, *after, weights)
    decided, untouched = (scores >= threshold for scores, threshold in (after, before))
    rates = [
        rate
        for groups in yardstick.groups(codes)
        for rate in GroupRates.of(name, positive, groups, decided, untouched, weights)
    ]
    return replace(
        facts,
        parts=[*facts.parts, yardstick.part(name, positive, codes)],
        measured={**facts.measured, name: found},
        before={**facts.before, name: yardstick.measure(positive, *before, weights)},
        rates=[*facts.rates, *rates],
    )
