"""Utilities: one number per row, from its value for performance and its values for fairness."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from fado._checks import ClassRegistry, check_share
from fado._messages import insert_parameters
from fado._typing import Floats

__all__ = [
    "BaseUtility",
    "CobbDouglasUtility",
    "DifferenceUtility",
    "LinearUtility",
    "register_utility",
    "utility_class",
    "utility_names",
]

Terms = Sequence[tuple[float, Floats]]

_CLASSES = ClassRegistry("utility")


class BaseUtility(BaseEstimator):
    """Base class of utilities: a subclass combines weighted values into one number per row.

    A subclass defines ``_combine(performance, fairness)``, which returns one number per row. ``performance``
    is a pair of the weight and the values for the target, ``fairness`` a list of such pairs, one per
    protected attribute. A subclass with further parameters keeps these two and passes them to
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

    See Also
    --------
    fado.utility.register_utility : Offers a utility in configurations and commands.
    fado.LinearUtility : The default utility.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import Valuation
    >>> from fado.utility import BaseUtility
    >>> class LeastUtility(BaseUtility):
    ...     def _combine(self, performance, fairness):
    ...         terms = (performance, *fairness)
    ...         return np.min([values for weight, values in terms if weight], axis=0)
    >>> LeastUtility()(Valuation.from_probabilities([0.5, 0.5], {"sex": [0.5, 1.0]}))
    array([1., 0.])
    """

    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)  # lowest and highest, for values on [0, 1]
    takes_signed: ClassVar[bool] = True  # whether values may be negative

    def __init__(self, alpha: float = 0.5, betas: Mapping[str, float] | None = None) -> None:
        self.alpha = alpha
        self.betas = betas
        self._check()

    def _check(self) -> None:
        check_share("alpha", self.alpha)
        if self.betas is None:
            return
        if not isinstance(self.betas, Mapping):
            raise TypeError(f"`betas` must map protected attributes to numbers, got {self.betas!r}.")
        for name, beta in self.betas.items():
            if not isinstance(beta, Real) or not math.isfinite(beta) or beta < 0:
                raise ValueError(f"`betas[{name!r}]` must be a number of at least 0, got {beta!r}.")

    def __call__(self, valuation: Any) -> Floats:
        """Return the utility of every row.

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
        protected = list(valuation.protected)
        betas = self.betas
        if betas is None:
            if not protected and self.alpha < 1:
                raise ValueError(
                    f"The valuation has no protected attribute, and alpha={self.alpha} needs one: value the "
                    "rows with `sensitive_features`, or set `alpha=1`."
                )
            betas = _shared_betas(self.alpha, protected)
        for name in map(str, betas):
            if name not in protected:
                raise ValueError(
                    f"`betas` names {name!r}, which is not one of the valuation's protected attributes "
                    f"{protected}."
                )
        return self._combine(
            (float(self.alpha), self._values(valuation, "y")),
            [(float(beta), self._values(valuation, str(name))) for name, beta in betas.items()],
        )

    @abstractmethod
    def _combine(self, performance: tuple[float, Floats], fairness: Terms) -> Floats:
        """Combine the weighted value of the target with those of the protected attributes."""

    def over(self, names: Sequence[str]) -> BaseUtility:
        """Return a copy of this utility whose `betas` share ``1 - alpha`` equally among some attributes.

        Parameters
        ----------
        names : sequence of str
            The protected attributes that count.
        """
        return type(self)(**{**self.get_params(deep=False), "betas": _shared_betas(self.alpha, names)})

    def simplest(self, n_protected: int) -> BaseUtility:
        """Return the simplest utility that gives the same result on every table; here, this one.

        Experiments use it to train equal settings only once.

        Parameters
        ----------
        n_protected : int
            The number of protected attributes.
        """
        return self

    def _values(self, valuation: Any, name: str) -> Floats:
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

    def __repr__(self) -> str:
        shown = [f"alpha={float(self.alpha)}"]
        if self.betas is not None:
            shown.append(f"betas={ {name: float(beta) for name, beta in self.betas.items()} }")
        for name, value in self.get_params(deep=False).items():
            if name not in ("alpha", "betas"):
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.get_params() == other.get_params()

    def __hash__(self) -> int:
        betas = None if self.betas is None else frozenset(self.betas.items())
        return hash((type(self), self.alpha, betas))


Class = TypeVar("Class", bound=type[BaseUtility])


def register_utility(name: str) -> Callable[[Class], Class]:
    """Register a utility under a name, for configurations, commands and pages.

    Parameters
    ----------
    name : str
        A name that no other utility has.

    Returns
    -------
    callable
        A decorator for a subclass of `BaseUtility`. It raises a ValueError if another class has the name.

    See Also
    --------
    fado.utility.BaseUtility : The class to derive from.
    fado.utility.utility_names : List what is registered.

    Examples
    --------
    >>> from fado.utility import LinearUtility, utility_class
    >>> utility_class("linear") is LinearUtility
    True
    """
    return _CLASSES.register(name)


