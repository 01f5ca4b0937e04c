"""What a search for the frontier tries: many models a little, the best wholly, then the curve of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fado.aim import demands_of
from fado.experiment._trial import UNTOUCHED, Trial

__all__ = ["CURVE", "STUDENT", "FrontierProposer", "n_models"]

TREES = "n_estimators"
CURVE, STUDENT = "aimed", "student"
KEPT = 3  # of so many models one is trained wholly
GROUP_FITS = 1  # models of the groups
FOLDS = 5  # of the models that score training rows for students


@dataclass(frozen=True)
class FrontierProposer:
    """Proposes the trials of a search, by what came of those before.

    First every model grows a part of its trees, or sees a part of the rows. The third with the highest
    true-positive rates on validation rows is trained wholly. Then every point of the curve of each of these
    is a trial that takes no fit: the scores of the model, moved by a model of the groups. Last come students,
    if any are asked for, one for each line, all of the model that is best at the first.

    Parameters
    ----------
    models : tuple of mapping
        Their parameters.
    trees : tuple of int or None
        How many trees each has, which are not all grown at first; None shows models fewer rows instead.
    share : float
        Of the trees or rows, at first.
    lines : mapping of str to float
        The ratios, and the line of each that a demand of 0 asks for.
    max_fits : int
        How many whole fits all may cost, that of the model of the groups among them.
    students : tuple of mapping
        The lines that students are trained for, each a line of every ratio.
    """

    models: tuple[Mapping[str, Any], ...]
    trees: tuple[int, ...] | None
    share: float
    lines: Mapping[str, float]
    max_fits: int
    students: tuple[Mapping[str, float], ...] = ()

    def ask(self, outcomes: Sequence[Trial], n: int | None = None) -> list[Trial]:
        """Give the next trials; none when all fits are spent, or nothing is left to try."""
        known = {outcome.key: outcome for outcome in outcomes}
        first = [self._first(number) for number in range(len(self.models))]
        new = self._affordable(first, outcomes)
        if not new:
            whole = [self._whole(trial.model) for trial in self._best(first, known, KEPT)]
            new = self._affordable(whole, outcomes)
        if not new:
            curves = [self._curve(trial, known[trial.key]) for trial in self._best(whole, known, 1)]
            new = self._affordable([trial for curve in curves for trial in curve], outcomes)
        return (new or self._affordable(self._taught(outcomes), outcomes))[:n]

    def _affordable(self, trials: Sequence[Trial], before: Sequence[Trial]) -> list[Trial]:
        """Give the trials that are new, as far as the fits that are left go."""
        known, chosen = {trial.key for trial in before}, list[Trial]()
        left = self.max_fits - GROUP_FITS - sum(self.costs(before))
        taught = [trial for trial in before if trial.intervention == STUDENT]
        for trial in trials:
            cost = self.costs([*taught, trial])[-1]
            kept = 0 if trial.intervention == STUDENT else student_fits(len(self.students))
            if trial.key not in known and cost <= left - kept + 1e-9:
                left -= cost
                chosen.append(trial)
                taught += [trial] if trial.intervention == STUDENT else []
        return chosen

    def costs(self, trials: Sequence[Trial]) -> list[float]:
        """Say how much of a whole fit each trial costs, given those before it."""
        found, taught = list[float](), False
        for trial in trials:
            if trial.intervention == STUDENT:
                found.append(1.0 if taught else 1.0 + 2 * FOLDS)
                taught = True
            elif trial.intervention == CURVE:
                found.append(0.0)
            elif self.trees is None:
                found.append(float(trial.settings.get("share", 1.0)))
            else:
                found.append(trial.parameters[TREES] / self.trees[trial.model])
        return found

    def _whole(self, number: int) -> Trial:
        trees = {} if self.trees is None else {TREES: self.trees[number]}
        return Trial(UNTOUCHED.intervention, {}, number, {**self.models[number], **trees})

    def _first(self, number: int) -> Trial:
        whole = self._whole(number)
        if len(self.models) == 1:
            return whole
        if self.trees is None:
            return Trial(whole.intervention, {"share": self.share}, number, whole.parameters)
        few = max(1, round(self.share * self.trees[number]))
        return Trial(whole.intervention, {}, number, {**whole.parameters, TREES: few})

    @staticmethod
    def _best(trials: Sequence[Trial], known: Mapping[str, Trial], of: int) -> list[Trial]:
        """Give one of so many trials, those of the highest true-positive rates, by falling rate."""
        rates = {trial.key: _rate(known.get(trial.key)) for trial in trials}
        done = [trial for trial in trials if rates[trial.key] > -math.inf]
        ordered = sorted(done, key=lambda trial: (-rates[trial.key], trial.model))
        return ordered[: math.ceil(len(trials) / of)]

    def _curve(self, whole: Trial, outcome: Trial) -> list[Trial]:
        """Give the points of a model's curve, from the untouched model on."""
        metrics = outcome.metrics or {}
        ratios = [metrics[f"validation_{ratio}"] for ratio in self.lines]
        return [
            Trial(CURVE, settings_of(self.lines) | {"demand": demand}, whole.model, whole.parameters)
            for demand in demands_of(ratios, list(self.lines.values()))
        ]

    def _taught(self, outcomes: Sequence[Trial]) -> list[Trial]:
        """Give a student for each line, all of the model that has the best point at the first."""
        points = [one for one in outcomes if one.intervention == CURVE and one.metrics]
        if not points or not self.students:
            return []
        best = max(points, key=lambda one: _above(one, self.students[0]))
        return [Trial(STUDENT, settings_of(lines), best.model, best.parameters) for lines in self.students]


