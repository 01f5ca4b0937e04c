"""Aimed decisions: from what models know of rows they have not seen to the model that is handed over.

By scores: the curve is found on out-of-fold rows, and the models of label and groups are fitted again on all
rows. By a student: the curve is found on out-of-fold rows of all folds but one, a regressor learns the scores
of its best point, and the fold that was left out measures that very regressor. With validation rows of their
own, both are measured there, and nothing is fitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from fado._messages import warn_user
from fado.aim._curve import Coefficients, Curve, Knowledge, Point, Rows, decision_scores, point_of
from fado.aim._learning import (
    Attribute,
    Fold,
    Learner,
    Models,
    check_both_labels,
    group_predictability,
    groups_of,
    labels_apart,
    numbered_as,
    read_rows_apart,
)
from fado.aim._lines import ALLOWANCE, INTERVAL, Lines, log_factors_frame
from fado.engine import CombinedScorer, Scorer, StudentScorer, detach
from fado.metrics import RATIO_NAMES, Budget, measure
from fado.models import Facts, GroupRates, Part
from fado.tabular import Groups, Problem, Table, columns_that_determine, title_in_full

__all__ = ["Aim", "Aimed", "Yardstick", "combined_scorer", "default_student", "tell_facts", "with_test_rows"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int32]

STUDENT_TREES = 3  # times those of the estimator: it learns from two models
_MARGIN = {True: 0.84, False: 0.5}  # of a student above its line, in errors: with a confidence, and without


@dataclass(frozen=True, eq=False)
class Aimed:
    """What came of it."""

    scorer: Scorer
    untouched: Scorer
    untouched_scores: FloatArray
    point: Point
    points: list[Point]
    chosen: int
    scores: FloatArray
    rows: Rows
    attributes: tuple[Attribute, ...]
    lines: Lines
    predictability: float
    each_alone: bool = False
    decision_scores: FloatArray | None = None
    sample_weight: FloatArray | None = None
    threshold: float | None = None
    untouched_at: float | None = None

    @property
    def reached(self) -> bool:
        """Whether there are groups to compare, and all lines are reached."""
        return bool(self.lines.limits) and self.lines.reached(self.point.counts)

    def reason(self, missing: int | None) -> str:
        """Say why lines are not reached, or that they are by worse decisions only; else nothing."""
        if self.reached:
            return self.lines.caveat(self.points[0], self.point, self.predictability)
        return self.lines.reason(
            self.point,
            self.rows.positive,
            self.attributes,
            predictability=self.predictability,
            each_alone=self.each_alone,
            missing=missing,
        )

    def untouched_threshold(self, budget: Budget) -> float:
        """Give the threshold at which the untouched model keeps the budget on the validation rows."""
        return budget.threshold(self.rows.positive, self.untouched_scores, self.rows.weights)


@dataclass(frozen=True, eq=False)
class Aim:
    """The rows, what is asked of decisions on them, and the models that learn."""

    learner: Learner
    table: Table
    positive: Bools
    attributes: tuple[Attribute, ...]
    folds: Sequence[Fold]
    lines: Lines
    budget: Budget
    seed: int
    deal: Callable[[Positions], list[Fold]]
    validation: tuple[Table, Bools, FloatArray] | None = None

    def missing_rows(self, *, all_folds: bool) -> int | None:
        """Give how many more rows any result would need, before anything is fitted, and warn of them."""
        lines, attributes = self.lines, self.attributes
        if self.validation is not None:
            positive = self.validation[1]
        else:
            validated = np.concatenate([own for _, own in (self.folds if all_folds else self.folds[-1:])])
            attributes, rows = self._at(validated)
            positive = rows.positive
            lines = replace(lines, allowance=ALLOWANCE) if all_folds else lines
        missing = lines.missing_rows(self.budget, positive, attributes)
        if missing:
            told = lines.too_few(positive, attributes, missing)
            warn_user(f"A confidence of {lines.confidence:g} is out of reach: {told}")
        return missing

    def by_scores(self) -> Aimed:
        """Combine the models of label and groups."""
        if self.validation is not None:
            table, _, weights = self.validation
            models = self.learner.fit()
            knowledge, rows = models.knowledge(table, weights), self._own_rows()
            return self._combined(models, knowledge, rows, self.attributes, self.lines)
        validated, knowledge = self.learner.out_of_fold(self.folds)
        attributes, rows = self._at(validated)
        check_both_labels(rows.positive, "validation rows")
        found = self._combined(None, knowledge, rows, attributes, replace(self.lines, allowance=ALLOWANCE))
        return replace(
            found,
            threshold=self._moved_threshold(found.point, found.scorer),
            untouched_at=self._moved_threshold(found.points[0], found.untouched),
            decision_scores=self._spread(validated, found.scores),
        )

    def _moved_threshold(self, point: Point, scorer: Scorer) -> float:
        """Give the threshold at which models of all rows are expected to spend what those of folds did."""
        seen, n_folds = self.learner.seen, len(self.folds)
        if seen is None or self.budget.kind == "threshold":
            return point.threshold
        rows, knowledge = seen
        weights = self.learner.weights_of(rows)
        positive = self.positive[rows]
        counted = self.budget.counted(positive)
        scores = decision_scores(knowledge, point.coefficients)
        by_heart = float(np.average((scores >= point.threshold)[counted], weights=weights[counted]))
        spent = point.fpr if self.budget.kind == "fpr" else point.selection_rate
        share = spent - (spent - by_heart) * (n_folds - 1) / n_folds
        if not 0 < share < 1:
            return point.threshold
        kind: Any = "fpr" if self.budget.kind == "fpr" else "selection_rate"
        every = scorer.score(self.table)
        return Budget(kind, share).threshold(
            self.positive, every, self.learner.weights_of(np.arange(len(every), dtype=np.int32))
        )

    def by_student(self, student: Any) -> Aimed:
        """Teach a regressor the scores of the best point, and measure it on rows that it has not seen."""
        learnt, table, attributes, theirs = self.last_fold()
        folds = self.folds if self.validation is not None else self.deal(learnt)
        validated, knowledge = self.learner.out_of_fold(folds)
        rows = self._at(validated)[1]
        points = self._curve(knowledge, rows).points()
        chosen = self._point_for_student(points, len(theirs.positive) / len(validated))
        point = points[chosen]
        taught = decision_scores(knowledge, point.coefficients)
        untouched = scorer = detach(self.learner.fit(learnt, groups=False).label)
        if not point.coefficients.moves_nothing:
            scorer = StudentScorer(detach(self.learner.teach(student, validated, taught, point.threshold)))
        scores = scorer.score(table)
        measured = point_of(scores, theirs, self.lines.limits, self.budget, point.coefficients, point.demand)
        return Aimed(
            scorer,
            untouched,
            untouched.score(table),
            measured,
            points,
            chosen,
            scores,
            theirs,
            attributes,
            self.lines,
            self._predictability(knowledge, rows),
            self._each_alone(point, self.lines, knowledge, rows),
            self._spread(validated, taught),
        )

    def last_fold(self) -> tuple[Positions, Table, tuple[Attribute, ...], Rows]:
        """Give the rows to learn from, and those that validate: set apart, or the last fold's."""
        if self.validation is not None:
            every = np.arange(self.table.n_rows, dtype=np.int32)
            return every, self.validation[0], self.attributes, self._own_rows()
        learnt, left_out = self.folds[-1]
        check_both_labels(self.positive[left_out], "validation rows of the last fold")
        return learnt, self.table.take(left_out), *self._at(left_out)

    def memberships(self, learnt: Positions) -> tuple[FloatArray, float]:
        """Give rows' probabilities of groups, given features and label, and how well features tell them."""
        rows, knowledge = self.learner.out_of_fold(self.deal(learnt), label=False)
        negative, positive = knowledge.groups[0]
        known = np.where(self.positive[rows][:, np.newaxis], positive, negative)
        return known, self._predictability(knowledge, self._at(rows)[1])

    def _combined(
        self,
        models: Models | None,
        knowledge: Knowledge,
        rows: Rows,
        attributes: tuple[Attribute, ...],
        lines: Lines,
    ) -> Aimed:
        """Choose a point of the curve, and fit what decides there on all rows if it is not fitted yet."""
        points = self._curve(knowledge, rows).points()
        chosen = lines.choose(points)
        point = points[chosen]
        untouched = point.coefficients.moves_nothing
        if models is None:
            models = self.learner.fit(groups=not untouched)
        return Aimed(
            combined_scorer(models, point.coefficients),
            detach(models.label),
            knowledge.positive,
            point,
            points,
            chosen,
            decision_scores(knowledge, point.coefficients),
            rows,
            attributes,
            lines,
            self._predictability(knowledge, rows),
            self._each_alone(point, lines, knowledge, rows),
        )

    def _each_alone(self, point: Point, lines: Lines, knowledge: Knowledge, rows: Rows) -> bool:
        """Tell whether lines that are not all reached could each be reached without the others."""
        if len(lines.limits) < 2 or lines.reached(point.counts):
            return False
        for limit, line in zip(lines.limits, lines.lines, strict=True):
            alone = replace(lines, limits=(limit,), lines=(line,))
            points = Curve(knowledge, rows, [limit], [line], self.budget, self.seed).points()
            if not any(alone.reached(own.counts) for own in points):
                return False
        return True

    def _curve(self, knowledge: Knowledge, rows: Rows) -> Curve:
        return Curve(knowledge, rows, self.lines.limits, self.lines.lines, self.budget, self.seed)

    def _point_for_student(self, points: Sequence[Point], share: float) -> int:
        """Choose where a student is likely to reach the lines on so many times as many rows."""
        asked = self.lines.confidence
        level = float(ndtr(_MARGIN[asked is not None] + (0.0 if asked is None else ndtri(asked))))
        lines = replace(self.lines, confidence=level)
        fewer = [replace(point, counts=tuple(own.times(share) for own in point.counts)) for point in points]
        return lines.choose(fewer)

    def _at(self, rows: Positions) -> tuple[tuple[Attribute, ...], Rows]:
        """Give the attributes and the labels of some training rows."""
        attributes = tuple(replace(own, validation=own.codes[rows]) for own in self.attributes)
        codes = tuple(own.classes[own.validation] for own in attributes)
        return attributes, Rows(self.positive[rows], codes, self.learner.weights_of(rows))

    def _own_rows(self) -> Rows:
        """Give the labels of the validation rows that were set apart."""
        assert self.validation is not None  # noqa: S101 - for the type checker
        _, positive, weights = self.validation
        return Rows(positive, tuple(own.classes[own.validation] for own in self.attributes), weights)

    def _predictability(self, knowledge: Knowledge, rows: Rows) -> float:
        """Say how well features tell the group that they tell worst."""
        found = [
            group_predictability(knowledge, number, codes)
            for number, codes in enumerate(rows.codes)
            if codes.max() < knowledge.groups[number][0].shape[1]
        ]
        return min(found, default=0.0)

    def _spread(self, rows: Positions, scores: FloatArray) -> FloatArray:
        found = np.full(self.table.n_rows, np.nan)
        found[rows] = scores
        return found


