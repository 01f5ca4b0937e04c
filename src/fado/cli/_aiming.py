"""What `fado aim` and `fado frontier` share: ratios with their lines, budgets, rows that are set apart."""

from __future__ import annotations

from functools import reduce
from typing import Annotated, Any

import typer

from fado.cli._inputs import Inputs
from fado.cli._splits import target_of
from fado.metrics import Budget

__all__ = [
    "AtLeast",
    "Confidence",
    "MaxFpr",
    "MaxSelectionRate",
    "Ratio",
    "Threshold",
    "TopK",
    "read_asked",
    "read_budget",
    "rows_of",
    "seen_sources",
]

Ratio = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=LINE]",
        show_default="fpr_ratio",
        help="A ratio between groups that must reach a line: fpr_ratio, fnr_ratio, tpr_ratio, "
        "selection_rate_ratio or equalized_odds_ratio; its line as in fpr_ratio=0.8. May be repeated: all "
        "lines must hold.",
    ),
]
AtLeast = Annotated[float, typer.Option(metavar="R", help="The line of a ratio that comes without one.")]
Confidence = Annotated[
    float | None,
    typer.Option(
        metavar="C", help="Ask that lower bounds of the ratios at this confidence reach their lines."
    ),
]
MaxFpr = Annotated[
    float | None,
    typer.Option(
        metavar="F", show_default="0.05", help="The share of negatives that may be predicted positive."
    ),
]
MaxSelectionRate = Annotated[
    float | None,
    typer.Option(
        metavar="S", help="Instead of `--max-fpr`: the share of all rows that may be predicted positive."
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        metavar="K", help="Instead of `--max-fpr`: how many rows of a part may be predicted positive."
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        metavar="T", help="Instead of `--max-fpr`: rows that score at least this are predicted positive."
    ),
]


def read_asked(ratio: list[str] | None, at_least: float, confidence: float | None) -> dict[str, float]:
    """Read the ratios and their lines; a sentence about them calls options by their names."""
    from fado.aim import check_confidence, check_line, lines_of

    check_line(at_least, "--at-least")
    check_confidence(confidence)
    try:
        return lines_of(", ".join(ratio or ["fpr_ratio"]), at_least)
    except (TypeError, ValueError) as error:
        raise ValueError(str(error).replace("`ratio", "`--ratio")) from None


def read_budget(
    max_fpr: float | None, max_selection_rate: float | None, top_k: int | None, threshold: float | None
) -> Budget:
    """Read what decides; at most one of four."""
    given: dict[str, Any] = {
        "fpr": max_fpr,
        "selection_rate": max_selection_rate,
        "top_k": top_k,
        "threshold": threshold,
    }
    chosen = {kind: limit for kind, limit in given.items() if limit is not None}
    if len(chosen) > 1:
        raise ValueError(
            "`--max-fpr`, `--max-selection-rate`, `--top-k` and `--threshold` all say what decides: give one."
        )
    try:
        return Budget.read(next(iter(chosen.items()), None))
    except ValueError as error:
        option = {"fpr": "--max-fpr", "selection_rate": "--max-selection-rate", "top_k": "--top-k"}
        named = [(f"The limit of a budget of kind {kind!r}", f"`{own}`") for kind, own in option.items()]
        raise ValueError(reduce(lambda told, pair: told.replace(*pair), named, str(error))) from None


def rows_of(part: Inputs | None) -> tuple[Any, ...] | None:
    """Give the rows of a part as Python takes them: features, target, attributes and weights, if any."""
    if part is None:
        return None
    rows = (part.features, target_of(part), part.protected)
    return rows if part.weight is None else (*rows, part.weight)


def seen_sources(inputs: Inputs) -> str:
    """Say which columns that make an attribute are among the features; empty if none is."""
    seen = [
        column
        for own in inputs.expressions.values()
        for column in own.sources
        if column in inputs.features.column_names
    ]
    if not seen:
        return ""
    names = ", ".join(map(repr, dict.fromkeys(seen)))
    return (
        f"Decisions see {names}, of which a protected attribute is made. Leave it out with `--drop` if they "
        "must not."
    )
