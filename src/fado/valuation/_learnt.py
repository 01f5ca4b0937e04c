"""What the models that made the values learnt, for those who ask why a value is what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._variables import Variable
from fado.valuation._moments import Moments
from fado.valuation._statistics import largest_known

__all__ = ["what_models_learnt"]


def what_models_learnt(
    columns: Sequence[str],
    variables: Sequence[Variable],
    moments: Mapping[str, Moments],
    gains: Mapping[str, npt.NDArray[np.float64]],
) -> dict[str, Any]:
    """Say what the models split on, and how far off they were of continuous variables.

    Parameters
    ----------
    columns : sequence of str
        The names of the feature columns.
    variables : sequence of Variable
        What was learnt.
    moments : mapping of str to Moments
        Per variable, what the fits said of the rows.
    gains : mapping of str to ndarray
        Per variable, the summed gain of the splits on each column and, last, on the target. All 0 where no
        fit tells.

    Returns
    -------
    dict
        For a valuation's metadata: ``"largest_error"``, in a continuous variable's own units, which turns
        agreement back into errors; and ``"split_gains"``, every column's share of a variable's gain, if
        known.
    """
    learnt: dict[str, Any] = {
        "largest_error": {
            variable.name: largest_known(moments[variable.name].agreement)
            for variable in variables
            if variable.kind == "continuous"
        }
    }
    shares = {name: (gain / gain.sum()).tolist() for name, gain in gains.items() if gain.sum() > 0}
    if shares:
        learnt["split_gains"] = {"columns": list(columns), "shares": shares}
    return learnt
