"""The valuator: the effect of each training row on a model's performance and fairness."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from fado._checks import check_choice, check_count
from fado._messages import insert_parameters, warn_user
from fado._progress import tracked
from fado._typing import Floats
from fado.execution import n_workers
from fado.tabular import Problem
from fado.valuation._base import BaseValuator, provenance_of, register_valuator, valuator_parameters
from fado.valuation._result import Valuation
from fado.valuation._validation_rows import (
    check_metrics,
    effect_scales,
    effect_valuation,
    read_validation_rows,
)
from fado.valuation.influence._effects import metric_slopes
from fado.valuation.influence._forests import FORMS, EffectModels, Forests

_MOST_BAGS = 1_000


@register_valuator("influence")
@insert_parameters(valuator_parameters)
@dataclass(eq=False, repr=False)
class TreeInfluence(BaseValuator):
    """Value rows by their effects on the performance and the fairness of a LightGBM model.

    A row's value is how much a metric on validation data would change per unit of the row's weight, to first
    order, through the leaves of the trees that the row shaped. Removing rows changes the metric by about
    minus the sum of their values, each times the weight of its row if there is a `sample_weight`. Weights are
    scaled to a mean of 1 first, so that the unit is the weight of an average row. Rows with a negative value
    for a protected attribute lower its ratio: they make the model less fair.

    Without `validation`, the rows are split into `n_bags` folds. Each fold is predicted by a model that
    learnt from the other folds, and the metric is measured on all these predictions together. With
    `validation`, one model learns from all rows, and the metric is measured on `validation`.

    Parameters
    ----------
    estimator : LGBMClassifier, optional
        The model; None means LightGBM's default settings. Class weights and sample weights are taken into
        account. Settings that hide which rows shaped a tree, such as bagging and GOSS, raise a ValueError.
    performance : {"tpr_at_fpr", "log_loss", "accuracy"}, default="tpr_at_fpr"
        The metric that the values of ``"y"`` are effects on: the true-positive rate at the budget, the
        negative mean log-loss, or the accuracy at a probability threshold of 0.5.
    {fairness}
    max_fpr : float, default=0.05
        The budget, in (0, 1): the share of negatives that may be predicted positive. Effects take into
        account that the threshold moves with the scores of the negative validation rows to keep this budget.
    n_bags : int, default=5
        How many folds; not used with `validation`.
    form : {"direct", "backward"}, default="direct"
        What is held fixed when effects are computed: the scores before each tree (``"direct"``), or only the
        structure of the trees (``"backward"``). Both rank rows alike; direct effects are closer in size to
        the result of retraining.
    {random_state, n_jobs, progress}
    keep_models : bool, default=False
        Whether to keep what `value` needs for new rows: the trees and sums over their leaves, but none of
        the training rows.

    Attributes
    ----------
    valuation_ : Valuation
        The values: signed effects, 0 is neutral. `counts` is the number of models that a row was used to
        train, and `standard_error` comes from the spread between these models. `label_probability` of
        ``"y"`` is the probability that the model which had not seen the row gave to its label; it is NaN with
        `validation`.
    {seed_}
    models_ : EffectModels
        What `value` uses; only with ``keep_models=True``.

    See Also
    --------
    fado.valuation.retraining_check : How well the values predict retraining.
    fado.valuation.removal_effects : What removing given rows does.
    fado.KNNShapley : Effects on a vote of nearest neighbours.
    fado.DataShapley : Effects on any classifier, by training many models.

    References
    ----------
    Z. Hammoudeh and D. Lowd (2024), "Training Data Influence Analysis and Estimation: A Survey", Machine
    Learning 113, arXiv:2212.04612.

    B. Sharchilev, Y. Ustinovskiy, P. Serdyukov and M. de Rijke (2018), "Finding Influential Training Samples
    for Gradient Boosted Decision Trees", ICML.

    Examples
    --------
    Group "b" is more often positive and has the higher false-positive rate. Its positives raise this rate, so
    they lower the ratio; its negatives and the positives of "a" raise the ratio.

    >>> import numpy as np
    >>> from fado import TreeInfluence
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 3))
    >>> group = np.where(X[:, 2] > 0, "b", "a")
    >>> y = X[:, 0] + X[:, 2] + rng.normal(size=4000) > 1
    >>> valuator = TreeInfluence(random_state=0)
    >>> valuator = valuator.fit(X, y, sensitive_features={"group": group})
    >>> effects = valuator.valuation_.values["group"]
    >>> np.sign(effects.groupby([group, y]).sum()).unstack()
       False  True
    a   -1.0   1.0
    b    1.0  -1.0
    """

    _two_classes = True

    estimator: Any = None
    _: KW_ONLY
    performance: str = "tpr_at_fpr"
    fairness: str = "fpr_ratio"
    max_fpr: float = 0.05
    n_bags: int = 5
    form: str = "direct"
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool = False
    keep_models: bool = False

    def _value(self, problem: Problem, validation: Problem | None, seed: int) -> Valuation:
        check_metrics(self.performance, self.fairness, self.max_fpr)
        check_choice("form", self.form, tuple(FORMS))
        check_count("n_bags", self.n_bags, 2, _MOST_BAGS)
        workers = n_workers(self.n_jobs)
        validated = read_validation_rows(problem, validation, type(self).__name__)
        forests = Forests(problem, self.estimator, validation, self.n_bags, seed, workers)
        learnt, left_out = zip(*forests.folds, strict=True)
        scores = np.zeros(validated.n_rows)
        grown = tracked(forests.grow(), len(learnt), what="models", show=self.progress)
        for rows, of_fold in zip(left_out, grown, strict=True):
            scores[rows] = of_fold
        if all(tree.n_leaves == 1 for forest in forests.forests for tree in forest.trees):
            warn_user(
                "The models found nothing to split on, so no row has an effect and every value is 0: use "
                "more rows or a smaller `min_child_samples`."
            )
        slopes = metric_slopes(validated, left_out, scores, self.performance, self.fairness, self.max_fpr)
        total, squares = np.zeros((2, problem.n_rows, slopes.shape[1]))
        counts, kept = np.zeros(problem.n_rows, dtype=np.int32), []
        read = tracked(
            forests.read_effects(slopes, self.form), len(learnt), what="models read", show=self.progress
        )
        for rows, (effects, model) in zip(learnt, read, strict=True):
            total[rows] += effects
            squares[rows] += effects**2
            counts[rows] += 1
            kept.append(model)
        settings = {
            "performance": self.performance,
            "fairness": self.fairness,
            "max_fpr": float(self.max_fpr),
            "form": self.form,
        }
        settings |= {"n_bags": int(self.n_bags)} if validation is None else {"validation": validated.n_rows}
        valuation = effect_valuation(
            total,
            _standard_error(total, squares, counts),
            counts,
            effect_scales([variable.name for variable in problem.variables], self.performance, self.fairness),
            provenance_of("influence", problem, seed, settings, [forests.estimator]),
            np.where(validated.positive, scores, 1.0 - scores) if validation is None else None,
        )
        if self.keep_models:
            self.models_ = EffectModels(problem, kept, forests.factors, valuation, workers)
        return valuation

    def value(
        self, X: Any, y: Any = None, sensitive_features: Any = None, *, unknown: Any = None
    ) -> Valuation:
        """Value new rows by the effect of adding them to the training rows; needs ``keep_models=True``.

        A value is the effect of adding one such row, of the mean weight of the training rows, on the same
        metrics and scale as the values of these. With `validation`, a copy of a training row has that row's
        value. Without `validation`, a training row's value is the sum over all models but the one that
        had not seen it. No model has seen a new row; its value is the mean of such sums, each of which leaves
        out another model.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The rows. Columns are matched by name, in any order. New categories count as missing.
        y : array-like of shape (n_rows,), optional
            Their labels. Without them a value is the expected effect: the mean of the effects at the two
            labels, weighted by the models' mean probabilities of these labels.
        sensitive_features, unknown : optional
            Accepted so that valuators can be exchanged. They do not change values: effects do not depend on a
            row's own group.

        Returns
        -------
        Valuation
            `standard_error` comes from the spread between the models; NaN if there is one.
            `label_probability` of ``"y"`` is the models' mean probability of the label, corrected for class
            weights; NaN without `y`.

        Raises
        ------
        ValueError
            If no models were kept, a column is missing, or `y` has a label that the models do not know.

        Examples
        --------
        >>> import numpy as np
        >>> from fado import TreeInfluence
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(4000, 3))
        >>> z = np.where(X[:, 2] > 0, "b", "a")
        >>> y = X[:, 0] + X[:, 2] + rng.normal(size=4000) > 1
        >>> rows = {"sensitive_features": z[:2000]}
        >>> rows["validation"] = X[2000:], y[2000:], z[2000:]
        >>> valuator = TreeInfluence(random_state=0, keep_models=True)
        >>> valuator = valuator.fit(X[:2000], y[:2000], **rows)
        >>> again = valuator.value(X[:2000], y[:2000])  # copies of the rows
        >>> float(abs(again["z"] - valuator.valuation_["z"]).max().round(6))
        0.0
        """
        check_is_fitted(self, "valuation_")
        models: EffectModels | None = getattr(self, "models_", None)
        if models is None:
            raise ValueError(
                "`TreeInfluence` has kept no models for new rows: set `keep_models=True` and call `fit` "
                "again."
            )
        return models.value(X, y, sensitive_features, unknown=unknown)


def _standard_error(total: Floats, squares: Floats, counts: npt.NDArray[np.int32]) -> Floats:
    """Return the standard error of sums over models, from the spread between them; NaN for one model."""
    n = counts[:, np.newaxis].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.maximum(squares - total**2 / n, 0.0) / (n - 1.0)
        return np.where(n > 1, np.sqrt(n * spread), np.nan)
