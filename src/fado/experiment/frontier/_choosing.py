"""From a row of the results to a fitted model: chosen by validation rows, trained again, with its facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.aim import INTERVAL, GroupThresholds, check_confidence, check_line
from fado.engine import detach
from fado.experiment.config import Config, Given, describe_object, is_object
from fado.experiment.results import Results, same_data
from fado.experiment.run import Bench, Data
from fado.experiment.search import Trial
from fado.experiment.store import DONE, Keys, Store, read_trials
from fado.interventions import intervention_named
from fado.metrics import measure
from fado.models import ChosenModel, Facts, Part
from fado.valuation import Valuation

__all__ = ["Choice", "choose_row", "fit_best_of", "train_choice"]

FloatArray = npt.NDArray[np.float64]
DRAWS = 200


@dataclass(frozen=True)
class Choice:
    """A row of the results, and how it was chosen.

    Parameters
    ----------
    row : int
        Its label in the frame.
    ratio : str
        The ratio that is to be kept.
    at_least : float
        The line.
    confidence : float or None
        With which it is to be kept.
    reached : bool
        Whether it is, on the rows that models are chosen on.
    tried : int
        How many models were compared.
    above : int
        How many of them reached the line by their estimate.
    why : str
        Where it is not reached: why.
    """

    row: int
    ratio: str
    at_least: float
    confidence: float | None
    reached: bool
    tried: int
    above: int
    why: str = ""

    @property
    def sentence(self) -> str:
        """How it was chosen, in words."""
        line = f"{self.ratio} of at least {self.at_least:g}"
        if not self.reached:
            sure = "" if self.confidence is None else f" with {100 * self.confidence:g} % confidence"
            return f"None of {self.tried:,} models reached {line}{sure}; this one comes closest."
        if self.confidence is None:
            return (
                f"Of {self.tried:,} models, {self.above:,} reached {line}; this one has the highest "
                "true-positive rate of them."
            )
        return (
            f"Of {self.tried:,} models, {self.above:,} reached {line} by their estimates. This one has the "
            "highest true-positive rate of those whose lower bound reaches it too, at "
            f"{100 * self.confidence:g} % confidence for the {self.above:,} together."
        )


def choose_row(
    results: Results, data: Data, ratio: str, at_least: float, confidence: float | None
) -> Choice | None:
    """Choose the model of highest true-positive rate above the line; the closest if there is none.

    A lower bound that is to hold for the best of several models is taken at a level that is shared among
    those whose estimates reach the line: one of them may have done so by luck.

    Returns
    -------
    Choice or None
        None if no model can be compared.
    """
    at_least, confidence = check_line(at_least), check_confidence(confidence)
    part = results.chosen_on
    points = results.comparable_points(ratio, part)
    fit = np.array([not _needs_more(name) for name in results.frame["intervention"]], dtype=np.bool_)
    known = np.flatnonzero(~np.isnan(points).any(axis=1) & fit)
    if not len(known):
        return None
    above = known[points[known, 1] >= at_least]
    about: dict[str, Any] = {
        "ratio": ratio,
        "at_least": at_least,
        "confidence": confidence,
        "tried": len(known),
        "above": len(above),
    }
    by_rate = above[np.lexsort([-points[above, 1], -points[above, 0]])]
    for row in by_rate.tolist():
        if confidence is None or _bound(results, data, row, ratio, confidence, len(above)) >= at_least:
            return Choice(row, reached=True, **about)
    if len(above):
        row = int(by_rate[np.argmax(points[by_rate, 1])])
        have = "1 model has" if len(above) == 1 else f"{len(above):,} models have"
        why = (
            f"{have} a {ratio} of at least {at_least:g}, but too few rows were judged to be sure of any: the "
            f"highest is {points[row, 1]:.3f}."
        )
    else:
        row = int(known[np.lexsort([-points[known, 0], -points[known, 1]])[0]])
        why = f"The highest {ratio} of {len(known):,} models is {points[row, 1]:.3f}."
    return Choice(row, reached=False, why=why, **about)


def _needs_more(intervention: str) -> bool:
    """Tell whether an intervention works on scores, so that its model alone does not decide."""
    try:
        entry = intervention_named(intervention)
        return entry.needs_group or issubclass(entry.kind, GroupThresholds)
    except ValueError:  # of a package that is not installed any more
        return True


def _bound(results: Results, data: Data, row: int, ratio: str, confidence: float, among: int) -> float:
    """Give the lower bound of a model's ratio that holds for the best of so many models; NaN if none does."""
    part = results.chosen_on
    scores = results.scores(row, part)
    found = _measured(results.config, data, part, scores, 1 - (1 - confidence) / among)
    return found[f"{ratio}_low"]


