"""What removing many rows at once would do to a model, without growing a tree anew."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado.execution import ThreadExecutor, n_workers
from fado.tabular import Problem, read_problem
from fado.valuation._base import read_validation, seed_from
from fado.valuation._retraining import read_parts
from fado.valuation._validation_rows import check_metrics, measure_validation_rows, read_validation_rows
from fado.valuation.influence._effects import GrownTree, TrainingRows, initial_score, leaf_values
from fado.valuation.influence._estimator import class_factors, readable_estimator
from fado.valuation.influence._forests import Forests, validated_fold

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["forecast_problem", "forecast_removals"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]


def forecast_removals(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    validation: Any,
    parts: Any,
    performance: str = "tpr_at_fpr",
    fairness: str = "fpr_ratio",
    max_fpr: float = 0.05,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Predict what removing parts of the rows would do to a LightGBM model.

    One model is trained on all rows. For each part, the values of all leaves are computed again without its
    rows, tree by tree, while the splits stay as they are. Sums of `TreeInfluence` values predict a ratio as
    well as this does. The performance does not change in proportion to what is removed; this predicts it
    better.

    Parameters
    ----------
    estimator : LGBMClassifier or None
        The model, as `TreeInfluence` takes it.
    X, y, sensitive_features
        The rows that the model learns from.
    validation : tuple of (X, y, sensitive_features)
        Rows to measure the model on.
    parts : list of masks or of arrays of positions
        The rows to remove, one part at a time.
    performance, fairness, max_fpr
        The metrics, as in `TreeInfluence`.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts in the fit, scaled to a mean of 1.
    random_state : int, RandomState or None, default=None
        Seed of an estimator that has none of its own.
    n_jobs : int, optional
        How many parts are computed side by side; None uses every core.

    Returns
    -------
    DataFrame
        One row per part and column: ``part``, ``rows`` (how many are removed), ``column`` ("y", or the
        attribute), ``metric`` (its predicted value without them) and ``predicted`` (its predicted change).

    Examples
    --------
    >>> import numpy as np
    >>> from fado.valuation import forecast_removals
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> z = np.where(X[:, 1] > 0, "b", "a")
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=2000) > 1
    >>> half = (z[:1000] == "b") & y[:1000] & (np.arange(1000) % 2 == 0)
    >>> validation = X[1000:], y[1000:], z[1000:]
    >>> told = forecast_removals(
    ...     None, X[:1000], y[:1000], sensitive_features=z[:1000], validation=validation, parts=[half]
    ... )
    >>> bool(told.set_index("column").loc["z", "predicted"] > 0)  # fewer positives of "b" raise the ratio
    True
    """
    check_metrics(performance, fairness, max_fpr)
    problem = read_problem(X, y, sensitive_features, sample_weight=sample_weight, least_rows=2)
    if validation is None:
        raise ValueError(
            "`validation` is needed: rows (X, y, sensitive_features) that the model is measured on."
        )
    return forecast_problem(
        estimator,
        problem.with_mean_weight_one(),
        read_validation(validation),
        [rows for _, rows in read_parts(parts, problem.n_rows)],
        performance=performance,
        fairness=fairness,
        max_fpr=float(max_fpr),
        seed=seed_from(random_state),
        workers=n_workers(n_jobs),
    )


def forecast_problem(
    estimator: Any,
    problem: Problem,
    validation: Problem,
    parts: Sequence[Rows],
    *,
    performance: str,
    fairness: str,
    max_fpr: float,
    seed: int,
    workers: int,
) -> pd.DataFrame:
    """Predict what removing parts would do, as `forecast_removals`, for tables that have been read."""
    import pandas as pd

    validated = read_validation_rows(problem, validation, "forecast_removals")
    model = readable_estimator(estimator, problem.table)
    factors = class_factors(estimator, problem.labels)
    weights = problem.sample_weight
    if factors is not None:
        weights = factors if weights is None else weights * factors
    forests = Forests(problem, weights, [validated_fold(problem, validation)], workers)
    _ = list(forests.grow(model, seed))
    ((trees, rows),) = forests.read_trees()
    nothing = np.zeros(0, dtype=np.int32)
    probabilities = _computed_anew(trees, rows, [nothing, *parts], validated.n_rows, workers)
    measured = [
        measure_validation_rows(validated, own, performance, fairness, max_fpr) for own in probabilities
    ]
    table = [
        {
            "part": number,
            "rows": len(parts[number]),
            "column": column,
            "metric": own[column],
            "predicted": own[column] - measured[0][column],
        }
        for column in measured[0]
        for number, own in enumerate(measured[1:])
    ]
    return pd.DataFrame(table, columns=["part", "rows", "column", "metric", "predicted"])


class _Without:
    """The model without some rows, as far as its trees have been gone through."""

    def __init__(self, rows: TrainingRows, removed: Rows, n_validated: int) -> None:
        self._rows = rows
        self._weights = np.ones(len(rows.positive)) if rows.weights is None else rows.weights.copy()
        self._weights[removed] = 0.0
        initial = initial_score(rows.positive, self._weights) if rows.from_average else rows.initial
        self._scores = np.full(len(rows.positive), initial)
        self.validated = np.full(n_validated, initial)

    def add(self, tree: GrownTree, leaves: Rows, validated: Rows) -> None:
        """Compute the values of a tree's leaves, and move all scores by them."""
        values = leaf_values(self._rows, self._weights, self._scores, leaves, tree.penalties)
        self._scores += values[leaves]
        self.validated += values[validated]


def _computed_anew(
    trees: Sequence[GrownTree], rows: TrainingRows, parts: Sequence[Rows], n_validated: int, workers: int
) -> list[FloatArray]:
    """Give the validation rows' probabilities without each part; leaves are read once for all of them."""
    models = [_Without(rows, removed, n_validated) for removed in parts]
    for tree in trees:
        if len(tree.values) == 1:
            continue
        leaves, validated = tree.read_training(), tree.read_validation_rows()

        def add(model: _Without, read: tuple[GrownTree, Rows, Rows], stop: threading.Event) -> None:
            model.add(*read)

        for _ in ThreadExecutor(workers).run(add, models, (tree, leaves, validated)):
            pass
    return [1.0 / (1.0 + np.exp(-model.validated)) for model in models]
