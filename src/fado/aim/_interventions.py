"""Aimed scores as interventions of an experiment: by two models, by a student, or by known groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from fado._typing import Floats
from fado.aim._curve import Counts, Limit, Point, Rows, count_limit, curve_points
from fado.aim._folds import nearness
from fado.aim._lines import read_lines
from fado.engine import CombinedScorer, Scorer, StudentScorer, combine_probabilities
from fado.interventions import BaseScoreIntervention, EvaluatedRows, KnownRows, Setting, register_intervention
from fado.metrics import RATIO_NAMES, Budget, best_first

RATIO = Setting(
    "ratio", "choice", "fpr_ratio", "ratios", RATIO_NAMES, help="The ratio that must reach the line."
)
AT_LEAST = Setting("at_least", "line", 0.8, "lines", help="The line: the lowest ratio that is accepted.")


def count_events(
    positive: npt.NDArray[np.bool_],
    groups: npt.NDArray[np.int64],
    compared: Sequence[int] | npt.NDArray[np.intp],
    selected: npt.NDArray[np.bool_],
    ratios: Sequence[str],
    sample_weight: Floats | None = None,
) -> list[Counts]:
    """Count the events of ratios in some groups; `Counts.bound` gives a lower bound of each.

    Parameters
    ----------
    positive : ndarray of bool
        Which rows have the positive label.
    groups : ndarray of int
        Each row's group.
    compared : sequence of int
        The groups that are compared.
    selected : ndarray of bool
        Which rows are predicted positive.
    ratios : sequence of str
        The ratios' names.
    sample_weight : ndarray, optional
        How much each row counts; None counts all equally.

    Examples
    --------
    >>> negative, groups = np.zeros(8, dtype=bool), np.repeat([0, 1], 4)
    >>> (counts,) = count_events(negative, groups, [0, 1], np.arange(8) % 4 < groups + 1, ["fpr_ratio"])
    >>> counts.rates, counts.ratio
    (array([0.25, 0.5 ]), 0.5)
    """
    weights = np.ones(len(positive)) if sample_weight is None else sample_weight
    rows, places = Rows(positive, (groups,), weights), tuple(int(group) for group in compared)
    return [count_limit(rows, Limit(0, ratio, places), selected) for ratio in ratios]


class _Aimed(BaseScoreIntervention):
    """The common part: ratios, lines, and the point of the curve that they select."""

    demand: float | None = None

    def __init__(self, ratio: str = "fpr_ratio", at_least: float = 0.8) -> None:
        self.ratio = ratio
        self.at_least = at_least

    def _check_settings(self) -> None:
        read_lines(self.ratio, self.at_least)

    def _known(self, rows: EvaluatedRows) -> KnownRows:
        """Give the rows on which the point is selected."""
        return rows.validation

    def _budget(self, rows: EvaluatedRows) -> Budget:
        return rows.budget

    def _point(self, rows: EvaluatedRows) -> Point:
        """Give the untouched point if it is above all lines, else the best above them, else the closest."""
        points = self.points(rows)
        if self.demand is not None:
            return min(points, key=lambda point: abs(point.demand - float(self.demand or 0.0)))
        lines = list(read_lines(self.ratio, self.at_least).values())
        ratios = np.nan_to_num([[counts.ratio for counts in point.counts] for point in points])
        shares = (ratios / lines).min(axis=1)
        rates = np.array([point.tpr for point in points])
        return points[best_first(rates, shares, shares >= 1, keep_first=True)[0]]

    def points(self, rows: EvaluatedRows) -> list[Point]:
        """Give the whole curve: the untouched point first, the most equal one last."""
        lines = read_lines(self.ratio, self.at_least)
        if rows.n_compared < 2:
            raise ValueError("There are no two groups that are large enough to be compared.")

        def make() -> list[Point]:
            known = self._known(rows)
            return curve_points(
                Rows(
                    known.positive, (known.groups,), known.weights, known.scores, (known.group_probabilities,)
                ),
                [Limit(0, ratio, tuple(range(rows.n_compared)), line) for ratio, line in lines.items()],
                self._budget(rows),
                rows.seed,
            )

        name = (type(self).__name__, tuple(lines.items()))
        points: list[Point] = rows.once(name, make)
        return points


@register_intervention("aimed", settings=[RATIO, AT_LEAST], shape="cross", colour="#c0392b")
class AimedScores(_Aimed):
    """Move scores by the predicted groups of rows until ratios reach their lines on validation data.

    Scores that reach all lines stay unchanged. Otherwise the point of the trade-off with the highest
    true-positive rate is selected at which all ratios reach their lines; if there is none, the point that
    comes closest. Decisions do not need the group of a row.

    Parameters
    ----------
    ratio : str, default="fpr_ratio"
        The ratio; or several with their lines, as ``"fpr_ratio=0.8, tpr_ratio=0.9"``.
    at_least : float, default=0.8
        The line of a ratio that is given without one, in (0, 1].
    demand : float, optional
        Select this point of the trade-off instead: 0 is the lines, 1 is equal rates.

    See Also
    --------
    fado.AimedEstimator : The same as an estimator.
    fado.aim.AimedStudent : One model of the features instead of two.

    References
    ----------
    A. K. Menon and R. C. Williamson, "The cost of fairness in binary classification", FAT* 2018.
    """

    def __init__(self, ratio: str = "fpr_ratio", at_least: float = 0.8, demand: float | None = None) -> None:
        self.ratio = ratio
        self.at_least = at_least
        self.demand = demand

    def _rescore(self, rows: EvaluatedRows) -> Floats:
        return _scores_at(self._point(rows), rows.scores, rows.group_probabilities)

    def scorer(self, rows: EvaluatedRows) -> Scorer:
        """Give the model of the label if nothing moves, else both models with their coefficients."""
        label, groups = rows.scorers()
        point = self._point(rows)
        if not np.isfinite(point.demand):
            return label
        moved = point.coefficients
        return CombinedScorer(label, (groups,), moved.negative, moved.positive)


@register_intervention("student", settings=[RATIO, AT_LEAST], shape="cross", colour="#16a085")
class AimedStudent(_Aimed):
    """Train a student on scores that are moved until ratios reach their lines on the training rows.

    The scores come from models that have not seen the rows. The student is a regressor of the features: it
    needs neither the group of a row nor a model of the groups.

    Parameters
    ----------
    ratio, at_least
        As for `AimedScores`.

    See Also
    --------
    fado.AimedEstimator : The same as an estimator, with ``by="student"``.
    """

    def _known(self, rows: EvaluatedRows) -> KnownRows:
        return rows.training

    def _budget(self, rows: EvaluatedRows) -> Budget:
        if rows.budget.kind != "top_k":
            return rows.budget
        return Budget("selection_rate", min(rows.budget.share(rows.n_validation), 1 - 1e-9))

    def _rescore(self, rows: EvaluatedRows) -> Floats:
        point = self._point(rows)
        if not np.isfinite(point.demand):
            return rows.scores
        return expit(rows.teach(*self._lesson(point, rows)))

    def _lesson(self, point: Point, rows: EvaluatedRows) -> tuple[Floats, Floats]:
        """Give moved log odds to train the student on, and weights; rows near the threshold count most."""
        numbers = _moved(point, rows.training.scores, rows.training.group_probabilities)
        budget, weights = self._budget(rows), rows.training.weights
        threshold = budget.threshold(rows.training.positive, expit(numbers), weights)
        return numbers, nearness(numbers, threshold)

    def scorer(self, rows: EvaluatedRows) -> Scorer:
        """Give the model of the label if nothing moves, else the student."""
        point = self._point(rows)
        if not np.isfinite(point.demand):
            return rows.scorers()[0]
        return StudentScorer(rows.student(*self._lesson(point, rows))[0])


@register_intervention(
    "group thresholds", settings=[RATIO, AT_LEAST], needs_group=True, shape="cross", colour="#7f8c8d"
)
class GroupThresholds(_Aimed):
    """Give every group a separate threshold, so that ratios reach their lines on validation data.

    It is `AimedScores` with known instead of predicted groups. Decisions need the group of a row.

    Parameters
    ----------
    ratio, at_least
        As for `AimedScores`.

    See Also
    --------
    fado.aim.AimedScores : The same without the group of a row.

    References
    ----------
    M. Hardt, E. Price and N. Srebro, "Equality of Opportunity in Supervised Learning", NeurIPS 2016,
    arXiv:1610.02413.
    """

    def _known(self, rows: EvaluatedRows) -> KnownRows:
        sure = self._sure(rows)[: rows.n_validation]
        return KnownRows(
            rows.scores[: rows.n_validation], (sure, sure), rows.positive, rows.groups, rows.weights
        )

    @staticmethod
    def _sure(rows: EvaluatedRows) -> Floats:
        """Give every row's group as probabilities of 0 and 1."""
        codes = rows.known_groups
        return np.eye(max(rows.n_compared, int(codes.max()) + 1))[codes]

    def _rescore(self, rows: EvaluatedRows) -> Floats:
        sure = self._sure(rows)
        return _scores_at(self._point(rows), rows.scores, (sure, sure))


def _moved(point: Point, scores: Floats, groups: tuple[Floats, Floats]) -> Floats:
    """Give log odds, moved as a point of the curve says."""
    moved = point.coefficients
    return combine_probabilities(scores, (groups,), moved.negative, moved.positive)


def _scores_at(point: Point, scores: Floats, groups: tuple[Floats, Floats]) -> Floats:
    """Score rows at a point of the curve; the untouched point leaves every bit unchanged."""
    return expit(_moved(point, scores, groups)) if np.isfinite(point.demand) else scores
