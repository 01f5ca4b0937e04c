"""Compare models: a scorer for scikit-learn's searches, the Pareto frontier and the area it dominates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fado._checks import check_choice, check_share
from fado._messages import closest_names, insert_parameters, list_names, warn_user
from fado._typing import Bools, Floats, Integers
from fado.metrics._evaluate import evaluate, measure
from fado.metrics._inputs import MIN_GROUP_SIZE, as_scores, compared_groups, encode_target, read_groups
from fado.metrics._rates import RATIO_NAMES
from fado.metrics._threshold import Budget

if TYPE_CHECKING:
    from fado.tabular import Groups

_MISS = -1.0  # what a ratio just below the line scores
_UNDEFINED = -2.0  # no ratio is further below any line
_UNCHANGED = "$UNCHANGED$"  # as scikit-learn calls it, which is imported by what needs it


@insert_parameters(evaluate)
def aim_scorer(
    ratio: str = "fpr_ratio",
    at_least: float = 0.8,
    *,
    max_fpr: float = 0.05,
    budget: Budget | Sequence[Any] | None = None,
    min_group_size: int = MIN_GROUP_SIZE,
    pos_label: Any = None,
    sensitive_features: Any = None,
    unknown: Any = None,
) -> AimScorer:
    """Return a scorer that prefers the most true positives among models whose ratio reaches a line.

    Pass it as ``scoring`` to ``GridSearchCV``, ``cross_val_score`` and the like. On each fold the threshold
    is set by the budget. A model whose ratio reaches the line scores its true-positive rate, from 0 to 1. A
    model that misses the line scores ``ratio - at_least - 1``, from -2 to -1: a closer miss is better, and
    every miss is worse than every model that reaches the line. An undefined ratio scores -2.

    Parameters
    ----------
    ratio : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}, default="fpr_ratio"
        The ratio between groups that must reach the line.
    at_least : float, default=0.8
        The line, in [0, 1].
    {max_fpr}
    budget : Budget or pair of kind and limit, default=None
        What sets the threshold instead of ``max_fpr``; see :class:`Budget`. The limit of ``"top_k"`` is a
        number of rows of one fold. None is ``("fpr", max_fpr)``.
    {min_group_size, pos_label}
    sensitive_features : str, list of str, Series or DataFrame, default=None
        The protected attributes, if ``fit`` of the search passes none: names of columns of X, or values with
        the index of a pandas X, by which they are looked up.
    {unknown}

    Returns
    -------
    AimScorer
        A function of a fitted estimator, X, y and the keywords ``sensitive_features``, ``unknown`` and
        ``sample_weight``.
        If scikit-learn's metadata routing is switched on, it requests ``sensitive_features`` and ``unknown``
        without ``set_score_request``.

    Notes
    -----
    A search averages over folds. With k folds each miss lowers the mean by more than 1 / k. So a model that
    misses the line in one fold of five can only win against one that never does if its true-positive rate in
    the other folds is at least 25 points higher. Ratios of small folds are noisy: use few and large folds.

    See Also
    --------
    fado.AimedEstimator : Reaches a line without a search over models.
    fado.metrics.evaluate : The metrics that the scorer uses.

    Examples
    --------
    The more this model is regularised, the less it uses the feature that identifies the groups.

    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from fado.metrics import aim_scorer
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 4000)
    >>> y = rng.random(4000) < 0.2 + 0.1 * group
    >>> X = pd.DataFrame({"merit": rng.normal(size=4000) + 1.5 * y, "group": group})
    >>> scorer = aim_scorer(at_least=0.6, max_fpr=0.1, sensitive_features="group")
    >>> settings = {"C": [1e-4, 1.0]}
    >>> search = GridSearchCV(
    ...     LogisticRegression(), settings, scoring=scorer, cv=2
    ... )
    >>> search.fit(X, y).best_params_
    {'C': 0.0001}
    """
    check_choice("ratio", ratio, RATIO_NAMES)
    if isinstance(sensitive_features, np.ndarray):
        raise TypeError(
            "`sensitive_features` of a scorer must be names of columns of X, or a Series or DataFrame with "
            "the index of X, got an array, whose rows cannot be found again in a fold."
        )
    return AimScorer(
        ratio=ratio,
        at_least=check_share("at_least", at_least),
        budget=Budget.read(budget, max_fpr),
        min_group_size=min_group_size,
        pos_label=pos_label,
        sensitive_features=sensitive_features,
        unknown=unknown,
    )


@dataclass(eq=False)
class AimScorer:
    """What :func:`aim_scorer` returns; see there for its parameters."""

    ratio: str
    at_least: float
    budget: Budget
    min_group_size: int
    pos_label: Any
    sensitive_features: Any = field(repr=False)
    unknown: Any = field(default=None, repr=False)
    _requests: dict[str, bool | str | None] = field(
        default_factory=lambda: {"sensitive_features": True, "unknown": True, "sample_weight": None},
        init=False,
        repr=False,
    )

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y_true: Any,
        *,
        sensitive_features: Any = None,
        unknown: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Return the score of a fitted model on the rows of a fold."""
        from fado.tabular import weights_of

        target = encode_target(y_true, self.pos_label)
        n_rows = len(target.codes)
        if sensitive_features is None:
            sensitive_features = _attributes_in(X, self.sensitive_features)
        groups = read_groups(sensitive_features, n_rows, self.unknown if unknown is None else unknown)
        metrics, _ = measure(
            target.is_positive,
            as_scores(_scores_of(estimator, X, target.pair[1]), n_rows),
            groups.codes,
            groups.names,
            sample_weight=weights_of(sample_weight, n_rows),
            left_out=_left_out(groups, self.min_group_size),
            budget=self.budget,
        )
        ratio = metrics[self.ratio]
        if math.isnan(ratio):
            return _UNDEFINED
        return metrics["tpr"] if ratio >= self.at_least else ratio - self.at_least + _MISS

    def set_score_request(
        self,
        *,
        sensitive_features: bool | str | None = _UNCHANGED,
        unknown: bool | str | None = _UNCHANGED,
        sample_weight: bool | str | None = _UNCHANGED,
    ) -> AimScorer:
        """Set which metadata the scorer requests, as in scikit-learn.

        Parameters
        ----------
        sensitive_features, unknown, sample_weight : bool, str or None
            True requests it, False does not, None raises an error if it is passed, and text is the name under
            which it is passed. By default ``sensitive_features`` and ``unknown`` are requested.
        """
        requests = {
            "sensitive_features": sensitive_features,
            "unknown": unknown,
            "sample_weight": sample_weight,
        }
        self._requests |= {name: value for name, value in requests.items() if value != _UNCHANGED}
        return self

    def get_metadata_routing(self) -> Any:
        """Return which metadata the scorer requests."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=type(self).__name__)
        for name, value in self._requests.items():
            request.score.add_request(param=name, alias=value)
        return request

    def _accept_sample_weight(self) -> bool:
        """Accept weights where scikit-learn does not route metadata."""
        return True


def _attributes_in(X: Any, sensitive_features: Any) -> Any:
    """Return the protected attributes of the rows of a fold."""
    if sensitive_features is None:
        raise ValueError(
            "The scorer got no `sensitive_features`: pass them to `fit` with metadata routing switched on "
            "(`sklearn.set_config(enable_metadata_routing=True)`), or name columns of X in "
            "`aim_scorer(..., sensitive_features='sex')`."
        )
    if hasattr(sensitive_features, "loc"):
        return _by_index(X, sensitive_features)
    names = list(sensitive_features) if isinstance(sensitive_features, list | tuple) else [sensitive_features]
    columns = list(getattr(X, "columns", ()))
    if not columns:
        raise TypeError(
            f"`sensitive_features` names {list_names([repr(name) for name in names])}, and X has no named "
            f"columns, got {type(X).__name__}; pass X as a DataFrame."
        )
    for name in names:
        if columns.count(name) != 1:
            known = [str(column) for column in columns]
            number = "more than one column" if name in columns else "no column"
            raise ValueError(
                f"`sensitive_features` names {name!r}, and {number} of X is called so"
                f"{closest_names(str(name), known)}"
            )
    return X[names]


def _by_index(X: Any, values: Any) -> Any:
    """Look up values by the index of a pandas X."""
    if not hasattr(X, "loc"):
        raise TypeError(
            "`sensitive_features` with an index can only be looked up for a pandas X, "
            f"got {type(X).__name__}; name columns of X, or pass X as a DataFrame."
        )
    if not values.index.is_unique:
        again = values.index[values.index.duplicated()][0]
        raise ValueError(
            f"The index of `sensitive_features` must be unique, got {again!r} more than once; "
            "reset it, and that of X with it."
        )
    known = X.index.isin(values.index)
    if not known.all():
        raise ValueError(
            f"`sensitive_features` must have the index of X, and lacks {(~known).sum()} of its rows, "
            f"such as {X.index[~known][0]!r}."
        )
    return values.loc[X.index]


def _scores_of(estimator: Any, X: Any, pos_label: Any) -> NDArray[Any]:
    """Return a classifier's scores for one of its two labels."""
    classes = list(getattr(estimator, "classes_", ()))
    if len(classes) != 2 or pos_label not in classes:
        raise ValueError(
            f"The scorer needs a fitted classifier of two labels, with {pos_label!r} among them, "
            f"got {type(estimator).__name__} of {list_names([repr(label) for label in classes]) or 'none'}."
        )
    at = classes.index(pos_label)
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X))[:, at]
    if hasattr(estimator, "decision_function"):
        decisions = np.asarray(estimator.decision_function(X))
        return decisions if at == 1 else -decisions
    raise TypeError(
        "The scorer needs `predict_proba` or `decision_function`, "
        f"and {type(estimator).__name__} has neither."
    )


