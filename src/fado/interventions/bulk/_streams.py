"""The interventions that have a form for rows that are read block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.interventions.bulk._cells import Cells, Passes, Rows

__all__ = ["Factors", "Stream", "stream_of", "streams"]

Factors = Callable[[Rows], npt.NDArray[np.float64]]
Stream = Callable[[Any, Cells, Passes], Factors]

_STREAMS: dict[type, Stream] = {}


def streams(*kinds: type) -> Callable[[Stream], Stream]:
    """Register the form of an intervention that reads rows block by block.

    It is a function of the intervention, of its cells, and of what reads all rows once more, as often as it
    is called. It decides, and gives a function of some rows: what the weight of each is multiplied by, 0 for
    a row that goes.

    Parameters
    ----------
    *kinds : type
        The classes that it stands for. A subclass may do otherwise, and needs a form of its own.
    """

    def register(stream: Stream) -> Stream:
        _STREAMS.update(dict.fromkeys(kinds, stream))
        return stream

    return register


def stream_of(intervention: Any) -> Stream:
    """Find the form of an intervention, or say that it has none."""
    stream = _STREAMS.get(type(intervention))
    if stream is None:
        raise ValueError(
            f"{type(intervention).__name__} needs all rows in memory, and cannot be done part by part: fit "
            "it to a table in memory, or choose another intervention."
        )
    return stream
