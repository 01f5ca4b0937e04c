"""How something runs along a continuous attribute: up, down, up and down, or no way that can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby, pairwise

import numpy as np

from fado.exploration._intervals import Estimate, Gap

__all__ = ["Trend", "trend_of"]


@dataclass(frozen=True)
class Trend:
    """The course over the quarters of a continuous attribute.

    Parameters
    ----------
    direction : int
        1 if it rises, -1 if it falls, and 0 if it does neither steadily.
    every_step : bool
        Whether each quarter goes on in that direction.
    course : str
        What it does if it is not steady, such as "rises and falls"; "" if no quarter differs clearly.
    high, low : int
        The quarters where it is highest and lowest.
    """

    direction: int
    every_step: bool
    course: str
    high: int
    low: int


def trend_of(correlation: Estimate, quarters: Sequence[Estimate], gap: Gap) -> Trend:
    """Tell the course from the rank correlation over rows and the estimates of the quarters, in their order.

    It rises if the rank correlation is clearly above 0 and no later quarter lies clearly below an earlier
    one; it falls likewise. Clearly: the 95 % interval of the difference does not hold 0, widened for as many
    pairs of quarters as there are (Bonferroni), so that chance seldom makes a turn.

    Examples
    --------
    >>> from fado.exploration._intervals import Estimate, difference
    >>> def quarters(*numbers):
    ...     return [Estimate(number, number - 0.01, number + 0.01) for number in numbers]
    >>> trend_of(Estimate(0.3, 0.2, 0.4), quarters(0.1, 0.2, 0.3, 0.4), difference).direction
    1
    >>> trend_of(Estimate(0.3, 0.2, 0.4), quarters(0.4, 0.1, 0.2, 0.6), difference).course
    'falls, then rises'
    """
    numbers = [quarter.number for quarter in quarters]
    pairs = list(combinations(quarters, 2))
    gaps = [gap(later, earlier).widened(len(pairs)) for earlier, later in pairs]
    rises, falls = any(one.low > 0 for one in gaps), any(one.high < 0 for one in gaps)
    direction = 0
    if correlation.low > 0 and not falls:
        direction = 1
    elif correlation.high < 0 and not rises:
        direction = -1
    steps = [int(np.sign(after - before)) for before, after in pairwise(numbers)]
    course = ""
    if not direction and (rises or falls):
        words = ["rises" if step > 0 else "falls" for step, _ in groupby(step for step in steps if step)]
        course = ", then ".join(words) if len(words) == 2 else "rises and falls"
    return Trend(
        direction,
        all(step * direction > 0 for step in steps),
        course,
        int(np.argmax(numbers)),
        int(np.argmin(numbers)),
    )
