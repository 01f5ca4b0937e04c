"""Aimed decisions: from predictions for rows that models have not seen to the model that is returned.

By scores: the curve is found on out-of-fold rows, and the models of label and groups are fitted again on all
rows. By a student: the curve is found on out-of-fold rows of all folds but one, a regressor is trained on the
scores of its best point, and the fold that was left out validates that regressor. With separate validation
data, both are validated there, and nothing is fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from fado._messages import warn_user
from fado._typing import Bools, Floats, Integers
from fado.aim._curve import Knowledge, Point, Rows, curve_points, decision_scores, point_of
from fado.aim._learning import (
    Fold,
    Learner,
    check_both_labels,
    deal_folds,
    find_attributes,
    find_folds,
    group_predictability,
    knowledge_of,
    labels_apart,
    read_rows_apart,
)
from fado.aim._lines import ALLOWANCE, Lines
from fado.engine import CombinedScorer, Model, Scorer, StudentScorer, detach
from fado.metrics import Budget, predicted_positive
from fado.models import Facts, GroupRates, Part
from fado.tabular import Problem, Table, columns_that_determine

INNER_FOLDS = 5
LEAST_SEEN = 1 / 3  # of the budget that models must spend on rows they have seen, for their threshold to move
LEAST_EVEN = 1 / 2  # of the rows: the effective number that must be there for the threshold to move
STUDENT_TREES = 3  # times those of the estimator, as it learns from two models
_OF_CLASSES = ("objective", "class_weight", "is_unbalance", "scale_pos_weight")
_MARGIN = {True: 0.84, False: 0.5}  # of a student above its line, in standard errors, by confidence or not


@dataclass(frozen=True, eq=False)
class Aimed:
    """The model that was found, with all that was measured."""

    scorer: Scorer
    scores: Floats
    untouched: Scorer
    untouched_scores: Floats
    point: Point
    points: list[Point]
    chosen: int
    rows: Rows
    lines: Lines
    predictability: float
    each_alone: bool = False
    decision_scores: Floats | None = None
    sample_weight: Floats | None = None
    threshold: float | None = None
    untouched_at: float | None = None

    @property
    def reached(self) -> bool:
        """Whether there are groups to compare, and all lines are reached."""
        return bool(self.lines.limits) and self.lines.reached(self.point.counts)

    def reason(self, missing: int | None) -> str:
        """Explain why lines are not reached, or that only worse decisions reach them; else give no text."""
        known = self.predictability
        if self.reached:
            return self.lines.caveat(self.points[0], self.point, known)
        return self.lines.reason(
            self.point, self.rows.positive, predictability=known, each_alone=self.each_alone, missing=missing
        )

    def untouched_threshold(self, *, refitted: bool = False) -> float:
        """Give the untouched model's threshold: on the validation rows, or when it was fitted again."""
        if refitted and self.untouched_at is not None:
            return self.untouched_at
        return self.lines.budget.threshold(self.rows.positive, self.untouched_scores, self.rows.weights)


