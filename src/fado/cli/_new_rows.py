"""`fado value` by models that were kept: rows that were not there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fado._messages import list_names
from fado._storage import remove_abandoned
from fado.cli._summary import print_settings, print_table
from fado.cli._tables import check_apart, check_output
from fado.cli._values import save_values
from fado.tabular import Expression, column_from, read_table, variable_from
from fado.valuation import Valuation, ValuationModels, digest_of_target, load_models

__all__ = ["check_room_for_models", "models_stand_in", "print_kept_models", "value_new_rows"]


def models_stand_in(directory: Path | None) -> bool:
    """Tell whether models are to be read from a directory: it is there, and it is not empty."""
    if directory is None or not directory.exists():
        return False
    return not directory.is_dir() or any(directory.iterdir())


def check_room_for_models(directory: Path, out: Path) -> None:
    """Refuse, before any work is done, a directory that models cannot be written to."""
    parent = directory.resolve().parent
    if not parent.is_dir():
        raise ValueError(f"The directory {str(parent)!r} does not exist: create it first.")
    if not os.access(parent, os.W_OK):
        raise ValueError(f"The directory {str(parent)!r} is not writable.")
    check_apart(out, directory, "`--models`")


def print_kept_models(models: ValuationModels, directory: Path) -> None:
    """Say which models were kept, and where."""
    print(f"Models kept in {directory}: {_counted(models)}")


def value_new_rows(
    data: Path,
    directory: Path,
    out: Path,
    *,
    target: str | None,
    protected: Sequence[str],
    jobs: int | None,
    training: Mapping[str, Any],
) -> None:
    """Value the rows of a table by kept models, and print a summary.

    Parameters
    ----------
    data : Path
        The table.
    directory : Path
        Where the models stand.
    out : Path
        Where to write the values.
    target : str or None
        The column of labels, if there is one.
    protected : sequence of str
        Protected attributes that are known: they tell the agreement alone.
    jobs : int or None
        How many threads score rows.
    training : mapping
        The options that only training takes; None or an empty list where they were not given.
    """
    remove_abandoned(directory)
    given = [f"`{option}`" for option, own in training.items() if own not in (None, [])]
    if given:
        raise ValueError(
            f"{str(directory)!r} holds models, so that nothing is trained: leave out {list_names(given)}, or "
            "name another directory with `--models` to keep new models in."
        )
    check_output(out, [data])
    check_apart(out, directory, "`--models`")
    models = load_models(directory)
    table = read_table(data)
    written = None if target is None else Expression.of(table.column_names, target, "target")
    labels = None if written is None else written.read(table, named=False)
    if labels is not None:
        _check_other_rows(models, labels, directory)
    valuation = models.value(table, labels, _attributes(table, protected, models), n_jobs=jobs, progress=True)
    if written is None or labels is None:
        valuation.save(out)
    else:
        save_values(valuation, out, written.name, labels)
    _print_summary(models, valuation)
    told = f"Values by models that learnt from {models.n_rows:,} rows: {_counted(models)}."
    if labels is None and any(own.variable.sees_target for own in models.kept):
        told += "\nModels that see the target are averaged over what is predicted for it."
    print(told)
    print_settings({"models": directory, "algorithm": valuation.provenance.algorithm, "target": target})
    print(f"Values of {table.num_rows:,} rows written to {out}")


def _attributes(
    table: pa.Table, protected: Sequence[str], models: ValuationModels
) -> dict[str, pd.Series] | None:
    """Read the attributes that are known, by the labels that models learnt: booleans, if from Python."""
    learnt = {own.variable.name: own.variable.classes for own in models.kept}
    read = [Expression.of(table.column_names, own, "protected") for own in protected]
    return {
        own.name: own.entries(table) if True in learnt.get(own.name, ()) else own.groups(table)
        for own in read
    } or None


def _check_other_rows(models: ValuationModels, labels: pa.ChunkedArray, directory: Path) -> None:
    """Refuse the very table that the models learnt from."""
    if len(labels) != models.n_rows:
        return
    kind = models.kept[0].variable.kind
    column = column_from("y", labels)
    if (column.levels is not None and kind == "continuous") or column.data.null_count:
        return  # which is refused as such
    if digest_of_target(variable_from(column, kind)) == models.target_digest:
        raise ValueError(
            f"The models in {str(directory)!r} learnt from this very table, and what they say of its rows "
            "means something else: delete the directory, or name another with `--models`, to value it anew."
        )


def _print_summary(models: ValuationModels, valuation: Valuation) -> None:
    header = ["variable", "models", "v\n25%", "v\n50%", "v\n75%", "epistemic\nmean", "agreement\nmean"]
    rows = []
    for name, count in models.n_models.items():
        quantiles = np.nanquantile(valuation[name], [0.25, 0.5, 0.75])
        means = [_mean(valuation.field(field, name)) for field in ("epistemic", "agreement")]
        rows.append([name, count, *quantiles, *means])
    print_table("New rows", header, rows)


def _mean(numbers: Any) -> float:
    return float(np.nanmean(numbers)) if not np.isnan(numbers).all() else np.nan


def _counted(models: ValuationModels) -> str:
    return ", ".join(f"{count} of {name}" for name, count in models.n_models.items())
