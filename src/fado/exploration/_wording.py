"""Numbers and names in plain sentences."""

from __future__ import annotations

import math

__all__ = ["percent", "plain_number", "quoted", "written"]


def percent(share: float) -> str:
    """Write a share as a percentage of three digits.

    Examples
    --------
    >>> percent(0.6685), percent(0.00012), percent(1.0)
    ('66.8 %', '0.012 %', '100 %')
    """
    return f"{plain_number(100 * share)} %"


def plain_number(number: float) -> str:
    """Write a number with three digits that count, never in powers of ten unless it is tiny.

    Examples
    --------
    >>> plain_number(2.0), plain_number(48842.0), plain_number(0.05019)
    ('2', '48,842', '0.0502')
    """
    if math.isnan(number):
        return "unknown"
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def quoted(name: str) -> str:
    """Set a name off from the sentence around it."""
    return f"“{name}”"


def written(number: float) -> str:
    """Write a number of a column as its rows have it, to six digits.

    Examples
    --------
    >>> written(50.0), written(1 / 3)
    ('50', '0.333333')
    """
    return str(int(number)) if float(number).is_integer() else f"{number:.6g}"
