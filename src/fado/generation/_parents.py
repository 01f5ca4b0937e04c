"""Which rows others are made from."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fado.interventions import minmax
from fado.tabular import Groups, Labels

__all__ = ["FLOOR", "draw_parents"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

FLOOR = 0.3  # of the chance of the row of most utility, for that of least: no row is out of the question


def draw_parents(
    made: npt.NDArray[np.int64],
    labels: Labels,
    groups: Groups,
    utilities: FloatArray | None,
    sample_weight: FloatArray | None,
    generator: np.random.Generator,
) -> Rows:
    """Draw as many parents in every cell as rows are to be made there, a row any number of times.

    A row's chance is ``0.3 + 0.7 * minmax(U)`` of its utility, scaled within its cell, times its weight.

    Parameters
    ----------
    made : ndarray of int, shape (n_labels, n_groups)
        How many rows to make.
    labels, groups : Labels, Groups
        The rows' cells.
    utilities : ndarray, optional
        The rows' utilities; all alike without.
    sample_weight : ndarray, optional
        The rows' weights.
    generator : numpy.random.Generator
        Of the draws.

    Returns
    -------
    ndarray of int
        Positions of rows, label by label and group by group.
    """
    drawn = [np.zeros(0, dtype=np.intp)]
    for label, group in np.argwhere(made).tolist():
        rows = np.flatnonzero((labels.codes == label) & (groups.codes == group))
        chances = np.ones(len(rows))
        if utilities is not None:
            chances = FLOOR + (1 - FLOOR) * minmax(utilities[rows])
        if sample_weight is not None:
            chances = chances * sample_weight[rows]
        drawn.append(generator.choice(rows, made[label, group], p=chances / chances.sum()))
    return np.concatenate(drawn)
