"""The rows that an aimed model is judged on: rates of groups, and a ratio held against a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import list_names, warn_user
from fado.aim._search import Step
from fado.metrics import Budget, measure
from fado.tabular import Groups, Problem, group_rows, mean_one, small_groups, tell_small

__all__ = ["INTERVAL", "JudgedRows", "compare_groups", "groups_of_judge", "positives_of_judge"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]

DRAWS = 200
INTERVAL = 0.975  # how sure each end of an interval is, where no confidence is asked for
# Of each ratio: the label of the rows that a group's rate is counted among (None for all), and whether it
# counts those that are predicted positive.
_RATES: dict[str, tuple[bool | None, bool]] = {
    "fpr_ratio": (False, True),
    "tpr_ratio": (True, True),
    "fnr_ratio": (True, False),
    "selection_rate_ratio": (None, True),
}


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """The rows that models are judged on, and how: which ratio, at which budget, in which groups.

    Parameters
    ----------
    positive : ndarray of bool
        Which rows have the positive label.
    codes : ndarray of int
        Each row's group, as a position in `names`.
    names : tuple of str
        What messages call the groups.
    compared : ndarray of bool, of the length of `names`
        Which groups are large enough to be compared.
    weights : ndarray or None
        How much each row counts; None counts all rows alike.
    ratio : str
        The ratio that is aimed at.
    budget : Budget
        What sets the threshold of decisions.
    confidence : float
        How sure each end of an interval is, in (0.5, 1): 0.975 makes an interval of 95 %.
    seed : int
        The seed of the draws for intervals.
    """

    positive: Bools
    codes: Codes
    names: tuple[str, ...]
    compared: Bools
    weights: FloatArray | None
    ratio: str
    budget: Budget
    confidence: float
    seed: int

    def measure(self, scores: FloatArray) -> tuple[dict[str, float], list[str]]:
        """Give all metrics of some scores with intervals, and why some are undefined.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,)
            The scores of these rows.

        Returns
        -------
        metrics : dict of str to float
        reasons : list of str
            As `fado.metrics.measure` returns them.
        """
        return measure(
            self.positive,
            scores,
            self.codes,
            self.names,
            budget=self.budget,
            n_boot=DRAWS,
            random_state=self.seed,
            sample_weight=self.weights,
            left_out=~self.compared,
            confidence=2 * self.confidence - 1,
        )

    def step(self, log_factors: FloatArray, scores: FloatArray, metrics: dict[str, float]) -> Step:
        """Gather in a `Step` what a search needs to know of a model.

        Parameters
        ----------
        log_factors : ndarray of shape (n_compared,)
            The log factors that the model was trained with.
        scores : ndarray of shape (n_rows,)
            Its scores of these rows.
        metrics : dict of str to float
            What `measure` gave for them.
        """
        log_rates, errors = self._log_rates(scores, metrics["threshold"])
        return Step(
            tuple(log_factors.tolist()),
            tuple(log_rates.tolist()),
            tuple(errors.tolist()),
            metrics["tpr"],
            metrics[self.ratio],
            metrics[f"{self.ratio}_low"],
        )

    def _log_rates(self, scores: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray]:
        """Give the logarithm of each compared group's rate, higher where its scores are, and its error.

        Half an event more than there are keeps the logarithm finite.
        """
        label, of_predicted = _RATES[self.ratio]
        counted = np.ones(len(scores), dtype=np.bool_) if label is None else self.positive == label
        predicted = scores >= threshold
        weights = np.ones(len(scores)) if self.weights is None else mean_one(self.weights)
        events, members = (
            np.bincount(self.codes[rows], weights[rows], minlength=len(self.names))
            for rows in (counted & (predicted == of_predicted), counted)
        )
        rates = ((events + 0.5) / (members + 1.0))[self.compared]
        errors = np.sqrt((1 - rates) / (events[self.compared] + 0.5))
        return np.log(rates) * (1 if of_predicted else -1), errors


def compare_groups(training: Codes, judged: Codes, names: tuple[str, ...], min_group_size: int) -> Bools:
    """Tell which groups are large enough in both the rows to learn from and those to judge by.

    Raises
    ------
    ValueError
        If a group that is large enough to be compared has no row to judge by.
    """
    sizes, there = (np.bincount(codes, minlength=len(names)) for codes in (training, judged))
    new = (sizes == 0) & (there > 0)
    small = (small_groups(sizes, min_group_size) | small_groups(there, min_group_size)) & ~new
    lacking = np.flatnonzero(~small & (there == 0))
    if len(lacking):
        told = list_names([names[group] for group in lacking])
        raise ValueError(
            f"The judged rows hold no row of group {told}: judge by rows of every group, or leave that group "
            "out of the training rows."
        )
    if new.any():
        told = list_names([names[group] for group in np.flatnonzero(new)])
        warn_user(f"Group {told} of the judged rows is not among those to learn from, and not compared.")
    if small.any():
        told = tell_small(names, np.minimum(sizes, there), small, min_group_size)
        verb = "is" if small.sum() == 1 else "are"
        warn_user(f"{told} {verb} not compared and not weighed (rows to learn from or to judge by).")
    return ~(small | new)


def groups_of_judge(problem: Problem, judge: Problem) -> Groups:
    """Give the judged rows' groups the numbers that they have among the others; new ones come after them."""
    own = problem.groups
    if len(problem.protected) != len(judge.protected):
        raise ValueError(
            f"`judge` has {len(judge.protected)} protected attributes, and the rows to learn from have "
            f"{len(problem.protected)}: give both the same."
        )
    theirs = judge.groups
    if judge.protected and problem.names_given and judge.names_given:
        by_name = {variable.name: variable for variable in judge.protected}
        lacking = [variable.name for variable in problem.protected if variable.name not in by_name]
        if lacking:
            raise ValueError(f"`judge` has no protected attribute {lacking[0]!r}: give both the same.")
        theirs = group_rows([by_name[variable.name] for variable in problem.protected])
    new = [name for name in theirs.names if name not in own.names]
    names = (*own.names, *new)
    place = np.array([names.index(name) for name in theirs.names], dtype=np.int64)
    return Groups(place[theirs.codes], names, names)


def positives_of_judge(classes: tuple[Any, Any], judge: Problem) -> Bools:
    """Tell which judged rows hold the positive label, the second of two."""
    found = judge.labels.classes
    strange = [label for label in found if label not in classes]
    if strange:
        raise ValueError(
            f"`judge` has the label {strange[0]!r}, and the rows to learn from have {classes[0]!r} and "
            f"{classes[1]!r}: give both the same labels."
        )
    if len(found) == 1:
        raise ValueError(f"`judge` holds one label only ({found[0]!r}): judge by rows of both labels.")
    return judge.labels.codes == found.index(classes[1])
