"""What a search for the frontier tries: many models a little, the best wholly, then dials on these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fado.experiment.search import UNTOUCHED, Dial, Outcome, Trial

__all__ = ["FrontierProposer", "n_models"]

TREES = "n_estimators"
KEPT = 3  # of so many models one is trained wholly
MOST_SIDE_BY_SIDE = 4  # models whose dial is turned at a time, whatever the number of workers
FITS_OF_A_DIAL = 15  # of the budget, for each of them
EXPLORED = 1 / 3  # of the budget, to find models


@dataclass(frozen=True)
class FrontierProposer:
    """Proposes the trials of a search, by what came of those before.

    First every model grows a part of its trees, or sees a part of the rows. The third with the highest
    true-positive rates on validation rows is trained wholly. Then the dial of the best few is turned until
    the ratio reaches one line after the other; whenever one is done, the next best takes its place, until the
    budget is spent.

    Parameters
    ----------
    models : tuple of mapping
        Their parameters.
    trees : tuple of int or None
        How many trees each has, which are not all grown at first; None shows models fewer rows instead.
    share : float
        Of the trees or rows, at first.
    dial : Dial
        What is turned.
    budget : int
        How many whole fits all may cost.
    """

    models: tuple[Mapping[str, Any], ...]
    trees: tuple[int, ...] | None
    share: float
    dial: Dial
    budget: int

    def ask(self, outcomes: Sequence[Outcome], n: int | None = None) -> list[Trial]:
        """Give the next trials; none when the budget is spent, or nothing is left to win."""
        known = {outcome.trial.key: outcome for outcome in outcomes}
        left = self.budget - sum(self.cost(outcome.trial) for outcome in outcomes)
        first = [self._first(number) for number in range(len(self.models))]
        new = [trial for trial in first if trial.key not in known]
        if not new:
            whole = [self._whole(trial.model) for trial in self._best(first, known, KEPT)]
            new = [trial for trial in whole if trial.key not in known]
            if not new:
                new = self._turned(self._best(whole, known, 1), outcomes, known)
        chosen: list[Trial] = []
        for trial in new:
            left -= self.cost(trial)
            if left > -1e-9:
                chosen.append(trial)
        return chosen[:n]

    def cost(self, trial: Trial) -> float:
        """Say how much of a whole fit a trial costs."""
        if self.trees is None:
            return float(trial.settings.get("share", 1.0))
        return trial.parameters[TREES] / self.trees[trial.model]

    def _whole(self, number: int) -> Trial:
        trees = {} if self.trees is None else {TREES: self.trees[number]}
        return Trial(UNTOUCHED, {}, number, {**self.models[number], **trees})

    def _first(self, number: int) -> Trial:
        whole = self._whole(number)
        if len(self.models) == 1:
            return whole
        if self.trees is None:
            return Trial(UNTOUCHED, {"share": self.share}, number, whole.parameters)
        few = max(1, round(self.share * self.trees[number]))
        return Trial(UNTOUCHED, {}, number, {**whole.parameters, TREES: few})

    @staticmethod
    def _best(trials: Sequence[Trial], known: Mapping[str, Outcome], of: int) -> list[Trial]:
        """Give one of so many trials, those of the highest true-positive rates, by falling rate."""
        rates = {trial.key: _rate(known[trial.key]) for trial in trials}
        done = [trial for trial in trials if rates[trial.key] > -math.inf]
        ordered = sorted(done, key=lambda trial: (-rates[trial.key], trial.model))
        return ordered[: math.ceil(len(trials) / of)]

    def _turned(
        self, best: Sequence[Trial], outcomes: Sequence[Outcome], known: Mapping[str, Outcome]
    ) -> list[Trial]:
        """Turn the dial of the best models for which something is left to win."""
        new: list[Trial] = []
        for trial in best:
            own = [
                one
                for one in outcomes
                if one.trial.model == trial.model and one.trial.parameters == trial.parameters
            ]
            turned = self.dial.next(own)
            if turned is not None and turned.key not in known:
                new.append(turned)
            if len(new) == min(MOST_SIDE_BY_SIDE, max(1, self.budget // FITS_OF_A_DIAL)):
                break
        return new


def n_models(budget: int, share: float) -> int:
    """Say how many models a budget of whole fits is to begin with.

    Parameters
    ----------
    budget : int
        Whole fits.
    share : float
        What a first fit costs.

    Examples
    --------
    >>> n_models(60, 0.25), n_models(2, 0.25)
    (34, 1)
    """
    return max(1, int(EXPLORED * budget / (share + 1 / KEPT)))


def _rate(outcome: Outcome) -> float:
    """Give the true-positive rate on validation rows; -inf where there is none."""
    rate = float("nan") if outcome.metrics is None else outcome.metrics["validation_tpr"]
    return -math.inf if math.isnan(rate) or outcome.scores is None else rate
