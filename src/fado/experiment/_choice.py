"""The selection of a model above a line, if required with the confidence that it reaches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from fado._typing import Floats, Integers
from fado.aim import check_confidence, count_events
from fado.experiment._frame import is_whole, parameter_columns
from fado.experiment._trial import UNTOUCHED
from fado.interventions import BaseScoreIntervention, intervention_named
from fado.metrics import best_first, predicted_positive

if TYPE_CHECKING:
    import pandas as pd

    from fado.experiment._data import Data
    from fado.experiment._results import Results


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
    frame = results.frame.iloc[ordered].assign(reached=shares[ordered] >= 1)
    return frame.drop_duplicates("intervention")


def choose_row(
    results: Results, data: Data, lines: Mapping[str, float], confidence: float | None
) -> Choice | None:
    """Select one row among models that can be returned; None if no row can be compared.

    With a confidence, lower bounds must reach the lines, too. Along the curve of one model, bounds are tested
    from the most equal point back until one fails (fixed-sequence testing), which needs no correction. The
    best of several curves may be lucky, so curves share the error; see `shared_errors`.
    """
    confidence = check_confidence(confidence)
    rates, shares = returnable_points(results, lines)
    rows = np.flatnonzero(~np.isnan(shares))
    if not len(rows):
        return None
    reached, bounds = shares >= 1, dict[int, dict[str, float]]()
    above = int(reached[rows].sum())
    if confidence is not None and above:
        sure, bounds = _sure_rows(results, data, lines, confidence, rows, rates, shares)
        reached = np.isin(np.arange(len(shares)), sure)
    row = int(rows[best_first(rates[rows], shares[rows], reached[rows])[0]])
    choice = Choice(row, dict(lines), confidence, bool(reached[row]), len(rows), above, bounds.get(row, {}))
    return choice if choice.reached else replace(choice, reason=_reason(results, choice))


def baseline_row(results: Results, lines: Mapping[str, float]) -> int | None:
    """Return the row of the best model without an intervention; None if there is none."""
    rates, _ = _points(results, lines)
    plain = (results.frame["intervention"] == UNTOUCHED.intervention).to_numpy()
    rows = np.flatnonzero(plain & is_whole(results.frame) & ~np.isnan(rates))
    return int(rows[np.argmax(rates[rows])]) if len(rows) else None


def returnable_points(results: Results, lines: Mapping[str, float]) -> tuple[Floats, Floats]:
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
        ratios / line if line > 0 else 1 + ratios
        for (_, ratios), line in zip((pair.T for pair in points), lines.values(), strict=True)
    ]
    return np.max([pair[:, 0] for pair in points], axis=0), np.min(shares, axis=0)


def decides_alone(intervention: str) -> bool:
    """Return whether a model after an intervention can be returned: it decides from features alone."""
    try:
        entry = intervention_named(intervention)
    except ValueError:  # of a package that is not installed any more
        return False
    return not entry.needs_group and (
        not issubclass(entry.kind, BaseScoreIntervention) or entry.kind.hands_over()
    )


def _sure_rows(
    results: Results,
    data: Data,
    lines: Mapping[str, float],
    confidence: float,
    known: Integers,
    rates: Floats,
    shares: Floats,
) -> tuple[list[int], dict[int, dict[str, float]]]:
    """Return the rows whose lower bounds reach the lines, along every curve, and all bounds."""
    part = results.chosen_on
    rows, comparison = data.part(part), data.comparisons[0].take(data.parts[part])
    compared = np.flatnonzero(~comparison.left_out)
    curves = _curves(results, known)
    errors = shared_errors(curves, rates, shares, 1 - confidence)
    sure, bounds = list[int](), dict[int, dict[str, float]]()
    with results.opened("that keeps scores"):
        for curve, error in zip(curves, errors, strict=True):
            start = int(np.argmax(shares[curve]))
            for row in curve[start::-1].tolist():
                if shares[row] < 1:
                    break
                threshold = results.frame[f"{part}_threshold"].iloc[row]
                counts = count_events(
                    rows.positive,
                    comparison.groups.codes,
                    compared,
                    predicted_positive(results.scores(row, part), threshold),
                    list(lines),
                    sample_weight=rows.weights,
                )
                bounds[row] = {
                    ratio: count.bound(1 - error) for ratio, count in zip(lines, counts, strict=True)
                }
                if any(bounds[row][ratio] < line for ratio, line in lines.items()):
                    break
                sure.append(row)
    return sure, bounds


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
    of_others = left / max(min(2 * above, len(others)), 1)
    of_first = error / 2 if others else error
    return [of_first if number == first else of_others for number in range(len(curves))]


def _curves(results: Results, known: Integers) -> list[Integers]:
    """Return the rows of every curve, the baseline row first; a row without a demand is a curve."""
    frame = results.frame
    if "demand" not in frame.columns:
        return [known[place : place + 1] for place in range(len(known))]
    demands = frame["demand"].to_numpy(dtype=np.float64)
    keys = [str(model) for model in frame[["model", *parameter_columns(frame)]].to_dict("records")]
    curves: dict[str, list[int]] = {}
    for row in known.tolist():
        alone = np.isnan(demands[row]) and frame["intervention"].iloc[row] != UNTOUCHED.intervention
        curves.setdefault(str(row) if alone else keys[row], []).append(row)
    order = np.nan_to_num(demands, nan=-np.inf)
    return [np.array(sorted(curve, key=lambda row: order[row]), dtype=np.intp) for curve in curves.values()]


def _reason(results: Results, choice: Choice) -> str:
    """State why no row reached the lines."""
    part, lines, above = results.chosen_on, choice.lines, choice.above
    ratios = []
    for ratio in lines:
        ratios.append(f"{ratio} {results.frame[f'{part}_{ratio}'].iloc[choice.row]:.3f}")
        if choice.bounds and choice.confidence is not None:
            sure = f"at {100 * choice.confidence:g} % confidence"
            ratios[-1] += f" (lower bound {choice.bounds[ratio]:.3f} {sure})"
    closest = " and ".join(ratios)
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
