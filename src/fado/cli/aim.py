"""`fado aim` and `fado frontier`: one model, or the best of many, whose ratios reach their lines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from typer import Option

from fado.cli import _options as opt
from fado.cli._app import stopping

if TYPE_CHECKING:
    from fado.cli._inputs import Inputs


def aim(
    data: opt.Data,
    *,
    out: Annotated[Path, Option(metavar="DIR", help="The directory for the model and its card.")],
    target: opt.Target,
    protected: opt.Protected,
    unknown: opt.Unknown = None,
    positive: opt.Positive = None,
    drop: opt.Drop = None,
    keep_ids: opt.KeepIds = False,
    weight: opt.Weight = None,
    group_names: opt.GroupNames = None,
    split: opt.Split = None,
    validation: opt.Validation = None,
    test: opt.Test = None,
    ratio: opt.Ratio = None,
    at_least: opt.AtLeast = 0.8,
    confidence: opt.Confidence = None,
    max_fpr: opt.MaxFpr = None,
    max_selection_rate: opt.MaxSelectionRate = None,
    top_k: opt.TopK = None,
    threshold: opt.Threshold = None,
    by: Annotated[
        Literal["scores", "student", "weights"],
        Option(
            help="What is returned. scores: models of labels and groups, combined. student: one model "
            "trained on their scores. weights: one model trained with sample weights."
        ),
    ] = "scores",
    attributes: Annotated[
        Literal["crossed", "each"],
        Option(help="Compare combinations of the attributes (crossed), or the groups of each."),
    ] = "crossed",
    test_fraction: Annotated[
        float | None,
        Option(show_default="no test data", help="The share of the rows that is kept as test data."),
    ] = None,
    min_group_size: opt.MinGroupSize = opt.MIN_GROUP_SIZE,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
) -> None:
    """Train a LightGBM model whose ratios between groups reach their lines; write it with a model card."""
    from lightgbm import LGBMClassifier

    from fado.aim import AimedEstimator
    from fado.cli._inputs import read_aimed, rows_of, target_of
    from fado.models import write_model

    columns: dict[str, Any] = {
        "target": target,
        "protected": protected,
        "unknown": unknown,
        "positive": positive,
    }
    columns |= {"drop": drop, "keep_ids": keep_ids, "weight": weight, "group_names": group_names}
    limits = {"max_fpr": max_fpr, "max_selection_rate": max_selection_rate}
    lines, budget, parts = read_aimed(
        data,
        out,
        columns,
        ratio=ratio,
        at_least=at_least,
        confidence=confidence,
        limits=limits | {"top_k": top_k, "threshold": threshold},
        split=split,
        parts={"validation": validation, "test": test},
        test_fraction=test_fraction,
    )
    if test_fraction is not None:
        parts |= _test_rows(parts["train"], test_fraction, seed)
    train = parts["train"]
    model = AimedEstimator(
        LGBMClassifier(random_state=seed, verbosity=-1),
        ratio=lines,
        confidence=confidence,
        by=by,
        attributes=attributes,
        min_group_size=min_group_size,
        random_state=seed,
        budget=budget,
        pos_label=train.positive,
        n_jobs=jobs,
        progress=True,
    )
    model.fit(
        train.features,
        target_of(train),
        sensitive_features=train.protected,
        unknown=train.unknown,
        validation=rows_of(parts.get("validation")),
        sample_weight=train.weight,
    )
    chosen = model.to_model(test=rows_of(parts.get("test")))
    write_model(chosen, out)
    print(f"Aimed at {' and '.join(lines)} by {by}, in {model.n_fits_} fits on {train.n_rows:,} rows")
    tested = parts["test"].n_rows if "test" in parts else 5_000
    chance = model.chance_on(tested)
    shown = "the line" if len(lines) == 1 else "all lines"
    forecast = f"On {tested:,} new rows, {shown} will be reached with a probability of about {chance:.2f}."
    _print_model(chosen, train, out, *([] if math.isnan(chance) else [forecast]))


def _test_rows(inputs: Inputs, share: float, seed: int) -> dict[str, Inputs]:
    """Split off a share of the rows, stratified by label and group."""
    from fado.cli._inputs import take_inputs
    from fado.tabular import deal_rows

    if not 0 < share < 1:
        raise ValueError(f"`--test-fraction` must be in (0, 1), got {share}.")
    cells = inputs.labels.codes.astype(np.int64)
    for groups in inputs.protected.values():
        codes = groups.astype("category").cat.codes.to_numpy()
        cells = cells * (int(codes.max()) + 2) + codes + 1
    dealt = deal_rows(
        np.unique(cells, return_inverse=True)[1], [1 - share, share], np.random.default_rng([seed, 4])
    )
    return {
        name: take_inputs(inputs, np.flatnonzero(dealt == part))
        for part, name in enumerate(("train", "test"))
    }


def frontier(
    data: opt.Data,
    *,
    out: Annotated[
        Path, Option(metavar="DIR", help="The directory for the model, its card and a chart of all models.")
    ],
    target: opt.Target,
    protected: opt.Protected,
    unknown: opt.Unknown = None,
    positive: opt.Positive = None,
    drop: opt.Drop = None,
    keep_ids: opt.KeepIds = False,
    weight: opt.Weight = None,
    group_names: opt.GroupNames = None,
    split: opt.Split = None,
    validation: opt.Validation = None,
    test: opt.Test = None,
    ratio: opt.Ratio = None,
    at_least: opt.AtLeast = 0.8,
    confidence: opt.Confidence = None,
    max_fpr: opt.MaxFpr = None,
    max_selection_rate: opt.MaxSelectionRate = None,
    top_k: opt.TopK = None,
    threshold: opt.Threshold = None,
    max_fits: Annotated[int, Option(help="How many full fits the search may use.")] = 60,
    test_fraction: Annotated[
        float | None, Option(show_default="0.2", help="The share of the rows that is kept as test data.")
    ] = None,
    min_group_size: opt.MinGroupSize = opt.MIN_GROUP_SIZE,
    store: Annotated[
        Path | None,
        Option(
            metavar="DIR", help="Save the search in this directory; run the same command again to resume it."
        ),
    ] = None,
    dossier: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Also write a dossier (.html or .json): the best untouched model, alternatives with nearly "
            "equal performance, and what was searched.",
        ),
    ] = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    dask: opt.Dask = None,
) -> None:
    """Find the best model whose ratios between groups reach their lines; write it with a model card."""
    from fado.cli._inputs import read_aimed, rows_of, target_of
    from fado.cli._outputs import check_apart, check_output
    from fado.experiment import find_frontier
    from fado.models import LANDSCAPE, write_model

    if store is not None:
        check_apart(out, store, "`--store`")
    if dossier is not None:
        check_output(dossier, [data], (".html", ".json"), "--dossier")
    columns: dict[str, Any] = {
        "target": target,
        "protected": protected,
        "unknown": unknown,
        "positive": positive,
    }
    columns |= {"drop": drop, "keep_ids": keep_ids, "weight": weight, "group_names": group_names}
    limits = {"max_fpr": max_fpr, "max_selection_rate": max_selection_rate}
    lines, budget, parts = read_aimed(
        data,
        out,
        columns,
        ratio=ratio,
        at_least=at_least,
        confidence=confidence,
        limits=limits | {"top_k": top_k, "threshold": threshold},
        split=split,
        parts={"validation": validation, "test": test},
        test_fraction=test_fraction,
    )
    train = parts["train"]
    if confidence is not None:
        judged = parts.get("validation")  # without it, a fifth of the rows
        share = 0.2 if judged is None else 1.0
        _print_events(judged or train, share, lines, budget, confidence, min_group_size)
    with nullcontext() if store is None else stopping(store):
        searched = find_frontier(
            train.features,
            target_of(train),
            sensitive_features=train.protected,
            unknown=train.unknown,
            ratio=lines if len(lines) > 1 else next(iter(lines)),
            max_fits=max_fits,
            budget=budget,
            validation=rows_of(parts.get("validation")),
            test=rows_of(parts.get("test")) or (0.2 if test_fraction is None else test_fraction),
            pos_label=train.positive,
            sample_weight=train.weight,
            min_group_size=min_group_size,
            store=store,
            random_state=seed,
            n_jobs=jobs,
            client=dask,
            progress=True,
        )
    model = searched.closest(lines, confidence)
    if model is None:
        raise ValueError(
            f"No model has a defined {' and '.join(lines)}: groups have too few rows of a label, or all "
            "scores are equal."
        )
    write_model(model, out, landscape=lambda path: searched.report(path, lines))
    if dossier is not None:
        searched.dossier(dossier)
    print(searched)
    beside = [f"Chart of all models: {out / LANDSCAPE}"]
    beside += [] if dossier is None else [f"Dossier of alternatives: {dossier}"]
    _print_model(model, train, out, *beside)


def _print_model(model: Any, train: Inputs, out: Path, *more: str) -> None:
    """Print the beginning of a model's card, and the files."""
    from fado.cli._outputs import print_card, print_seen_sources

    print_card(model)
    print_seen_sources(train)
    for line in (*more, f"Model and card (card.md, card.html): {out}"):
        print(line)
    print(f"To score other rows: fado predict {out} OTHER --out scores.parquet")


