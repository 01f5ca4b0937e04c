"""What rows weigh: how many rows each of them stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fado.metrics._inputs import Bools

Weights = NDArray[np.float64]


def read_weights(sample_weight: Any, n_rows: int) -> Weights | None:
    """Return a user's weights as checked numbers; None stands for equal ones."""
    from fado.tabular import weights_of

    return weights_of(sample_weight, n_rows)


def rows_of_weight(
    weights: Weights | None, positive: Bools, *columns: NDArray[Any], by_label: bool = True
) -> tuple[Any, ...]:
    """Leave out the rows that weigh nothing, and the weights if the others all weigh the same.

    This changes no share of weight. Equal weights so give what no weights give, to the last bit. Rates of
    one label's rows (`by_label`) need rows of each label that weigh something.

    Returns
    -------
    weights : ndarray or None
    positive, *columns : ndarray
        The rows that are left.

    Examples
    --------
    >>> labels, scores = np.array([True, False, True]), np.array([0.1, 0.5, 0.9])
    >>> rows_of_weight(np.array([2.0, 2.0, 0.0]), labels, scores)
    (None, array([ True, False]), array([0.1, 0.5]))
    >>> rows_of_weight(np.array([3.0, 1.0, 2.0]), labels)[0]
    array([3., 1., 2.])
    """
    if weights is None:
        return weights, positive, *columns
    rows = weights > 0
    for label, name in ((positive, "positive"), (~positive, "negative")):
        if by_label and not (rows & label).any():
            raise ValueError(
                f"`sample_weight` must be above zero in some row of each label, got zero in every {name} "
                "row; pass rows of both classes that weigh something."
            )
    if not rows.all():
        weights, positive, columns = weights[rows], positive[rows], tuple(column[rows] for column in columns)
    if (weights == weights[0]).all():
        return None, positive, *columns
    return weights, positive, *columns
