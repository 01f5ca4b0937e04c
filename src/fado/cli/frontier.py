"""`fado frontier`: the best model above the line, as a directory that `fado predict` reads."""

from __future__ import annotations

from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

import typer

from fado.cli._errors import in_sentences
from fado.cli._inputs import Inputs, read_inputs
from fado.cli._options import (
    Dask,
    Data,
    Drop,
    Jobs,
    MinGroupSize,
    Positive,
    Protected,
    Seed,
    Target,
    Weight,
)
from fado.cli._runs import stopping
from fado.cli._splits import Split, Test, TestFraction, Validation, check_split, split_inputs, target_of
from fado.cli._tables import check_apart
from fado.cli._verdict import told_of, verdict_text
from fado.metrics import Budget
from fado.models import LANDSCAPE, check_directory, write_model
from fado.tabular import MIN_GROUP_SIZE

__all__ = ["frontier"]


@in_sentences
def frontier(
    data: Data,
    target: Target,
    protected: Protected,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="The directory to write the model, its card and a chart of all models to."
        ),
    ],
    ratio: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=LINE]",
            show_default="fpr_ratio",
            help="A ratio between groups that must reach a line: fpr_ratio, fnr_ratio, tpr_ratio, "
            "selection_rate_ratio or equalized_odds_ratio; its line as in fpr_ratio=0.8. May be repeated: "
            "all lines must hold.",
        ),
    ] = None,
    at_least: Annotated[
        float, typer.Option(metavar="R", help="The line of a ratio that comes without one.")
    ] = 0.8,
    confidence: Annotated[
        float | None,
        typer.Option(
            metavar="C", help="Ask that lower bounds of the ratios at this confidence reach their lines."
        ),
    ] = None,
    max_fits: Annotated[int, typer.Option(metavar="N", help="How many whole fits the search may cost.")] = 60,
    max_fpr: Annotated[
        float | None,
        typer.Option(
            metavar="F", show_default="0.05", help="The share of negatives that may be predicted positive."
        ),
    ] = None,
    max_selection_rate: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Instead of `--max-fpr`: the share of all rows that may be predicted positive."
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Instead of `--max-fpr`: how many rows of a part may be predicted positive."
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            help="Instead of `--max-fpr`: rows that score at least this are predicted positive.",
        ),
    ] = None,
    positive: Positive = None,
    drop: Drop = None,
    weight: Weight = None,
    split: Split = None,
    validation: Validation = None,
    test: Test = None,
    test_fraction: TestFraction = None,
    min_group_size: MinGroupSize = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the search in this directory; run again to resume it."),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    dask: Dask = None,
) -> None:
    """Find the best model whose ratios between groups reach their lines, and write it with its card."""
    from fado.aim import check_confidence, check_line, lines_of
    from fado.experiment import find_frontier

    check_line(at_least, "--at-least")
    check_confidence(confidence)
    asked = ", ".join(ratio or ["fpr_ratio"])
    lines = _lines(lines_of, asked, at_least)
    limit = _budget(max_fpr, max_selection_rate, top_k, threshold)
    check_split(split, validation, test, test_fraction)
    if store is not None:
        check_apart(out, store, "`--store`")
    check_directory(out)
    inputs = read_inputs(data, target, protected, positive=positive, drop=drop, weight=weight, split=split)
    parts = split_inputs(inputs, split, validation, test)
    train = parts["train"]
    with ExitStack() as opened:
        if store is not None:
            opened.enter_context(stopping(store))
        found = find_frontier(
            train.features,
            target_of(train),
            sensitive_features=train.protected,
            ratio=lines if len(lines) > 1 else next(iter(lines)),
            max_fits=max_fits,
            budget=limit,
            validation=_rows(parts.get("validation")),
            test=_rows(parts.get("test")) or (0.2 if test_fraction is None else test_fraction),
            pos_label=train.positive,
            sample_weight=train.weight,
            min_group_size=MIN_GROUP_SIZE if min_group_size is None else min_group_size,
            store=store,
            random_state=seed,
            n_jobs=jobs,
            client=dask,
            progress=True,
        )
    model = found.closest(lines, confidence)
    if model is None:
        raise ValueError(
            f"No model can be compared by {' and '.join(lines)}: the groups have too few rows of a label, or "
            "no model tells rows apart."
        )
    write_model(model, out, landscape=found.report)
    print(found)
    print(verdict_text(told_of(model.facts_)), end="")
    print(f"The model and its card (card.md, card.html): {out}")
    print(f"The landscape, to choose from: {out / LANDSCAPE}")
    print(f"Scores of other rows: fado predict {out} OTHER --out scores.parquet")


def _lines(read: Any, asked: str, at_least: float) -> dict[str, float]:
    """Read the ratios and their lines; a sentence about them calls options by their names."""
    try:
        lines: dict[str, float] = read(asked, at_least)
    except (TypeError, ValueError) as error:
        raise ValueError(str(error).replace("`ratio", "`--ratio")) from None
    return lines


def _rows(part: Inputs | None) -> tuple[Any, ...] | None:
    """Give the rows of a part as `find_frontier` takes them."""
    if part is None:
        return None
    rows = (part.features, target_of(part), part.protected)
    return rows if part.weight is None else (*rows, part.weight)


def _budget(
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
