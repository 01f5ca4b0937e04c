"""What all utilities share: parameters, default weights, scales."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from fado._checks import check_share

__all__ = ["BaseUtility", "FloatArray", "Terms"]

FloatArray = npt.NDArray[np.float64]
Terms = Sequence[tuple[float, FloatArray]]

_SHARED = ("alpha", "betas")  # the parameters that every utility has


class BaseUtility(BaseEstimator):
    """Base class of utilities: a subclass says how weighted values combine into one number per row.

    A subclass defines ``_combine(performance, fairness)``, which returns one number per row. ``performance``
    is a pair of the weight and the values for the target, ``fairness`` a list of such pairs, one per
    protected attribute. A subclass with parameters of its own keeps these two and passes them to
    ``super().__init__``.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight of the value for the target, in [0, 1].
    betas : mapping of str to float, optional
        Weights of the values for protected attributes, by name; attributes that are not named do not count.
        None shares ``1 - alpha`` equally among all attributes.

    Attributes
    ----------
    ends : tuple of float, default=(0.0, 1.0)
        The lowest and the highest utility that values on [0, 1] can give.
    takes_signed : bool, default=True
        Whether values may be negative, as those of `TreeInfluence` are; if not, such values raise a
        ValueError.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import Valuation
    >>> from fado.utility import BaseUtility
    >>> class LeastUtility(BaseUtility):
    ...     def _combine(self, performance, fairness):
    ...         return np.min([values for weight, values in (performance, *fairness) if weight], axis=0)
    >>> LeastUtility()(Valuation.from_probabilities([0.5, 0.5], {"sex": [0.5, 1.0]}))
    array([1., 0.])
    """

    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)  # what it can be, of values on [0, 1]
    takes_signed: ClassVar[bool] = True  # whether values may be of either sign

    def __init__(self, alpha: float = 0.5, betas: Mapping[str, float] | None = None) -> None:
        self.alpha = alpha
        self.betas = betas
        self._check()

    def _check(self) -> None:
        check_share("alpha", self.alpha)
        if self.betas is not None:
            _check_betas(self.betas)

    def __call__(self, valuation: Any) -> FloatArray:
        """Give the utility of every row.

        Values of a scale other than [0, 1] are first divided by their standard deviation.

        Parameters
        ----------
        valuation : Valuation
            The values; or any object with the names of attributes as `protected` and values as
            ``valuation[name]``.

        Returns
        -------
        ndarray of shape (n_rows,)
            NaN where a row lacks a value that counts.

        Raises
        ------
        ValueError
            If `betas` names an attribute that the valuation lacks, if the valuation has no protected
            attribute and `alpha` is below 1, or if the utility does not take negative values and gets some.
        """
        self._check()
        betas = self._betas_of(list(valuation.protected))
        v_y = self._values(valuation, "y")
        return self._combine(
            (float(self.alpha), v_y), [(beta, self._values(valuation, name)) for name, beta in betas.items()]
        )

    @abstractmethod
    def _combine(self, performance: tuple[float, FloatArray], fairness: Terms) -> FloatArray:
        """Combine the weighted value of the target with those of the protected attributes."""

    def over(self, names: Sequence[str]) -> BaseUtility:
        """Give a copy of this utility whose `betas` share ``1 - alpha`` equally among some attributes.

        Parameters
        ----------
        names : sequence of str
            The protected attributes that count.
        """
        return type(self)(**{**self.get_params(deep=False), "betas": shared_betas(self.alpha, names)})

    def simplest(self, n_protected: int) -> BaseUtility:
        """Give the simplest utility that gives the same result on every table; here, this one.

        Experiments use it to train equal settings only once.

        Parameters
        ----------
        n_protected : int
            The number of protected attributes.
        """
        return self

    def _values(self, valuation: Any, name: str) -> FloatArray:
        values = np.asarray(valuation[name], dtype=np.float64)
        scale = getattr(valuation, "scales", {}).get(name)
        if scale is None or scale.is_unit:
            return values
        if not self.takes_signed and scale.is_signed:
            raise ValueError(
                f"{type(self).__name__} needs values that are never negative, and those of {name!r} are "
                f"signed ({scale.meaning}): use LinearUtility."
            )
        spread = float(np.nanstd(values)) if np.isfinite(values).any() else 0.0
        return values / spread if spread > 0 else values

    def _betas_of(self, protected: list[str]) -> dict[str, float]:
        if self.betas is not None:
            for name in map(str, self.betas):
                if name not in protected:
                    raise ValueError(
                        f"`betas` names {name!r}, which is none of the valuation's protected attributes "
                        f"{protected}."
                    )
            return {str(name): float(beta) for name, beta in self.betas.items()}
        if not protected and self.alpha < 1:
            raise ValueError(
                f"The valuation has no protected attribute for alpha={self.alpha} to leave a share to: value "
                "the rows with `sensitive_features`, or set `alpha=1`."
            )
        return shared_betas(self.alpha, protected)

    def __repr__(self) -> str:
        shown = [f"alpha={float(self.alpha)}"]
        if self.betas is not None:
            shown.append(f"betas={ {name: float(beta) for name, beta in self.betas.items()} }")
        own = {name: value for name, value in self.get_params(deep=False).items() if name not in _SHARED}
        shown += [f"{name}={value!r}" for name, value in own.items()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.get_params() == other.get_params()

    def __hash__(self) -> int:
        betas = None if self.betas is None else frozenset(self.betas.items())
        return hash((type(self), self.alpha, betas))


def shared_betas(alpha: float, names: Sequence[str]) -> dict[str, float]:
    """Share ``1 - alpha`` equally among protected attributes."""
    return {name: (1 - alpha) / len(names) for name in names}


def _check_betas(betas: Mapping[str, float]) -> None:
    if not isinstance(betas, Mapping):
        raise TypeError(f"`betas` must map protected attributes to numbers, got {betas!r}.")
    for name, beta in betas.items():
        if not isinstance(beta, Real) or not math.isfinite(beta) or beta < 0:
            raise ValueError(f"`betas[{name!r}]` must be a number of at least 0, got {beta!r}.")
