"""The utility that a command line asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fado.utility import utility_class
from fado.valuation import Valuation

__all__ = ["utility_of"]


def utility_of(name: str, alpha: float, attributes: Sequence[str], valuation: Valuation) -> Any:
    """Make the utility, over the attributes that were asked for: a valuation may hold more."""
    for attribute in attributes:
        if attribute not in valuation.protected:
            has = ", ".join(map(repr, valuation.protected)) or "no protected attribute"
            raise ValueError(
                f"`--values` has no values of the protected attribute {attribute!r}; it has {has}."
            )
    return utility_class(name)(alpha=alpha).over(attributes)
