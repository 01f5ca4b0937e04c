"""`fado value` of tables in files that need not fit into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fado._messages import list_names
from fado.cli._inputs import read_group_names
from fado.cli._summary import print_settings, print_table
from fado.tabular import TARGET, Expression, label_named, open_source
from fado.valuation import Valuation, plan_files, summarise_files, value_files
from fado.valuation.bulk import check_group_names, name_roles

__all__ = [
    "DaskOfParts",
    "DryRun",
    "Memory",
    "TrainRows",
    "value_by_files",
]

Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        show_default="three quarters of what is free",
        help="Read the table part by part, and use no more memory than this, such as 4GB. A run that was "
        "stopped goes on where it was.",
    ),
]
TrainRows = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        show_default="by memory and a learning curve",
        help="For a table that is read part by part: how many rows the models of each bag learn from.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print how the table would be read.")]
DaskOfParts = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="For a table that is read part by part: the scheduler of a Dask cluster that fits the models "
        "and scores the parts; its workers must see the same files.",
    ),
]


def value_by_files(
    data: Path,
    out: Path,
    *,
    target: str,
    protected: Sequence[str],
    positive: str | None,
    group_names: Sequence[str] | None,
    memory: str | None,
    train_rows: int | None,
    dry_run: bool,
    dask: str | None,
    settings: Mapping[str, Any],
    useless: Mapping[str, Any],
) -> None:
    """Print the plan, value the rows, and print a summary.

    Parameters
    ----------
    data : Path
        A file, a directory or a pattern.
    out : Path
        A directory, or a file that ends in .parquet.
    target, protected, positive, group_names
        What is predicted, the protected attributes, the label whose rate is shown, and how groups are shown.
    memory, train_rows
        As `fado.value_files` takes them.
    dry_run : bool
        Whether to stop after the plan.
    dask : str or None
        The address of a scheduler on whose cluster parts are scored.
    settings : mapping
        What else `fado.value_files` takes.
    useless : mapping
        Options that are not for this; None or an empty list where they were not given.
    """
    given = [f"`{option}`" for option, own in useless.items() if own not in (None, [])]
    if given:
        raise ValueError(
            "A table that is read part by part is valued by entropy, out of bag: leave out "
            f"{list_names(given)}, or value one file in memory, without `--memory`, `--train-rows`, "
            "`--dry-run` and `--dask`."
        )
    asked: dict[str, Any] = {
        "target": target,
        "protected": list(protected),
        "memory": memory,
        "train_rows": train_rows,
    }
    source, names = open_source(data), read_group_names(group_names, protected)
    roles = name_roles(source.schema, target, protected, group_names=names)
    check_group_names(source, roles)
    planned = {name: own for name, own in settings.items() if name != "random_state"}
    print(plan_files(data, **asked, **planned), flush=True)
    if dry_run:
        return
    valuation = value_files(data, out=out, client=dask, progress=True, **asked, **settings)
    _print_groups(valuation, out, positive, {own.name: own for own in roles.attributes})
    _print_learning(valuation)
    told = valuation.metadata
    print_settings(
        {
            "algorithm": "oob",
            "bags": told["n_bags"],
            "train-rows": told["train_rows"],
            "weight": settings.get("weight"),
            "seed": told["seed"],
        }
    )
    print(f"Values of {len(valuation):,} rows written to {out}")


def _print_groups(
    valuation: Valuation, out: Path, positive: str | None, written: Mapping[str, Expression]
) -> None:
    """Print what is known of each group without its rows."""
    note = valuation.provenance.variables[TARGET]
    label = None if positive is None else label_named(note.classes or (), positive, "--positive")
    for name, lines in summarise_files(out, label).items():
        has_rates = any(line.positive is not None for line in lines)
        rates = ["positive"] if has_rates else []
        header = ["group", "rows", "share", *rates, "v_y\nmean", "v_z\nmean"]
        rows = [
            [
                written[name].called(line.title),
                line.n_rows,
                line.share,
                *([np.nan if line.positive is None else line.positive] if has_rates else []),
                line.mean_y,
                line.mean_z,
            ]
            for line in lines
        ]
        print_table(f"Protected attribute {name}", header, rows)
        left_out = (valuation.provenance.excluded_columns or {}).get(name, ())
        print(f"Columns left out of the models of {name}: {', '.join(left_out) or 'none'}")


def _print_learning(valuation: Valuation) -> None:
    """Say from how many rows models learnt, and whether more would help."""
    told = valuation.metadata
    line = f"Models learnt from {told['train_rows']:,} of {told['n_rows']:,} rows per bag"
    curve = told.get("learning_curve", {})
    if curve.get("agreement"):
        shown = ", ".join(f"{own:.3f} of {name}" for name, own in curve["agreement"].items())
        line += f"; estimated rank agreement with models of {curve['compared_with']:,} rows: {shown}"
    print(line + ".")
    if curve.get("more_rows_would_help"):
        print("More rows would still change ranks: allow more with `--memory`, or name `--train-rows`.")
