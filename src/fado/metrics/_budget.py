"""How many rows a model may predict positive, and the threshold that keeps to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from fado._checks import MOST_ROWS, check_choice
from fado.metrics._inputs import Bools, Floats, check_max_fpr
from fado.metrics._threshold import lowest_threshold
from fado.metrics._weights import Weights

Kind = Literal["fpr", "selection_rate", "top_k", "threshold"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# The metric that says how much of a budget is used; a threshold has none.
_SPENT = {"fpr": "fpr", "selection_rate": "selection_rate", "top_k": "selected"}


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
    limit: float

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        object.__setattr__(self, "limit", _checked_limit(self.kind, self.limit))

    @classmethod
    def read(cls, budget: Any, max_fpr: float = 0.05) -> Budget:
        """Return a budget from any of the forms that functions take.

        Parameters
        ----------
        budget : Budget, pair of kind and limit, or None
            A pair is a tuple or a list, such as ``("top_k", 500)``. None is ``("fpr", max_fpr)``.
        max_fpr : float, default=0.05
            The share of negatives that may be predicted positive, if `budget` is None.

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
        check_max_fpr(max_fpr)
        if budget is None:
            return cls("fpr", max_fpr)
        if isinstance(budget, Budget):
            return budget
        if not isinstance(budget, tuple | list):
            raise TypeError(
                f"`budget` must be None, a Budget or a pair such as ('top_k', 500), got {budget!r}."
            )
        if len(budget) != 2:
            raise ValueError(
                "`budget` must be a pair of a kind and its limit, such as ('top_k', 500), "
                f"got {len(budget)} values ({budget!r})."
            )
        kind, limit = budget
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"`budget` must be of kind {' or '.join(map(repr, KINDS))}, got {kind!r}.")
        return cls(kind, limit)

    def threshold(self, positive: Bools, scores: Floats, weights: Weights | None = None) -> float:
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
            The weight of each row, above zero; None is one for each. Shares are then shares of the total
            weight.

        Returns
        -------
        float
            A row is predicted positive if ``scores >= threshold``.
        """
        if self.kind == "threshold":
            return self.limit
        if self.kind == "top_k":
            if self.limit >= len(scores):
                return float(scores.min())
            weights = None
        return lowest_threshold(~self.counted(positive), scores, self.share(len(scores)), weights)

    def counted(self, positive: Bools) -> Bools:
        """Return which rows the budget is a share of: the negatives, or all rows."""
        return ~positive if self.kind == "fpr" else np.ones_like(positive)

    def share(self, n_rows: int) -> float:
        """Return the share of the counted rows that may be predicted positive."""
        return min(self.limit / n_rows, 1.0) if self.kind == "top_k" else self.limit

    def kept(self, metrics: Mapping[str, float]) -> bool:
        """Tell whether a model keeps the budget, for example at a threshold from other rows.

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
        >>> Budget("fpr", 0.05).kept({"fpr": 0.051}), Budget("top_k", 500).kept({"selected": 500})
        (False, True)
        """
        if self.kind == "threshold":
            return True
        spent = _SPENT[self.kind]
        if spent not in metrics:
            raise ValueError(f"`metrics` must have {spent!r} to tell whether they keep {self}; measure it.")
        return bool(metrics[spent] <= self.limit)

    def __str__(self) -> str:
        """Return the budget as it reads in a sentence."""
        if self.kind == "fpr":
            return f"a false-positive rate of at most {_percent(self.limit)}"
        if self.kind == "selection_rate":
            return f"a selection rate of at most {_percent(self.limit)}"
        if self.kind == "top_k":
            return f"the {self.limit} rows of highest score" if self.limit > 1 else "the row of highest score"
        return f"a threshold of {self.limit:.12g}"


def budget_of(budget: Any, max_fpr: float, threshold: float | None) -> Budget:
    """Read a user's budget, and refuse one that a given threshold leaves no say."""
    read = Budget.read(budget, max_fpr)
    if threshold is not None and read.kind != "fpr":
        raise ValueError(
            f"`budget` {(read.kind, read.limit)} and `threshold` {threshold} both say where to decide; "
            "pass only one of them."
        )
    return read


def _checked_limit(kind: Kind, limit: Any) -> float:
    """Return a limit as a plain number, or say what is wrong with it."""
    subject = f"The limit of a budget of kind {kind!r}"
    if isinstance(limit, bool) or not isinstance(limit, int | float | np.integer | np.floating):
        raise TypeError(f"{subject} must be a number, got {limit!r}.")
    # By the digits: 0.7 in single precision means 0.7, and not the 0.69999999 that it is.
    number = float(str(limit))
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


def _percent(share: float) -> str:
    return f"{100 * share:.12g} %"
