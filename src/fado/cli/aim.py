"""`fado aim`: one model whose decisions bring ratios between groups to their lines, with its card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
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
from fado.cli._inputs import Inputs, read_inputs
from fado.cli._options import (
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
from fado.cli._splits import Split, Test, Validation, check_split, split_inputs, taken, target_of
from fado.cli._verdict import told_of, verdict_text
from fado.models import check_directory, write_model
from fado.tabular import MIN_GROUP_SIZE, deal_rows

__all__ = ["aim"]


@in_sentences
def aim(
    data: Data,
    target: Target,
    protected: Protected,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The directory to write the model and its card to.")
    ],
    ratio: Ratio = None,
    at_least: AtLeast = 0.8,
    confidence: Confidence = None,
    by: Annotated[
        Literal["scores", "student", "weights"],
        typer.Option(
            help="What is handed over: models of label and groups, combined; one model that learnt their "
            "scores; or one that was trained with weights."
        ),
    ] = "scores",
    attributes: Annotated[
        Literal["crossed", "each"],
        typer.Option(help="Whether groups are combinations of the attributes, or each has its own."),
    ] = "crossed",
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
    test_fraction: Annotated[
        float | None,
        typer.Option(
            metavar="F",
            show_default="no test rows",
            help="The share of the rows that is kept apart as test rows.",
        ),
    ] = None,
    group_names: GroupNames = None,
    min_group_size: MinGroupSize = None,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Train a LightGBM model whose ratios between groups reach their lines, and write it with its card."""
    from lightgbm import LGBMClassifier

    from fado.aim import AimedEstimator

    lines = read_asked(ratio, at_least, confidence)
    limit = read_budget(max_fpr, max_selection_rate, top_k, threshold)
    check_split(split, validation, test, test_fraction)
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
    if test_fraction is not None:
        parts |= _test_rows(parts["train"], test_fraction, seed)
    train = parts["train"]
    model = AimedEstimator(
        LGBMClassifier(random_state=seed, verbosity=-1),
        ratio=lines,
        confidence=confidence,
        by=by,
        attributes=attributes,
        min_group_size=MIN_GROUP_SIZE if min_group_size is None else min_group_size,
        random_state=seed,
        budget=limit,
        pos_label=train.positive,
        n_jobs=jobs,
    )
    model.fit(
        train.features,
        target_of(train),
        sensitive_features=train.protected,
        validation=rows_of(parts.get("validation")),
        sample_weight=train.weight,
    )
    chosen = model.to_model(test=rows_of(parts.get("test")))
    write_model(chosen, out)
    print(f"Aimed at {' and '.join(lines)} by {by}, in {model.n_fits_} fits on {train.n_rows:,} rows")
    print(verdict_text(told_of(chosen.facts_)), end="")
    tested = parts["test"].n_rows if "test" in parts else 5_000
    chance = model.chance_on(tested)
    if not np.isnan(chance):
        shown = "the line" if len(lines) == 1 else "all lines"
        print(f"{tested:,} fresh rows show {shown} with a probability of about {chance:.2f}.")
    if seen := seen_sources(inputs):
        print(seen)
    print(f"The model and its card (card.md, card.html): {out}")
    print(f"Scores of other rows: fado predict {out} OTHER --out scores.parquet")


def _test_rows(inputs: Inputs, share: float, seed: int) -> dict[str, Any]:
    """Set a share of the rows apart, of every label and group alike."""
    if not 0 < share < 1:
        raise ValueError(f"`--test-fraction` must be in (0, 1), got {share}.")
    cells = inputs.labels.codes.astype(np.int64)
    for own in inputs.protected.values():
        codes = own.astype("category").cat.codes.to_numpy()
        cells = cells * (int(codes.max()) + 2) + codes + 1
    dealt = deal_rows(
        np.unique(cells, return_inverse=True)[1], [1 - share, share], np.random.default_rng([seed, 4])
    )
    return {
        name: taken(inputs, np.flatnonzero(dealt == number)) for number, name in enumerate(("train", "test"))
    }
