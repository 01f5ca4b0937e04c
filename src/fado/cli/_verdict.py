"""What a model reaches, before and after: by validation rows, by test rows, and the verdict of the latter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fado.cli._summary import table_text
from fado.models import Facts

__all__ = ["told_of", "verdict_text"]

_RATES = ("tpr", "fpr", "selection_rate")


def told_of(facts: Facts) -> dict[str, Any]:
    """Give what `verdict_text` says of a model."""
    return {
        "lines": dict(facts.lines),
        "confidence": facts.confidence,
        "reached": facts.reached,
        "chosen": facts.chosen,
        "reason": facts.why,
        "budget": str(facts.budget),
        "over_budget": [part for part, own in facts.measured.items() if not facts.budget.kept(own)],
        "before": facts.before,
        "after": facts.measured,
        "groups": [
            {"part": own.part, "group": own.group, "rows": own.rows, "before": own.before, "after": own.after}
            for own in facts.rates
        ],
    }


def verdict_text(told: Mapping[str, Any]) -> str:
    """Say what a model reaches: tables by part, then the verdict of the test rows.

    Parameters
    ----------
    told : mapping
        - ``lines``, the line of each ratio that was asked for; ``confidence``, with which, or None;
        - ``reached``, whether validation rows say that they are; ``chosen`` and ``reason``, sentences of how
          the model was chosen and why no line was reached, or empty ones;
        - ``budget``, what set the threshold, in words; ``over_budget``, the parts where it is exceeded;
        - ``before`` and ``after``, for each part the metrics with ``_low`` and ``_high``, of the untouched
          model (or an empty mapping) and of this one;
        - ``groups``, a list of mappings with ``part``, ``group``, ``rows`` (None if they are too few to be
          told), and the rates ``before`` and ``after``.
    """
    text = "".join(_part_text(told, part) for part in told["after"])
    return text + "\n".join(_sentences(told)) + "\n"


def _part_text(told: Mapping[str, Any], part: str) -> str:
    """Give the tables of one part: all rows, and every group."""
    before, after = told["before"].get(part), told["after"][part]
    names = [name for name in after if not name.endswith(("_low", "_high"))]
    columns = {"before": before, "after": after} if before else {"after": after}
    rows = [[name, *(_with_interval(own, name) for own in columns.values())] for name in names]
    text = table_text(f"On {part} rows, with intervals", ["metric", *columns], rows)
    groups = [own for own in told["groups"] if own["part"] == part]
    return text + (_groups_text(groups, columns) if groups else "")


def _groups_text(groups: Sequence[Mapping[str, Any]], columns: Mapping[str, Any]) -> str:
    shown = [name for name in _RATES if any(name in own["after"] for own in groups)]
    header = ["group", "rows", *(f"{name}\n{when}" for name in shown for when in columns)]
    rows = [
        [
            own["group"],
            "few" if own["rows"] is None else own["rows"],
            *(own[when].get(name, math.nan) for name in shown for when in columns),
        ]
        for own in groups
    ]
    return table_text("", header, rows)


def _sentences(told: Mapping[str, Any]) -> list[str]:
    """Give the verdict of test rows, and what validation rows say."""
    several = len(told["lines"]) > 1
    lines = "lines are" if several else "line is"
    sentences = []
    if "test" in told["after"]:
        metrics = told["after"]["test"]
        numbers = {ratio: metrics.get(ratio, math.nan) for ratio in told["lines"]}
        shown = "; ".join(
            f"{ratio} {_with_interval(metrics, ratio)}, at least {line:g} asked"
            for ratio, line in told["lines"].items()
        )
        if any(math.isnan(own) for own in numbers.values()):
            verdict = f"whether the {lines} reached cannot be told"
        else:
            reached = all(numbers[ratio] >= line for ratio, line in told["lines"].items())
            verdict = f"the {lines} {'reached' if reached else 'missed'}"
        sentences.append(f"On test rows: {verdict}: {shown}.")
    else:
        sentences.append("There are no test rows, and so no verdict: validation rows chose the model.")
    sure = "" if told["confidence"] is None else f" with {100 * told['confidence']:g} % confidence"
    asked = " and ".join(f"{ratio} of at least {line:g}" for ratio, line in told["lines"].items())
    outcome = "reached" if told["reached"] else "missed"
    sentences.append(f"On validation rows: the {lines} {outcome}: {asked}{sure}.")
    sentences += [told[name] for name in ("chosen", "reason") if told[name]]
    for part in told["over_budget"]:
        sentences.append(f"On {part} rows the budget is exceeded: {told['budget']}.")
    return sentences


def _with_interval(metrics: Mapping[str, float], name: str) -> str:
    value, low, high = (metrics.get(f"{name}{end}", math.nan) for end in ("", "_low", "_high"))
    if math.isnan(value):
        return "-"
    return f"{value:.3f}" if math.isnan(low) or low == high else f"{value:.3f} ({low:.3f} to {high:.3f})"