def combined_scorer(models: Models, coefficients: Coefficients) -> Scorer:
    """Give what decides: the model of the label, with those of the groups if they move anything."""
    label = detach(models.label)
    if coefficients.moves_nothing:
        return label
    groups = tuple(detach(own) for own in models.groups)
    return CombinedScorer(label, groups, coefficients.negative, coefficients.positive)


def default_student(estimator: Any) -> Any:
    """Give a regressor that learns scores: LightGBM, with the estimator's own settings if it is that too."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    if not isinstance(estimator, LGBMClassifier):
        return LGBMRegressor(n_estimators=300, num_leaves=15, verbosity=-1)
    own = estimator.get_params()
    kept = {name: value for name, value in own.items() if name not in ("objective", "class_weight")}
    return LGBMRegressor(**kept | {"n_estimators": STUDENT_TREES * own["n_estimators"]})


DRAWS = 200


@dataclass(frozen=True, eq=False)
class Yardstick:
    """How rows of any part are measured."""

    attributes: tuple[Attribute, ...]
    budget: Budget
    confidence: float | None
    seed: int

    @property
    def level(self) -> float:
        """The confidence level of intervals."""
        return 2 * (self.confidence or INTERVAL) - 1

    def measure(
        self, positive: Bools, scores: FloatArray, threshold: float, weights: FloatArray
    ) -> dict[str, float]:
        """Give all metrics of some rows, with intervals."""
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
                confidence=self.level,
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
        giveaways=[
            problem.table.names[column]
            for column in sorted(
                {
                    column
                    for variable in problem.protected
                    for column in columns_that_determine(variable, problem.table, frozenset())
                }
            )
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
    again = ""
    if aimed.threshold is not None:
        again = (
            " Models of folds were measured, out of fold; the model that decides was fitted again on all "
            f"rows, and its threshold moved from {aimed.point.threshold:.6g} to {aimed.threshold:.6g}, where "
            "it is expected to select as many."
        )
    if aimed.point.coefficients.moves_nothing and aimed.reached:
        return f"The untouched model reaches {line}, and is left as it is.{again}"
    if not aimed.reached:
        return f"None of {every} reached {line}; the closest was kept.{again}"
    if by == "student":
        return f"Of {every}, a student learnt the one that was likely to reach {line}."
    if aimed.lines.confidence is not None and by == "scores":
        return (
            f"Of {every}, tested from the most equal one back, it is the last whose lower bounds reach "
            f"{line} at {100 * aimed.lines.confidence:g} % confidence.{again}"
        )
    return f"Of {every}, it has the highest true-positive rate of those that reach {line}.{again}"


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
        for rate in GroupRates.of(name, positive, groups, decided, untouched, weights, yardstick.level)
    ]
    return replace(
        facts,
        parts=[*facts.parts, yardstick.part(name, positive, codes)],
        measured={**facts.measured, name: found},
        before={**facts.before, name: yardstick.measure(positive, *before, weights)},
        rates=[*facts.rates, *rates],
    )
