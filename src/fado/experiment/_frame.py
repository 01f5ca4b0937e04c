"""The frame of results, one row per trial, and the rule that selects models from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._compat import with_texts
from fado._typing import Bools, Floats, Integers
from fado.aim import check_confidence, count_events
from fado.experiment._config import Config, ratio_name
from fado.experiment._metrics import check_metrics
from fado.experiment._store import Store
from fado.experiment._trial import DONE, UNTOUCHED, Trial
from fado.interventions import BaseScoreIntervention, intervention_entries, intervention_named
from fado.metrics import RATIO_NAMES, Budget, best_first, predicted_positive

if TYPE_CHECKING:
    import pandas as pd

    from fado.experiment._data import Data
    from fado.experiment._results import Results


_RATES = {"selection_rate": ("selection_rate",), "top_k": ("selection_rate", "selected")}


def parts_of(config: Config) -> list[str]:
    """Name the parts that models are measured on."""
    return ["validation", "test"] if config.split.has_validation else ["test"]


def frame_of(trials: Sequence[Trial], config: Config) -> pd.DataFrame:
    """Make the frame of trials, also of those that are not done."""
    import pandas as pd

    rows = [
        {
            "intervention": trial.intervention,
            **trial.settings,
            "model": trial.model,
            **trial.parameters,
            "training_rows": trial.training_rows,
            **(trial.metrics or {}),
            "status": trial.status,
            "error": trial.error,
        }
        for trial in trials
    ]
    kinds = _setting_kinds(trials)
    parameters = dict.fromkeys(name for trial in trials for name in trial.parameters)
    measured = _measured_columns(config)
    columns = ["intervention", *kinds, "model", *parameters, "training_rows", *measured, "status", "error"]
    texts = ["intervention", "status", "error", *(name for name, kind in kinds.items() if kind == "str")]
    others = {name: kind for name, kind in kinds.items() if kind != "str"}
    numbers = dict.fromkeys(measured, "float64")
    frame = with_texts(pd.DataFrame(rows, columns=columns), texts)
    return frame.astype(others | numbers | {"training_rows": "Int64"}).copy()  # in one piece again


def _measured_columns(config: Config) -> list[str]:
    """Name the columns of metrics: single attributes after all others, the user's metrics last."""
    asked = config.evaluation
    ends = ("", "_low", "_high") if asked.bootstrap else ("",)
    ours = ["threshold", "fpr", "tpr", *_RATES.get(asked.budget.kind, ()), *RATIO_NAMES]
    single = [ratio_name(ratio, attribute) for attribute in config.attributes for ratio in RATIO_NAMES]
    # a count of rows has no interval, nor have the user's own
    names = [f"{name}{end}" for name in (*ours, *single) for end in ends if not (end and name == "selected")]
    return [f"{part}_{name}" for part in parts_of(config) for name in (*names, *asked.metrics)]


def _setting_kinds(trials: Sequence[Trial]) -> dict[str, str]:
    """Return the columns of settings and their types, registered interventions first."""
    kinds = {"algorithm": "str", "utility": "str", "alpha": "float64"}
    for entry in intervention_entries():
        for setting in entry.settings:
            kinds.setdefault(setting.name, "str" if setting.kind == "choice" else "float64")
        for name, value in entry.fixed.items():
            kinds.setdefault(name, _kind(value))
    for trial in trials:
        for name, value in trial.settings.items():
            if name not in kinds:
                kinds[name] = _kind(value)
    return kinds