def settings_of(lines: Mapping[str, float]) -> dict[str, Any]:
    """Give the settings that say some lines.

    Examples
    --------
    >>> settings_of({"fpr_ratio": 0.8})
    {'ratio': 'fpr_ratio', 'at_least': 0.8}
    >>> settings_of({"fpr_ratio": 0.8, "tpr_ratio": 0.9})
    {'ratio': 'fpr_ratio=0.8, tpr_ratio=0.9'}
    """
    if len(lines) == 1:
        ((ratio, line),) = lines.items()
        return {"ratio": ratio, "at_least": line}
    return {"ratio": ", ".join(f"{ratio}={line!r}" for ratio, line in lines.items())}


def student_fits(n_students: int) -> int:
    """Say how many fits so many students take: folds of label and groups once, and one each."""
    return 2 * FOLDS + n_students if n_students else 0


def n_models(max_fits: float, share: float) -> int:
    """Say how many models so many whole fits are to begin with.

    Parameters
    ----------
    max_fits : float
        Whole fits of models of the label.
    share : float
        What a first fit costs.

    Examples
    --------
    >>> n_models(59, 0.25), n_models(1, 0.25)
    (100, 1)
    """
    most = int(max_fits / (share + 1 / KEPT))
    return next((n for n in range(most, 1, -1) if share * n + math.ceil(n / KEPT) <= max_fits), 1)


def _rate(outcome: Trial | None) -> float:
    """Give the true-positive rate on validation rows; -inf where there is none."""
    if outcome is None or outcome.metrics is None or outcome.scores is None:
        return -math.inf
    rate = outcome.metrics["validation_tpr"]
    return -math.inf if math.isnan(rate) else rate


def _above(outcome: Trial, lines: Mapping[str, float]) -> tuple[float, float]:
    """Order points: those above all lines by true-positive rate, the others by how close they come."""
    metrics = outcome.metrics or {}
    shares = [metrics[f"validation_{ratio}"] / line for ratio, line in lines.items()]
    share = min((0.0 if math.isnan(own) else own for own in shares), default=0.0)
    return (1.0, _rate(outcome)) if share >= 1 else (share, 0.0)
