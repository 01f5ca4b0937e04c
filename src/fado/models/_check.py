"""Whether the line is still held, on rows that a model has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.metrics import measure
from fado.models._card import Facts
from fado.reporting import shown_table
from fado.tabular import Problem, group_rows, small_groups, tell_small

__all__ = ["Check", "check_line", "is_positive"]

_TWO_SIDED = 0.95
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Check:
    """Whether a model still reaches its line on some rows; `ChosenModel.check` returns it.

    Parameters
    ----------
    held : bool or None
        Whether the ratio reaches the line (with a confidence, whether its lower bound does); None if that is
        undefined.
    sentence : str
        The same in words, with the ratio and its interval.
    metrics : mapping of str to float
        The metrics at the model's threshold, as `fado.metrics.evaluate` names them. The ends of intervals
        have ``_low`` and ``_high`` appended.
    budget_kept : bool
        Whether the model's threshold keeps the budget on these rows too.
    notes : tuple of str
        Further sentences: which groups are left out, what is undefined, whether the rows are too few to be
        sure.
    """

    held: bool | None
    sentence: str
    metrics: Mapping[str, float]
    budget_kept: bool
    notes: tuple[str, ...]

    def _repr_html_(self) -> str:
        import pandas as pd

        names = [name for name in self.metrics if not name.endswith(("_low", "_high"))]
        numbers = {
            what: [self.metrics.get(f"{name}{end}") for name in names]
            for what, end in (("value", ""), ("low", "_low"), ("high", "_high"))
        }
        table = pd.DataFrame({"metric": names, **numbers})
        return shown_table(self.sentence, self.notes, table)


def is_positive(problem: Problem, classes: tuple[Any, Any]) -> npt.NDArray[np.bool_]:
    """Tell which rows hold the positive label, the second of two, refusing labels that are neither."""
    labels = problem.labels
    strange = [label for label in labels.classes if label not in classes]
    if strange:
        raise ValueError(
            f"`y` holds the label {strange[0]!r}, and the model tells {classes[0]!r} from {classes[1]!r}: "
            "give these labels."
        )
    if len(labels.classes) == 1:
        raise ValueError(
            f"`y` holds one label only ({labels.classes[0]!r}): a model is checked on rows of both labels."
        )
    return labels.codes == labels.classes.index(classes[1])


def check_line(
    problem: Problem,
    positive: npt.NDArray[np.bool_],
    scores: npt.NDArray[np.float64],
    threshold: float,
    facts: Facts,
    *,
    n_boot: int,
    random_state: int | None,
) -> Check:
    """Measure decisions at a threshold, and hold the ratio that was aimed at against its line."""
    groups = group_rows(problem.protected)
    small = small_groups(groups.sizes, facts.min_group_size)
    metrics, reasons = measure(
        positive,
        scores,
        groups.codes,
        groups.names,
        budget=facts.budget,
        n_boot=n_boot,
        random_state=random_state,
        threshold=threshold,
        sample_weight=problem.sample_weight,
        left_out=small,
        confidence=_TWO_SIDED if facts.confidence is None else 2 * facts.confidence - 1,
    )
    notes = list(reasons)
    if small.any():
        told = tell_small(groups.names, groups.sizes, small, facts.min_group_size)
        notes.insert(0, f"{told} {'is' if small.sum() == 1 else 'are'} left out of ratios.")
    names = [variable.name for variable in problem.protected]
    if problem.names_given and sorted(names) != sorted(facts.protected):
        drawn, these = (" and ".join(map(repr, own)) for own in (facts.protected, names))
        notes.append(f"The line was drawn between the groups of {drawn}, and these are those of {these}.")
    held = _held(metrics, facts)
    if facts.confidence is None:
        notes += _doubts(metrics, facts, held)
    return Check(held, _sentence(metrics, facts, held), metrics, facts.budget.kept(metrics), tuple(notes))


def _held(metrics: Mapping[str, float], facts: Facts) -> bool | None:
    """Tell whether all lines are held; None if none is missed and one cannot be told."""
    end = "" if facts.confidence is None else "_low"
    numbers = [(metrics.get(f"{ratio}{end}", float("nan")), line) for ratio, line in facts.lines.items()]
    if any(number < line - _ROUNDING for number, line in numbers):
        return False
    return None if any(np.isnan(number) for number, _ in numbers) else True


def _is_above(number: float, line: float) -> bool:
    """Compare a quotient of rates with the line: 0.08 / 0.1 is less than 0.8 by rounding alone."""
    return bool(number >= line - _ROUNDING)


def _doubts(metrics: Mapping[str, float], facts: Facts, held: bool | None) -> list[str]:
    """Say so where these rows are too few to be sure."""
    lows, highs = (
        [metrics.get(f"{ratio}{end}", float("nan")) for ratio in facts.lines] for end in ("_low", "_high")
    )
    if held is None or np.isnan([*lows, *highs]).any():
        return []
    reached = all(map(_is_above, lows if held else highs, facts.lines.values()))
    if reached is held:
        return []
    side = "below" if held else "above"
    return [f"The interval holds ratios {side} the line too: these rows are too few to be sure."]


def _sentence(metrics: Mapping[str, float], facts: Facts, held: bool | None) -> str:
    lines = "lines are" if len(facts.lines) > 1 else "line is"
    told = "; ".join(_told(ratio, line, metrics, facts) for ratio, line in facts.lines.items())
    if held is None:
        return f"Whether the {lines} held cannot be told: {told}."
    return f"The {lines} {'held' if held else 'not held'}: {told}."


def _told(ratio: str, line: float, metrics: Mapping[str, float], facts: Facts) -> str:
    """Say a ratio with its interval, and what was asked of it."""
    asked = f"at least {line:g} asked"
    if facts.confidence is not None:
        asked = f"a lower end of {asked}, at a confidence of {100 * facts.confidence:g} %"
    number, low, high = (metrics.get(f"{ratio}{end}", float("nan")) for end in ("", "_low", "_high"))
    if np.isnan(number):
        return f"{ratio} is undefined, {asked}"
    deciding = number if facts.confidence is None else low
    digits, above = 3, _is_above(deciding, line)
    while not np.isnan(deciding) and _is_above(round(deciding, digits), line) is not above:
        digits += 1  # 0.79998 is not 0.8
    told = f"{ratio} {number:.{digits}f}"
    if not np.isnan(low):
        told += f" ({low:.{digits}f} to {high:.{digits}f})"
    return f"{told} has no interval, {asked}" if np.isnan(deciding) else f"{told}, {asked}"