@dataclass(frozen=True, eq=False)
class Aim:
    """The rows, the lines that decisions on them must reach, and the models."""

    learner: Learner
    problem: Problem
    folds: Sequence[Fold]
    lines: Lines
    validation: tuple[Table, Rows] | None = None

    def missing_rows(self, *, all_folds: bool) -> int | None:
        """Give how many more rows any model would need, before the first fit, and warn about them."""
        if self.validation is not None:
            lines, rows = self.lines, self.validation[1]
        else:
            lines, rows = self._at(np.concatenate([own for _, own in self.folds[0 if all_folds else -1 :]]))
            lines = replace(lines, allowance=ALLOWANCE) if all_folds else lines
        missing = lines.missing_rows(rows.positive)
        if missing:
            too_few = lines.too_few(rows.positive, missing)
            warn_user(f"A confidence of {lines.confidence:g} is out of reach: {too_few}")
        return missing

    def by_scores(self) -> Aimed:
        """Combine the models of label and groups."""
        if self.validation is not None:
            table, rows = self.validation
            label, *groups = models = self.learner.fit()
            return self._combined(models, knowledge_of(label, groups, table, rows.weights), rows, self.lines)
        validated, knowledge = self.learner.out_of_fold(self.folds)
        lines, rows = self._at(validated)
        check_both_labels(rows.positive, "validation rows")
        found = self._combined(None, knowledge, rows, replace(lines, allowance=ALLOWANCE))
        return replace(
            found,
            threshold=self._moved_threshold(found.point, found.scorer),
            untouched_at=self._moved_threshold(found.points[0], found.untouched),
            decision_scores=self._spread(validated, found.scores),
        )

    def _moved_threshold(self, point: Point, scorer: Scorer) -> float:
        """Give the threshold at which models of all rows are expected to select as many as those of folds."""
        seen, n_folds, budget = self.learner.seen, len(self.folds), self.lines.budget
        if seen is None or budget.kind == "threshold":
            return point.threshold
        rows, knowledge = seen
        positive = self.problem.labels.is_positive
        counted = budget.counted(positive[rows])
        selected = predicted_positive(decision_scores(knowledge, point.coefficients), point.threshold)
        weights = knowledge.weights[counted]
        by_heart = float(np.average(selected[counted], weights=weights))
        kind: Any = "fpr" if budget.kind == "fpr" else "selection_rate"
        spent: float = getattr(point, kind)
        # Models that memorise rows select hardly any of those that they have seen: such shares say nothing
        # about new rows, and the threshold that they give lets several times the budget pass.
        # So do they with the few rows that weigh most, if weights are very unequal.
        effective = float(weights.sum() ** 2 / (weights @ weights))
        if by_heart < spent * LEAST_SEEN or effective < len(weights) * LEAST_EVEN:
            return point.threshold
        share = spent - (spent - by_heart) * (n_folds - 1) / n_folds
        if not 0 < share < 1:
            return point.threshold
        every = self.learner.weights_of(np.arange(len(positive), dtype=np.int32))
        return Budget(kind, share).threshold(positive, scorer.score(self.problem.table)[:, 1], every)

    def by_student(self, student: Any) -> Aimed:
        """Train a regressor on the scores of the best point, and validate it on rows that it has not seen."""
        learnt, table, lines, theirs = self.last_fold()
        folds = self.folds if self.validation is not None else self._inner_folds(learnt)
        validated, knowledge = self.learner.out_of_fold(folds)
        rows = self._at(validated)[1]
        points = _points(knowledge, rows, lines)
        chosen = self._point_for_student(points, len(theirs.positive) / len(validated))
        point = points[chosen]
        moved = point.coefficients
        taught = decision_scores(knowledge, moved)
        untouched = scorer = detach(*self.learner.fit(learnt, groups=False))
        if not moved.moves_nothing:
            scorer = StudentScorer(detach(self.learner.teach(student, validated, taught, point.threshold)))
        scores = scorer.score(table)[:, 1]
        before, learnt_scores = untouched.score(table)[:, 1], self._spread(validated, taught)
        measured = point_of(scores, theirs, lines.limits, lines.budget, moved, point.demand)
        known, alone = group_predictability(knowledge, rows.codes), _each_alone(point, lines, knowledge, rows)
        model = scorer, scores, untouched, before
        return Aimed(*model, measured, points, chosen, theirs, lines, known, alone, learnt_scores)

    def last_fold(self) -> tuple[Integers, Table, Lines, Rows]:
        """Give the training rows and the validation rows: rows set apart, or those of the last fold."""
        if self.validation is not None:
            table, rows = self.validation
            return np.arange(self.problem.n_rows, dtype=np.int32), table, self.lines, rows
        learnt, left_out = self.folds[-1]
        lines, rows = self._at(left_out)
        check_both_labels(rows.positive, "validation rows of the last fold")
        return learnt, self.problem.table.take(left_out), lines, rows

    def memberships(self, learnt: Integers) -> tuple[Floats, float]:
        """Give rows' probabilities of groups, given features and label, and how predictable groups are."""
        validated, knowledge = self.learner.out_of_fold(self._inner_folds(learnt), label=False)
        rows = self._at(validated)[1]
        negative, positive = knowledge.groups[0]
        known = np.where(rows.positive[:, np.newaxis], positive, negative)
        return known, group_predictability(knowledge, rows.codes)

    def _combined(self, models: list[Model] | None, knowledge: Knowledge, rows: Rows, lines: Lines) -> Aimed:
        """Select a point of the curve, and fit its models on all rows if they are not fitted yet."""
        points = _points(knowledge, rows, lines)
        chosen = lines.choose(points)
        point = points[chosen]
        moved = point.coefficients
        label, *groups = map(detach, models or self.learner.fit(groups=not moved.moves_nothing))
        scorer: Scorer = label
        if not moved.moves_nothing:
            scorer = CombinedScorer(label, tuple(groups), moved.negative, moved.positive)
        scores, before = decision_scores(knowledge, moved), knowledge.positive
        known, alone = group_predictability(knowledge, rows.codes), _each_alone(point, lines, knowledge, rows)
        return Aimed(scorer, scores, label, before, point, points, chosen, rows, lines, known, alone)

    def _point_for_student(self, points: Sequence[Point], share: float) -> int:
        """Select the point where a student is likely to reach the lines on `share` times as many rows."""
        asked = self.lines.confidence
        level = float(ndtr(_MARGIN[asked is not None] + (0.0 if asked is None else ndtri(asked))))
        fewer = [replace(point, counts=tuple(own.times(share) for own in point.counts)) for point in points]
        return replace(self.lines, confidence=level).choose(fewer)

    def _at(self, rows: Integers) -> tuple[Lines, Rows]:
        """Give the lines for some training rows, and their labels and groups."""
        lines = self.lines.at([own.codes[rows] for own in self.lines.attributes])
        return lines, lines.rows(self.problem.labels.is_positive[rows], self.learner.weights_of(rows))

    def _inner_folds(self, rows: Integers) -> list[Fold]:
        return deal_folds(self.problem, [self.lines.seed, 2], INNER_FOLDS, rows)

    def _spread(self, rows: Integers, scores: Floats) -> Floats:
        found = np.full(self.problem.n_rows, np.nan)
        found[rows] = scores
        return found


