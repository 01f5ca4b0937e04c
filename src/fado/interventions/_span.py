"""Between which ends utilities lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Span"]


@dataclass(frozen=True)
class Span:
    """What all utilities tell of each.

    Parameters
    ----------
    low, high : float
        The least and the largest.
    n_negative : int
        How many are below 0.
    n_rows : int
        How many there are.
    """

    low: float
    high: float
    n_negative: int
    n_rows: int

    @classmethod
    def of(cls, utilities: npt.NDArray[np.float64]) -> Span:
        """Read it off some rows."""
        n_negative = int((utilities < 0).sum())
        return cls(float(utilities.min()), float(utilities.max()), n_negative, len(utilities))

    def joined(self, other: Span) -> Span:
        """Give the span of these rows and others."""
        return Span(
            min(self.low, other.low),
            max(self.high, other.high),
            self.n_negative + other.n_negative,
            self.n_rows + other.n_rows,
        )
