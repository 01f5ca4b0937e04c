"""`fado audit`: audit the decisions of any model by group, from a table of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fado.cli import _options as opt

_WRITERS = {".html": "write_html", ".csv": "write_csv", ".json": "write_json"}
_RATES = ("selection_rate", "tpr", "fpr", "precision", "impact_ratio")


def audit(
    predictions: Annotated[
        Path,
        Argument(
            metavar="PREDICTIONS",
            help="The table of predictions: a .csv or .parquet file with one row per decision.",
        ),
    ],
    *,
    out: Annotated[
        list[Path],
        Option(
            metavar="FILE",
            help="The file to write: a page (.html), the groups (.csv) or everything (.json). May be "
            "repeated.",
        ),
    ],
    protected: opt.Protected,
    unknown: opt.Unknown = None,
    group_names: opt.GroupNames = None,
    weight: opt.Weight = None,
    max_fpr: opt.MaxFpr = None,
    max_selection_rate: opt.MaxSelectionRate = None,
    top_k: opt.TopK = None,
    threshold: opt.Threshold = None,
    label: Annotated[
        str | None,
        Option(
            metavar='COL|"COL>=9"',
            help="The column of true labels, or a comparison. Without it, only selection rates are audited.",
        ),
    ] = None,
    score: Annotated[
        str | None,
        Option(
            metavar="COL",
            help="The column of scores in [0, 1]; a budget or `--threshold` turns them into decisions.",
        ),
    ] = None,
    decision: Annotated[
        str | None,
        Option(
            metavar='COL|"COL == yes"', help="Instead of `--score`: the column of decisions, or a comparison."
        ),
    ] = None,
    positive: Annotated[
        str | None,
        Option(metavar="LABEL", help="The positive label of `--label`; by default the larger of two."),
    ] = None,
    least_share: Annotated[
        float | None,
        Option(
            help="Groups with a smaller share of the rows are not compared. New York's Local Law 144 "
            "allows 0.02."
        ),
    ] = None,
    least_shown: Annotated[
        int,
        Option(
            help="Of groups with fewer rows only the number of rows is shown, and they are not compared; 0 "
            "shows all."
        ),
    ] = 10,
    min_group_size: opt.MinGroupSize = opt.MIN_GROUP_SIZE,
    confidence: Annotated[float, Option(help="The confidence level of all intervals.")] = 0.95,
) -> None:
    """Audit decisions by group, from a table of predictions: no model is needed."""
    from fado import metrics
    from fado.cli._inputs import read_budget, read_group_names
    from fado.cli._outputs import check_output, print_table
    from fado.tabular import Expression, column_from, label_named, read_attributes, read_table

    if (score is None) is (decision is None):
        raise ValueError("Name the column of scores with `--score`, or of decisions with `--decision`.")
    if positive is not None and label is None:
        raise ValueError("`--positive` names a label of `--label`: give both.")
    for path in out:
        check_output(path, [predictions], tuple(_WRITERS))
    limits = {"max_fpr": max_fpr, "max_selection_rate": max_selection_rate}
    budget = read_budget(limits | {"top_k": top_k, "threshold": threshold})
    table = read_table(predictions)
    there = table.column_names
    outcome = "--score" if decision is None else "--decision"
    texts = {outcome: decision or score, "--label": label, "--weight": weight}
    read = {name: Expression.of(there, text, name) for name, text in texts.items() if text is not None}
    names = read_group_names(group_names, protected)
    attributes = read_attributes(there, protected, read[outcome], names, unknown)
    columns = {option: expression.read(table, named=False) for option, expression in read.items()}
    pos_label = None
    if positive is not None:
        column = column_from("label", columns["--label"])
        pos_label = label_named(tuple(map(column.label_of, column.encode()[1])), positive, "--positive")
    report = metrics.audit(
        columns.get("--label"),
        columns[outcome],
        sensitive_features={attribute.name: attribute.groups(table) for attribute in attributes},
        budget=budget,
        pos_label=pos_label,
        sample_weight=columns.get("--weight"),
        min_group_size=min_group_size,
        least_share=least_share,
        least_shown=least_shown,
        confidence=confidence,
    )
    shown = [rate for rate in _RATES if report.frame[rate].notna().any()]
    header = ["attribute", "group", "rows", *(rate.replace("_", "\n") for rate in shown), "compared"]
    frame = report.frame.assign(compared=report.frame["compared"].map({True: "yes", False: "no"}))
    rows = frame[["attribute", "group", "rows", *shown, "compared"]].to_numpy().tolist()
    about = report.about
    labels = (
        ""
        if about["positives"] is None
        else f"{about['positives']:,} positives (label {about['positive_label']}), "
    )
    print_table(f"{about['rows']:,} rows, {labels}{about['selected']:,} selected", header, rows)
    for line in report.ratios.itertuples():
        if line.reason == "":
            print(
                f"{line.attribute}: {line.ratio} {line.value:.3f} ({line.low:.3f} to {line.high:.3f}, "
                f"{100 * confidence:g} %), {line.lowest} over {line.highest}"
            )
    for path in out:
        getattr(report, _WRITERS[path.suffix.lower()])(path)
        print(f"Audit written to {path}")
