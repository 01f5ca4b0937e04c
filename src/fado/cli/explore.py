"""`fado explore`: one page that shows which rows carry the bias."""

from __future__ import annotations

import shlex
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from fado.cli._errors import in_sentences
from fado.cli._explore_files import MemoryOfSample, SampleRows, explore_by_files
from fado.cli._inputs import Inputs, read_group_names, read_inputs
from fado.cli._options import (
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
from fado.cli._parts import DataOrParts, is_beyond_memory, names_several
from fado.cli._splits import target_of
from fado.cli._summary import print_table
from fado.cli._tables import check_output
from fado.cli._values import load_values
from fado.tabular import MIN_GROUP_SIZE, read_table
from fado.valuation import Valuation
from fado.valuation.bulk import with_group_names

__all__ = ["explore"]

_UNITS = {"percent": (100, " %"), "times": (1, " x"), "number": (1, "")}


@in_sentences
def explore(
    data: DataOrParts,
    target: Target,
    protected: Protected,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write; ends in .html.")],
    values: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR",
            show_default="made here",
            help="The values of the rows, as `fado value` writes them.",
        ),
    ] = None,
    positive: Positive = None,
    drop: Drop = None,
    show_rows: Annotated[
        bool,
        typer.Option("--show-rows", help="Show the entries of the most suspicious and most harmful rows."),
    ] = False,
    retrain: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="How many models may be trained to measure what removing, weighing down or relabelling rows "
            "does; 0 measures nothing.",
        ),
    ] = 120,
    pool: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A table of rows without labels, to be shown too; with `--values` it needs `--pool-values`.",
        ),
    ] = None,
    pool_values: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The values of the pool, as `fado value POOL --models DIR` writes them."
        ),
    ] = None,
    weight: Weight = None,
    group_names: GroupNames = None,
    min_group_size: MinGroupSize = None,
    memory: MemoryOfSample = None,
    sample_rows: SampleRows = None,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Write a page that shows which rows carry the bias, and what could be done about it."""
    from fado import explore as explored  # slow to import, and other commands need none
    from fado.exploration import Exploration

    check_output(out, [path for path in (data, values, pool, pool_values) if path], (".html", ".htm"))
    shown: dict[str, Any] = {
        "min_group_size": MIN_GROUP_SIZE if min_group_size is None else min_group_size,
        "show_rows": show_rows,
        "random_state": seed,
        "retrain": retrain,
        "n_jobs": jobs,
        "progress": True,
    }
    asked_for = names_several(data) or memory is not None or sample_rows is not None
    for_memory_alone = pool is not None or (values is not None and values.suffix.lower() == ".csv")
    if asked_for or (not for_memory_alone and is_beyond_memory(data, "Exploring")):
        if values is None:
            raise ValueError(
                "A table that is read part by part needs `--values`: make them by `fado value DATA --target "
                "COL --protected COL --out DIR`."
            )
        named = {
            "target": target,
            "protected": protected,
            "drop": drop,
            "weight": weight,
            "group_names": read_group_names(group_names, protected),
        }
        found = explore_by_files(
            data,
            values,
            positive=positive,
            sample_rows=sample_rows,
            settings={**named, **shown, "memory": memory},
            useless={"--pool": pool, "--pool-values": pool_values},
        )
    else:
        inputs = read_inputs(
            data, target, protected, positive=positive, drop=drop, weight=weight, group_names=group_names
        )
        if values is None:  # the page says which columns were kept from an attribute's models
            warnings.filterwarnings("ignore", "Column.* alone determine the protected attribute")
        found = explored(
            inputs.features,
            target_of(inputs),
            sensitive_features=inputs.protected,
            valuation=None if values is None else load_values(values, inputs),
            pool=_read_pool(pool, pool_values, inputs, valued=values is not None),
            z_exclude=inputs.hidden_columns([]) if values is None else None,
            sample_weight=inputs.weight,
            pos_label=inputs.positive,
            **shown,
        )
    summary = found.to_dict()
    options = {
        "--positive": positive, "--drop": drop, "--weight": weight, "--min-group-size": min_group_size,
        "--seed": seed or None,
    }  # fmt: skip
    for attribute, expression in zip(summary["attributes"], protected, strict=True):
        for answer in attribute["answers"]:
            if answer["command"] is not None:  # here it is what to type in a shell
                texts = [own for own in group_names or [] if expression in read_group_names([own], protected)]
                asked = {"--target": target, "--protected": expression, "--group-names": texts, **options}
                answer["command"] = None if names_several(data) else _aim_command(data, asked)
    Exploration(summary).write_html(out)
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
            _print_effects(attribute["name"], attribute["effects"])
    if "pool" in summary:
        _print_pool(summary["pool"])
    print("In brackets: 95 % intervals.")
    print(f"Page written to {out}")


def _aim_command(data: Path, options: Mapping[str, Any]) -> str:
    """Write the command that aims a model of the same rows."""
    words = ["fado", "aim", str(data)]
    for option, own in options.items():
        for value in own if isinstance(own, list) else [own]:
            words += [] if value is None else [option, str(value)]
    return shlex.join([*words, "--ratio", "fpr_ratio=0.8", "--out", "model"])


def _read_pool(
    pool: Path | None, values: Path | None, inputs: Inputs, *, valued: bool
) -> tuple[pa.Table, Valuation] | pa.Table | None:
    """Read the rows without labels, if they are named, and their values if those of the others are given."""
    if pool is None and values is None:
        return None
    if pool is not None and values is None and not valued:
        return read_table(pool)
    if values is None:
        raise ValueError(
            "`--pool` needs `--pool-values`: value the pool by `fado value POOL --models DIR --out FILE`."
        )
    if pool is None:
        raise ValueError("`--pool-values` are the values of `--pool`: name that table too.")
    return read_table(pool), with_group_names(Valuation.load(values), [*inputs.expressions.values()])


def _print_pool(pool: Mapping[str, Any]) -> None:
    """Print what there is to see in the rows without labels."""
    print(f"Pool of {pool['rows']:,} rows without labels")
    print(f"  Columns: {pool['shifts']['sentence']}")
    for attribute in pool["attributes"]:
        print(f"  By {attribute['name']}: {attribute['sentence']}")
        for key in ("v_y", "v_z"):
            both = attribute[key]
            print(f"    mean {key} {both['pool']['mean']:.3g}, labelled {both['labelled']['mean']:.3g}")
        for one in attribute["utility"]["slices"][:1]:
            print(
                f"    Labels are worth most where {' and '.join(one['conditions'])} ({one['rows']:,} rows)."
            )


def _print_effects(name: str, effects: Mapping[str, Any]) -> None:
    """Print what rows do to the model: per group and label, per slice, and as retraining measured it."""
    metrics = {key: effects[key] for key in ("ratio", "performance") if effects[key] is not None}
    print_table(
        f"What rows do to the model, by {name}: sums of effects",
        ["group", "label", "rows", *(_heading("on", title) for title in metrics.values())],
        [
            [
                _folded(cell["group"], 26),
                _folded(cell["label"], 18),
                cell["rows"],
                *(_signed(cell[f"{key}_effect"]) for key in metrics),
            ]
            for cell in effects["cells"]
        ],
    )
    if effects["measured"] is None:
        print(effects["reason"])
        return
    heads = [_heading("change of", title) for title in metrics.values()]
    print_table(
        f"Measured by training again, {effects['measured']['fits']} fits: change, plus or minus 1.96 errors",
        ["rows where", "done", "rows", *heads],
        [
            [_told(one["conditions"], 32), action, own["rows"], *(_change(own, key) for key in metrics)]
            for one in effects["slices"]
            for action, own in one["measured"].items()
            if own is not None
        ]
        + [
            [
                f"the most harmful {100 * one['share']:.3g} %",
                "remove",
                one["rows"],
                *(_change(one["measured"], key) for key in metrics),
            ]
            for one in effects["curve"]
            if one["measured"] is not None
        ],
    )


def _change(figures: Mapping[str, Any], key: str) -> str:
    if figures[f"{key}_change"] is None or figures[f"{key}_error"] is None:
        return "-"
    return f"{figures[f'{key}_change']:+.3f} ± {1.96 * figures[f'{key}_error']:.3f}"


def _heading(*words: str) -> str:
    return "\n".join(line for text in words for line in textwrap.wrap(text, 14))


def _told(conditions: Sequence[str], width: int) -> str:
    line = " and ".join(conditions)
    if len(line) <= width:
        return line
    return "\n".join(_folded(f"and {one}" if number else one, width) for number, one in enumerate(conditions))


def _folded(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width)) or text


def _signed(number: float | None) -> str:
    return "-" if number is None else f"{number:+.4f}"


def _size(bias: Mapping[str, Any]) -> str:
    """Give a bias's number and its interval as the page's heading does; nothing if it is not known."""
    head = bias.get("turning") or bias
    if head["number"] is None:
        return ""
    factor, unit = _UNITS[head["format"]]
    if unit == " %" and bias["id"] == "prevalence":  # a gap between two shares
        unit = " p.p."
    number, low, high = (f"{factor * head[key]:.3g}" for key in ("number", "low", "high"))
    return f" {number}{unit} [{low}, {high}]"
