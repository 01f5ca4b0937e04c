"""`fado explore`: one page that shows which rows contribute to bias."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from fado._messages import plain_number
from fado.cli import _options as opt

_UNITS = {"percent": (100, " %"), "times": (1, " x"), "number": (1, "")}


def explore(
    data: opt.Data,
    *,
    out: Annotated[Path, Option(metavar="FILE", help="The page to write; ends in .html.")],
    target: opt.Target,
    protected: opt.Protected,
    unknown: opt.Unknown = None,
    positive: opt.Positive = None,
    drop: opt.Drop = None,
    keep_ids: opt.KeepIds = False,
    weight: opt.Weight = None,
    group_names: opt.GroupNames = None,
    values: opt.Values = None,
    show_rows: Annotated[
        bool, Option("--show-rows", help="Show the entries of the most suspicious and most harmful rows.")
    ] = False,
    retrain: Annotated[
        int,
        Option(
            help="How many models may be trained to measure the effect of removing rows; 0 measures nothing."
        ),
    ] = 120,
    min_group_size: opt.MinGroupSize = opt.MIN_GROUP_SIZE,
    memory: opt.Memory = None,
    sample_rows: Annotated[
        int | None,
        Option(
            show_default="200000",
            help="For a table that is read in parts: how many rows, drawn at random, are explored.",
        ),
    ] = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
) -> None:
    """Write a page that shows which rows contribute to bias, and what can be done about it."""
    from fado import explore as explore_table
    from fado.cli._inputs import is_beyond_memory, load_values, names_several, read_inputs, target_of
    from fado.cli._outputs import check_output
    from fado.exploration import Exploration

    check_output(out, [path for path in (data, values) if path], (".html", ".htm"))
    shown: dict[str, Any] = {
        "min_group_size": min_group_size,
        "show_rows": show_rows,
        "random_state": seed,
        "retrain": retrain,
        "n_jobs": jobs,
        "progress": True,
    }
    columns: dict[str, Any] = {"target": target, "protected": protected, "unknown": unknown}
    columns |= {"positive": positive, "drop": drop, "keep_ids": keep_ids, "weight": weight}
    columns |= {"group_names": group_names}
    in_parts = names_several(data) or memory is not None or sample_rows is not None
    has_csv = values is not None and values.suffix.lower() == ".csv"
    if in_parts or (not has_csv and is_beyond_memory(data, "Exploring")):
        explored = _explore_files(data, values, columns, {**shown, "memory": memory}, sample_rows)
    else:
        inputs = read_inputs(data, **columns)
        if values is None:  # the page says which columns were hidden from an attribute's models
            warnings.filterwarnings("ignore", "Column.* alone determine the protected attribute")
        explored = explore_table(
            inputs.features,
            target_of(inputs),
            sensitive_features=inputs.protected,
            unknown=inputs.unknown,
            valuation=None if values is None else load_values(values, inputs),
            z_exclude=inputs.hidden_columns([]) if values is None else None,
            sample_weight=inputs.weight,
            pos_label=inputs.positive,
            **shown,
        )
    summary = explored.to_dict()
    changed = None if min_group_size == opt.MIN_GROUP_SIZE else min_group_size
    for attribute, expression in zip(summary["attributes"], protected, strict=True):
        for answer in attribute["answers"]:
            if answer["command"] is not None:  # here it is a shell command, which reads one file
                more = {"--min-group-size": changed, "--seed": seed or None}
                answer["command"] = (
                    None if names_several(data) else _aim_command(data, expression, columns, more)
                )
    Exploration(summary).write_html(out)
    _print_summary(summary)
    print(f"Page written to {out}")


def _explore_files(
    data: Path,
    values: Path | None,
    columns: Mapping[str, Any],
    settings: dict[str, Any],
    sample_rows: int | None,
) -> Any:
    """Explore a sample of a table that is read in parts."""
    from fado import explore_files
    from fado.cli._columns import columns_to_drop
    from fado.cli._inputs import read_group_names
    from fado.tabular import TARGET, label_named
    from fado.valuation import read_lazily

    if values is None:
        raise ValueError(
            "A table that is read in parts needs `--values`: compute them with `fado value DATA --target COL "
            "--protected COL --out DIR`."
        )
    columns = dict(columns)
    columns["drop"] = columns_to_drop(data, columns.pop("keep_ids"), **columns)
    positive = columns.pop("positive")
    is_lazy = values.is_dir() or (values.is_file() and values.suffix.lower() == ".parquet")
    if positive is not None and is_lazy:  # `explore_files` reports errors of other files
        note = read_lazily(values).provenance.variables.get(TARGET)
        positive = label_named(note.classes, positive, "--positive") if note and note.classes else positive
    if sample_rows is not None:
        settings["sample_rows"] = sample_rows
    columns["group_names"] = read_group_names(columns["group_names"], columns["protected"])
    return explore_files(data, values=values, pos_label=positive, **columns, **settings)


def _aim_command(data: Path, expression: str, columns: Mapping[str, Any], more: Mapping[str, Any]) -> str:
    """Write the command that aims a model on the same rows, without the columns of protected attributes."""
    from fado.cli._inputs import read_group_names
    from fado.tabular import Expression, open_source

    there, protected = open_source(data).schema.names, columns["protected"]
    sources = [name for text in protected for name in Expression.of(there, text).sources]
    names = [
        text for text in columns["group_names"] or [] if expression in read_group_names([text], protected)
    ]
    options = {
        "--target": columns["target"],
        "--protected": expression,
        "--group-names": names,
        "--unknown": columns["unknown"],
        "--positive": columns["positive"],
        "--drop": list(dict.fromkeys([*(columns["drop"] or []), *sources])),
        "--weight": columns["weight"],
        **more,
    }
    words = ["fado", "aim", str(data)]
    for option, values in options.items():
        for value in values if isinstance(values, list) else [values]:
            words += [] if value is None else [option, str(value)]
    words += ["--keep-ids"] if columns["keep_ids"] else []
    return shlex.join([*words, "--ratio", "fpr_ratio=0.8", "--out", "model"])


def _print_summary(summary: Mapping[str, Any]) -> None:
    """Print the answers and biases of the page, attribute by attribute."""
    if summary["about"]["sampled"] is not None:
        print(summary["about"]["sampled"]["sentence"])
    for attribute in summary["attributes"]:
        print(f"Protected attribute {attribute['name']}")
        for answer in attribute["answers"]:
            print(f"  {answer['title']}: {answer['sentence']}")
            if answer["command"] is not None:
                print(f"    {answer['command']}")
        if attribute["left_out"]:
            print(f"  {attribute['left_out']}")
        for bias in attribute["biases"]:
            print(f"  {bias['name']}{_size(bias)}: {bias['sentence']}")
        print(f"  Columns: {attribute['columns']['sentence']}")
        if "effects" in attribute:
            _print_changes(attribute["effects"])
    print("In brackets: 95 % intervals.")


def _print_changes(effects: Mapping[str, Any]) -> None:
    """Print what removing slices of rows does to the model, as measured; sums of effects are on the page."""
    from fado.cli._outputs import print_table

    if effects["measured"] is None:
        print(effects["reason"])
        return
    metrics = {key: effects[key] for key in ("ratio", "performance") if effects[key] is not None}
    rows = []
    for part in [*effects["slices"], *effects["curve"]]:
        if (measured := part["measured"]) is not None:
            most = f"the most harmful {100 * part.get('share', 0):.3g} %"
            title = " and ".join(part["conditions"]) if "conditions" in part else most
            pairs = [(measured[f"{key}_change"], measured[f"{key}_error"]) for key in metrics]
            shown = ["-" if None in pair else f"{pair[0]:+.3f} ± {1.96 * pair[1]:.3f}" for pair in pairs]
            rows.append([title, part["rows"], *shown])
    title = (
        f"Changes when rows are removed, measured by {effects['measured']['fits']} fits, with 95 % intervals"
    )
    print_table(title, ["removed", "rows", *metrics.values()], rows)


def _size(bias: Mapping[str, Any]) -> str:
    """Give the number of a bias and its interval as on the page; an empty text if it is unknown."""
    if bias["number"] is None:
        return ""
    factor, unit = _UNITS[bias["format"]]
    if unit == " %" and bias["id"] == "prevalence":  # a gap between two shares
        unit = " p.p."
    number, low, high = (plain_number(factor * bias[key]) for key in ("number", "low", "high"))
    return f" {number}{unit} [{low}, {high}]"
