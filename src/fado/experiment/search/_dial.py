"""Turn the dial of an intervention for one model until a ratio reaches lines on validation rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.aim import JudgedRows, Search, Step, dial_settings, log_factors_of
from fado.experiment.search._grid import GridProposer
from fado.experiment.search._trial import Outcome, Trial

__all__ = ["UNTOUCHED", "Dial", "DialProposer"]

FloatArray = npt.NDArray[np.float64]

UNTOUCHED = "none"
_SAME = 1e-3  # log factors that make no difference


@dataclass(frozen=True)
class Dial:
    """One intervention whose strength is searched for.

    Parameters
    ----------
    intervention : str
        Its name.
    judged : JudgedRows
        The validation rows, and the ratio that is aimed at.
    targets : tuple of float
        The lines, in the order in which they are sought.
    max_fits : int
        How many fits one model may take, beside the untouched one.
    """

    intervention: str
    judged: JudgedRows
    targets: tuple[float, ...]
    max_fits: int

    def next(self, outcomes: Sequence[Outcome]) -> Trial | None:
        """Give what to try next with the model of some outcomes.

        Parameters
        ----------
        outcomes : sequence of Outcome
            All that was tried with one model; the untouched one is among them, and done.

        Returns
        -------
        Trial or None
            None if nothing is left to try or to win, or a fit has failed.
        """
        untouched = next(one for one in outcomes if _is_untouched(one.trial))
        own = [one for one in outcomes if self._is_own(one.trial)]
        if len(own) >= self.max_fits or any(one.metrics is None or one.scores is None for one in own):
            return None
        steps = sorted((self._step(one) for one in [untouched, *own]), key=_strength)
        for target in self.targets:
            found = Search(target, by_bound=False, max_fits=len(steps) + 1).next(steps)
            if found is not None and not _is_known(found, steps):
                return self._trial(untouched.trial, found)
        return None

    def _is_own(self, trial: Trial) -> bool:
        return trial.intervention == self.intervention and trial.settings["ratio"] == self.judged.ratio

    def _step(self, outcome: Outcome) -> Step:
        """Give what the search goes by of one outcome."""
        if outcome.metrics is None or outcome.scores is None:
            raise ValueError("A dial is turned by the scores of validation rows, and none are kept.")
        metrics = {
            name.removeprefix("validation_"): value
            for name, value in outcome.metrics.items()
            if name.startswith("validation_")
        }
        metrics.setdefault(f"{self.judged.ratio}_low", float("nan"))
        settings, log_factors = outcome.trial.settings, np.zeros(int(self.judged.compared.sum()))
        if "direction" in settings:
            log_factors = log_factors_of(settings["strength"], settings["direction"])
        return self.judged.step(log_factors, outcome.scores(), metrics)

    def _trial(self, untouched: Trial, log_factors: FloatArray) -> Trial:
        settings = {"ratio": self.judged.ratio, **dial_settings(log_factors)}
        return Trial(self.intervention, settings, untouched.model, untouched.parameters)


@dataclass(frozen=True)
class DialProposer:
    """Proposes a grid, and then turns dials, each for every model of the grid.

    Parameters
    ----------
    grid : GridProposer
        The grid.
    dials : tuple of Dial
        The dials.
    """

    grid: GridProposer
    dials: tuple[Dial, ...]

    def ask(self, outcomes: Sequence[Outcome], n: int | None = None) -> list[Trial]:
        """Give what the grid lacks, and then the next turn of every dial for every model."""
        untouched = [
            Trial(UNTOUCHED, {}, number, parameters) for number, parameters in enumerate(self.grid.models)
        ]
        known = {outcome.trial.key for outcome in outcomes}
        first = [trial for trial in untouched if trial.key not in known]
        new = self.grid.ask(outcomes)
        new += [trial for trial in first if trial.key not in {one.key for one in new}]
        if not new:
            new = _turn(self.dials, outcomes)
        return new[:n]


def _turn(dials: Sequence[Dial], outcomes: Sequence[Outcome]) -> list[Trial]:
    """Give the next turn of every dial for every model whose untouched fit is done."""
    by_model: dict[tuple[int, str], list[Outcome]] = {}
    for outcome in outcomes:
        by_model.setdefault(_model_of(outcome.trial), []).append(outcome)
    ready = [
        own
        for own in by_model.values()
        if any(_is_untouched(one.trial) and one.scores is not None for one in own)
    ]
    found = [dial.next(own) for dial in dials for own in ready]
    return [trial for trial in found if trial is not None]


def _is_untouched(trial: Trial) -> bool:
    """Tell whether a model is trained on all rows as they are."""
    return trial.intervention == UNTOUCHED and not trial.settings


def _model_of(trial: Trial) -> tuple[int, str]:
    parameters: Mapping[str, Any] = trial.parameters
    return trial.model, repr(sorted(parameters.items()))


def _strength(step: Step) -> float:
    return max(step.log_factors) - min(step.log_factors)


def _is_known(log_factors: FloatArray, steps: Sequence[Step]) -> bool:
    """Tell whether some step differs from these log factors by nothing that matters."""
    return any(np.abs(log_factors - step.log_factors).max() < _SAME for step in steps)
