"""What the models that made the values learnt, for those who ask why a value is what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fado.tabular import Variable
from fado.valuation._provenance import SplitGains
from fado.valuation.entropy._moments import Moments
from fado.valuation.entropy._statistics import largest_known

__all__ = ["largest_errors", "shared_gains"]


def largest_errors(variables: Sequence[Variable], moments: Mapping[str, Moments]) -> dict[str, float]:
    """Give the largest error of each continuous variable: it turns agreement back into errors."""
    return {
        variable.name: largest_known(moments[variable.name].agreement)
        for variable in variables
        if variable.kind == "continuous"
    }


def shared_gains(columns: Sequence[str], gains: Mapping[str, npt.NDArray[np.float64]]) -> SplitGains | None:
    """Give every column's share of what a variable's models gained by splitting; None where no fit tells.

    Parameters
    ----------
    columns : sequence of str
        The names of the feature columns.
    gains : mapping of str to ndarray
        Per variable, the summed gain of the splits on each column and, last, on the target.
    """
    shares = {name: tuple((gain / gain.sum()).tolist()) for name, gain in gains.items() if gain.sum() > 0}
    return SplitGains(tuple(columns), shares) if shares else None
