"""The utility that a command line asks for."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fado import CobbDouglasUtility, DifferenceUtility, LinearUtility, Valuation
from fado.cli._options import UtilityName

__all__ = ["utility_of"]

_KINDS: dict[UtilityName, type[Any]] = {
    UtilityName.linear: LinearUtility,
    UtilityName.difference: DifferenceUtility,
    UtilityName.cobb_douglas: CobbDouglasUtility,
}


def utility_of(name: UtilityName, alpha: float, attributes: Collection[str], valuation: Valuation) -> Any:
    """Make the utility, over the attributes that were asked for: a valuation may hold more."""
    for attribute in attributes:
        if attribute not in valuation.protected:
            has = ", ".join(map(repr, valuation.protected)) or "no protected attribute"
            raise ValueError(
                f"`--values` has no values of the protected attribute {attribute!r}; it has {has}."
            )
    betas = {attribute: (1 - alpha) / len(attributes) for attribute in attributes}
    return _KINDS[name](alpha=alpha, betas=betas)
