"""`fado frontier`: the best model above the line, as a directory that `fado predict` reads."""

from __future__ import annotations

from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal

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
from fado.cli._summary import print_table
from fado.cli._tables import check_apart
from fado.metrics import Budget
from fado.models import LANDSCAPE, ChosenModel, check_directory, write_model
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
        Literal["fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"],
        typer.Option(help="The ratio between groups that must reach the line."),
    ] = "fpr_ratio",
    at_least: Annotated[
        float, typer.Option(metavar="R", help="The line: the least that the ratio must be.")
    ] = 0.8,
    confidence: Annotated[
        float | None,
        typer.Option(
            metavar="C", help="Ask that the ratio's lower bound at this confidence reaches the line."
        ),
    ] = None,
    budget: Annotated[int, typer.Option(metavar="N", help="How many whole fits the search may cost.")] = 60,
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
    min_group_size: MinGroupSize = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the search in this directory; run again to resume it."),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    dask: Dask = None,
) -> None:
    """Find the best model whose ratio between groups reaches a line, and write it with its card."""
    from fado.aim import check_confidence, check_line
    from fado.experiment import find_frontier

    check_line(at_least, "--at-least")
    check_confidence(confidence)
    decide = _budget(max_fpr, max_selection_rate, top_k, threshold)
    if store is not None:
        check_apart(out, store, "`--store`")
    check_directory(out)
    inputs = read_inputs(data, target, protected, positive=positive, drop=drop, weight=weight)
    with ExitStack() as opened:
        if store is not None:
            opened.enter_context(stopping(store))
        found = find_frontier(
            inputs.features,
            _named(inputs),
            sensitive_features=inputs.protected,
            ratio=ratio,
            budget=budget,
            decide=decide,
            pos_label=inputs.positive,
            sample_weight=inputs.weight,
            min_group_size=MIN_GROUP_SIZE if min_group_size is None else min_group_size,
            store=store,
            random_state=seed,
            n_jobs=jobs,
            client=dask,
            progress=True,
        )
    model = found.closest(at_least, confidence)
    if model is None:
        raise ValueError(
            f"No model can be compared by its {ratio}: the groups have too few rows of a label, or no model "
            "tells rows apart."
        )
    write_model(model, out, landscape=found.report)
    print(found)
    _print_model(model)
    print(f"The model and its card (card.md, card.html): {out}")
    print(f"The landscape, to choose from: {out / LANDSCAPE}")
    print(f"Scores of other rows: fado predict {out} OTHER --out scores.parquet")


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


def _named(inputs: Inputs) -> Any:
    return inputs.target.to_pandas().rename(inputs.name)


def _print_model(model: ChosenModel) -> None:
    """Print what the model reached, and on which rows."""
    facts = model.facts_
    parts = list(facts.measured)
    names = [name for name in model.metrics_ if not name.endswith(("_low", "_high"))]
    print_table(
        "What it reaches, with intervals",
        ["metric", *parts],
        [[name, *(_with_interval(facts.measured[part], name) for part in parts)] for name in names],
    )
    line = f"{facts.ratio} of at least {facts.at_least:g}"
    sure = "" if facts.confidence is None else f" with {100 * facts.confidence:g} % confidence"
    print(f"The line is reached: {line}{sure}." if model.reached_ else f"The line is missed: {line}{sure}.")
    print(facts.chosen if model.reached_ else f"{facts.chosen} {facts.why}")


def _with_interval(metrics: Any, name: str) -> str:
    value, low, high = (metrics.get(f"{name}{end}", float("nan")) for end in ("", "_low", "_high"))
    if value != value:
        return "-"
    return f"{value:.3f}" if low != low else f"{value:.3f} ({low:.3f} to {high:.3f})"