def utility_names() -> tuple[str, ...]:
    """List the names of all registered utilities, in the order in which they were registered."""
    return _CLASSES.names()


def utility_class(name: str) -> Any:
    """Return the class of a utility by its name; an unknown name raises a ValueError that lists all names."""
    return _CLASSES.find(name, "`utility`")


@register_utility("linear")
@insert_parameters(BaseUtility)
class LinearUtility(BaseUtility):
    """Utility ``alpha * v_y + sum_j beta_j * v_zj``, the paper's linear scalarisation.

    With entropies as values, a row has a high utility if models are uncertain about its target or its
    protected attributes.

    {Parameters}

    See Also
    --------
    fado.DifferenceUtility : Subtracts the values for protected attributes.
    fado.CobbDouglasUtility : Multiplies the values.

    {References}

    Examples
    --------
    >>> from fado import LinearUtility, Valuation
    >>> p_y, p_sex = [0.5, 0.5, 1.0], [0.5, 0.0, 0.5]
    >>> valuation = Valuation.from_probabilities(p_y, {"sex": p_sex})
    >>> LinearUtility(alpha=0.75)(valuation)
    array([1.  , 0.75, 0.25])
    >>> LinearUtility(alpha=0.75, betas={"sex": 1})
    LinearUtility(alpha=0.75, betas={'sex': 1.0})
    """

    def _combine(self, performance: tuple[float, Floats], fairness: Terms) -> Floats:
        return np.asarray(_weighted_sum([performance]) + _weighted_sum(fairness))


@register_utility("difference")
@insert_parameters(BaseUtility)
class DifferenceUtility(BaseUtility):
    """Utility ``alpha * v_y - sum_j beta_j * v_zj``: high values for protected attributes lower it.

    With entropies as values, a row has a low utility if models are uncertain about its protected attributes.
    Utilities may be negative. Values must not be: those of `TreeInfluence` are refused.

    {Parameters}

    See Also
    --------
    fado.LinearUtility : Adds the values for protected attributes.

    {References}

    Examples
    --------
    >>> from fado import DifferenceUtility, Valuation
    >>> p_y, p_sex = [0.5, 0.5, 1.0], [0.5, 0.0, 0.5]
    >>> valuation = Valuation.from_probabilities(p_y, {"sex": p_sex})
    >>> DifferenceUtility(alpha=0.75)(valuation)
    array([ 0.5 ,  0.75, -0.25])
    """

    ends = (-1.0, 1.0)
    takes_signed = False

    def simplest(self, n_protected: int) -> BaseUtility:
        """Return the linear utility if `alpha` is 1, where both are equal; else this one."""
        return LinearUtility(self.alpha) if self.alpha == 1 and self.betas is None else self

    def _combine(self, performance: tuple[float, Floats], fairness: Terms) -> Floats:
        return np.asarray(_weighted_sum([performance]) - _weighted_sum(fairness))


@register_utility("cobb-douglas")
@insert_parameters(BaseUtility)
class CobbDouglasUtility(BaseUtility):
    """Utility ``v_y ** alpha * prod_j v_zj ** beta_j``: zero wherever a value that counts is zero.

    A value of weight 0 does not count, even if it is 0. Values must not be negative: those of
    `TreeInfluence` are refused.

    {Parameters}

    See Also
    --------
    fado.LinearUtility : Adds the values.

    {References}

    Examples
    --------
    >>> from fado import CobbDouglasUtility, Valuation
    >>> p_y, p_sex = [0.5, 0.5, 1.0], [0.5, 0.0, 0.5]
    >>> valuation = Valuation.from_probabilities(p_y, {"sex": p_sex})
    >>> CobbDouglasUtility(alpha=0.75)(valuation)
    array([1., 0., 0.])
    """

    takes_signed = False

    def simplest(self, n_protected: int) -> BaseUtility:
        """Return the linear utility if only one value counts, where both are equal; else this one."""
        one_left = self.alpha == 1 or (self.alpha == 0 and n_protected == 1)
        return LinearUtility(self.alpha) if one_left and self.betas is None else self

    def _combine(self, performance: tuple[float, Floats], fairness: Terms) -> Floats:
        utility = np.ones(len(performance[1]))
        for weight, values in (performance, *fairness):
            if (values < 0).any():
                raise ValueError("A Cobb-Douglas utility needs values of at least 0, got a negative one.")
            utility *= values**weight
        return utility


def _weighted_sum(terms: Terms) -> Floats | float:
    """Add weighted values; a weight of 0 leaves them out, even where they are NaN."""
    return sum((weight * values if weight else np.zeros(len(values)) for weight, values in terms), 0.0)


def _shared_betas(alpha: float, names: Sequence[str]) -> dict[str, float]:
    """Share ``1 - alpha`` equally among protected attributes."""
    return {name: (1 - alpha) / len(names) for name in names}
