"""`fado frontier`: the best model above the line, as a directory that `fado predict` reads."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from fado.cli._aiming import (
    AtLeast,
    Confidence,
    MaxFpr,
    MaxSelectionRate,
    Ratio,
    Threshold,
    TopK,
    read_asked,
    read_budget,
    rows_of,
    seen_sources,
)
from fado.cli._errors import in_sentences
from fado.cli._inputs import read_inputs
from fado.cli._options import (
    Dask,
    Data,
    Drop,
    GroupNames,
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
    ratio: Ratio = None,
    at_least: AtLeast = 0.8,
    confidence: Confidence = None,
    max_fits: Annotated[int, typer.Option(metavar="N", help="How many whole fits the search may cost.")] = 60,
    max_fpr: MaxFpr = None,
    max_selection_rate: MaxSelectionRate = None,
    top_k: TopK = None,
    threshold: Threshold = None,
    positive: Positive = None,
    drop: Drop = None,
    weight: Weight = None,
    split: Split = None,
    validation: Validation = None,
    test: Test = None,
    test_fraction: TestFraction = None,
    group_names: GroupNames = None,
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
    from fado.experiment import find_frontier

    lines = read_asked(ratio, at_least, confidence)
    limit = read_budget(max_fpr, max_selection_rate, top_k, threshold)
    check_split(split, validation, test, test_fraction)
    if store is not None:
        check_apart(out, store, "`--store`")
    check_directory(out)
    inputs = read_inputs(
        data,
        target,
        protected,
        positive=positive,
        drop=drop,
        weight=weight,
        split=split,
        group_names=group_names,
    )
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
            validation=rows_of(parts.get("validation")),
            test=rows_of(parts.get("test")) or (0.2 if test_fraction is None else test_fraction),
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
    if seen := seen_sources(inputs):
        print(seen)
    print(f"The model and its card (card.md, card.html): {out}")
    print(f"The landscape, to choose from: {out / LANDSCAPE}")
    print(f"Scores of other rows: fado predict {out} OTHER --out scores.parquet")
