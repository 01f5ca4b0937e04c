"""What an intervention leaves: rows, their weights, and the parents of rows to make."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["TrainingSet"]


@dataclass(frozen=True)
class TrainingSet:
    """What an intervention makes of a table: which rows are kept, their weights, and rows to add.

    Parameters
    ----------
    rows : ndarray of int
        The positions of the rows that are kept, ascending.
    weights : ndarray of float, optional
        The weights of these rows; None stands for equal weights.
    parents : ndarray of int, optional
        One entry per row to add: the position of the row that it is made from. None adds no rows.
    labels : ndarray of bool, optional
        Which of the rows that are kept a model is to learn as positive, if not by their own labels.
    """

    rows: npt.NDArray[np.integer]
    weights: npt.NDArray[np.floating] | None = None
    parents: npt.NDArray[np.integer] | None = None
    labels: npt.NDArray[np.bool_] | None = None

    def digest(self) -> str:
        """Give a text of 32 letters and digits that is the same for equal training sets only."""
        digest = hashlib.sha256(np.ascontiguousarray(self.rows, dtype=np.int32).data)
        if self.weights is not None:
            digest.update(np.ascontiguousarray(self.weights, dtype=np.float32).data)
        if self.parents is not None:
            digest.update(b"parents")
            digest.update(np.ascontiguousarray(self.parents, dtype=np.int32).data)
        if self.labels is not None:
            digest.update(b"labels")
            digest.update(np.packbits(self.labels).data)
        return digest.hexdigest()[:32]
