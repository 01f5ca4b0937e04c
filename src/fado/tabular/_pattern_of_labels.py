"""Which rows share a label: a digest that tells rows in another order, or of another target."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LabelPattern"]


class LabelPattern:
    """A digest of which rows share a label, in the order of the rows; how they are cut does not matter.

    Examples
    --------
    >>> whole, cut = LabelPattern(), LabelPattern()
    >>> whole.add(np.array([0, 0, 1]))
    >>> for codes in ([0], [0, 1]):
    ...     cut.add(np.array(codes))
    >>> whole.hexdigest() == cut.hexdigest()
    True
    """

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, codes: npt.NDArray[np.integer[Any]]) -> None:
        """See some rows.

        Parameters
        ----------
        codes : ndarray of int
            Their labels, numbered as all rows so far first show them: what labels are called must not matter.
        """
        self._digest.update(np.ascontiguousarray(codes, dtype=np.int32).data)

    def hexdigest(self) -> str:
        """Give the digest of all rows so far."""
        return self._digest.hexdigest()
