"""From predictions for rows that models have not seen to the model that is returned.

By scores: the curve is computed on out-of-fold rows, and the models of label and groups are fitted again on
all rows. By a student: the curve is computed on out-of-fold rows of all folds but one, a regressor is trained
on the scores of its best point, and the fold that was left out validates that regressor. With separate
validation data, both are validated there, and nothing is fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from fado._typing import Floats, Integers
from fado.aim._curve import Point, Rows, curve_points, decision_scores, point_of
from fado.aim._folds import Folds, group_predictability, predicted
from fado.aim._groups import check_both_labels
from fado.aim._lines import Lines
from fado.engine import CombinedScorer, Model, Scorer, StudentScorer
from fado.metrics import Budget, predicted_positive

LEAST_SEEN = 1 / 3  # of the budget that models must spend on rows they have seen, for their threshold to move
LEAST_EVEN = 1 / 2  # of the rows: the effective number that must be there for the threshold to move
STUDENT_TREES = 3  # times those of the estimator, as it learns from two models
_OF_CLASSES = ("objective", "class_weight", "is_unbalance", "scale_pos_weight")
_MARGIN = {True: 0.84, False: 0.5}  # of a student above its line, in standard errors, by confidence or not


@dataclass(frozen=True, eq=False, kw_only=True)
class Aimed:
    """The model that was selected, with all that was measured.

    `rows` are the validation rows, with the untouched model's scores; `scores` are those of the model. The
    point of a student has the decisions of the student, `points` those that it was selected from. The two
    thresholds are those of the models that are returned; a point has that of the validation rows.
    """

    scorer: Scorer
    untouched: Scorer
    threshold: float
    untouched_threshold: float
    rows: Rows
    scores: Floats
    lines: Lines
    points: list[Point]
    chosen: int
    point: Point
    predictability: float
    each_alone: bool = False
    refitted: bool = False
    decision_scores: Floats | None = None
    sample_weight: Floats | None = None

    @property
    def reached(self) -> bool:
        """Whether there are groups to compare, and all lines are reached."""
        return bool(self.lines.limits) and self.lines.reached(self.point.counts)


def aim_scores(store: Folds) -> Aimed:
    """Combine the models of label and groups."""
    lines = store.lines
    models: list[Model] | None = None
    seen: Rows | None = None
    positions: Integers | None = None
    if store.validation is None:
        positions, rows, seen = store.out_of_fold(store.folds, seen=True)
        check_both_labels(rows.positive, "validation rows")
    else:
        table, rows = store.validation
        models = store.fit()
        rows = predicted(rows, models, table)
    points = curve_points(rows, lines.limits, lines.budget, lines.seed)
    chosen = lines.choose(points)
    first, point = points[0], points[chosen]
    moved = point.coefficients
    label, *groups = (model.detach() for model in models or store.fit(groups=not moved.moves_nothing))
    scorer: Scorer = label
    if not moved.moves_nothing:
        scorer = CombinedScorer(label, tuple(groups), moved.negative, moved.positive)
    scores, thresholds = decision_scores(rows, moved), (point.threshold, first.threshold)
    if seen is not None:
        thresholds = _moved_threshold(store, seen, point, scorer), _moved_threshold(store, seen, first, label)
    return Aimed(
        scorer=scorer,
        untouched=label,
        threshold=thresholds[0],
        untouched_threshold=thresholds[1],
        rows=rows,
        scores=scores,
        lines=lines,
        points=points,
        chosen=chosen,
        point=point,
        predictability=group_predictability(rows, lines.attributes),
        each_alone=_each_alone(point, lines, rows),
        refitted=positions is not None,
        decision_scores=None if positions is None else store.spread(positions, scores),
    )


def _moved_threshold(store: Folds, seen: Rows, point: Point, scorer: Scorer) -> float:
    """Give the threshold at which models of all rows are expected to select as many as those of folds."""
    budget, n_folds = store.lines.budget, len(store.folds)
    if budget.kind == "threshold":
        return point.threshold
    counted = budget.counted(seen.positive)
    selected = predicted_positive(decision_scores(seen, point.coefficients), point.threshold)
    weights = seen.weights[counted]
    by_heart = float(np.average(selected[counted], weights=weights))
    kind: Any = "fpr" if budget.kind == "fpr" else "selection_rate"
    spent: float = getattr(point, kind)
    # Models that memorise rows select hardly any of those that they have seen: such shares say nothing about
    # new rows, and the threshold that they give lets several times the budget pass. So do they with the few
    # rows that weigh most, if weights are very unequal.
    effective = float(weights.sum() ** 2 / (weights @ weights))
    if by_heart < spent * LEAST_SEEN or effective < len(weights) * LEAST_EVEN:
        return point.threshold
    share = spent - (spent - by_heart) * (n_folds - 1) / n_folds
    if not 0 < share < 1:
        return point.threshold
    problem = store.problem
    weights = store.weights(np.arange(problem.n_rows, dtype=np.int32))
    scores = scorer.score(problem.table)[:, 1]
    return Budget(kind, share).threshold(problem.labels.is_positive, scores, weights)


def aim_student(store: Folds, student: Any) -> Aimed:
    """Train a regressor on the scores of the best point, and validate it on rows that it has not seen."""
    lines, (train, table, validated) = store.lines, store.last_fold()
    folds = store.folds if store.validation is not None else store.deal(train)
    positions, rows, _ = store.out_of_fold(folds)
    points = curve_points(rows, lines.limits, lines.budget, lines.seed)
    # The point where a student is likely to reach the lines on another number of rows.
    sure = 0.0 if lines.confidence is None else float(ndtri(lines.confidence))
    level = float(ndtr(_MARGIN[lines.confidence is not None] + sure))
    share = len(validated.positive) / len(positions)
    fewer = [replace(point, counts=tuple(counts.times(share) for counts in point.counts)) for point in points]
    chosen = replace(lines, confidence=level).choose(fewer)
    point = points[chosen]
    moved = point.coefficients
    taught = decision_scores(rows, moved)
    (model,) = store.fit(train, groups=False)
    label = scorer = model.detach()
    if not moved.moves_nothing:
        scorer = StudentScorer(store.fit_student(student, positions, taught, point.threshold).detach())
    scores, validated = scorer.score(table)[:, 1], replace(validated, scores=label.score(table)[:, 1])
    measured = point_of(scores, validated, lines.limits, lines.budget, moved, point.demand)
    return Aimed(
        scorer=scorer,
        untouched=label,
        threshold=measured.threshold,
        untouched_threshold=untouched_threshold(lines, validated),
        rows=validated,
        scores=scores,
        lines=lines,
        points=points,
        chosen=chosen,
        point=measured,
        predictability=group_predictability(rows, lines.attributes),
        each_alone=_each_alone(point, lines, rows),
        decision_scores=store.spread(positions, taught),
    )


def untouched_threshold(lines: Lines, rows: Rows) -> float:
    """Give the threshold of the untouched model, whose scores the rows have."""
    return lines.budget.threshold(rows.positive, rows.scores, rows.weights)


def _each_alone(point: Point, lines: Lines, rows: Rows) -> bool:
    """Check whether lines that are not reached together can each be reached alone."""
    if len(lines.limits) < 2 or lines.reached(point.counts):
        return False
    for limit in lines.limits:
        alone = replace(lines, limits=(limit,))
        points = curve_points(rows, alone.limits, lines.budget, lines.seed)
        if not any(alone.reached(one.counts) for one in points):
            return False
    return True


def default_student(estimator: Any) -> Any:
    """Give a regressor for scores: LightGBM, with the estimator's settings if that is LightGBM too."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    if not isinstance(estimator, LGBMClassifier):
        return LGBMRegressor(n_estimators=300, num_leaves=15, verbosity=-1)
    parameters = estimator.get_params()
    kept = {name: value for name, value in parameters.items() if name not in _OF_CLASSES}
    return LGBMRegressor(**kept | {"n_estimators": STUDENT_TREES * parameters["n_estimators"]})
