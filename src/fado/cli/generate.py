"""`fado generate`: add synthetic positives to groups with a low positive rate."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from fado.cli._options import MIN_GROUP_SIZE, command

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from fado.cli._inputs import Inputs
    from fado.generation import UtilityAwareOverSampler
    from fado.tabular import Problem, Table
    from fado.valuation import Valuation

Bools = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

ALPHA = 0.5
MARK = "synthetic"
HELD_OUT = 0.25  # of the rows, as validation data of a report
METRICS = ("tpr", "fpr_ratio", "fnr_ratio", "selection_rate_ratio")
MAX_FPR = 0.05
NEIGHBOURS = 5  # of SMOTENC


@command("target", "protected", "positive", "drop", "keep_ids", "weight", "group_names")
def generate(
    data: Path,
    *,
    out: Path,
    values: Path | None = None,
    alpha: float | None = None,
    strength: float = 1.0,
    method: Literal["trees", "repeat"] = "trees",
    report: Path | None = None,
    exclude: list[str] | None = None,
    min_group_size: int = MIN_GROUP_SIZE,
    seed: int = 0,
    jobs: int | None = None,
    **named: Any,
) -> None:
    """Equalise the positive rates of groups with synthetic positives, preferably from rows of high utility.

    Parameters
    ----------
    values : FILE|DIR, default=computed here
        The values of the rows, written by `fado value`.
    alpha : A, default=0.5
        Weight of performance versus fairness in the utility, 0 to 1.
    strength : S
        How far the positive rates of groups move towards the highest rate, 0 to 1.
    method : choice
        trees: combine entries of similar rows, which share leaves of trees. repeat: repeat existing rows.
    report : FILE
        Also compare synthetic rows with real ones, and models trained on them with models after other
        interventions, on a quarter of the rows; print the result and write it to this JSON file.
    """
    from fado._storage import replacing
    from fado.cli._inputs import load_values, read_inputs, utility_of
    from fado.cli._outputs import check_output, print_settings, write_table
    from fado.generation import UtilityAwareOverSampler
    from fado.reporting import without_nan
    from fado.utility import LinearUtility
    from fado.valuation import OutOfBagEntropy

    check_output(out, [data] if values is None else [data, values])
    if report is not None:
        check_output(report, [data], [".json"], "--report")
    inputs = read_inputs(data, **named)
    weight = named.get("weight")
    if report is not None and len(inputs.labels.classes) > 2 and inputs.positives is None:
        raise ValueError(
            f"`--report` needs a positive label, and {inputs.name!r} has {len(inputs.labels.classes)} "
            "labels: name it with `--positive`."
        )
    if MARK in inputs.table.column_names:
        raise ValueError(f"The table already has a column {MARK!r}, which marks synthetic rows: rename it.")
    valuation = None if values is None else load_values(values, inputs)
    chosen = ALPHA if alpha is None else alpha
    utility = LinearUtility(chosen)
    if valuation is not None:
        utility = utility_of("linear", chosen, [*inputs.protected], valuation)
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
        valuation=valuation,
        sample_weight=inputs.weight,
    )
    features = _in_their_groups(inputs, features, sampler.parents_)
    made = _whole_table(inputs, features, labels, sampler, weight)
    write_table(made, out)
    _print_rates(inputs, sampler)
    if report is not None:
        figures = _report(inputs, sampler)
        with replacing(report, "The report") as temporary:
            temporary.write_text(json.dumps(without_nan(figures), indent=2) + "\n", encoding="utf-8")
    print_settings(
        {
            "method": method,
            "alpha": chosen,
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


def _rate(positives: Bools, weights: FloatArray) -> float:
    return float(np.average(positives, weights=weights)) if weights.sum() > 0 else math.nan


def _report(inputs: Inputs, sampler: UtilityAwareOverSampler) -> dict[str, Any]:
    """Split off validation data, and compare synthetic rows with real ones, and models trained on them."""
    from sklearn.base import clone

    from fado.generation import generation_report
    from fado.tabular import deal_rows, group_rows, read_problem, take_rows

    seed, n_jobs = sampler.random_state, sampler.n_jobs
    cells = group_rows(inputs.attributes).codes * len(inputs.labels.classes) + inputs.labels.codes
    dealt = deal_rows(cells, [1 - HELD_OUT, HELD_OUT], np.random.default_rng(seed))
    given = []
    for rows in (np.flatnonzero(dealt == part) for part in (0, 1)):
        attributes = {name: take_rows(own, rows) for name, own in inputs.protected.items()}
        given.append((take_rows(inputs.features, rows), take_rows(inputs.target, rows), attributes))
    figures = generation_report(
        *given[0], validation=given[1], pos_label=inputs.positive, random_state=seed, n_jobs=n_jobs
    )
    training, validated = (read_problem(*own, pos_label=inputs.positive) for own in given)
    valuation = clone(sampler.valuator).fit(*given[0][:2], sensitive_features=given[0][2]).valuation_
    compared = compare_interventions(training, validated, valuation, sampler)
    _print_report(figures, compared)
    return figures | {"interventions": compared}


def _print_report(figures: Mapping[str, Any], compared: list[dict[str, Any]]) -> None:
    from fado.cli._outputs import print_table

    real, made = figures["trained_on_real"], figures["trained_on_made"]
    near, copies = figures["distances"], figures["copies"]
    held_out = near["held_out"]
    print_table(
        f"Synthetic rows, compared with {figures['validation']:,} rows of validation data",
        ["", "synthetic", "real"],
        [
            ["AUC of a model trained on them", made["auc"], real["auc"]],
            ["its TPR at an FPR of 5 %", made["tpr"], real["tpr"]],
            ["AUC of distinguishing both", figures["told_apart"], ""],
            ["distance to the nearest row, median", near["made"]["median"], held_out["median"]],
            [
                "distance to the nearest row, 5 % quantile",
                near["made"]["lowest_twentieth"],
                held_out["lowest_twentieth"],
            ],
            ["share of exact copies", copies["made"], copies["held_out"]],
        ],
    )
    print_table(
        "Models after interventions, on validation data",
        ["", "rows", *(metric.replace("_ratio", "\nratio").replace("_", " ") for metric in METRICS)],
        [[own["intervention"], own["rows"], *(own[metric] for metric in METRICS)] for own in compared],
    )
    print("Small distances warn that rows may reveal a person; large distances are no guarantee.")


def compare_interventions(
    training: Problem, validated: Problem, valuation: Valuation, sampler: UtilityAwareOverSampler
) -> list[dict[str, Any]]:
    """Train the same model after every intervention; give its rows, and `METRICS` on validation data."""
    from fado.metrics import evaluate

    lines = []
    z = {own.name: own.labels for own in validated.protected}
    asked: dict[str, Any] = {
        "sensitive_features": z,
        "max_fpr": MAX_FPR,
        "min_group_size": sampler.min_group_size,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # already shown when the rows were generated
        for name, rows, scores in _all_scores(training, validated, valuation, sampler):
            figures = evaluate(validated.labels.is_positive, scores, **asked)
            own = {metric: figures[metric] for metric in METRICS}
            lines.append({"intervention": name, "rows": rows, **own})
    return lines


def _all_scores(
    training: Problem, validated: Problem, valuation: Valuation, sampler: UtilityAwareOverSampler
) -> Iterator[tuple[str, int, FloatArray]]:
    """Give every intervention's name, number of rows, and scores of the validation rows."""
    from fado.aim import AimedEstimator
    from fado.generation import UtilityAwareOverSampler, checking_estimator, train_and_score
    from fado.interventions import RandomPrevalenceSampler, Reweigher, UtilityAwarePrevalenceSampler
    from fado.tabular import Table, group_rows, take_rows

    utility, n_jobs = sampler.utility, sampler.n_jobs
    settings = {name: getattr(sampler, name) for name in ("strength", "min_group_size", "random_state")}
    X, y, seed = training.table.source, training.labels.is_positive, settings["random_state"]
    z = {own.name: group_rows([own]).codes for own in training.protected}
    given = {"X": X, "y": y, "sensitive_features": z}
    valued = given | {"valuation": valuation}

    def trained(source: Any, positive: Bools, weights: Any = None) -> tuple[int, FloatArray]:
        table = Table.from_input(source)
        scores = train_and_score(table, positive, validated.table, weights=weights, seed=seed)
        return int(table.n_rows), scores

    yield "none", *trained(X, y)
    for name, intervention in {
        "RPS": RandomPrevalenceSampler(**settings),
        "UAPS": UtilityAwarePrevalenceSampler(utility, **settings),
        "RW": Reweigher(min_group_size=settings["min_group_size"]),
    }.items():
        chosen = intervention.fit(**(valued if intervention.uses_values else given)).training_set_
        yield name, *trained(take_rows(X, chosen.rows), y[chosen.rows], chosen.weights)
    for method in ("repeat", "trees"):
        maker = UtilityAwareOverSampler(utility, method=method, n_jobs=n_jobs, **settings)
        yield f"made ({method})", *trained(*maker.fit_resample(**valued))
    if len(maker.parents_):
        tables, positive = _smoted(training, validated, maker.parents_, seed)
        yield "SMOTENC", len(positive), train_and_score(tables[0], positive, tables[1], seed=seed)
    aimed = AimedEstimator(
        checking_estimator(),
        max_fpr=MAX_FPR,
        min_group_size=settings["min_group_size"],
        random_state=seed,
        n_jobs=n_jobs,
    )
    yield "aimed scores", len(y), aimed.fit(**given).predict_proba(validated.table.source)[:, 1]


