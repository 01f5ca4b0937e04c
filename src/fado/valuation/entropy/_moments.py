"""Running means over fits, row by row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Moments"]

FloatArray = npt.NDArray[np.float64]


class Moments:
    """Mean, standard error and count of what the fits said of each row.

    Results must be added in one fixed order: floating-point sums depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> moments = Moments(2)
    >>> moments.add(np.array([0, 1]), np.array([0.2, np.nan]), np.array([1.0, 1.0]))
    >>> moments.add(np.array([0]), np.array([0.4]), np.array([0.0]))
    >>> moments.mean.round(2), moments.count, moments.agreement
    (array([0.3, nan]), array([2, 0], dtype=int32), array([0.5, nan]))
    """

    def __init__(self, n_rows: int) -> None:
        self.count = np.zeros(n_rows, dtype=np.int32)
        self._mean = np.zeros(n_rows)
        self._squares = np.zeros(n_rows)
        self._agreement = np.zeros(n_rows)

    def add(self, rows: npt.NDArray[np.integer], values: FloatArray, agreement: FloatArray) -> None:
        """Add one fit's numbers for some rows, each row once; NaN values do not count."""
        finite = np.isfinite(values)
        if not finite.all():
            rows, values, agreement = rows[finite], values[finite], agreement[finite]
        self.count[rows] += 1
        count = self.count[rows]
        before = values - self._mean[rows]
        self._mean[rows] += before / count
        self._squares[rows] += before * (values - self._mean[rows])
        self._agreement[rows] += (agreement - self._agreement[rows]) / count

    @property
    def mean(self) -> FloatArray:
        """Mean over the fits; NaN for a row that none scored."""
        return np.where(self.count > 0, self._mean, np.nan)

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the mean; NaN for a row scored fewer than two times."""
        error = np.full(len(self.count), np.nan)
        often = self.count > 1
        count = self.count[often].astype(np.float64)
        error[often] = np.sqrt(np.maximum(self._squares[often], 0.0) / (count - 1.0) / count)
        return error

    @property
    def agreement(self) -> FloatArray:
        """Mean agreement over the fits; NaN for a row that none scored."""
        return np.where(self.count > 0, self._agreement, np.nan)
