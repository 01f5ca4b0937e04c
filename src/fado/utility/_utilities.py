"""The paper's utilities."""

from __future__ import annotations

import numpy as np

from fado.utility._base import BaseUtility, FloatArray, Terms
from fado.utility._registry import register_utility

__all__ = ["CobbDouglasUtility", "DifferenceUtility", "LinearUtility"]


@register_utility("linear")
class LinearUtility(BaseUtility):
    """Utility ``alpha * v_y + sum_j beta_j * v_zj``, the paper's linear scalarisation.

    With entropies as values, rows whose target or protected attribute models are unsure of have a high
    utility.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight of the value for the target, in [0, 1].
    betas : mapping of str to float, optional
        Weights of the values for protected attributes, by name; attributes that are not named do not count.
        None shares ``1 - alpha`` equally among all attributes.

    Examples
    --------
    >>> from fado import LinearUtility, Valuation
    >>> valuation = Valuation.from_probabilities([0.5, 0.5, 1.0], {"sex": [0.5, 0.0, 0.5]})
    >>> LinearUtility(alpha=0.75)(valuation)
    array([1.  , 0.75, 0.25])
    >>> LinearUtility(alpha=0.75, betas={"sex": 1})
    LinearUtility(alpha=0.75, betas={'sex': 1.0})
    """

    def _combine(self, performance: tuple[float, FloatArray], fairness: Terms) -> FloatArray:
        return _weighted(*performance) + _weighted_sum(fairness)


@register_utility("difference")
class DifferenceUtility(BaseUtility):
    """Utility ``alpha * v_y - sum_j beta_j * v_zj``: high values for protected attributes lower it.

    With entropies as values, rows whose protected attribute models are unsure of have a low utility.
    Utilities may be negative; values may not, such as those of `TreeInfluence`.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight of the value for the target, in [0, 1].
    betas : mapping of str to float, optional
        Weights of the values for protected attributes, by name; attributes that are not named do not count.
        None shares ``1 - alpha`` equally among all attributes.

    Examples
    --------
    >>> from fado import DifferenceUtility, Valuation
    >>> valuation = Valuation.from_probabilities([0.5, 0.5, 1.0], {"sex": [0.5, 0.0, 0.5]})
    >>> DifferenceUtility(alpha=0.75)(valuation)
    array([ 0.5 ,  0.75, -0.25])
    """

    ends = (-1.0, 1.0)
    takes_signed = False

    def simplest(self, n_protected: int) -> BaseUtility:
        """Give the linear utility if `alpha` is 1, where both are the value for the target; else itself."""
        return LinearUtility(self.alpha) if self.alpha == 1 and self.betas is None else self

    def _combine(self, performance: tuple[float, FloatArray], fairness: Terms) -> FloatArray:
        return _weighted(*performance) - _weighted_sum(fairness)


@register_utility("cobb-douglas")
class CobbDouglasUtility(BaseUtility):
    """Utility ``v_y ** alpha * prod_j v_zj ** beta_j``: zero wherever a value that counts is zero.

    A value of weight 0 does not count, even if it is 0. Values may not be negative, as those of
    `TreeInfluence` are.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight of the value for the target, in [0, 1].
    betas : mapping of str to float, optional
        Weights of the values for protected attributes, by name; attributes that are not named do not count.
        None shares ``1 - alpha`` equally among all attributes.

    Examples
    --------
    >>> from fado import CobbDouglasUtility, Valuation
    >>> valuation = Valuation.from_probabilities([0.5, 0.5, 1.0], {"sex": [0.5, 0.0, 0.5]})
    >>> CobbDouglasUtility(alpha=0.75)(valuation)
    array([1., 0., 0.])
    """

    takes_signed = False

    def simplest(self, n_protected: int) -> BaseUtility:
        """Give the linear utility if only one value counts, where both are equal; else itself."""
        one_left = self.alpha == 1 or (self.alpha == 0 and n_protected == 1)
        return LinearUtility(self.alpha) if one_left and self.betas is None else self

    def _combine(self, performance: tuple[float, FloatArray], fairness: Terms) -> FloatArray:
        utility = np.ones(len(performance[1]))
        for weight, values in (performance, *fairness):
            if (values < 0).any():
                raise ValueError("A Cobb-Douglas utility needs values of at least 0, got a negative one.")
            utility *= values**weight
        return utility


def _weighted_sum(terms: Terms) -> FloatArray | float:
    return sum((_weighted(weight, values) for weight, values in terms), 0.0)


def _weighted(weight: float, values: FloatArray) -> FloatArray:
    """Weigh values; a weight of 0 leaves them out, even where they are NaN."""
    return weight * values if weight else np.zeros(len(values))