def _smoted(
    training: Problem, validated: Problem, parents: npt.NDArray[np.integer], seed: int
) -> tuple[tuple[Table, Table], Bools]:
    """Generate as many rows of the same cells with SMOTENC, from a table without missing entries."""
    from imblearn.over_sampling import SMOTE, SMOTEN, SMOTENC

    from fado.tabular import Table

    cells = training.groups.codes * 2 + training.labels.is_positive
    wanted = np.bincount(np.r_[cells, cells[parents]])
    smallest = np.bincount(cells)[np.unique(cells[parents])].min()
    frames = _filled(training.table, validated.table)
    levelled = [j for j, column in enumerate(training.table.columns) if column.levels is not None]
    shared = {
        "sampling_strategy": {int(cell): int(wanted[cell]) for cell in np.unique(cells[parents])},
        "k_neighbors": int(min(NEIGHBOURS, smallest - 1)),
        "random_state": seed,
    }
    made, own = frames[0], cells
    if smallest > 1:
        kind = SMOTEN if len(levelled) == training.table.n_columns else SMOTE
        mixed = levelled and kind is SMOTE
        sampler = SMOTENC(levelled, **shared) if mixed else kind(**shared)
        made, own = sampler.fit_resample(frames[0], cells)
    positive: Bools = np.asarray(own) % 2 == 1
    return (Table.from_input(made), Table.from_input(frames[1])), positive


def _filled(*tables: Table) -> list[pd.DataFrame]:
    """Fill missing numbers with the median of the first table, and missing levels with a new level."""
    import pandas as pd

    from fado.tabular import MISSING

    frames = [
        pd.DataFrame({j: column.to_pandas() for j, column in enumerate(table.columns)}) for table in tables
    ]
    numbers = [j for j, column in enumerate(tables[0].columns) if column.levels is None]
    usual = dict.fromkeys(frames[0], MISSING) | frames[0][numbers].median().fillna(0.0).to_dict()
    return [frame.fillna(usual).set_axis(tables[0].names, axis=1) for frame in frames]
