"""`fado generate`: make rows where groups are short of positives."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import typer
from sklearn.base import clone

from fado._storage import replacing
from fado.cli._errors import in_sentences
from fado.cli._inputs import Inputs, read_inputs
from fado.cli._options import (
    Alpha,
    Data,
    Drop,
    Exclude,
    GroupNames,
    Jobs,
    MinGroupSize,
    Out,
    Positive,
    Protected,
    Seed,
    Target,
    ValuesIfUsed,
    Weight,
)
from fado.cli._summary import in_shown_order, print_settings, print_table
from fado.cli._tables import check_output, write_table
from fado.cli._utilities import utility_of
from fado.cli._values import load_values
from fado.generation import UtilityAwareOverSampler, generation_report
from fado.tabular import (
    MIN_GROUP_SIZE,
    deal_rows,
    group_rows,
    read_problem,
    take_rows,
)
from fado.utility import LinearUtility
from fado.valuation import OutOfBagEntropy

__all__ = ["generate"]

Rows = npt.NDArray[np.integer[Any]]

ALPHA = 0.5
MARK = "synthetic"
HELD_OUT = 0.25  # of the rows, as validation rows of a report


@in_sentences
def generate(
    data: Data,
    target: Target,
    protected: Protected,
    out: Out,
    values: ValuesIfUsed = None,
    alpha: Alpha = None,
    strength: Annotated[
        float,
        typer.Option(metavar="S", help="How far groups' rates move to the highest rate, 0 to 1."),
    ] = 1.0,
    method: Annotated[
        Literal["trees", "repeat"],
        typer.Option(
            help="trees: make rows of the entries of rows that are alike, in the same leaves of trees. "
            "repeat: repeat rows as they are."
        ),
    ] = "trees",
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also print, and write to this JSON file, how made rows compare with real ones, and models "
            "trained on them with models after other interventions, on a quarter of the rows held out.",
        ),
    ] = None,
    positive: Positive = None,
    exclude: Exclude = None,
    drop: Drop = None,
    weight: Weight = None,
    group_names: GroupNames = None,
    min_group_size: MinGroupSize = None,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Match the groups' positive rates by making new positives, preferably after rows of high utility."""
    check_output(out, [data] if values is None else [data, values])
    if report is not None:
        if report.suffix.lower() != ".json":
            raise ValueError(f"`--report` must end in .json, got {str(report)!r}.")
        check_output(report, [data], [".json"])
    inputs = read_inputs(
        data, target, protected, positive=positive, drop=drop, weight=weight, group_names=group_names
    )
    if report is not None and len(inputs.labels.classes) > 2 and inputs.positives is None:
        raise ValueError(
            f"`--report` needs a positive label, and {inputs.name!r} has {len(inputs.labels.classes)} "
            "labels: name it by `--positive`."
        )
    if MARK in inputs.table.column_names:
        raise ValueError(
            f"The table has a column {MARK!r} already, by which made rows are marked: rename it."
        )
    least = MIN_GROUP_SIZE if min_group_size is None else min_group_size
    valuation = None if values is None else load_values(values, inputs)
    chosen = ALPHA if alpha is None else alpha
    utility = LinearUtility(chosen)
    if valuation is not None:
        utility = utility_of("linear", chosen, [*inputs.protected], valuation)
    valuator = OutOfBagEntropy(
        z_exclude=inputs.hidden_columns(exclude or []), random_state=seed, n_jobs=jobs, progress=True
    )
    sampler = UtilityAwareOverSampler(
        utility,
        valuator,
        strength=strength,
        method=method,
        pos_label=inputs.positive,
        min_group_size=least,
        random_state=seed,
        n_jobs=jobs,
        progress=True,
    )
    features, labels = sampler.fit_resample(
        inputs.features,
        inputs.target,
        sensitive_features=inputs.protected,
        valuation=valuation,
        sample_weight=inputs.weight,
    )
    features = _in_their_groups(inputs, features, sampler.parents_)
    made = _whole_table(inputs, features, labels, sampler, weight)
    write_table(made, out)
    _print_rates(inputs, sampler)
    if report is not None:
        figures = _report(inputs, utility, valuator, strength, least, seed, jobs)
        with replacing(report, "The report") as temporary:
            temporary.write_text(json.dumps(_without_nan(figures), indent=2) + "\n", encoding="utf-8")
    print_settings(
        {
            "method": method,
            "alpha": chosen,
            "strength": strength,
            "min-group-size": least,
            "positive": inputs.positive,
            "weight": weight,
            "seed": seed,
        }
    )
    n_made = int(sampler.synthetic_.sum())
    print(f"{inputs.n_rows:,} rows and {n_made:,} made ones, marked in {MARK!r}, written to {out}")


def _in_their_groups(inputs: Inputs, features: pa.Table, parents: Rows) -> pa.Table:
    """Give made rows that fell out of their group the entries of their parents that decide on it."""
    before = inputs.n_rows
    for name, expression in inputs.expressions.items():
        if not set(expression.sources) <= set(features.column_names):
            continue
        now = expression.groups(features).iloc[before:].astype(object).to_numpy()
        own = inputs.protected[name].iloc[parents].astype(object).to_numpy()
        strange = (now != own) & ~(pd.isna(now) & pd.isna(own))
        rows = np.arange(features.num_rows)
        rows[before:][strange] = parents[strange]
        for source in expression.sources if strange.any() else ():
            place = features.column_names.index(source)
            features = features.set_column(
                place, features.field(place), features.column(place).take(pa.array(rows))
            )
    return features