def _measured(
    config: Config,
    data: Data,
    part: str,
    scores: FloatArray,
    confidence: float,
    threshold: float | None = None,
) -> dict[str, float]:
    """Measure scores of a part; the ends of intervals are each on the right side with this confidence."""
    rows, comparison = data.part(part), data.comparisons[0].take(data.parts[part])
    found, _ = measure(
        rows.positive,
        scores,
        comparison.groups.codes,
        comparison.groups.names,
        budget=config.evaluation.budget,
        threshold=threshold,
        n_boot=DRAWS,
        random_state=config.seed,
        sample_weight=rows.weights,
        left_out=comparison.left_out,
        confidence=2 * confidence - 1,
    )
    return found


def train_choice(
    results: Results,
    choice: Choice,
    data: Data,
    store: Store,
    *,
    given: Given | None = None,
    fits: int,
) -> ChosenModel:
    """Train the chosen model once more, judge it on all parts, and gather what its card tells."""
    config = results.config
    trial = read_trials(store)[choice.row].trial
    bench = Bench.of(data, _valuations(store, trial), config, 1, given)
    model = bench.fitted(trial.recipe, trial.parameters)
    scores = model.scores if model.scores.ndim == 1 else model.scores[:, 1]
    cut = len(data.parts["validation"])
    level = INTERVAL if choice.confidence is None else choice.confidence
    first, second = ("validation", "test") if cut else ("test", None)
    measured = {first: _measured(config, data, first, scores[:cut] if cut else scores, level)}
    threshold = measured[first]["threshold"]
    if second is not None:
        measured[second] = _measured(config, data, second, scores[cut:], level, threshold)
    facts = Facts(
        target=config.data.target,
        protected=config.data.protected,
        ratio=choice.ratio,
        at_least=choice.at_least,
        budget=config.evaluation.budget,
        reached=choice.reached,
        confidence=choice.confidence,
        why=choice.why,
        estimator=_estimator_name(config, given),
        parameters=dict(trial.parameters),
        intervention="" if trial.intervention == "none" else trial.intervention,
        settings=dict(trial.settings),
        fits=fits,
        models=choice.tried,
        chosen=choice.sentence,
        parts=[
            Part.of({"train": "training"}.get(name, name), data.positive[rows], data.part(name).groups)
            for name, rows in data.parts.items()
            if len(rows)
        ],
        measured=measured,
        left_out=[entry["group"] for entry in results.left_out],
        min_group_size=config.data.min_group_size,
        seed=config.seed,
    )
    return ChosenModel(
        detach(model),
        classes=data.labels,
        threshold=threshold,
        metrics=measured[first],
        facts=facts,
        sample_weight=bench.training_set(trial.recipe).weights,
    )


def fit_best_of(
    results: Results,
    ratio: str,
    at_least: float,
    *,
    confidence: float | None,
    data: Any,
    estimator: Any,
) -> ChosenModel | None:
    """Do the work of `Results.fit_best`."""
    if results.lacking:
        raise ValueError(
            f"The experiment was made with {'; '.join(results.lacking)}, not registered here: import or "
            "install that first, and load the results again."
        )
    if len(results.attributes) > 1:
        raise ValueError(
            "`evaluation.groups` judges each attribute for itself, and a chosen model keeps a line between "
            'the groups of all attributes crossed: run the experiment with `evaluation.groups = "crossed"`.'
        )
    named = _given(results.config, estimator)
    with Store.reading(results.store) as store:
        rows = same_data(store, results.config, data)
        choice = choose_row(results, rows, ratio, at_least, confidence)
        if choice is None or not choice.reached:
            return None
        fits = int((results.frame["status"] == DONE).sum())
        return train_choice(results, choice, rows, store, given=named, fits=fits)


def _given(config: Config, estimator: Any) -> Given:
    """Give the estimator that an experiment was run with, refusing another than that."""
    asked = config.models.estimator
    if not is_object(asked):
        if estimator is not None:
            raise ValueError(f"The experiment names its estimator, {asked!r}: hand none over.")
        return Given()
    if estimator is None or describe_object(estimator) != asked:
        raise ValueError(
            f"The experiment was run with an estimator that was handed over, {asked!r}: hand it over again, "
            "by `estimator`."
        )
    return Given(estimator)


def _valuations(store: Store, trial: Trial) -> dict[str, Valuation]:
    algorithm = trial.settings.get("algorithm")
    if algorithm is None:
        return {}
    return {algorithm: store.load_values(Keys(store.about).values(algorithm))}


def _estimator_name(config: Config, given: Given | None) -> str:
    own: Mapping[str, Any] | Any = None if given is None else given.estimator
    return config.models.estimator.rpartition(".")[2] if own is None else type(own).__name__
