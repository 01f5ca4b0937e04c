"""Which fit begins next: one of the slowest variable, so that workers wait less in the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

__all__ = ["Durations", "longest_first"]


class Durations:
    """How long the fits of each variable took so far; many threads may note them.

    Examples
    --------
    >>> durations = Durations()
    >>> durations.note("y", 1.0), durations.note("y", 3.0)
    (None, None)
    >>> durations.mean("y"), durations.mean("sex")
    (2.0, None)
    """

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {}

    def note(self, variable: str, seconds: float) -> None:
        """Note a fit that is done."""
        self._seconds.setdefault(variable, []).append(seconds)

    def mean(self, variable: str) -> float | None:
        """Give the mean of what was noted; None if nothing was."""
        seconds = self._seconds.get(variable)
        return sum(seconds) / len(seconds) if seconds else None


def longest_first(variables: Sequence[str], durations: Durations) -> Iterator[int]:
    """Give the places of fits, those of the slowest variable first once that is known, and in turn before.

    Within a variable they keep their order, in which what they say is averaged; the order of variables
    changes no value.

    Parameters
    ----------
    variables : sequence of str
        The variable of every fit.
    durations : Durations
        Looked at whenever a fit is asked for.

    Examples
    --------
    >>> durations = Durations()
    >>> order = longest_first(["y", "y", "y", "z", "z", "z"], durations)
    >>> next(order), next(order)
    (0, 3)
    >>> durations.note("y", 1.0), durations.note("z", 2.0)
    (None, None)
    >>> list(order)
    [4, 5, 1, 2]
    """
    waiting: dict[str, deque[int]] = {}
    for place, variable in enumerate(variables):
        waiting.setdefault(variable, deque()).append(place)
    while waiting:
        means = {variable: durations.mean(variable) for variable in waiting}
        known = {variable: mean for variable, mean in means.items() if mean is not None}
        if len(known) == len(waiting):
            chosen = max(known, key=known.__getitem__)
        else:
            chosen = max(waiting, key=lambda variable: len(waiting[variable]))
        yield waiting[chosen].popleft()
        if not waiting[chosen]:
            del waiting[chosen]