def _whole_table(
    inputs: Inputs, features: pa.Table, labels: Any, sampler: UtilityAwareOverSampler, weight: str | None
) -> pa.Table:
    """Put all columns of the file together; made rows have nothing in those that no model may see.

    Only what decides on their labels and groups is their parents', if no model may see it.
    """
    n_made = len(sampler.parents_)
    rows = pa.array(np.r_[np.arange(inputs.n_rows), sampler.parents_])
    made = set(features.column_names)
    written = (inputs.predicted, *inputs.expressions.values())
    deciding = {source for expression in written for source in expression.sources}
    columns = {}
    for name, column in zip(inputs.table.column_names, inputs.table.columns, strict=True):
        if name == inputs.name:
            columns[name] = labels
        elif name in made:
            columns[name] = features.column(name)
        elif name == weight:
            columns[name] = pa.chunked_array([pa.array(sampler.sample_weight_)])
        elif name in deciding:
            columns[name] = column.take(rows)
        else:
            columns[name] = pa.chunked_array([*column.chunks, pa.nulls(n_made, column.type)], column.type)
    return pa.table(columns).append_column(MARK, pa.array(sampler.synthetic_))


def _print_rates(inputs: Inputs, sampler: UtilityAwareOverSampler) -> None:
    """Print every group's rows and positive rate, before and after."""
    groups = group_rows(inputs.attributes)
    rows = np.r_[np.arange(inputs.n_rows), sampler.parents_]
    weights = np.ones(len(rows)) if sampler.sample_weight_ is None else sampler.sample_weight_
    codes, positives = groups.codes[rows], inputs.positives
    header = ["group", "rows", "made", *([] if positives is None else ["positive", "positive\nafter"])]
    lines = []
    for group in in_shown_order(groups, inputs.attributes):
        members, given = codes == group, ~sampler.synthetic_
        line: list[Any] = [groups.titles[group], int((members & given).sum()), int((members & ~given).sum())]
        if positives is not None:
            line += [_rate(positives[rows[part]], weights[part]) for part in (members & given, members)]
        lines.append(line)
    print_table(f"Before and after, by {', '.join(inputs.protected)}", header, lines)


def _rate(positives: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64]) -> float:
    return float(np.average(positives, weights=weights)) if weights.sum() > 0 else math.nan


def _report(
    inputs: Inputs,
    utility: Any,
    valuator: OutOfBagEntropy,
    strength: float,
    min_group_size: int,
    seed: int,
    jobs: int | None,
) -> dict[str, Any]:
    """Hold rows out, and compare: made rows with real ones, and what models learn from them."""
    from fado.cli._training_sets import METRICS, compare_interventions

    groups = group_rows(inputs.attributes)
    cells = groups.codes * len(inputs.labels.classes) + inputs.labels.codes
    dealt = deal_rows(cells, [1 - HELD_OUT, HELD_OUT], np.random.default_rng(seed))
    parts = [np.flatnonzero(dealt == part) for part in (0, 1)]
    given = [
        (
            take_rows(inputs.features, rows),
            take_rows(inputs.target, rows),
            {name: take_rows(own, rows) for name, own in inputs.protected.items()},
        )
        for rows in parts
    ]
    figures = generation_report(
        *given[0], validation=given[1], pos_label=inputs.positive, random_state=seed, n_jobs=jobs
    )
    training, validated = (read_problem(*own, pos_label=inputs.positive) for own in given)
    valuation = clone(valuator).fit(*given[0][:2], sensitive_features=given[0][2]).valuation_
    compared = compare_interventions(
        training,
        validated,
        valuation,
        utility=utility,
        strength=strength,
        min_group_size=min_group_size,
        seed=seed,
        n_jobs=jobs,
    )
    _print_report(figures, compared, METRICS)
    return figures | {"interventions": compared}


def _print_report(
    figures: Mapping[str, Any], compared: Sequence[Mapping[str, Any]], metrics: Sequence[str]
) -> None:
    real, made = figures["trained_on_real"], figures["trained_on_made"]
    near, copies = figures["distances"], figures["copies"]
    held_out = near["held_out"]
    print_table(
        f"A table of made rows, beside {figures['validation']:,} rows held out",
        ["", "made", "real"],
        [
            ["AUC of a model trained on these", made["auc"], real["auc"]],
            ["its TPR at a FPR of 5 %", made["tpr"], real["tpr"]],
            ["AUC of telling both apart", figures["told_apart"], ""],
            ["distance to the nearest row, median", near["made"]["median"], held_out["median"]],
            ["and lowest twentieth", near["made"]["lowest_twentieth"], held_out["lowest_twentieth"]],
            ["share of copies of a row", copies["made"], copies["held_out"]],
        ],
    )
    print_table(
        "Models after interventions, on the rows held out",
        ["", "rows", *(metric.replace("_ratio", "\nratio").replace("_", " ") for metric in metrics)],
        [[own["intervention"], own["rows"], *(own[metric] for metric in metrics)] for own in compared],
    )
    print("Small distances warn of rows that give somebody away; large ones promise nothing.")


def _without_nan(value: Any) -> Any:
    """Give plain data with None for what is undefined, as JSON has no other word for it."""
    if isinstance(value, Mapping):
        return {key: _without_nan(own) for key, own in value.items()}
    if isinstance(value, list):
        return [_without_nan(own) for own in value]
    return None if isinstance(value, float) and math.isnan(value) else value
