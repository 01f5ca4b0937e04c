"""What the numbers of a column of values mean, and between which ends they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fado._records import is_number, shorten

__all__ = ["CLOSENESS", "EFFECT", "ENTROPY", "Scale", "effect_on"]


@dataclass(frozen=True)
class Scale:
    """The scale of a column of values; a higher value always means that the row is worth more.

    Parameters
    ----------
    meaning : str
        What a value says, in a few words.
    low, high : float or None
        The lowest and the highest value that is possible; None, the default, if there is no bound.
    neutral : float or None
        The value of a row that neither helps nor harms, by default 0; None if there is no such value.
    """

    meaning: str
    low: float | None = None
    high: float | None = None
    neutral: float | None = 0.0

    @property
    def is_unit(self) -> bool:
        """Whether the bounds are 0 and 1, so that values can be combined without rescaling."""
        return (self.low, self.high) == (0.0, 1.0)

    @property
    def is_signed(self) -> bool:
        """Whether values may be negative."""
        return self.low is None or self.low < 0

    def to_dict(self) -> dict[str, Any]:
        """Give the scale as plain data that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Any) -> Scale:
        """Read what `to_dict` gave; anything else raises a ValueError."""
        if not isinstance(content, Mapping) or not isinstance(content.get("meaning"), str):
            raise ValueError(f"A scale must be a mapping with a `meaning`, got {shorten(content)}.")
        ends = {name: content.get(name) for name in ("low", "high", "neutral")}
        for name, end in ends.items():
            if end is not None and not is_number(end):
                raise ValueError(f"A scale's `{name}` must be a number or null, got {shorten(end)}.")
        low, high = ends["low"], ends["high"]
        if low is not None and high is not None and low >= high:
            raise ValueError(f"A scale's `low` must be below its `high`, got {low} and {high}.")
        return cls(content["meaning"], **ends)


ENTROPY = Scale("entropy of the predicted classes: how unsure models are", 0.0, 1.0, None)
CLOSENESS = Scale("closeness of the prediction to the mean: how little models know", 0.0, 1.0, None)
EFFECT = Scale("effect of the row's weight on a metric, in the metric's own unit")


def effect_on(metric: str) -> Scale:
    """Give the scale of effects on a metric that has a name.

    Examples
    --------
    >>> effect_on("fpr_ratio").meaning
    "effect of the row's weight on fpr_ratio"
    """
    return Scale(f"effect of the row's weight on {metric}")
