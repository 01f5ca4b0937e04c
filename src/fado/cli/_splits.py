"""Which rows train, validate and test, as a command line says it: by a column, or by a share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer

from fado._messages import list_names
from fado.cli._inputs import Inputs
from fado.tabular import column_from, label_named

__all__ = [
    "Split",
    "Test",
    "TestFraction",
    "Validation",
    "check_split",
    "split_inputs",
    "taken",
    "target_of",
]

Split = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="A column, such as a month, by whose values `--validation` and `--test` set rows apart; no "
        "model sees it.",
    ),
]
Validation = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE",
        help="A value of the `--split` column whose rows are validation rows. May be repeated.",
    ),
]
Test = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VALUE", help="A value of the `--split` column whose rows are test rows. May be repeated."
    ),
]
TestFraction = Annotated[
    float | None,
    typer.Option(
        metavar="F", show_default="0.2", help="The share of the rows that is kept apart as test rows."
    ),
]


def check_split(
    split: str | None,
    validation: Sequence[str] | None,
    test: Sequence[str] | None,
    test_fraction: float | None,
) -> None:
    """Refuse options that do not go together, before anything is read."""
    for option, given in (("--validation", validation), ("--test", test)):
        if given and split is None:
            raise ValueError(f"`{option}` names values of a column: name the column by `--split`.")
    if split is not None and not (validation or test):
        raise ValueError(f"`--split {split}` sets no rows apart: name values by `--validation` or `--test`.")
    if test and test_fraction is not None:
        raise ValueError("`--test` and `--test-fraction` both say which rows are test rows: give one.")


def split_inputs(
    inputs: Inputs, split: str | None, validation: Sequence[str] | None, test: Sequence[str] | None
) -> dict[str, Inputs]:
    """Give the rows to train on, and those of each part that is named.

    Parameters
    ----------
    inputs : Inputs
        All rows.
    split : str or None
        The column.
    validation, test : sequence of str, optional
        Its values in these parts; the rows of all others train.
    """
    if split is None:
        return {"train": inputs}
    column = column_from(split, inputs.table.column(split))
    codes, entries = column.encode()
    labels = tuple(map(column.label_of, entries))
    part = np.zeros(inputs.n_rows, dtype=np.int64)
    chosen: dict[int, str] = {}
    for number, (name, values) in enumerate((("validation", validation), ("test", test)), start=1):
        for value in values or ():
            code = labels.index(_value(labels, value, f"--{name}", split))
            if code in chosen:
                raise ValueError(f"`--{name} {value}` is named before, by `--{chosen[code]}`: name it once.")
            chosen[code] = name
            part[codes == code] = number
    found = {
        name: taken(inputs, np.flatnonzero(part == number))
        for number, name in enumerate(("train", "validation", "test"))
        if number == 0 or (part == number).any()
    }
    if found["train"].n_rows == 0:
        told = list_names([repr(label) for label in labels])
        raise ValueError(f"No rows are left to train on: {split!r} has the values {told}.")
    return found


def _value(labels: Sequence[Any], text: str, option: str, split: str) -> Any:
    """Find the value that a text stands for."""
    try:
        return label_named(labels, text, option)
    except ValueError as error:
        raise ValueError(str(error).replace("a label of the target", f"a value of {split!r}")) from None


def taken(inputs: Inputs, rows: Any) -> Inputs:
    """Give some of the rows."""
    labels = replace(inputs.labels, codes=inputs.labels.codes[rows])
    return replace(
        inputs,
        table=inputs.table.take(rows),
        features=inputs.features.take(rows),
        target=inputs.target.take(rows),
        labels=labels,
        protected={name: own.iloc[rows].reset_index(drop=True) for name, own in inputs.protected.items()},
        weight=None if inputs.weight is None else inputs.weight[rows],
        groups=None if inputs.groups is None else inputs.groups.take(rows),
    )


def target_of(inputs: Inputs) -> Any:
    """Give the target as a Series that has its name."""
    return inputs.target.to_pandas().rename(inputs.name)
