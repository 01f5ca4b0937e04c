"""From a chosen row to a fitted model: trained again to the same bits, measured, with its facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.aim import lines_of
from fado.experiment._bench import Bench
from fado.experiment._data import Data
from fado.experiment._frame import same_data
from fado.experiment._results import Results
from fado.experiment._store import Store
from fado.experiment._trial import DONE, UNTOUCHED, Trial
from fado.experiment.config import Config, Given, describe_object, is_object
from fado.experiment.frontier._choosing import Choice, choose_row, untouched_row
from fado.interventions import intervention_entries
from fado.metrics import measure
from fado.models import ChosenModel, Facts, GroupRates, Part, summarize_columns
from fado.valuation import Valuation

__all__ = ["fit_best_of", "train_choice"]

FloatArray = npt.NDArray[np.float64]
DRAWS = 200
INTERVAL = 0.975  # how sure each end of an interval is, where no confidence is asked for
_TITLES = {"train": "training"}


def train_choice(
    results: Results,
    choice: Choice,
    data: Data,
    store: Store,
    *,
    given: Given | None = None,
    fits: int,
) -> ChosenModel:
    """Train the chosen model once more, measure it on all parts, and gather what its card tells."""
    config = results.config
    trial = store.trials[choice.row]
    bench = Bench(data, config, _valuations(store, trial), given=given)
    scorer, scores = bench.scorer(trial)
    level = INTERVAL if choice.confidence is None else choice.confidence
    after = _by_part(data, scores)
    measured = _measured(config, data, after, level)
    untouched = untouched_row(results, choice.lines) if config.evaluation.keep_scores else None
    before: dict[str, FloatArray] = {}
    if untouched is not None:
        before = {part: results.scores(untouched, part) for part in after}
    measured_before = _measured(config, data, before, level)
    first, (ratio, line) = next(iter(measured)), next(iter(choice.lines.items()))
    measured[first] |= {f"{name}_low": bound for name, bound in choice.bounds.items()}
    titles = dict(zip(data.groups.names, data.groups.titles, strict=True))
    facts = Facts(
        target=config.data.target,
        protected=config.data.protected,
        ratio=ratio,
        at_least=line,
        lines=choice.lines,
        budget=config.evaluation.budget,
        reached=choice.reached,
        chosen_on=first,
        confidence=choice.confidence,
        why=choice.reason,
        estimator=_estimator_name(config, given),
        parameters=dict(trial.parameters),
        intervention="" if trial.intervention == UNTOUCHED.intervention else trial.intervention,
        settings=dict(trial.settings),
        fits=fits,
        models=choice.tried,
        chosen=choice.sentence,
        parts=[
            Part.of(_TITLES.get(name, name), data.positive[rows], data.part(name).groups)
            for name, rows in data.parts.items()
            if len(rows)
        ],
        measured=measured,
        before=measured_before,
        rates=[
            own
            for part in after
            for own in GroupRates.of(
                part,
                data.positive[data.parts[part]],
                data.part(part).groups,
                after[part] >= measured[part]["threshold"],
                before[part] >= measured_before[part]["threshold"] if before else None,
                data.part(part).weights,
                2 * level - 1,
            )
        ],
        left_out=[titles.get(entry["group"], entry["group"]) for entry in results.left_out],
        min_group_size=config.data.min_group_size,
        seed=config.seed,
    )
    return ChosenModel(
        scorer,
        classes=data.labels,
        threshold=measured[first]["threshold"],
        metrics=measured[first],
        facts=facts,
        sample_weight=bench.training_set(trial).weights,
        columns=summarize_columns(data.problem.table, data.parts["train"]),
    )


def _by_part(data: Data, scores: FloatArray) -> dict[str, FloatArray]:
    """Give the scores of validation rows, if there are any, and of test rows."""
    cut = len(data.parts["validation"])
    return {"validation": scores[:cut], "test": scores[cut:]} if cut else {"test": scores}


def _measured(
    config: Config, data: Data, scores: Mapping[str, FloatArray], confidence: float
) -> dict[str, dict[str, float]]:
    """Measure scores of each part at the threshold of the first; ends of intervals have this confidence."""
    found: dict[str, dict[str, float]] = {}
    threshold = None
    for part, own in scores.items():
        rows, comparison = data.part(part), data.comparisons[0].take(data.parts[part])
        found[part], _ = measure(
            rows.positive,
            own,
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
        threshold = found[part]["threshold"]
    return found


def fit_best_of(
    results: Results,
    ratio: Any,
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
            "`evaluation.groups` compares the groups of each attribute, and a chosen model keeps lines "
            'between those of all crossed: run the experiment with `evaluation.groups = "crossed"`.'
        )
    lines, named = lines_of(ratio, at_least), _given(results.config, estimator)
    with Store.reading(results.store) as store:
        rows = same_data(store, results.config, data)
        choice = choose_row(results, rows, lines, confidence)
        if choice is None or not choice.reached:
            return None
        done = results.frame["intervention"][results.frame["status"] == DONE]
        changing = [entry.name for entry in intervention_entries() if entry.changes_scores]
        fits = int((~done.isin(changing)).sum())
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
    asked = [trial.settings["algorithm"]] if "algorithm" in trial.settings else []
    found = {algorithm: store.values(algorithm) for algorithm in asked}
    return {algorithm: own for algorithm, own in found.items() if isinstance(own, Valuation)}


def _estimator_name(config: Config, given: Given | None) -> str:
    own: Mapping[str, Any] | Any = None if given is None else given.estimator
    return config.models.estimator.rpartition(".")[2] if own is None else type(own).__name__
