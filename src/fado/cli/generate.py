"""`fado generate`: add synthetic positives to groups with a low positive rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from typer import Option

from fado._typing import Bools, Floats
from fado.cli import _options as opt

if TYPE_CHECKING:
    import pyarrow as pa

    from fado.cli._inputs import Inputs
    from fado.generation import UtilityAwareOverSampler


MARK = "synthetic"


def generate(
    data: opt.Data,
    *,
    out: opt.Out,
    target: opt.Target,
    protected: opt.Protected,
    unknown: opt.Unknown = None,
    positive: opt.Positive = None,
    drop: opt.Drop = None,
    keep_ids: opt.KeepIds = False,
    weight: opt.Weight = None,
    group_names: opt.GroupNames = None,
    values: opt.Values = None,
    alpha: Annotated[float, opt.ALPHA] = 0.5,
    strength: Annotated[
        float, Option(help="How far the positive rates of groups move towards the highest rate, 0 to 1.")
    ] = 1.0,
    method: Annotated[
        Literal["trees", "repeat"],
        Option(
            help="trees: combine entries of similar rows, which share leaves of trees. repeat: repeat "
            "existing rows."
        ),
    ] = "trees",
    exclude: opt.Exclude = None,
    min_group_size: opt.MinGroupSize = opt.MIN_GROUP_SIZE,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
) -> None:
    """Equalise the positive rates of groups with synthetic positives, preferably of rows of high utility."""
    from fado.cli._inputs import load_values, read_inputs, utility_of
    from fado.cli._outputs import check_output, print_settings, write_table
    from fado.generation import UtilityAwareOverSampler
    from fado.utility import LinearUtility
    from fado.valuation import OutOfBagEntropy

    check_output(out, [data] if values is None else [data, values])
    columns: dict[str, Any] = {"unknown": unknown, "positive": positive, "drop": drop, "keep_ids": keep_ids}
    inputs = read_inputs(data, target, protected, weight=weight, group_names=group_names, **columns)
    if MARK in inputs.table.column_names:
        raise ValueError(f"The table already has a column {MARK!r}, which marks synthetic rows: rename it.")
    valuation = None if values is None else load_values(values, inputs)
    utility = LinearUtility(alpha)
    if valuation is not None:
        utility = utility_of([*inputs.protected], valuation, "linear", alpha)
    valuator = OutOfBagEntropy(
        z_exclude=inputs.hidden_columns(exclude), random_state=seed, n_jobs=jobs, progress=True
    )
    sampler = UtilityAwareOverSampler(
        utility,
        valuator,
        strength=strength,
        method=method,
        pos_label=inputs.positive,
        min_group_size=min_group_size,
        random_state=seed,
        n_jobs=jobs,
        progress=True,
    )
    features, labels = sampler.fit_resample(
        inputs.features,
        inputs.target,
        sensitive_features=inputs.protected,
        unknown=inputs.unknown,
        valuation=valuation,
        sample_weight=inputs.weight,
    )
    features = _in_their_groups(inputs, features, sampler.parents_)
    made = _whole_table(inputs, features, labels, sampler, weight)
    write_table(made, out)
    _print_rates(inputs, sampler)
    print_settings(
        {
            "method": method,
            "alpha": alpha,
            "strength": strength,
            "min-group-size": min_group_size,
            "positive": inputs.positive,
            "weight": weight,
            "seed": seed,
        }
    )
    n_made = int(sampler.synthetic_.sum())
    print(f"{inputs.n_rows:,} rows and {n_made:,} synthetic rows, marked in {MARK!r}, written to {out}")


def _in_their_groups(inputs: Inputs, features: pa.Table, parents: Any) -> pa.Table:
    """Give synthetic rows that left their group the entries of their parents that define it."""
    import pandas as pd
    import pyarrow as pa

    n_given = inputs.n_rows
    for name, expression in inputs.expressions.items():
        if not set(expression.sources) <= set(features.column_names):
            continue
        now = expression.groups(features).iloc[n_given:].astype(object).to_numpy()
        before = inputs.protected[name].iloc[parents].astype(object).to_numpy()
        strange = (now != before) & ~(pd.isna(now) & pd.isna(before))
        rows = np.arange(features.num_rows)
        rows[n_given:][strange] = parents[strange]
        for source in expression.sources if strange.any() else ():
            place = features.column_names.index(source)
            features = features.set_column(
                place, features.field(place), features.column(place).take(pa.array(rows))
            )
    return features


def _whole_table(
    inputs: Inputs, features: pa.Table, labels: Any, sampler: UtilityAwareOverSampler, weight: str | None
) -> pa.Table:
    """Join all columns of the file; synthetic rows have no entries in columns that are not features.

    Columns that define their labels and groups, but are not features, have the entries of their parents.
    """
    import pyarrow as pa

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
    from fado.cli._outputs import in_shown_order, print_table
    from fado.tabular import group_rows

    groups = group_rows(inputs.attributes)
    rows = np.r_[np.arange(inputs.n_rows), sampler.parents_]
    weights = np.ones(len(rows)) if sampler.sample_weight_ is None else sampler.sample_weight_
    codes, positives, given = groups.codes[rows], inputs.positives, ~sampler.synthetic_
    header = ["group", "rows", "synthetic", *([] if positives is None else ["positive", "positive\nafter"])]
    lines = []
    for group in in_shown_order(groups, inputs.attributes):
        members = codes == group
        line: list[Any] = [groups.titles[group], int((members & given).sum()), int((members & ~given).sum())]
        if positives is not None:
            line += [_rate(positives[rows[part]], weights[part]) for part in (members & given, members)]
        lines.append(line)
    print_table(f"Before and after, by {', '.join(inputs.protected)}", header, lines)


def _rate(positives: Bools, weights: Floats) -> float:
    return float(np.average(positives, weights=weights)) if weights.sum() > 0 else math.nan