def _left_out(groups: Groups, min_group_size: int) -> NDArray[np.bool_]:
    """Return which groups are left out; the warning is the same for every fold, so it is shown once."""
    compared = compared_groups(groups, min_group_size, warn=False)
    reasons = zip(groups.names, groups.reasons(min_group_size), strict=True)
    if small := sorted(name for name, reason in reasons if reason == "small"):
        warn_user(
            f"Group {list_names(small)}, with fewer than {min_group_size} rows and less than 1 % of a fold, "
            f"{'is' if len(small) == 1 else 'are'} left out of the ratio; `min_group_size=0` compares "
            "all groups."
        )
    return ~compared


def best_first(tpr: Floats, closeness: Floats, reached: Bools, *, keep_first: bool = False) -> Integers:
    """Order models: those that reach a minimum ratio by true-positive rate, then the others by closeness.

    Ties in the rate are broken by the closeness, ties in closeness by the rate, then by the earlier model.

    Parameters
    ----------
    tpr, closeness : ndarray of shape (n_models,)
        The true-positive rate of every model, and its ratio relative to the minimum: higher is closer.
    reached : ndarray of bool, of shape (n_models,)
        Which models reach the minimum.
    keep_first : bool, default=False
        Whether the first model, which nothing was done to, is the best if it reaches the minimum, and if no
        model comes closer.

    Returns
    -------
    ndarray of int, of shape (n_models,)
        Positions, that of the best model first.

    Examples
    --------
    >>> tpr, closeness = np.array([0.7, 0.8, 0.7, 0.9]), np.array([1.0, 0.9, 1.2, 0.95])
    >>> best_first(tpr, closeness, closeness >= 1)
    array([2, 0, 3, 1])
    >>> best_first(tpr, closeness, closeness >= 1, keep_first=True)
    array([0, 2, 3, 1])
    """
    first, second = np.where(reached, tpr, closeness), np.where(reached, closeness, tpr)
    kept = keep_first and (reached[0] or not (reached | (closeness > closeness[0])).any())
    return np.lexsort([-second, -first, ~reached, np.arange(len(tpr)) >= kept])


