"""The estimator whose decisions are aimed at ratios between groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from fado._checks import (
    MOST_ROWS,
    check_choice,
    check_classifier,
    check_count,
    check_instance,
    seed_from,
)
from fado._compat import get_tags, is_regressor
from fado._messages import warn_user
from fado._typing import Floats
from fado.aim._card import describe, with_figures, with_test_rows
from fado.aim._choose import aim_scores, aim_student, default_student
from fado.aim._folds import Folds
from fado.aim._groups import check_both_labels
from fado.aim._lines import chance_of_showing, check_confidence, read_lines
from fado.aim._weights import aim_weights
from fado.engine import weights_refused
from fado.metrics import Budget, predicted_positive
from fado.models import ChosenModel, summarize_columns
from fado.tabular import (
    MIN_GROUP_SIZE,
    Table,
    check_min_group_size,
    note_features,
    read_problem,
    warn_of_unknown,
)

WAYS = ("scores", "student", "weights")
MOST_FITS, MOST_FOLDS = 1_000, 1_000


class AimedEstimator(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Train a classifier whose decisions bring ratios between groups up to a line.

    Models of the label and of the groups are fitted on folds. From their predictions for rows that they have
    not seen, the best decisions that do not use the group follow for every line, without another fit. The
    final model needs only the features.

    Parameters
    ----------
    estimator : classifier
        The model of the label: a classifier that gives probabilities, or a pipeline that ends in one.
    ratio : str or mapping of str to float, default="fpr_ratio"
        The ratio that must reach a line: ``"fpr_ratio"``, ``"fnr_ratio"``, ``"tpr_ratio"`` or
        ``"selection_rate_ratio"``, the lowest of the groups' rates divided by the highest;
        ``"equalized_odds_ratio"`` is both ``"fpr_ratio"`` and ``"tpr_ratio"``. A mapping gives several
        ratios with their lines; all of them must be reached.
    at_least : float, default=0.8
        The line, in (0, 1], if `ratio` is a name.
    max_fpr : float, default=0.05
        The budget: the share of negatives that may be predicted positive.
    confidence : float, optional
        In (0.5, 1). If given, the lower bounds of all ratios at this confidence must reach their lines. If
        None, the ratios measured on validation data must; in the population they may then be lower.
    by : {"scores", "student", "weights"}, default="scores"
        Which kind of model is returned. ``"scores"``: the model of the label combined with that of the
        groups. ``"student"``: one regressor of the features, trained on the combined scores. ``"weights"``:
        the estimator itself, trained with sample weights that are found by a search, one fit per step; with a
        confidence of 0.9, 86 % of the simulated models that reached their line kept it in the population.
    attributes : {"crossed", "each"}, default="crossed"
        ``"crossed"``: the groups are the combinations of all attributes. ``"each"``: every attribute has
        separate groups, and the lines must hold for each attribute.
    cv : int, splitter or iterable of (train, validation), default=5
        The folds: their number, a splitter of scikit-learn, or pairs of positions of rows or masks. No row
        may be validated twice. Students and weights are validated on the last fold and trained on its
        training rows.
    student : regressor, optional
        The regressor that is trained on the scores. None means LightGBM, with the settings of `estimator`
        and three times its trees if that is LightGBM as well.
    group_estimator : classifier, optional
        The model of the groups, which sees the features and the label. None means LightGBM.
    max_fits : int, default=12
        The largest number of steps of ``by="weights"``. It has no effect otherwise.
    min_group_size : int, default=30
        Groups that have fewer rows than this and less than 1 % of the table are not compared and not moved.
        0 compares all groups.
    random_state : int, RandomState or None, default=None
        The seed of the folds and of estimators that have none.
    budget : Budget or pair of kind and limit, optional
        Another budget instead of `max_fpr`: ``("selection_rate", 0.02)``, ``("top_k", 500)`` of the
        validation rows, or ``("threshold", 0.5)``.
    pos_label : label, optional
        The positive label; None means the larger of the two.
    n_jobs : int, optional
        How many fits run in parallel; None uses every core. It does not change the result.
    progress : bool, default=False
        Whether to show how many fits are done.

    Attributes
    ----------
    reached_ : bool
        Whether all lines are reached on validation data. If not, the closest model is kept.
    reason_ : str
        If a line was not reached, or only by much worse decisions, a sentence that says why; else empty.
    threshold_ : float
        `predict` gives the positive label to rows whose score is at least this.
    metrics_ : dict of str to float
        The metrics on validation data, named as in `fado.metrics.evaluate`, with intervals.
    path_ : DataFrame
        One row per point of the trade-off, the untouched model first: ``tpr`` with its interval, the
        ``ratio`` that is lowest relative to its line with its lower bound ``low``, ``fpr``,
        ``selection_rate``, ``threshold``, ``reached``, ``chosen``, every ratio by name, and every group's
        rate and log factors.
    log_factors_ : DataFrame
        How far each compared group is moved: ``attribute``, ``group``, and the log factor of its
        ``negative`` and its ``positive`` rows; -inf where the best coefficient is negative.
    decision_scores_ : ndarray of shape (n_rows,) or None
        The scores of the training rows by models that have not seen them; NaN for rows that are in no
        validation fold. Their threshold is ``metrics_["threshold"]``. None if there are no such scores.
    group_predictability_ : float
        How much of the uncertainty about a row's group the features remove, from 0 to 1.
    sample_weight_ : ndarray of shape (n_rows,) or None
        With ``by="weights"``, the weights that the model was trained with, before they are multiplied by
        the `sample_weight` that was passed in; 0 for rows that were not used for training.
    n_fits_ : int
        How many models were fitted.
    classes_, n_features_in_, feature_names_in_ : ndarray, int, ndarray
        The two labels in ascending order; the number of features, and their names if all are text.

    See Also
    --------
    fado.find_frontier : Search for the classifier as well.
    fado.aim.trade_off : The same trade-off from a valuation, without a fit.
    fado.metrics.evaluate : Measure any model's scores.

    Notes
    -----
    With ``by="scores"`` and no `validation`, every training row is validated by models that have not seen
    it, and then the models are fitted again on all rows. The bounds allow for the difference, and
    `threshold_` moves to where the new scores are expected to select as many rows. It stays where it is if
    the models memorise rows: if they spend less than a third of the budget on rows that they have seen, or if
    weights are so unequal that the effective number of rows is less than half of them. In all other
    cases the model that was validated is the model that is returned. If `validation` is given, it alone sets
    the thresholds and bounds, and the log factors too, except those of a student. Moved scores order rows;
    they are not probabilities.

    References
    ----------
    M. Hardt, E. Price and N. Srebro, "Equality of Opportunity in Supervised Learning", NeurIPS 2016,
    arXiv:1610.02413.

    A. K. Menon and R. C. Williamson, "The cost of fairness in binary classification", FAT* 2018.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> from fado import AimedEstimator
    >>> from fado.datasets import make_account_fraud
    >>> X = make_account_fraud(6000, variant="II", random_state=0)
    >>> y, old = X.pop("fraud_bool"), X.pop("customer_age") >= 50
    >>> trees = LGBMClassifier(n_estimators=20)
    >>> model = AimedEstimator(trees, at_least=0.8, random_state=0)
    >>> model = model.fit(X, y, sensitive_features=old)
    >>> model.path_["ratio"].iloc[[0, -1]].round(1).tolist()
    [0.5, 1.0]
    >>> model.predict_proba(X).shape
    (6000, 2)
    """

    _estimator_type = "classifier"  # for tools that look for no tags
    __metadata_request__fit: ClassVar = {
        "sensitive_features": True,
        "unknown": True,
        "validation": True,
    }

    def __init__(
        self,
        estimator: Any,
        ratio: Any = "fpr_ratio",
        at_least: float = 0.8,
        max_fpr: float = 0.05,
        confidence: float | None = None,
        by: str = "scores",
        attributes: str = "crossed",
        cv: Any = 5,
        student: Any = None,
        group_estimator: Any = None,
        max_fits: int = 12,
        min_group_size: int = MIN_GROUP_SIZE,
        random_state: Any = None,
        budget: Any = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.estimator = estimator
        self.ratio = ratio
        self.at_least = at_least
        self.max_fpr = max_fpr
        self.confidence = confidence
        self.by = by
        self.attributes = attributes
        self.cv = cv
        self.student = student
        self.group_estimator = group_estimator
        self.max_fits = max_fits
        self.min_group_size = min_group_size
        self.random_state = random_state
        self.budget = budget
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        unknown: Any = None,
        validation: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the models of label and groups, and find the decisions that reach the lines.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features; the models see all of them.
        y : array-like of shape (n_rows,)
            The target, of two classes.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
            The protected attributes. Rows with a missing value are not compared and not moved. Without
            attributes the estimator is trained unchanged, with a warning.
        unknown : value or list of values, optional
            Values of the protected attributes that mean the same as a missing one, such as ``"?"`` or ``-1``.
        validation : tuple of (X, y, sensitive_features), optional
            Validation data, used instead of out-of-fold training rows. Weights may be a fourth entry.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts, in training and in rates. The estimator gets these weights unchanged;
            the models of groups get them scaled to a mean of 1.
        groups : array-like of shape (n_rows,), optional
            Rows with the same entry, such as those of one person, are in the same fold.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If a line was not reached, with the sentence of `reason_`; before the first fit, if there are too
            few rows for any model to reach it with this confidence; if groups are too small to be compared;
            if a protected attribute is unknown in some rows.
        """
        import pandas as pd

        required = self._check_settings()
        problem = read_problem(
            X,
            y,
            sensitive_features,
            unknown=unknown,
            sample_weight=sample_weight,
            groups=groups,
            pos_label=self.pos_label,
            least_rows=2,
            warn_of_columns=True,
        )
        labels = problem.binary_labels("AimedEstimator")
        if problem.sample_weight is not None:
            weighing = labels.is_positive[problem.sample_weight > 0]
            check_both_labels(weighing, f"rows with a positive weight (n_samples = {problem.n_rows} in all)")
        refused = weights_refused(self.estimator)
        if refused is not None and (sample_weight is not None or self.by == "weights"):
            raise ValueError(f'{refused}: use another estimator, or `by="scores"` without weights.')
        warn_of_unknown(problem.protected)
        store = Folds(self, problem, validation, required, seed_from(self.random_state))
        lines = store.lines
        missing = lines.missing_rows(store.validated)
        if missing:
            too_few = lines.too_few(store.validated, missing)
            warn_user(f"A confidence of {lines.confidence:g} is out of reach: {too_few}")
        if self.by == "scores":
            aimed = aim_scores(store)
        elif self.by == "student":
            student = default_student(self.estimator) if self.student is None else self.student
            aimed = aim_student(store, student)
        else:
            aimed = aim_weights(store, self.max_fits)
        point, known = aimed.point, aimed.predictability
        if aimed.reached:
            reason = lines.caveat(aimed.points[0], point, known)
        else:
            reason = lines.reason(
                point, aimed.rows, predictability=known, each_alone=aimed.each_alone, missing=missing
            )
        metrics = lines.measure(aimed.rows, aimed.scores, point.threshold) | lines.lower_ends(point)
        facts = describe(self, aimed, required, problem, getattr(y, "name", None), reason, store.n_fits)
        path, columns = lines.frame(aimed.points, aimed.chosen), summarize_columns(problem.table)
        # Attributes are set at the very end: a fit that fails keeps those of an earlier one.
        self.classes_ = np.asarray(labels.classes)
        self.scorer_, self.threshold_ = aimed.scorer, aimed.threshold
        self.reached_, self.reason_ = aimed.reached, reason
        self.metrics_, self.path_ = metrics, path
        self.log_factors_ = pd.DataFrame(
            lines.log_factors(point.coefficients), columns=["attribute", "group", "negative", "positive"]
        )
        self.decision_scores_, self.sample_weight_ = aimed.decision_scores, aimed.sample_weight
        self.group_predictability_, self.n_fits_ = known, store.n_fits
        self._labels, self._positive = labels.pair, labels.positive or 0
        self._is_sparse = problem.table.is_sparse
        # For the card, whose figures are counted when it is needed.
        self._facts, self._columns, self._is_positive = facts, columns, labels.is_positive
        self._aimed = replace(aimed, rows=replace(aimed.rows, group_probabilities=()))
        note_features(self, problem.table)
        if reason:
            warn_user(reason)
        return self

    def _check_settings(self) -> dict[str, float]:
        """Check the settings before the rows are read, and give the lines."""
        check_classifier("estimator", self.estimator)
        if self.group_estimator is not None:
            check_classifier("group_estimator", self.group_estimator)
        if self.student is not None:
            student = self.student
            check_instance("student", student)
            if not (hasattr(student, "fit") and hasattr(student, "get_params") and is_regressor(student)):
                raise TypeError(f"`student` must be a regressor, which predicts scores, got {student!r}.")
        check_choice("by", self.by, WAYS)
        check_choice("attributes", self.attributes, ("crossed", "each"))
        check_min_group_size(self.min_group_size)
        check_confidence(self.confidence)
        check_count("max_fits", self.max_fits, 1, MOST_FITS)
        if isinstance(self.cv, int | float | np.number):
            check_count("cv", self.cv, 2, MOST_FOLDS)
        Budget.read(self.budget, self.max_fpr)
        lines = read_lines(self.ratio, self.at_least)
        if self.by == "weights" and (len(lines) > 1 or self.attributes == "each"):
            raise ValueError(
                "`by` 'weights' aims at one ratio between the groups of all attributes crossed: use 'scores' "
                "or 'student' for several."
            )
        return lines

    def predict_proba(self, X: Any) -> Floats:
        """Give the scores of the two classes, in the order of `classes_`; the two of a row sum to 1.

        Parameters
        ----------
        X : table or array
            The columns that the model was trained on, in any order if they have names. No group is needed.

        Returns
        -------
        ndarray of shape (n_rows, 2)
        """
        check_is_fitted(self)
        table = Table.from_input(X)
        if table.given_names is None and table.n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {table.n_columns} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        if self._is_sparse and not table.is_sparse:
            from scipy.sparse import csr_matrix

            table = Table.from_input(csr_matrix(np.asarray(X, dtype=np.float64)))
        scores = self.scorer_.score(table)[:, 1]
        if self.scorer_.schema is not None:
            self.scorer_.schema.warn_of_lost_names(table)
        return np.column_stack([1.0 - scores, scores] if self._positive else [scores, 1.0 - scores])

    def decision_function(self, X: Any) -> Floats:
        """Give the distance of scores from `threshold_`, above 0 on the side of ``classes_[1]``."""
        above = self.predict_proba(X)[:, self._positive] - self.threshold_
        return above if self._positive else -above

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Give the positive label to rows whose score is at least `threshold_`, else the other."""
        check_is_fitted(self)
        is_positive = predicted_positive(self.predict_proba(X)[:, self._positive], self.threshold_)
        return self.classes_[np.where(is_positive, self._positive, 1 - self._positive)]

    def chance_on(self, n_rows: int) -> float:
        """Estimate how likely a test on new rows shows all ratios at or above their lines.

        A model that holds its line in the population may still fall below it on a small test set.

        Parameters
        ----------
        n_rows : int
            The number of rows of the test set.

        Returns
        -------
        float
            The probability; NaN if there are no groups to compare.
        """
        check_is_fitted(self)
        lines, aimed = self._aimed.lines, self._aimed
        share = check_count("n_rows", n_rows, 1, MOST_ROWS) / len(aimed.rows.positive)
        if not lines.limits:
            return float("nan")
        required = [limit.line for limit in lines.limits]
        return chance_of_showing(
            aimed.point.counts, required, share, seed=lines.seed, allowance=lines.allowance
        )

    def to_model(self, test: Any = None) -> ChosenModel:
        """Give the fitted model with its threshold and its card, ready to be saved.

        Parameters
        ----------
        test : tuple of (X, y, sensitive_features), optional
            An untouched test set, for the figures of this model and of the untouched model on the card.
            Weights may be a fourth entry.

        Returns
        -------
        ChosenModel
            ``save(directory)`` writes it, and `fado.load_model` reads it.
        """
        check_is_fitted(self)
        aimed = self._aimed
        facts = with_figures(self._facts, aimed, self._is_positive, self.metrics_)
        if test is not None:
            facts = with_test_rows(facts, aimed, self.attributes, test, self._labels)
        return ChosenModel(
            self.scorer_,
            classes=self._labels,
            threshold=self.threshold_,
            metrics=self.metrics_,
            facts=facts,
            sample_weight=self.sample_weight_,
            columns=self._columns,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags.multi_class = False
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.allow_nan, tags.input_tags.sparse = inner.allow_nan, inner.sparse
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
