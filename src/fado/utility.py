"""Utilities: one number per row, from its value for performance and its values for fairness."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._validation import check_share

__all__ = ["CobbDouglasUtility", "DifferenceUtility", "LinearUtility"]

FloatArray = npt.NDArray[np.float64]
Terms = Sequence[tuple[float, FloatArray]]


@dataclass(frozen=True, repr=False)
class _Utility(ABC):
    """Base of the utilities: subclasses say how weighted values combine."""

    alpha: float = 0.5
    betas: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_share("alpha", self.alpha))
        if self.betas is not None:
            object.__setattr__(self, "betas", MappingProxyType(_checked_betas(self.betas)))

    def __call__(self, valuation: Any) -> FloatArray:
        """Give the utility of every row.

        Parameters
        ----------
        valuation : Valuation
            Or anything that has its `protected` and its ``valuation[name]``.

        Returns
        -------
        ndarray of shape (n_rows,)
            NaN where a row lacks a value that counts.
        """
        betas = self._betas_of(list(valuation.protected))
        v_y = np.asarray(valuation["y"], dtype=np.float64)
        v_z = [(beta, np.asarray(valuation[name], dtype=np.float64)) for name, beta in betas.items()]
        return self._combined((self.alpha, v_y), v_z)

    @abstractmethod
    def _combined(self, performance: tuple[float, FloatArray], fairness: Terms) -> FloatArray:
        """Combine the weighted value of the target with those of the protected attributes."""

    def _betas_of(self, protected: list[str]) -> Mapping[str, float]:
        if self.betas is not None:
            for name in self.betas:
                if name not in protected:
                    raise ValueError(
                        f"`betas` names {name!r}, which is none of the valuation's protected attributes "
                        f"{protected}."
                    )
            return self.betas
        if not protected and self.alpha < 1:
            raise ValueError(
                f"The valuation has no protected attribute for alpha={self.alpha} to leave a share to: value "
                "the rows with `sensitive_features`, or set `alpha=1`."
            )
        return {name: (1 - self.alpha) / len(protected) for name in protected}

    def __repr__(self) -> str:
        betas = "" if self.betas is None else f", betas={dict(self.betas)}"
        return f"{type(self).__name__}(alpha={self.alpha}{betas})"

    def __hash__(self) -> int:
        betas = None if self.betas is None else frozenset(self.betas.items())
        return hash((type(self), self.alpha, betas))

    def __reduce__(self) -> tuple[Any, ...]:  # a read-only mapping can be neither pickled nor copied
        return type(self), (self.alpha, None if self.betas is None else dict(self.betas))


class LinearUtility(_Utility):
    """Utility ``alpha * v_y + sum_j beta_j * v_zj``, the paper's linear scalarisation.

    Rows of which models are unsure, of the target or of a protected attribute, have a high utility.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight of the value for performance, in [0, 1].
    betas : mapping of str to float, optional
        Weight of the value for every protected attribute; those not named count nothing. None shares
        ``1 - alpha`` equally among all.

    Examples
    --------
    >>> from fado import LinearUtility, Valuation
    >>> valuation = Valuation.from_probabilities([0.5, 0.5, 1.0], {"sex": [0.5, 0.0, 0.5]})
    >>> LinearUtility(alpha=0.75)(valuation)
    array([1.  , 0.75, 0.25])
    >>> LinearUtility(alpha=0.75, betas={"sex": 1})
    LinearUtility(alpha=0.75, betas={'sex': 1.0})
    """

    def _combined(self, performance: tuple[float, FloatArray], fairness: Terms) -> FloatArray:
        return _weighted(*performance) + _weighted_sum(fairness)


class DifferenceUtility(_Utility):
    """Utility ``alpha * v_y - sum_j beta_j * v_zj``: what is hard to tell of a protected attribute costs.

    Utilities may be negative.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight of the value for performance, in [0, 1].
    betas : mapping of str to float, optional
        Weight of the value for every protected attribute; those not named count nothing. None shares
        ``1 - alpha`` equally among all.

    Examples
    --------
    >>> from fado import DifferenceUtility, Valuation
    >>> valuation = Valuation.from_probabilities([0.5, 0.5, 1.0], {"sex": [0.5, 0.0, 0.5]})
    >>> DifferenceUtility(alpha=0.75)(valuation)
    array([ 0.5 ,  0.75, -0.25])
    """

    def _combined(self, performance: tuple[float, FloatArray], fairness: Terms) -> FloatArray:
        return _weighted(*performance) - _weighted_sum(fairness)


class CobbDouglasUtility(_Utility):
    """Utility ``v_y ** alpha * prod_j v_zj ** beta_j``: zero wherever a value that counts is zero.

    ``0 ** 0`` is 1: a value of weight 0 does not count.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight of the value for performance, in [0, 1].
    betas : mapping of str to float, optional
        Weight of the value for every protected attribute; those not named count nothing. None shares
        ``1 - alpha`` equally among all.

    Examples
    --------
    >>> from fado import CobbDouglasUtility, Valuation
    >>> valuation = Valuation.from_probabilities([0.5, 0.5, 1.0], {"sex": [0.5, 0.0, 0.5]})
    >>> CobbDouglasUtility(alpha=0.75)(valuation)
    array([1., 0., 0.])
    """

    def _combined(self, performance: tuple[float, FloatArray], fairness: Terms) -> FloatArray:
        utility = np.ones(len(performance[1]))
        for weight, values in (performance, *fairness):
            if (values < 0).any():
                raise ValueError("A Cobb-Douglas utility needs values of at least 0, got a negative one.")
            utility *= values**weight
        return utility


def _checked_betas(betas: Mapping[str, float]) -> dict[str, float]:
    if not isinstance(betas, Mapping):
        raise TypeError(f"`betas` must map protected attributes to numbers, got {betas!r}.")
    for name, beta in betas.items():
        if not isinstance(beta, Real) or not math.isfinite(beta) or beta < 0:
            raise ValueError(f"`betas[{name!r}]` must be a number of at least 0, got {beta!r}.")
    return {str(name): float(beta) for name, beta in betas.items()}


def _weighted_sum(terms: Terms) -> FloatArray | float:
    return sum((_weighted(weight, values) for weight, values in terms), 0.0)


def _weighted(weight: float, values: FloatArray) -> FloatArray:
    """Weigh values; a weight of 0 leaves them out, even where they are NaN."""
    return weight * values if weight else np.zeros(len(values))
