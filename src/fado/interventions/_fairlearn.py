"""fairlearn's grid search as an intervention: for comparison, by fairlearn's own code."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal

import numpy as np

from fado._checks import check_choice, check_share
from fado.interventions._base import BaseIntervention
from fado.interventions._training_set import TrainingSet
from fado.tabular import Groups, Labels

__all__ = ["CONSTRAINTS", "FairlearnGrid"]

CONSTRAINTS = ("FalsePositiveRateParity", "DemographicParity", "TruePositiveRateParity", "EqualizedOdds")
GRID_SIZE = 31  # odd, so that the middle is the estimator left alone


class FairlearnGrid(BaseIntervention):
    """Weigh and relabel rows as one point of fairlearn's `GridSearch` does, for comparison.

    fairlearn must be installed (``pip install 'fado-ml[fairlearn]'``). `sample_weight` is refused, as
    fairlearn's search takes none.

    Parameters
    ----------
    constraint : str, default="FalsePositiveRateParity"
        What is made equal between groups, as `fairlearn.reductions` names it:
        ``"FalsePositiveRateParity"``, ``"DemographicParity"``, ``"TruePositiveRateParity"`` or
        ``"EqualizedOdds"``.
    point : float, default=0.5
        The place on a grid of 31 multipliers, from 0 (the first) to 1 (the last). For two groups, the middle
        leaves the rows as they are.

    Attributes
    ----------
    training_set_ : TrainingSet
        All rows, with the weights and the labels to learn.
    sample_weight_ : ndarray of shape (n_rows,)
        The weights. Train with ``training_set_.labels`` too: some labels are changed.

    Examples
    --------
    >>> from fado.interventions import FairlearnGrid
    >>> X, y, sex = [[0.0]] * 6, [0, 1, 1, 0, 0, 1], list("ffffmm")
    >>> grid = FairlearnGrid("DemographicParity", point=0.5).fit(X, y, sensitive_features=sex)
    >>> grid.training_set_.labels
    array([False,  True,  True, False, False,  True])
    """

    changes: ClassVar[Literal["rows", "weights"]] = "weights"

    def __init__(self, constraint: str = CONSTRAINTS[0], point: float = 0.5) -> None:
        self.constraint = constraint
        self.point = point

    def _check_settings(self) -> None:
        check_choice("constraint", self.constraint, CONSTRAINTS)
        check_share("point", self.point)

    def _choose(
        self, labels: Labels, groups: Groups, utilities: Any, sample_weight: Any, generator: Any
    ) -> TrainingSet:
        if sample_weight is not None:
            raise ValueError("fairlearn's grid search knows no weights of rows: leave them out.")
        reductions = _fairlearn()
        grid = reductions.GridSearch(_Recorder(), getattr(reductions, self.constraint)(), grid_size=GRID_SIZE)
        positive = labels.is_positive
        rows = np.arange(len(positive))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of pandas, about fairlearn's own code
            grid.fit(rows[:, None], positive.astype(int), sensitive_features=groups.codes)
        chosen = grid.predictors_[round(self.point * (len(grid.predictors_) - 1))]
        if not isinstance(chosen, _Recorder):
            raise ValueError("This point of fairlearn's grid leaves one label only to learn.")
        return TrainingSet(rows, chosen.weights, labels=chosen.learnt)

    def _learned(self, chosen: TrainingSet, *_: Any) -> dict[str, Any]:
        return {"training_set_": chosen, "sample_weight_": chosen.weights}


class _Recorder:
    """Learns nothing, and notes what it is given to learn; fairlearn copies it for every point."""

    def fit(self, X: Any, y: Any, sample_weight: Any) -> _Recorder:
        """Note labels and weights."""
        self.learnt = np.asarray(y) == 1
        self.weights = np.asarray(sample_weight, dtype=np.float64)
        return self

    def predict(self, X: Any) -> Any:
        """Predict nobody."""
        return np.zeros(len(X))


def _fairlearn() -> Any:
    try:
        import fairlearn.reductions
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "The intervention `fairlearn_grid` needs fairlearn: install it with `pip install "
            "'fado-ml[fairlearn]'`.",
            name=error.name,
        ) from error
    return fairlearn.reductions
