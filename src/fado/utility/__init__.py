"""Utilities: one number per row, from its value for performance and its values for fairness."""

from fado.utility._utilities import (
    BaseUtility,
    CobbDouglasUtility,
    DifferenceUtility,
    LinearUtility,
    register_utility,
    utility_class,
    utility_names,
)

__all__ = [
    "BaseUtility",
    "CobbDouglasUtility",
    "DifferenceUtility",
    "LinearUtility",
    "register_utility",
    "utility_class",
    "utility_names",
]