def gather(model: Any, problem: Problem, given: Any, asked: dict[str, float], seed: int) -> Aim:
    """Gather the rows, the lines and the models."""
    apart = None if given is None else read_rows_apart(given, "validation")
    attributes = find_attributes(problem, apart, model.attributes, model.min_group_size)
    budget = Budget.read(model.budget, model.max_fpr)
    lines = Lines.between(attributes, asked, model.confidence, budget, seed)
    own = None
    if apart is not None:
        weights = np.ones(apart.n_rows) if apart.sample_weight is None else apart.sample_weight
        positive = labels_apart(problem.labels.pair, apart, "validation")
        own = apart.table, lines.rows(positive, weights)
    learner = Learner(model, problem, attributes, seed)
    needs_folds = apart is None or model.by != "scores"
    return Aim(
        learner, problem, find_folds(model.cv, problem, attributes, seed) if needs_folds else [], lines, own
    )


def _points(knowledge: Knowledge, rows: Rows, lines: Lines) -> list[Point]:
    return curve_points(knowledge, rows, lines.limits, lines.budget, lines.seed)


def _each_alone(point: Point, lines: Lines, knowledge: Knowledge, rows: Rows) -> bool:
    """Check whether lines that are not reached together can each be reached alone."""
    if len(lines.limits) < 2 or lines.reached(point.counts):
        return False
    alone = [replace(lines, limits=(limit,)) for limit in lines.limits]
    return all(any(own.reached(point.counts) for point in _points(knowledge, rows, own)) for own in alone)