def pareto_frontier(points: Any) -> Bools:
    """Return which points no other point dominates.

    A point dominates another if it is at least as high in every objective and higher in at least one. Equal
    points do not dominate each other: if one of them is on the frontier, all are. A point with a NaN is never
    on the frontier.

    Parameters
    ----------
    points : array-like of shape (n_points, n_objectives)
        At least two objectives, all to be maximised.

    Returns
    -------
    ndarray of bool, of shape (n_points,)
        True for the points on the frontier.

    See Also
    --------
    fado.metrics.hypervolume : The area that points dominate.

    Notes
    -----
    Two objectives take one sort, O(n log n). More take one vectorised pass over the points per point of the
    frontier.

    Examples
    --------
    >>> from fado.metrics import pareto_frontier
    >>> pareto_frontier([[0.5, 0.9], [0.7, 0.6], [0.4, 0.8], [0.7, float("nan")]])
    array([ True,  True, False, False])
    """
    points = _as_points(points)
    known = np.flatnonzero(~np.isnan(points).any(axis=1))
    order = known[np.lexsort(points[known].T[::-1])]
    first_copy = np.ones(len(order), dtype=np.bool_)
    first_copy[1:] = (points[order[1:]] != points[order[:-1]]).any(axis=1)
    distinct = points[order[first_copy]]  # in lexicographic order, so that only later points can dominate
    on_frontier = np.zeros(len(distinct), dtype=np.bool_)
    if points.shape[1] == 2:
        second = distinct[:, 1][::-1]
        best_before = np.maximum.accumulate(np.concatenate([[-np.inf], second]))[:-1]
        on_frontier = (second > best_before)[::-1]
        on_frontier[-1:] = True  # even at minus infinity
    else:
        left = np.arange(len(distinct))
        while len(left) > 0:
            on_frontier[left[-1]] = True
            left = left[(distinct[left] > distinct[left[-1]]).any(axis=1)]
    mask = np.zeros(len(points), dtype=np.bool_)
    mask[order] = on_frontier[np.cumsum(first_copy) - 1]
    return mask


