"""Utilities: one number per row, from its value for performance and its values for fairness."""

from fado.utility._base import BaseUtility
from fado.utility._registry import register_utility, utility_class, utility_names
from fado.utility._utilities import CobbDouglasUtility, DifferenceUtility, LinearUtility

__all__ = [
    "BaseUtility",
    "CobbDouglasUtility",
    "DifferenceUtility",
    "LinearUtility",
    "register_utility",
    "utility_class",
    "utility_names",
]