def default_student(estimator: Any) -> Any:
    """Give a regressor for scores: LightGBM, with the estimator's settings if that is LightGBM too."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    if not isinstance(estimator, LGBMClassifier):
        return LGBMRegressor(n_estimators=300, num_leaves=15, verbosity=-1)
    own = estimator.get_params()
    kept = {name: value for name, value in own.items() if name not in _OF_CLASSES}
    return LGBMRegressor(**kept | {"n_estimators": STUDENT_TREES * own["n_estimators"]})


def tell_facts(
    model: Any, aimed: Aimed, asked: dict[str, float], problem: Problem, target: Any, learnt: dict[str, Any]
) -> Facts:
    """Gather what the card of an aimed model shows."""
    lines, untouched = aimed.lines, aimed.point.coefficients.moves_nothing
    factors = {
        f"log factor of {label}s, {moved['group']}": moved[label]
        for moved in lines.log_factors(aimed.point.coefficients)
        for label in ("negative", "positive")
    }
    giveaways = [columns_that_determine(own, problem.table, frozenset()) for own in problem.protected]
    titles = [pair for own in lines.attributes for pair in zip(own.titles, own.compared, strict=True)]
    facts = Facts(
        target=target if isinstance(target, str) and target else "y",
        protected=[variable.name for variable in problem.protected],
        unknown=list(map(str, problem.unknown)),
        ratio=next(iter(asked)),
        at_least=next(iter(asked.values())),
        lines=asked,
        budget=lines.budget,
        reached=aimed.reached,
        confidence=lines.confidence,
        why=learnt["reason_"],
        estimator=type(model.estimator).__name__,
        parameters=model.estimator.get_params(deep=True),
        intervention="" if untouched else f"aimed {model.by}",
        settings={} if untouched else factors,
        fits=learnt["n_fits_"],
        models=len(aimed.points),
        chosen=_how_chosen(aimed, model.by),
        parts=[_part("training", lines, problem.labels.is_positive, [own.codes for own in lines.attributes])],
        giveaways=[problem.table.names[column] for column in sorted(set().union(*giveaways))],
        left_out=[title for title, kept in titles if not kept],
        min_group_size=model.min_group_size,
        seed=lines.seed,
    )
    after = aimed.scores, aimed.point.threshold
    before = aimed.untouched_scores, aimed.untouched_threshold()
    rows, metrics = aimed.rows, learnt["metrics_"]
    return _with_part(facts, lines, "validation", rows.positive, rows.weights, after, before, metrics)


def _how_chosen(aimed: Aimed, by: str) -> str:
    """State how the point was selected."""
    every = f"{len(aimed.points)} {'fits' if by == 'weights' else 'points of the trade-off'}"
    line = "the line" if len(aimed.lines.limits) == 1 else "all lines"
    again = ""
    if aimed.threshold is not None:
        first, last = aimed.point.threshold, aimed.threshold
        moved = f"moved from {first:.6g} to {last:.6g}, where it is expected to select as many"
        again = (
            " The figures are those of models fitted on folds, for rows that they have not seen. The final "
            "model was fitted again on all rows, and its threshold "
            f"{moved if last != first else f'stayed at {first:.6g}'}."
        )
    if aimed.point.coefficients.moves_nothing and aimed.reached:
        return f"The untouched model reaches {line}, and is left as it is.{again}"
    if not aimed.reached:
        return f"None of {every} reached {line}; the closest was kept.{again}"
    if by == "student":
        return f"Of {every}, the student was trained on the one that was likely to reach {line}."
    if aimed.lines.confidence is not None and by == "scores":
        return (
            f"Of {every}, tested from the most equal one back, it is the last whose lower bounds reach "
            f"{line} at {100 * aimed.lines.confidence:g} % confidence.{again}"
        )
    return f"Of {every}, it has the highest true-positive rate of those that reach {line}.{again}"


def with_test_rows(
    facts: Facts, lines: Lines, how: str, test: Any, labels: tuple[Any, Any], *models: tuple[Scorer, float]
) -> Facts:
    """Add the figures of the model and of the untouched one on test data, at their thresholds."""
    rows = read_rows_apart(test, "test")
    positive = labels_apart(labels, rows, "test")
    weights = np.ones(rows.n_rows) if rows.sample_weight is None else rows.sample_weight
    after, before = ((scorer.score(rows.table)[:, 1], threshold) for scorer, threshold in models)
    return _with_part(facts, lines.of_rows(rows, how), "test", positive, weights, after, before)


def _with_part(
    facts: Facts,
    lines: Lines,
    name: str,
    positive: Bools,
    weights: Floats,
    after: tuple[Floats, float],
    before: tuple[Floats, float],
    metrics: dict[str, float] | None = None,
) -> Facts:
    """Add the figures of another part of the data."""
    codes = [own.validation for own in lines.attributes]
    decided, untouched = (predicted_positive(*scored) for scored in (after, before))
    rates = [
        rate
        for groups in lines.groups(codes)
        for rate in GroupRates.of(name, positive, groups, decided, untouched, weights, lines.level)
    ]
    return replace(
        facts,
        parts=[*facts.parts, _part(name, lines, positive, codes)],
        measured={**facts.measured, name: metrics or lines.measure(positive, *after, weights)},
        before={**facts.before, name: lines.measure(positive, *before, weights)},
        rates=[*facts.rates, *rates],
    )


def _part(name: str, lines: Lines, positive: Bools, codes: Sequence[Integers]) -> Part:
    """Count the rows of a part of the data by group."""
    parts = [Part.of(name, positive, own) for own in lines.groups(codes)]
    return Part(name, tuple(group for own in parts for group in own.groups))