def hypervolume(points: Any, reference: Any = (0.0, 0.0)) -> float:
    """Return the area that points dominate above a reference point, for two objectives.

    Parameters
    ----------
    points : array-like of shape (n_points, 2)
        Two objectives, both to be maximised. Points with a NaN, and points that are not above the reference
        in both objectives, add nothing.
    reference : array-like of shape (2,), default=(0.0, 0.0)
        The corner of the area where both objectives are lowest.

    Returns
    -------
    float

    See Also
    --------
    fado.metrics.pareto_frontier : Which points no other dominates.

    Examples
    --------
    Two rectangles of area 0.5 and 0.5 that share 0.25:

    >>> from fado.metrics import hypervolume
    >>> hypervolume([[0.5, 1.0], [1.0, 0.5]])
    0.75
    """
    points = _as_points(points)
    corner = np.asarray(reference, dtype=np.float64)
    if points.shape[1] != 2 or corner.shape != (2,):
        raise ValueError(
            "`points` and `reference` must have two objectives, "
            f"got {points.shape[1]} and a reference of shape {corner.shape}; pass two columns."
        )
    if np.isinf(points).any() or not np.isfinite(corner).all():
        raise ValueError(
            "`points` and `reference` must be finite, got an infinite or missing coordinate; drop it."
        )
    above = points[(points > corner).all(axis=1)] - corner
    widths, heights = above[np.argsort(-above[:, 0])].T
    return float(np.sum(-np.diff(widths, append=0.0) * np.maximum.accumulate(heights)))


def _as_points(points: Any) -> NDArray[np.float64]:
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(
            f"`points` must have shape (n_points, 2 or more objectives), got {array.shape}; "
            "pass one row per point and one column per objective."
        )
    return array
