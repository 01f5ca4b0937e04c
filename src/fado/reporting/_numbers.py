"""Numbers as texts of documents, and the ticks of their pictures; the scripts' twins are in numbers.js."""

from __future__ import annotations

import math

__all__ = ["count", "digits", "percent", "points", "share", "shortened", "ticks", "two"]

UNKNOWN = "\u2013"  # a dash


def count(number: float | None) -> str:
    """Write a whole number."""
    return UNKNOWN if number is None else f"{round(number):,}"


def digits(number: float | None) -> str:
    r"""Write a number with about four digits.

    Examples
    --------
    >>> [digits(number) for number in (0.12345, 12.345, 123.45, 12345.6, None)]
    ['0.123', '12.3', '123', '12,346', '\u2013']
    """
    if number is None or abs(number) >= 1000:
        return count(number)
    return f"{number:.{0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 3}f}"


def two(number: float | None) -> str:
    """Write a number with two decimals."""
    return UNKNOWN if number is None else f"{number:.2f}"


def percent(share: float | None) -> str:
    """Write a share in percent, a small one with one more decimal."""
    if share is None:
        return UNKNOWN
    return f"{100 * share:.{2 if 0 < abs(share) < 0.01 else 1}f}\u00a0%"


def share(number: float) -> str:
    """Write a share that somebody chose in percent, with the digits that it has."""
    return f"{100 * number:g}\u00a0%"


def points(gap: float | None) -> str:
    """Write a difference of two shares in percentage points."""
    return UNKNOWN if gap is None else f"{100 * gap:.1f}\u00a0p.p."


def shortened(text: str, most: int = 20) -> str:
    """Cut out the middle of a long name: names of crossed groups begin alike.

    Examples
    --------
    >>> shortened("a name of twenty-six letters"), shortened("short")
    ('a name of …x letters', 'short')
    """
    end = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - end]}…{text[-end:]}"


def ticks(least: float, most: float, wanted: int) -> list[float]:
    """Return round numbers that cut a range into about `wanted` parts.

    Examples
    --------
    >>> ticks(0.0, 0.9, 4)
    [0.0, 0.25, 0.5, 0.75]
    """
    rough = (most - least) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(digit * power for digit in (1, 2, 2.5, 5, 10) if digit * power >= rough * 0.999)
    return [
        place * step for place in range(math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9) + 1)
    ]