def _print_events(
    part: Inputs,
    share: float,
    lines: Mapping[str, float],
    budget: Any,
    confidence: float,
    min_group_size: int,
) -> None:
    """Print before a search how many events the smallest group can have, and what follows from it."""
    from fado.aim import expected_counts
    from fado.cli._outputs import print_lines
    from fado.tabular import group_rows

    groups = group_rows(part.attributes)
    compared = np.flatnonzero(groups.compared(min_group_size))
    if part.positives is None or len(compared) < 2:
        return
    cells = [np.bincount(groups.codes[part.positives == label], minlength=len(groups)) for label in (0, 1)]
    for ratio, line in lines.items():
        negatives, positives = (np.float64(share) * cell[compared] for cell in cells)
        counts = expected_counts(ratio, budget, negatives, positives)
        if counts is None:
            continue
        least = int(counts.events.argmin())
        bound = counts.bound(confidence)
        events = "false positives" if ratio == "fpr_ratio" else "selected rows"
        follows = "" if bound >= line else f", below {line:g}: no model can be confirmed with these rows"
        print_lines(
            f"{ratio}: at the budget, the smallest group ({groups.titles[compared[least]]}) has about "
            f"{counts.events[least]:,.0f} {events} in {share * part.n_rows:,.0f} validation rows; equal "
            f"rates would have a lower bound of {bound:.3f} at {100 * confidence:g} % confidence{follows}."
        )
