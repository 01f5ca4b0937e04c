"""An estimator whose weights are aimed at a ratio between groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from fado._compat import get_tags
from fado._messages import warn_user
from fado._validation import check_choice, check_count, check_share
from fado.aim._aiming import Aim
from fado.aim._facts import tell_facts
from fado.aim._settings import check_confidence, check_folds, check_line, check_within, two_classes
from fado.aim._training import check_estimator_fits
from fado.engine import detach
from fado.execution import n_workers
from fado.interventions import minmax, row_utilities, value_rows
from fado.metrics import RATIO_NAMES, Budget
from fado.models import ChosenModel
from fado.tabular import (
    MIN_GROUP_SIZE,
    Problem,
    Table,
    check_min_group_size,
    note_features,
    read_problem,
    warn_of_missing,
)
from fado.valuation import read_judge, seed_from

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AimedEstimator"]

FloatArray = npt.NDArray[np.float64]

MOST_FITS = 1_000


class AimedEstimator(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Train a classifier so that a ratio between groups reaches a line, at the least loss of performance.

    Rows are weighed by their label and by how likely they belong to each group. Each fit changes the strength
    of every group's weights, until the ratio on held-out rows reaches the line; further fits then go back
    towards the line, as weaker weights cost less performance. The model needs no group to decide. If the
    model without weights reaches the line, it is kept as it is.

    Parameters
    ----------
    estimator : classifier
        What is trained: one that takes `sample_weight` and gives probabilities, or a pipeline that ends in
        one.
    ratio : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}, default="fpr_ratio"
        The ratio: the lowest of the groups' rates over the highest.
    at_least : float, default=0.8
        The line, in (0, 1].
    max_fpr : float, default=0.05
        The budget: the share of negatives that may be predicted positive.
    confidence : float, optional
        In (0.5, 1). If given, the ratio's lower bound at this confidence must reach the line; if None, the
        ratio as it is measured must.
    max_fits : int, default=12
        The most fits that the search may take. The models of the groups and the last fit on all rows do not
        count. With `cv` every fit trains one model per fold.
    utility : LinearUtility, DifferenceUtility, CobbDouglasUtility or function of a valuation, optional
        If given, every weight is multiplied by ``floor + (1 - floor) * minmax(utility)`` of the row.
    floor : float, default=0.3
        The lowest that this factor can be, in [0, 1]. It has no effect without `utility`.
    validation_fraction : float, default=0.25
        The share of rows that is held out to judge by, in (0, 1). It has no effect with `judge` or `cv`.
    cv : int, splitter or iterable of (train, validation), optional
        Instead of holding out rows, judge every row by a model that was trained on the other folds. Useful
        where rows are few. An int is the number of folds, at least 2; a splitter is one of scikit-learn's,
        such as ``KFold(3)``; pairs hold positions of rows, or masks over all of them. No row may be
        validated twice.
    min_group_size : int, default=30
        Groups of fewer rows that are also less than 1 % of the table, among the rows to learn from or among
        those to judge by, are left out of the ratio, and their rows keep their weight. 0 compares all.
    random_state : int, RandomState or None, default=None
        The seed of the split, of the models of the groups, and of an estimator that has no seed.
    budget : Budget or pair of kind and limit, optional
        Another budget instead of `max_fpr`: ``("selection_rate", 0.02)``, ``("top_k", 500)`` of the judged
        rows, or ``("threshold", 0.5)``.
    pos_label : label, optional
        The positive label; None is the larger of the two.
    n_jobs : int, optional
        How many fits run side by side, where there are several; None uses every core. It changes no result.

    Attributes
    ----------
    reached_ : bool
        Whether the line was reached on the judged rows. If not, the model that came closest is kept.
    why_ : str
        If the line was not reached, a sentence that says why; else empty.
    threshold_ : float
        `predict` gives the positive label to rows whose probability is at least this.
    metrics_ : dict of str to float
        The metrics of the best fit on the judged rows, named as `fado.metrics.evaluate` names them, with
        intervals.
    sample_weight_ : ndarray of shape (n_rows,)
        The weights that the final model was trained with, before they are multiplied by a `sample_weight`
        that was passed in.
    path_ : DataFrame
        One row per fit, the model without weights first: ``strength`` (the highest ``strength[group]`` less
        the lowest), ``tpr``, ``ratio`` with its interval ``low`` to ``high``, ``threshold``, ``reached``,
        and ``strength[group]`` of each compared group.
    told_ : float or None
        If the line was not reached: how well the features tell rows' groups, from 0 (no better than the
        groups' shares; it may be a little below) to 1 (for sure). None if the line was reached, or fewer
        than two groups are compared.
    classes_ : ndarray
        The two labels in ascending order, as scikit-learn needs them.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if all are text.

    Notes
    -----
    Without `judge` the final model is trained once more on all rows, with the strengths of the best fit. Its
    threshold and its metrics are those of the best fit, which was trained on fewer rows. With `judge` the
    model of the best fit is the final one. The model was chosen by the judged rows, so their metrics flatter
    it a little: keep test rows apart.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> from fado import AimedEstimator
    >>> from fado.datasets import make_account_fraud
    >>> X = make_account_fraud(6000, random_state=0)
    >>> y, old = X.pop("fraud_bool"), X.pop("customer_age") >= 50
    >>> model = AimedEstimator(LGBMClassifier(n_estimators=20), at_least=0.8, random_state=0)
    >>> model.fit(X, y, sensitive_features=old).reached_
    True
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    _estimator_type = "classifier"  # for tools that look for no tags
    __metadata_request__fit: ClassVar = {"sensitive_features": True, "valuation": True, "judge": True}
    reached_: bool
    why_: str
    threshold_: float
    metrics_: dict[str, float]
    sample_weight_: FloatArray
    path_: pd.DataFrame
    told_: float | None
    classes_: npt.NDArray[Any]

    def __init__(
        self,
        estimator: Any,
        ratio: str = "fpr_ratio",
        at_least: float = 0.8,
        max_fpr: float = 0.05,
        confidence: float | None = None,
        max_fits: int = 12,
        utility: Any = None,
        floor: float = 0.3,
        validation_fraction: float = 0.25,
        cv: Any = None,
        min_group_size: int = MIN_GROUP_SIZE,
        random_state: Any = None,
        budget: Any = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.ratio = ratio
        self.at_least = at_least
        self.max_fpr = max_fpr
        self.confidence = confidence
        self.max_fits = max_fits
        self.utility = utility
        self.floor = floor
        self.validation_fraction = validation_fraction
        self.cv = cv
        self.min_group_size = min_group_size
        self.random_state = random_state
        self.budget = budget
        self.pos_label = pos_label
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        judge: Any = None,
        valuation: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Train, judge and change the weights until the ratio reaches the line.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features, all of which the estimator sees.
        y : array-like of shape (n_rows,)
            The target, of two classes.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
            The protected attributes; the groups are the combinations of several. Without any the estimator is
            trained as it is, with a warning.
        judge : tuple of (X, y, sensitive_features), optional
            Rows to judge by, instead of some of the training rows that are held out.
        valuation : Valuation, optional
            The values of these rows, for a `utility`. If None and there is a `utility`, `OutOfBagEntropy`
            values the rows.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts, in training and in the rates of held-out rows. The estimator gets these
            weights, times those of `sample_weight_`, as they are; the models of groups get them scaled to a
            mean of 1.
        groups : array-like of shape (n_rows,), optional
            Rows of the same entry, such as those of one person, are held out together.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If the line was not reached, with the sentence of `why_`; if groups are small and so left out; if
            a protected attribute is missing in some rows.
        """
        aim = self._aim()
        problem = read_problem(
            X,
            y,
            sensitive_features,
            sample_weight=sample_weight,
            groups=groups,
            pos_label=self.pos_label,
            least_rows=2,
        )
        labels = two_classes(problem)
        warn_of_missing(problem.protected)
        set_apart = None if judge is None else read_judge(judge)
        if set_apart is not None and self.cv is not None:
            warn_user("`cv` has no effect with `judge`, whose rows decide alone: leave one of them out.")
        if valuation is not None and self.utility is None:
            warn_user("`valuation` has no effect without a `utility`: set one, or leave it out.")
        factor = self._utility_factor(problem, valuation, X, y, sensitive_features, sample_weight, groups)
        aimed = aim.run(self.estimator, problem, set_apart, factor)
        path, positive = aimed.path, labels.positive or 0
        learnt = {
            "scorer_": detach(aimed.model),
            "_learnt_sparse": problem.table.is_sparse,
            "classes_": np.asarray(labels.classes),
            "_positive": positive,
            "reached_": path.reached,
            "why_": "" if path.reached else path.why_missed(aimed.judged, aimed.told),
            "threshold_": path.metrics[path.best]["threshold"],
            "metrics_": path.metrics[path.best],
            "sample_weight_": aimed.weights,
            "path_": path.frame(aim.ratio, aimed.judged.compared),
            "told_": aimed.told,
            "_facts": tell_facts(aim, self.estimator, problem, aimed, getattr(y, "name", None)),
        }
        # Nothing is noted before all is known: a fit that fails leaves what an earlier one has learnt.
        self.__dict__.update(learnt)
        note_features(self, problem.table)
        if not path.reached:
            warn_user(self.why_)
        return self

    def _aim(self) -> Aim:
        """Check the settings, and gather them."""
        check_estimator_fits(self.estimator)
        check_choice("ratio", self.ratio, RATIO_NAMES)
        check_min_group_size(self.min_group_size)
        return Aim(
            ratio=self.ratio,
            at_least=check_line(self.at_least),
            budget=Budget.read(self.budget, self.max_fpr),
            confidence=check_confidence(self.confidence),
            max_fits=check_count("max_fits", self.max_fits, 1, MOST_FITS),
            validation_fraction=check_within("validation_fraction", self.validation_fraction, 0, 1),
            cv=check_folds(self.cv),
            min_group_size=self.min_group_size,
            seed=seed_from(self.random_state),
            workers=n_workers(self.n_jobs),
        )

    def _utility_factor(
        self, problem: Problem, valuation: Any, X: Any, y: Any, z: Any, sample_weight: Any, groups: Any
    ) -> FloatArray | None:
        """Give what a mild utility makes of the rows' weights; None without one."""
        floor = check_share("floor", self.floor)
        if self.utility is None:
            return None
        if valuation is None:
            given = {
                "X": X,
                "y": y,
                "sensitive_features": z,
                "sample_weight": sample_weight,
                "groups": groups,
            }
            valuation = value_rows(None, problem, given, self.random_state)
        utilities = minmax(row_utilities(self.utility, valuation, problem))
        return floor + (1 - floor) * utilities

    def predict_proba(self, X: Any) -> FloatArray:
        """Give the probabilities of the two classes, in the order of `classes_`.

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
        if self._learnt_sparse and not table.is_sparse:
            from scipy.sparse import csr_matrix

            table = Table.from_input(csr_matrix(np.asarray(X, dtype=np.float64)))
        scores = self.scorer_.score(table)
        if self.scorer_.schema is not None:
            self.scorer_.schema.warn_of_lost_names(table)
        return np.column_stack([1.0 - scores, scores] if self._positive else [scores, 1.0 - scores])

    def decision_function(self, X: Any) -> FloatArray:
        """Give how far rows' probabilities are from `threshold_`, above 0 on the side of ``classes_[1]``."""
        above = self.predict_proba(X)[:, self._positive] - self.threshold_
        return above if self._positive else -above

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Give the positive label to rows whose probability is at least `threshold_`, else the other."""
        check_is_fitted(self)
        is_positive = self.predict_proba(X)[:, self._positive] >= self.threshold_
        return self.classes_[np.where(is_positive, self._positive, 1 - self._positive)]

    def to_model(self) -> ChosenModel:
        """Give the fitted model with its threshold and its card, to be saved.

        Returns
        -------
        ChosenModel
            ``save(directory)`` writes it, and `fado.load_model` reads it.
        """
        check_is_fitted(self)
        return ChosenModel(
            self.scorer_,
            classes=(self.classes_.tolist()[1 - self._positive], self.classes_.tolist()[self._positive]),
            threshold=self.threshold_,
            metrics=self.metrics_,
            facts=self._facts,
            sample_weight=self.sample_weight_,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags.multi_class = False
        own = get_tags(self.estimator).input_tags
        tags.input_tags.allow_nan, tags.input_tags.sparse = own.allow_nan, own.sparse
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
