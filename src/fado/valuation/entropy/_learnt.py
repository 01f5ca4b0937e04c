"""What the models that made the values learnt, added up fit by fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.tabular import TARGET, Variable
from fado.valuation._provenance import SplitGains
from fado.valuation.entropy._fits import KeptModel, Outcome
from fado.valuation.entropy._moments import Moments
from fado.valuation.entropy._statistics import largest_known

__all__ = ["Learnt", "largest_errors", "shared_gains"]


class Learnt:
    """What fits say of every row and column, per variable.

    Parameters
    ----------
    variables : sequence of Variable
        What is learnt.
    n_rows, n_columns : int
        Of the table.

    Attributes
    ----------
    moments : dict of str to Moments
        Averages over the fits, row by row.
    gains : dict of str to ndarray
        The summed gain of the splits on each column and, last, on the target.
    paced : dict of str to estimator
        What the default models came to.
    kept : dict of str to list of KeptModel
        The models, if they are kept.
    """

    def __init__(self, variables: Sequence[Variable], n_rows: int, n_columns: int) -> None:
        self.moments = {variable.name: Moments(n_rows) for variable in variables}
        self.gains = {variable.name: np.zeros(n_columns + 1) for variable in variables}
        self.paced: dict[str, Any] = {}
        self.kept: dict[str, list[KeptModel]] = {variable.name: [] for variable in variables}
        self._sums: dict[str, npt.NDArray[np.float64]] = {}  # of probabilities, if they are kept

    def add(self, outcome: Outcome) -> None:
        """Add what one fit says; the order decides the last bits."""
        self.moments[outcome.variable].add(outcome.rows, outcome.values, outcome.agreement)
        if outcome.gains is not None:
            self.gains[outcome.variable] += outcome.gains
        if outcome.estimator is not None:
            self.paced[outcome.variable] = outcome.estimator
        if outcome.kept is not None:
            self.kept[outcome.variable].append(outcome.kept)
        if outcome.probabilities is not None:
            if outcome.variable not in self._sums:
                n_rows = len(self.moments[outcome.variable].count)
                self._sums[outcome.variable] = np.zeros((n_rows, *outcome.probabilities.shape[1:]))
            self._sums[outcome.variable][outcome.rows] += outcome.probabilities

    def mean_probabilities(self) -> dict[str, npt.NDArray[np.float64]] | None:
        """Give the mean probabilities of classes over the fits, as `Valuation` has them; None if not kept."""
        if not self._sums:
            return None
        means, n_labels = {}, self._sums[TARGET].shape[1]
        for name in [name for name in self.moments if name in self._sums]:  # not as the fits were done
            total = self._sums[name]
            count = self.moments[name].count.reshape(-1, *[1] * (total.ndim - 1))
            mean = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
            means[name] = mean if mean.shape[1] == n_labels else np.repeat(mean, n_labels, axis=1)
        return means

    def of_defaults(self, parameter: str) -> dict[str, Any] | None:
        """Give a parameter of the default models, per variable; None for other models."""
        if not self.paced:
            return None
        return {name: getattr(self.paced[name], parameter) for name in self.moments}


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
