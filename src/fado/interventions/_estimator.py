"""An estimator that is trained with a reweigher's weights, and fairlearn's grid search as a reweigher."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from operator import attrgetter
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fado._checks import check_choice, check_instance, check_share
from fado._compat import get_tags
from fado._messages import insert_parameters
from fado.engine import explaining_missing
from fado.interventions._base import REQUESTS, BaseIntervention, TrainingSet
from fado.tabular import Groups, Labels, labels_of, target_column, weights_of

CONSTRAINTS = ("FalsePositiveRateParity", "DemographicParity", "TruePositiveRateParity", "EqualizedOdds")
_GRID_SIZE = 31  # odd, so that the middle is the estimator left alone


def _if_estimator_has(method: str) -> Callable[[Any], Any]:
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), method))


def _forwarded(method: str, text: str) -> Any:
    """Return a method that forwards to the fitted estimator, if that has it."""

    def forward(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, method)(X)

    forward.__name__, forward.__doc__ = method, text
    return _if_estimator_has(method)(forward)


class ReweighedEstimator(MetaEstimatorMixin, BaseEstimator):
    """Train an estimator with the weights of a reweigher, and with its labels if it changes any.

    Predictions, classes, scores and tags are those of the estimator.

    Parameters
    ----------
    estimator : estimator
        The estimator to train; its `fit` must accept `sample_weight`.
    reweigher : Reweigher, UtilityAwareReweigher or FairlearnGrid
        Computes the weights. `FairlearnGrid` also changes labels, which are then used for training. Estimator
        and reweigher are cloned before they are fitted.

    Attributes
    ----------
    estimator_ : estimator
        The trained clone.
    reweigher_ : reweigher
        The fitted clone. Its `sample_weight_` are the weights, before they are multiplied by a
        `sample_weight` that was passed in.
    classes_, n_features_in_, feature_names_in_
        Those of `estimator_`, if it has them.

    Notes
    -----
    `sensitive_features`, `unknown` and `valuation` are requested in scikit-learn's metadata routing. Where
    routing is switched on, a search or a pipeline passes them on. Cross-validation takes the rows of each
    fold from a Series, a DataFrame, an array or a `Valuation`, but not from a dict. Names of columns of X
    always work.

    See Also
    --------
    fado.Reweigher : Weights for equal positive rates.
    fado.UtilityAwareReweigher : Weights from utilities.

    References
    ----------
    F. Kamiran and T. Calders, "Data Preprocessing Techniques for Classification without Discrimination",
    Knowledge and Information Systems 33, 2012.

    J. Pombal, P. Saleiro, M. A. T. Figueiredo and P. Bizarro, "Fairness-Aware Data Valuation for Supervised
    Learning", 2023, arXiv:2303.16963.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fado import ReweighedEstimator, Reweigher
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> sex = rng.choice(["f", "m"], size=500)
    >>> y = X[:, 0] + (sex == "m") + rng.normal(size=500) > 0.5
    >>> model = ReweighedEstimator(LogisticRegression(), Reweigher())
    >>> model.fit(X, y, sensitive_features=sex).predict_proba(X[:3]).round(2)
    array([[0.43, 0.57],
           [0.26, 0.74],
           [0.67, 0.33]])
    """

    __metadata_request__fit: ClassVar = REQUESTS

    def __init__(self, estimator: Any, reweigher: Any) -> None:
        self.estimator = estimator
        self.reweigher = reweigher

    @insert_parameters(BaseIntervention.fit)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        unknown: Any = None,
        valuation: Any = None,
        sample_weight: Any = None,
        **fit_params: Any,
    ) -> ReweighedEstimator:
        """Reweigh the rows and train the estimator.

        Parameters
        ----------
        X : array, sparse matrix, or table that the estimator takes
            The features.
        {y, sensitive_features, unknown, valuation}
        sample_weight : array-like of shape (n_rows,), optional
            The estimator is trained with these weights times the reweigher's. The reweigher itself counts
            rows by them only after ``reweigher.set_fit_request(sample_weight=True)``.
        **fit_params
            Passed to the estimator's `fit`; if metadata routing is switched on, those that it requests.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the estimator's `fit` does not accept `sample_weight`, or the product of the weights is zero in
            every row or too large for a float.
        """
        check_instance("estimator", self.estimator)
        check_instance("reweigher", self.reweigher)
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"{type(self.estimator).__name__}.fit takes no `sample_weight`, so it cannot be "
                "reweighed: use another estimator; of a pipeline, wrap the last step."
            )
        if get_config()["enable_metadata_routing"]:
            fit_params = process_routing(self, "fit", **fit_params).estimator.fit
        to_reweigher = {"sensitive_features": sensitive_features, "valuation": valuation}
        if unknown is not None:
            to_reweigher["unknown"] = unknown
        requests = get_routing_for_object(self.reweigher).fit.requests
        if sample_weight is not None and requests.get("sample_weight") is True:
            to_reweigher["sample_weight"] = sample_weight
        reweigher = clone(self.reweigher).fit(X, y, **to_reweigher)
        weights = reweigher.sample_weight_
        incoming = weights_of(sample_weight, len(weights))
        if incoming is not None:
            with np.errstate(over="ignore"):
                weights = weights * incoming
            if not np.isfinite(weights).all() or not weights.any():
                raise ValueError(
                    "`sample_weight` times the reweigher's weights is zero in every row, or too large for a "
                    "float."
                )
        changed = getattr(getattr(reweigher, "training_set_", None), "labels", None)
        if changed is not None:
            labels = labels_of(target_column(y, len(changed)), getattr(reweigher, "pos_label", None))
            y = np.array(labels.pair)[changed.astype(int)]  # there are two labels, or none could be changed
        with explaining_missing(self.estimator, X):
            estimator = clone(self.estimator).fit(X, y, sample_weight=weights, **fit_params)
        self.__dict__.update(estimator_=estimator, reweigher_=reweigher)
        return self

    predict = _forwarded("predict", "Predict labels or numbers, as the estimator does.")
    predict_proba = _forwarded("predict_proba", "Predict the classes' probabilities, as the estimator does.")
    predict_log_proba = _forwarded(
        "predict_log_proba", "Predict the logarithms of the classes' probabilities, as the estimator does."
    )
    decision_function = _forwarded("decision_function", "Score rows, as the estimator does.")
    classes_ = property(attrgetter("estimator_.classes_"), doc="The estimator's classes.")
    n_features_in_ = property(
        attrgetter("estimator_.n_features_in_"), doc="Number of features that the estimator was trained on."
    )
    feature_names_in_ = property(
        attrgetter("estimator_.feature_names_in_"), doc="Names of the features that it was trained on."
    )

    @_if_estimator_has("score")
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score predictions with the estimator's `score`; the reweigher's weights are not used."""
        check_is_fitted(self)
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.estimator_.score(X, y, **weighted)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata that this estimator and the wrapped one request."""
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=to_fit)

    def __sklearn_tags__(self) -> Any:
        tags = deepcopy(get_tags(self.estimator))
        tags.target_tags.multi_output = False  # a reweigher needs one label per row
        tags.target_tags.single_output = True
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        return tags


class FairlearnGrid(BaseIntervention):
    """Weigh and relabel rows as one point of fairlearn's `GridSearch` does, for comparison.

    fairlearn must be installed (``pip install 'fado-ml[fairlearn]'``). `sample_weight` is refused, because
    fairlearn's search does not support it.

    Parameters
    ----------
    constraint : str, default="FalsePositiveRateParity"
        What is made equal between groups, as `fairlearn.reductions` names it:
        ``"FalsePositiveRateParity"``, ``"DemographicParity"``, ``"TruePositiveRateParity"`` or
        ``"EqualizedOdds"``.
    point : float, default=0.5
        The position on a grid of 31 multipliers, from 0 (the first) to 1 (the last). For two groups, the
        middle leaves the rows as they are.

    Attributes
    ----------
    training_set_ : TrainingSet
        All rows, with the weights and the labels to learn.
    sample_weight_ : ndarray of shape (n_rows,)
        The weights. Train with ``training_set_.labels`` too: some labels are changed.

    See Also
    --------
    fado.Reweigher : Weights for equal positive rates, without changed labels.

    References
    ----------
    A. Agarwal, A. Beygelzimer, M. Dudik, J. Langford and H. Wallach, "A Reductions Approach to Fair
    Classification", ICML 2018, arXiv:1803.02453.

    Examples
    --------
    >>> from fado.interventions import FairlearnGrid
    >>> X, y, sex = [[0.0]] * 6, [0, 1, 1, 0, 0, 1], list("ffffmm")
    >>> grid = FairlearnGrid("DemographicParity", point=0.5)
    >>> grid.fit(X, y, sensitive_features=sex).training_set_.labels
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
            raise ValueError("fairlearn's grid search does not support `sample_weight`: leave it out.")
        try:
            import fairlearn.reductions as reductions
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "The intervention `fairlearn_grid` needs fairlearn: install it with `pip install "
                "'fado-ml[fairlearn]'`.",
                name=error.name,
            ) from error
        grid = reductions.GridSearch(
            _Recorder(), getattr(reductions, self.constraint)(), grid_size=_GRID_SIZE
        )
        positive = labels.is_positive
        known = np.flatnonzero(groups.codes != groups.unknown)  # the other rows stay as they are
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of pandas, about fairlearn's own code
            grid.fit(known[:, None], positive[known].astype(int), sensitive_features=groups.codes[known])
        chosen = grid.predictors_[round(self.point * (len(grid.predictors_) - 1))]
        if not isinstance(chosen, _Recorder):
            raise ValueError("This point of fairlearn's grid leaves only one label: choose another `point`.")
        weights, learnt = np.ones(len(positive)), positive.copy()
        weights[known], learnt[known] = chosen.weights, chosen.learnt
        return TrainingSet(np.arange(len(positive)), weights, labels=learnt)


class _Recorder:
    """Learns nothing, and records its training data; fairlearn copies it for every point."""

    def fit(self, X: Any, y: Any, sample_weight: Any) -> _Recorder:
        """Record labels and weights."""
        self.learnt = np.asarray(y) == 1
        self.weights = np.asarray(sample_weight, dtype=np.float64)
        return self

    def predict(self, X: Any) -> Any:
        """Predict every row negative."""
        return np.zeros(len(X))