def _kind(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "float64"
    return "str" if isinstance(value, str) else "object"


def remeasured_frame(
    store: Store,
    config: Config,
    metrics: Mapping[str, Callable[..., Any]] | Sequence[str],
    max_fpr: float | None,
    budget: Any,
    threshold: str | float | None,
    data: Any,
) -> pd.DataFrame:
    """Return the frame with other metrics; see `Results.remeasure`."""
    from fado.experiment._bench import Measuring

    fixed = None if isinstance(threshold, str | None) else Budget("threshold", threshold)
    if (max_fpr is not None) + (budget is not None) + (fixed is not None) > 1:
        raise ValueError("`max_fpr`, `budget` and a fixed `threshold` all set the threshold: give one.")
    names = tuple(dict.fromkeys([*config.evaluation.metrics, *metrics]))
    changed = replace(config, evaluation=replace(config.evaluation, metrics=names))
    if isinstance(threshold, str):
        if threshold not in ("test", "validation"):
            raise ValueError(f"`threshold` must be 'test', 'validation' or a number, got {threshold!r}.")
        changed = replace(changed, evaluation=replace(changed.evaluation, threshold=threshold))
    if max_fpr is not None or budget is not None or fixed is not None:
        own = fixed or Budget.read(budget, 0.05 if max_fpr is None else max_fpr)
        changed = replace(changed, evaluation=changed.evaluation.with_budget(own))
    if changed.evaluation.threshold == "validation" and not config.split.has_validation:
        raise ValueError("`threshold` is 'validation', but there is no validation part.")
    functions = check_metrics(metrics) if isinstance(metrics, Mapping) else {}
    measuring = Measuring.of(same_data(store, config, data), changed, functions)
    done = dict.fromkeys(trial.fit for trial in store.trials if trial.status == DONE)
    measured = {fit: measuring.measure(store.all_scores(fit), fit) for fit in done}
    return frame_of([replace(own, metrics=measured.get(own.fit)) for own in store.trials], changed)


def same_data(store: Store, config: Config, data: Any) -> Data:
    """Read the data again; other data raise a ValueError."""
    from fado.experiment._data import Data, read_data

    if not isinstance(data, Data):
        if data is not None:
            if config.data.path is None:
                raise ValueError("`data` names a table, but the data of this experiment are not in a file.")
            config = replace(config, data=replace(config.data, path=str(data)))
        data = read_data(config)
    if data.fingerprint() != store.about.fingerprint:
        raise ValueError(
            f"The data are not those of the store {str(store.path)!r} (fingerprint "
            f"{data.fingerprint()[:12]}, and there {store.about.fingerprint[:12]}): pass them as `data`."
        )
    return data


@dataclass(frozen=True)
class Choice:
    """A selected row of the results, and how it was selected.

    Parameters
    ----------
    row : int
        The label in the frame.
    lines : mapping of str to float
        The required ratios, and the line of each.
    confidence : float or None
        The required confidence.
    reached : bool
        Whether the lines are reached, on the rows that select models.
    tried : int
        The number of rows that were compared.
    above : int
        The number of rows whose estimates reached all lines.
    bounds : mapping of str to float
        The lower bounds of the ratios, with a confidence.
    reason : str
        Why the lines are not reached.
    """

    row: int
    lines: Mapping[str, float]
    confidence: float | None
    reached: bool
    tried: int
    above: int
    bounds: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def sentence(self) -> str:
        """How the row was selected, in words."""
        lines = tell_lines(self.lines)
        if not self.reached:
            sure = "" if self.confidence is None else f" with {100 * self.confidence:g} % confidence"
            return f"None of {self.tried:,} models reached {lines}{sure}; this one comes closest."
        if self.confidence is None:
            return (
                f"Of {self.tried:,} models, {self.above:,} reached {lines}. This one has the highest "
                "true-positive rate of them."
            )
        return (
            f"Of {self.tried:,} models, {self.above:,} reached {lines} by their estimates. This one has the "
            "highest true-positive rate of those whose lower bounds also do, at "
            f"{100 * self.confidence:g} % confidence for all of them together."
        )


def chosen_rows(results: Results, metric: str, at_least: float, attribute: str | None) -> pd.DataFrame:
    """Return the selected row of each intervention, the best first, and whether it ``reached`` the line."""
    rates, shares = _points(results, {metric: at_least}, attribute)
    rows = np.flatnonzero(~np.isnan(shares) & is_whole(results.frame))
    ordered = rows[best_first(rates[rows], shares[rows], shares[rows] >= 1)]
    found = results.frame.iloc[ordered].assign(reached=shares[ordered] >= 1)
    return found.drop_duplicates("intervention")


def choose_row(
    results: Results, data: Data, lines: Mapping[str, float], confidence: float | None
) -> Choice | None:
    """Select one row among models that can be returned; None if no row can be compared.

    With a confidence, lower bounds must reach the lines, too. Along the curve of one model, bounds are tested
    from the most equal point back until one fails (fixed-sequence testing), which needs no correction. The
    best of several curves may be lucky, so curves share the error; see `shared_errors`.
    """
    confidence = check_confidence(confidence)
    rates, shares = handed_over(results, lines)
    rows = np.flatnonzero(~np.isnan(shares))
    if not len(rows):
        return None
    reached, bounds = shares >= 1, dict[int, dict[str, float]]()
    above = int(reached[rows].sum())
    if confidence is not None and above:
        sure, bounds = _sure(results, data, lines, confidence, rows, rates, shares)
        reached = np.isin(np.arange(len(shares)), sure)
    row = int(rows[best_first(rates[rows], shares[rows], reached[rows])[0]])
    own = bounds.get(row, {})
    choice = Choice(row, dict(lines), confidence, bool(reached[row]), len(rows), above, own)
    return choice if choice.reached else replace(choice, reason=_reason(results, choice))


def untouched_row(results: Results, lines: Mapping[str, float]) -> int | None:
    """Return the row of the best model without an intervention; None if there is none."""
    rates, _ = _points(results, lines)
    plain = (results.frame["intervention"] == UNTOUCHED.intervention).to_numpy()
    rows = np.flatnonzero(plain & is_whole(results.frame) & ~np.isnan(rates))
    return int(rows[np.argmax(rates[rows])]) if len(rows) else None


def handed_over(results: Results, lines: Mapping[str, float]) -> tuple[Floats, Floats]:
    """Return the points of `_points`, NaN for rows whose model cannot be returned."""
    rates, shares = _points(results, lines)
    names = results.frame["intervention"]
    alone = names.isin([name for name in names.unique() if decides_alone(name)]).to_numpy()
    out = ~(is_whole(results.frame) & alone)
    rates[out] = shares[out] = np.nan
    return rates, shares


def _points(
    results: Results, lines: Mapping[str, float], attribute: str | None = None
) -> tuple[Floats, Floats]:
    """Return the true-positive rate of every row, and its lowest ratio over the line."""
    points = [results.comparable_points(name, results.chosen_on, attribute=attribute) for name in lines]
    shares = [
        own[:, 1] / line if line > 0 else 1 + own[:, 1]
        for own, line in zip(points, lines.values(), strict=True)
    ]
    return np.max([own[:, 0] for own in points], axis=0), np.min(shares, axis=0)


def parameter_columns(frame: pd.DataFrame) -> list[str]:
    """Name the columns of a frame with the parameters of models."""
    columns = list(frame.columns)
    return columns[columns.index("model") + 1 : columns.index("training_rows")]


def is_whole(frame: pd.DataFrame) -> Bools:
    """Mark the models that were trained in full; a search trains many in part."""
    if "cost" not in frame.columns:
        return np.ones(len(frame), dtype=np.bool_)
    return ~frame["cost"].between(0, 1, inclusive="neither").to_numpy()


def decides_alone(intervention: str) -> bool:
    """Return whether a model after an intervention can be returned: it decides from features alone."""
    try:
        entry = intervention_named(intervention)
    except ValueError:  # of a package that is not installed any more
        return False
    return not entry.needs_group and (
        not issubclass(entry.kind, BaseScoreIntervention) or entry.kind.hands_over()
    )


def _sure(
    results: Results,
    data: Data,
    lines: Mapping[str, float],
    confidence: float,
    known: Integers,
    rates: Floats,
    shares: Floats,
) -> tuple[Integers, dict[int, dict[str, float]]]:
    """Return the rows whose lower bounds reach the lines, along every curve, and all bounds."""
    part = results.chosen_on
    rows, comparison = data.part(part), data.comparisons[0].take(data.parts[part])

    def bounds_of(row: int, level: float) -> dict[str, float]:
        """Return the lower bounds of a row's ratios, at its own threshold."""
        counts = count_events(
            rows.positive,
            comparison.groups.codes,
            np.flatnonzero(~comparison.left_out),
            predicted_positive(results.scores(row, part), results.frame[f"{part}_threshold"].iloc[row]),
            list(lines),
            sample_weight=rows.weights,
        )
        return {ratio: own.bound(level) for ratio, own in zip(lines, counts, strict=True)}

    curves = _curves(results, known)
    found, bounds = [], {}
    with results.opened("that keeps scores"):
        for curve, error in zip(curves, shared_errors(curves, rates, shares, 1 - confidence), strict=True):
            start = int(np.argmax(shares[curve]))
            for row in curve[start::-1].tolist():
                if shares[row] < 1:
                    break
                bounds[row] = bounds_of(row, 1 - error)
                if any(bounds[row][ratio] < line for ratio, line in lines.items()):
                    break
                found.append(row)
    return np.array(sorted(found), dtype=np.intp), bounds


def shared_errors(curves: Sequence[Integers], rates: Floats, shares: Floats, error: float) -> list[float]:
    """Share an error among curves, as the best of many curves may be lucky.

    The model of the highest true-positive rate without an intervention was not selected by its ratios, and
    gets half of the error. The others share the rest: divided by their number, or by twice the number of
    curves with a point above the lines.

    Examples
    --------
    >>> curves, rates = [np.array([0, 1]), np.array([2, 3]), np.array([4, 5])], np.full(6, 0.5)
    >>> shared_errors(curves, rates, np.array([0.5, 1.2, 0.5, 1.1, 0.5, 0.9]), 0.1)
    [0.05, 0.025, 0.025]
    >>> shared_errors(curves[:1], rates, rates, 0.1)
    [0.1]
    """
    whole = [number for number, curve in enumerate(curves) if len(curve) > 1]
    first = max(whole, key=lambda number: rates[curves[number][0]], default=None)
    others = [number for number in range(len(curves)) if number != first]
    above = sum(bool((shares[curves[number]] >= 1).any()) for number in others)
    left = error if first is None else error / 2
    own = left / max(min(2 * above, len(others)), 1)
    mine = error / 2 if others else error
    return [mine if number == first else own for number in range(len(curves))]


def _curves(results: Results, known: Integers) -> list[Integers]:
    """Return the rows of every curve, the untouched row first; a row without a demand is a curve."""
    frame = results.frame
    if "demand" not in frame.columns:
        return [known[place : place + 1] for place in range(len(known))]
    demands = frame["demand"].to_numpy(dtype=np.float64)
    keys = [str(own) for own in frame[["model", *parameter_columns(frame)]].to_dict("records")]
    found: dict[str, list[int]] = {}
    for row in known.tolist():
        alone = np.isnan(demands[row]) and frame["intervention"].iloc[row] != UNTOUCHED.intervention
        found.setdefault(str(row) if alone else keys[row], []).append(row)
    order = np.nan_to_num(demands, nan=-np.inf)
    return [np.array(sorted(own, key=lambda row: order[row]), dtype=np.intp) for own in found.values()]


def _reason(results: Results, choice: Choice) -> str:
    """State why no row reached the lines."""
    part, lines, above = results.chosen_on, choice.lines, choice.above
    told = []
    for ratio in lines:
        told.append(f"{ratio} {results.frame[f'{part}_{ratio}'].iloc[choice.row]:.3f}")
        if choice.bounds and choice.confidence is not None:
            sure = f"at {100 * choice.confidence:g} % confidence"
            told[-1] += f" (lower bound {choice.bounds[ratio]:.3f} {sure})"
    closest = " and ".join(told)
    if above:
        have = "1 model has" if above == 1 else f"{above:,} models have"
        few = f"but there are too few {part} rows for this confidence"
        return f"{have} {tell_lines(lines)}, {few}: the closest has {closest}."
    if len(lines) > 1:
        return f"Of {choice.tried:,} models, the closest has {closest}."
    return f"The highest {next(iter(lines))} of {choice.tried:,} models is {closest.rpartition(' ')[2]}."


def tell_lines(lines: Mapping[str, float]) -> str:
    """State the required ratios and their lines."""
    return " and ".join(f"{ratio} of at least {line:g}" for ratio, line in lines.items())
