"""Thresholds: budgets of decisions, and the lowest score that keeps a budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from fado._checks import MOST_ROWS, check_choice
from fado._messages import insert_parameters
from fado._typing import Bools, Floats
from fado.metrics._inputs import check_between, read_scored, rows_of_weight, warn_undefined
from fado.metrics._rates import fpr_ratio

Kind = Literal["fpr", "selection_rate", "top_k", "threshold"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Budget:
    """What sets the threshold of a model's decisions.

    Parameters
    ----------
    kind : {"fpr", "selection_rate", "top_k", "threshold"}
        ``"fpr"``: at most the share `limit` of the negatives is predicted positive. ``"selection_rate"``: at
        most the share `limit` of all rows. ``"top_k"``: at most `limit` rows, whatever they weigh.
        ``"threshold"``: every row that scores at least `limit`.
    limit : float or int
        A share in (0, 1), a number of rows (``"top_k"``) or a score (``"threshold"``).

    See Also
    --------
    fado.metrics.evaluate : Metrics of a model at a budget.
    fado.metrics.threshold_at_fpr : The threshold of a false-positive budget.

    Examples
    --------
    >>> import numpy as np
    >>> from fado.metrics import Budget
    >>> labels = np.array([False, False, False, True, True])
    >>> scores = np.array([0.1, 0.5, 0.5, 0.4, 0.9])
    >>> Budget("selection_rate", 0.2).threshold(labels, scores)
    0.9

    The two rows at 0.5 are tied. With both, three rows would be predicted positive, one too many.

    >>> two = Budget("top_k", 2)
    >>> two.threshold(labels, scores)
    0.9
    >>> print(two)
    the 2 rows of highest score
    """

    kind: Kind
    limit: int | float

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        subject = f"The limit of a budget of kind {self.kind!r}"
        object.__setattr__(self, "limit", check_limit(self.kind, self.limit, subject))

    @classmethod
    def read(cls, budget: Any, max_fpr: float = 0.05, *, threshold: float | None = None) -> Budget:
        """Return a budget from any of the forms that functions take.

        Parameters
        ----------
        budget : Budget, pair of kind and limit, or None
            A pair is a tuple or a list, such as ``("top_k", 500)``. None is ``("fpr", max_fpr)``.
        max_fpr : float, default=0.05
            The share of negatives that may be predicted positive, if `budget` is None.
        threshold : float, optional
            A threshold that is given beside the budget; only a budget of kind ``"fpr"`` may have one.

        Returns
        -------
        Budget

        Examples
        --------
        >>> Budget.read(None)
        Budget(kind='fpr', limit=0.05)
        >>> Budget.read(("selection_rate", 0.02))
        Budget(kind='selection_rate', limit=0.02)
        """
        if threshold is not None and not isinstance(threshold, int | float | np.number):
            raise TypeError(f"`threshold` must be a number, got {threshold!r}.")
        if threshold is not None and np.isnan(threshold):
            raise ValueError("`threshold` must be a number, got nan; pass None to set it by `max_fpr`.")
        check_between("max_fpr", max_fpr)
        if budget is None:
            return cls("fpr", max_fpr)
        if not isinstance(budget, Budget | tuple | list):
            raise TypeError(
                f"`budget` must be None, a Budget or a pair such as ('top_k', 500), got {budget!r}."
            )
        if not isinstance(budget, Budget):
            if len(budget) != 2:
                raise ValueError(
                    "`budget` must be a pair of a kind and its limit, such as ('top_k', 500), "
                    f"got {len(budget)} values ({budget!r})."
                )
            kind, limit = budget
            if not isinstance(kind, str) or kind not in KINDS:
                raise ValueError(f"`budget` must be of kind {' or '.join(map(repr, KINDS))}, got {kind!r}.")
            budget = cls(kind, limit)
        if threshold is not None and budget.kind != "fpr":
            raise ValueError(
                f"`budget` {(budget.kind, budget.limit)} and `threshold` {threshold} both set the threshold; "
                "pass only one of them."
            )
        return budget

    def threshold(self, positive: Bools, scores: Floats, weights: Floats | None = None) -> float:
        """Return the lowest score that keeps the budget, or the next float above all scores.

        Rows of equal scores are all at or above the threshold, or all below it, so the budget is never
        exceeded. If there are no more rows than ``"top_k"`` allows, the threshold is the lowest score.

        Parameters
        ----------
        positive : ndarray of bool, of shape (n,)
            Which rows have the positive label. At least one row must not have it.
        scores : ndarray of shape (n,)
            Finite scores.
        weights : ndarray of shape (n,), default=None
            The weight of each row, not negative; None is one for each. Shares are then shares of the total
            weight. Rows of weight 0 count in no budget, and set no threshold.

        Returns
        -------
        float
            A row is predicted positive if ``scores >= threshold``.
        """
        if self.kind == "threshold":
            return self.limit
        if weights is not None and not weights[self.counted(positive)].any():
            rows = "negative row" if self.kind == "fpr" else "row"
            raise ValueError(
                f"`sample_weight` must be above zero in some {rows} for {self}, got zero in all."
            )
        weights, positive, scores = rows_of_weight(weights, positive, scores, by_label=False)
        if self.kind == "top_k":
            if self.limit >= len(scores):
                return float(scores.min())
            weights = None
        counted, share = self.counted(positive), self.share(len(scores))
        ranked = scores[counted]
        if weights is None:
            # The largest number whose share is within the budget as floats compare: `int(0.29 * 100)` is 28,
            # although 29 / 100 does not exceed 0.29.
            allowed = int(share * len(ranked)) + 1
            while allowed / len(ranked) > share:
                allowed -= 1
            first_over = len(ranked) - 1 - allowed
            highest_refused = np.partition(ranked, first_over)[first_over]
        else:
            order = np.argsort(ranked, kind="stable")[::-1]
            reached = np.cumsum(weights[counted][order])
            # All together exceed any budget, so that there is a first one that does.
            highest_refused = ranked[order[np.argmax(reached / reached[-1] > share)]]
        above = scores[scores > highest_refused]
        if len(above) == 0:
            return float(np.nextafter(highest_refused, np.inf, dtype=scores.dtype))
        return float(above.min())

    def counted(self, positive: Bools) -> Bools:
        """Return which rows the budget is a share of: the negatives, or all rows."""
        return ~positive if self.kind == "fpr" else np.ones_like(positive)

    def share(self, n_rows: int) -> float:
        """Return the share of the counted rows that may be predicted positive."""
        return min(self.limit / n_rows, 1.0) if self.kind == "top_k" else self.limit

    def kept(self, metrics: Mapping[str, float]) -> bool:
        """Return whether a model keeps the budget, for example at a threshold from other rows.

        Parameters
        ----------
        metrics : mapping of str to float
            What :func:`measure` returned for this budget. It needs ``fpr``, ``selection_rate`` or, for
            ``"top_k"``, ``selected``.

        Returns
        -------
        bool
            False if the metric is NaN; always True for a budget of kind ``"threshold"``.

        Raises
        ------
        ValueError
            If the metric is missing.

        Examples
        --------
        >>> Budget("fpr", 0.05).kept({"fpr": 0.051})
        False
        >>> Budget("top_k", 500).kept({"selected": 500})
        True
        """
        spent = self.spent
        if spent is None:
            return True
        if spent not in metrics:
            raise ValueError(f"`metrics` must have {spent!r} to check whether they keep {self}; measure it.")
        return bool(metrics[spent] <= self.limit)

    @property
    def spent(self) -> str | None:
        """The metric that measures how much of the budget is used; None for a threshold."""
        return {"fpr": "fpr", "selection_rate": "selection_rate", "top_k": "selected"}.get(self.kind)

    def __str__(self) -> str:
        """Return the budget as it reads in a sentence."""
        if self.kind == "top_k":
            return f"the {self.limit} rows of highest score" if self.limit > 1 else "the row of highest score"
        if self.kind == "threshold":
            return f"a threshold of {self.limit:.12g}"
        rate = "false-positive" if self.kind == "fpr" else "selection"
        return f"a {rate} rate of at most {100 * self.limit:.12g} %"


@insert_parameters(fpr_ratio)
def threshold_at_fpr(
    y_true: Any, scores: Any, max_fpr: float = 0.05, *, pos_label: Any = None, sample_weight: Any = None
) -> float:
    """Return the lowest threshold whose false-positive rate does not exceed a budget.

    A row is predicted positive if ``scores >= threshold``. The threshold is one of the scores, so that
    ``float32`` and ``float64`` scores give the same decisions. Rows of equal scores get the same decision. If
    even the highest score alone would exceed the budget, the threshold is the next float above it, and no row
    is predicted positive.

    Parameters
    ----------
    {y_true}
    scores : array-like of shape (n,)
        Finite scores; higher means more likely positive.
    max_fpr : float, default=0.05
        The budget: the share of negatives that may be predicted positive, in (0, 1).
    {pos_label, sample_weight}

    Returns
    -------
    float

    See Also
    --------
    fado.metrics.Budget : Other budgets, such as a selection rate.
    fado.metrics.tpr_at_fpr : The true-positive rate at this threshold.

    Examples
    --------
    One of the four negatives may be predicted positive. The two at 0.4 are tied, so neither is.

    >>> from fado.metrics import threshold_at_fpr
    >>> y_true = [0, 0, 0, 0, 1, 1]
    >>> scores = [0.1, 0.4, 0.4, 0.7, 0.6, 0.9]
    >>> threshold_at_fpr(y_true, scores, max_fpr=0.25)
    0.6

    The negative at 0.7 has weight 3: it alone is half of the negatives' weight, and over the budget.

    >>> weights = [1, 1, 1, 3, 1, 1]
    >>> threshold_at_fpr(y_true, scores, max_fpr=0.25, sample_weight=weights)
    0.9
    """
    check_between("max_fpr", max_fpr)
    positive, scores, weights, _ = read_scored(y_true, scores, pos_label, sample_weight)
    weights, positive, scores = rows_of_weight(weights, positive, scores)
    return Budget("fpr", max_fpr).threshold(positive, scores, weights)


@insert_parameters(threshold_at_fpr)
def tpr_at_fpr(
    y_true: Any, scores: Any, max_fpr: float = 0.05, *, pos_label: Any = None, sample_weight: Any = None
) -> float:
    """Return the true-positive rate at the threshold of a false-positive budget.

    If all scores are equal, the rate is NaN, with an ``UndefinedMetricWarning``.

    {Parameters, Returns}

    See Also
    --------
    fado.metrics.threshold_at_fpr : The threshold itself.
    fado.metrics.evaluate : All rates and ratios at once.

    Examples
    --------
    >>> from fado.metrics import tpr_at_fpr
    >>> tpr_at_fpr([0, 0, 0, 0, 1, 1], [0.1, 0.4, 0.4, 0.7, 0.3, 0.9], max_fpr=0.25)
    0.5
    """
    check_between("max_fpr", max_fpr)
    positive, scores, weights, _ = read_scored(y_true, scores, pos_label, sample_weight)
    weights, positive, scores = rows_of_weight(weights, positive, scores)
    if scores.min() == scores.max():
        warn_undefined(f"`tpr_at_fpr` is undefined and set to NaN: all scores are {scores[0]}.")
        return float("nan")
    threshold = Budget("fpr", max_fpr).threshold(positive, scores, weights)
    detected = predicted_positive(scores[positive], threshold)
    return float(np.mean(detected) if weights is None else np.average(detected, weights=weights[positive]))


def predicted_positive(scores: Floats, threshold: float) -> Bools:
    """Return which rows are predicted positive: those that score at least the threshold.

    The threshold is rounded to the precision of the scores, so that ``float32`` scores of 0.7 are at a
    threshold of 0.7, and not just below it. A threshold that a budget set on scores is one of them, or the
    next float above all, so that it is not changed, even after it was saved.

    Parameters
    ----------
    scores : ndarray
        Scores.
    threshold : float
        The lowest score that is predicted positive.

    Returns
    -------
    ndarray of bool

    Examples
    --------
    >>> import numpy as np
    >>> from fado.metrics import predicted_positive
    >>> predicted_positive(np.array([0.6, 0.7], dtype=np.float32), 0.7)
    array([False,  True])
    """
    precision = scores.dtype.type if np.issubdtype(scores.dtype, np.floating) else np.float64
    with np.errstate(over="ignore"):  # what the precision cannot hold is above every score
        return np.asarray(scores >= precision(threshold))


def check_limit(kind: str, limit: Any, subject: str) -> float:
    """Return the limit of a budget as a plain number, or refuse it; `subject` begins the sentence."""
    if isinstance(limit, bool) or not isinstance(limit, int | float | np.integer | np.floating):
        raise TypeError(f"{subject} must be a number, got {limit!r}.")
    # By the digits: a share of 0.7 in single precision means 0.7, not 0.69999999. A score is what it is.
    number = float(limit) if kind == "threshold" else float(str(limit))
    if kind == "top_k":
        if number < 1 or not number.is_integer():
            raise ValueError(f"{subject} must be a whole number of at least 1, got {limit}.")
        if number > MOST_ROWS:
            raise ValueError(f"{subject} must be at most {MOST_ROWS:,}, got {limit}.")
        return int(limit)
    if kind == "threshold" and not np.isfinite(number):
        raise ValueError(f"{subject} must be finite, got {limit}.")
    if kind != "threshold" and not 0 < number < 1:
        raise ValueError(f"{subject} must be a share in (0, 1), got {limit}.")
    return number
