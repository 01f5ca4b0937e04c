"""Inputs of commands: tables and named columns, splits of the rows, values, budgets.

This takes long to import, so commands import it when they run.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fado._memory import format_memory, free_memory
from fado._messages import closest_names, list_names, warn_user
from fado.cli._columns import find_columns, print_findings
from fado.metrics import Budget, check_limit
from fado.tabular import (
    ENDINGS,
    Expression,
    Labels,
    Variable,
    column_from,
    columns_named,
    is_pattern,
    label_named,
    open_source,
    positive_code,
    read_attributes,
    read_table,
    variable_from,
    weights_of,
)
from fado.utility import utility_class
from fado.valuation import TargetNote, Valuation
from fado.valuation.large import with_group_names

_WORTH_A_LOOK = 0.05  # of the free memory: smaller files always fit
_TIMES_ITS_SIZE = 3.5  # memory for work on a table, relative to its size; measured by benchmarks/scale.py
_QUOTED = r"""(?:"[^"]*"|'[^']*'|`[^`]*`)"""
_NAMED = re.compile(
    rf"""\s*(?:(?P<group>{_QUOTED}|[^,="'`][^,=]*?)\s*=\s*)?(?P<name>{_QUOTED}|[^,]*?)\s*(?:,|$)"""
)


@dataclass(frozen=True)
class Inputs:
    """The table of a command and the roles of its columns.

    Parameters
    ----------
    table : pyarrow.Table
        The whole file.
    features : pyarrow.Table
        The features.
    predicted : Expression
        The target as it is written on the command line.
    target : pyarrow.ChunkedArray
        The target.
    labels : Labels
        The target as classes, with a positive one if there are two classes or one was named.
    expressions : dict of str to Expression
        The protected attributes as they are written on the command line, by name.
    protected : dict of str to Series
        The group of each row, per attribute.
    weight : ndarray or None
        The sample weights.
    groups : pyarrow.ChunkedArray or None
        Which rows belong together.
    unknown : sequence of str or None
        The values of protected attributes that were read as missing.
    ids : tuple of str
        The columns that are no features because they look like ids.
    """

    table: pa.Table
    features: pa.Table
    predicted: Expression
    target: pa.ChunkedArray
    labels: Labels
    expressions: dict[str, Expression]
    protected: dict[str, pd.Series]
    weight: npt.NDArray[np.float64] | None = None
    groups: pa.ChunkedArray | None = None
    unknown: Sequence[str] | None = None
    ids: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.table.num_rows

    @property
    def name(self) -> str:
        """The target's name."""
        return self.predicted.name

    @property
    def labelled(self) -> dict[str, pd.Series]:
        """The protected attributes without the names of `--group-names`, as in files of values."""
        return {
            name: replace(expression, names={}).groups(self.table)
            for name, expression in self.expressions.items()
        }

    @property
    def unseen(self) -> list[str]:
        """The columns, other than the target, that are not features."""
        seen = {self.name, *self.features.column_names}
        return [name for name in self.table.column_names if name not in seen]

    @property
    def positive(self) -> Any:
        """The positive label; None if there is none."""
        return None if self.labels.positive is None else self.labels.classes[self.labels.positive]

    @property
    def positives(self) -> npt.NDArray[np.bool_] | None:
        """The rows with the positive label; None if there is none."""
        return None if self.labels.positive is None else self.labels.is_positive

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """The sample weights; 1 if none are given."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def hidden_columns(
        self, exclude: Sequence[str] | None, seen: Sequence[str] | None = None
    ) -> dict[str, list[str]]:
        """Give the features that the models of each attribute must not use."""
        there = self.features.column_names
        self.predicted.check_apart("--exclude", exclude or [])
        by_hand = columns_named([*there, *self.ids], exclude or [], "--exclude")
        known = set(there if seen is None else seen)
        return {
            name: [column for column in dict.fromkeys([*by_hand, *expression.sources]) if column in known]
            for name, expression in self.expressions.items()
        }

    @cached_property
    def attributes(self) -> tuple[Variable, ...]:
        """The protected attributes, encoded."""
        return tuple(variable_from(column_from(name, groups)) for name, groups in self.protected.items())


def read_inputs(
    data: Path,
    target: str,
    protected: Sequence[str],
    *,
    positive: str | None = None,
    drop: Sequence[str] | None = None,
    keep_ids: bool | None = False,
    weight: str | None = None,
    groups: str | None = None,
    split: str | None = None,
    group_names: Sequence[str] | None = None,
    unknown: Sequence[str] | None = None,
) -> Inputs:
    """Read a table and the columns that the command line names.

    Findings about the features are printed, and ids are left out unless `keep_ids`; None does neither.
    """
    table = read_table(data)
    there = table.column_names
    predicted = Expression.of(there, target, "target")
    beside = {"--weight": weight, "--groups": groups, "--split": split}
    for option, name in beside.items():
        if name is not None and name not in there:
            raise ValueError(f"The table has no column {name!r}{closest_names(name, there)}")
        predicted.check_apart(option, [name])
    predicted.check_apart("--drop", drop or [])
    others = [name for name in there if name not in predicted.sources]
    unseen = set(columns_named(others, drop, "--drop")).union(name for name in beside.values() if name)
    attributes = read_attributes(
        there, protected, predicted, read_group_names(group_names, protected), unknown
    )
    for expression in (predicted, *attributes):
        expression.check(table)
    read = predicted.read(table, named=False)
    column = column_from("y", read)  # as classes, even for numbers: one of them may be positive
    codes, entries = column.encode()
    classes = tuple(map(column.label_of, entries))
    label = None if positive is None else label_named(classes, positive, "--positive")
    inputs = Inputs(
        table=table,
        features=table.select([name for name in others if name not in unseen]),
        predicted=predicted,
        target=read,
        labels=Labels(codes, classes, positive_code(classes, label)),
        expressions={attribute.name: attribute for attribute in attributes},
        protected={attribute.name: attribute.groups(table) for attribute in attributes},
        weight=None if weight is None else weights_of(table.column(weight), table.num_rows),
        groups=None if groups is None else table.column(groups),
        unknown=unknown,
    )
    if keep_ids is None:
        return inputs
    findings = find_columns(inputs.features, read, inputs.labelled, inputs.expressions)
    ids = print_findings(findings, keep_ids=keep_ids)
    return replace(inputs, features=inputs.features.drop_columns(ids), ids=tuple(ids))


def read_group_names(texts: Sequence[str] | None, protected: Sequence[str]) -> dict[str, Any]:
    """Read names of groups: per attribute by label, or the two names of a comparison's groups."""
    known = {"".join(text.split()): text for text in protected}
    names: dict[str, Any] = {}
    for text in texts or ():
        ends = [match.start() for match in re.finditer(":", text)]
        heads = ["".join(text[:end].split()) for end in ends]
        place = next((i for i, head in enumerate(heads) if head in known), None)
        if place is None:
            raise ValueError(
                f"`--group-names` must begin with an attribute of `--protected` and a colon, as in "
                f"'age>=50: 50 and over, under 50' or 'sex: 1=men, 2=women', got {text!r}."
            )
        attribute = known[heads[place]]
        if attribute in names:
            raise ValueError(f"`--group-names` names the groups of {attribute!r} twice: name them once.")
        names[attribute] = _read_names(text[ends[place] + 1 :], text)
    return names


def _read_names(listed: str, text: str) -> dict[str, str] | list[str]:
    """Read names between commas, each with or without a group and '=' before it."""
    pairs: list[tuple[str | None, str]] = []
    at = 0
    while at < len(listed) or not pairs:
        match = _NAMED.match(listed, at)
        assert match is not None  # noqa: S101 - the pattern matches any text
        group, name = (
            re.sub(rf"^({_QUOTED})$", lambda quoted: quoted[0][1:-1], text or "") for text in match.groups()
        )
        pairs.append((match["group"] and group, name))
        at = match.end()
    groups = [group for group, _ in pairs if group is not None]
    if not groups:
        return [name for _, name in pairs]
    if len(set(groups)) < len(pairs):
        raise ValueError(
            f"`--group-names` must have a group and '=' before every name, each group once, or before none, "
            f"got {text!r}; put quotes around a name that contains a comma or '='."
        )
    return {str(group): name for group, name in pairs}


def read_aimed(
    data: Path,
    out: Path,
    columns: dict[str, Any],
    *,
    ratio: Sequence[str] | None,
    at_least: float,
    confidence: float | None,
    limits: Mapping[str, float | None],
    split: str | None,
    parts: Mapping[str, Sequence[str] | None],
    test_fraction: float | None,
) -> tuple[dict[str, float], Budget, dict[str, Inputs]]:
    """Read the lines of ratios, the budget, and the training, validation and test data."""
    from fado.aim import check_confidence, check_line, read_lines
    from fado.models import check_directory

    check_line(at_least, "--at-least")
    check_confidence(confidence)
    lines = read_lines(", ".join(ratio or ["fpr_ratio"]), at_least, "--ratio")
    budget = read_budget(limits) or Budget.read(None)
    named = [part for part, values in parts.items() if values]
    if named and split is None:
        raise ValueError(f"`--{named[0]}` names values of a column: name the column with `--split`.")
    if split is not None and not named:
        raise ValueError(f"`--split {split}` needs values: name them with `--validation` or `--test`.")
    if "test" in named and test_fraction is not None:
        raise ValueError("`--test` and `--test-fraction` both define the test data: give one of them.")
    check_directory(out)
    return lines, budget, _split(read_inputs(data, split=split, **columns), split, parts)


def read_budget(limits: Mapping[str, float | None]) -> Budget | None:
    """Read the budget from the options that may set it; None if none does."""
    given = [option for option, limit in limits.items() if limit is not None]
    if len(given) > 1:
        raise ValueError(
            "`--max-fpr`, `--max-selection-rate`, `--top-k` and `--threshold` all limit decisions: give one."
        )
    for option in given:
        kind = option.removeprefix("max_")
        return Budget.read((kind, check_limit(kind, limits[option], f"`--{option.replace('_', '-')}`")))
    return None


def _split(inputs: Inputs, split: str | None, parts: Mapping[str, Sequence[str] | None]) -> dict[str, Inputs]:
    """Give the training data and the named parts."""
    if split is None:
        return {"train": inputs}
    column = column_from(split, inputs.table.column(split))
    codes, entries = column.encode()
    labels = tuple(map(column.label_of, entries))
    chosen: dict[int, str] = {}
    for part, values in parts.items():
        for value in values or ():
            code = labels.index(label_named(labels, value, f"--{part}", f"a value of {split!r}"))
            if code in chosen:
                raise ValueError(f"`--{part} {value}` is already named by `--{chosen[code]}`: name it once.")
            chosen[code] = part
    of_rows = np.array([chosen.get(code, "train") for code in range(-1, len(labels))])[codes + 1]
    if "train" not in of_rows:
        shown = list_names([repr(label) for label in labels])
        raise ValueError(f"No rows are left for training: {split!r} has the values {shown}.")
    return {
        part: take_inputs(inputs, np.flatnonzero(of_rows == part))
        for part in ("train", *parts)
        if part in of_rows
    }


def take_inputs(inputs: Inputs, rows: npt.NDArray[np.integer[Any]]) -> Inputs:
    """Give some of the rows."""
    return replace(
        inputs,
        table=inputs.table.take(rows),
        features=inputs.features.take(rows),
        target=inputs.target.take(rows),
        labels=replace(inputs.labels, codes=inputs.labels.codes[rows]),
        protected={
            name: groups.iloc[rows].reset_index(drop=True) for name, groups in inputs.protected.items()
        },
        weight=None if inputs.weight is None else inputs.weight[rows],
        groups=None if inputs.groups is None else inputs.groups.take(rows),
    )


def target_of(inputs: Inputs) -> pd.Series:
    """Give the target as a Series with its name."""
    return inputs.target.to_pandas().rename(inputs.name)


def rows_of(part: Inputs | None) -> tuple[Any, ...] | None:
    """Give the rows of a part for Python: features, target, attributes and weights, if any."""
    if part is None:
        return None
    rows = (part.features, target_of(part), part.protected)
    return rows if part.weight is None else (*rows, part.weight)


def save_values(valuation: Valuation, path: Path, name: str, target: pa.ChunkedArray) -> None:
    """Write values with the target's name and a digest of its labels, row by row."""
    valuation.with_provenance(made_for=TargetNote(name, _digest(target))).save(path)


def load_values(path: Path, inputs: Inputs) -> Valuation:
    """Read values, and refuse those of another target or of rows in another order."""
    valuation = with_group_names(Valuation.load(path), [*inputs.expressions.values()])
    name, target = inputs.name, inputs.target
    note = valuation.provenance.made_for  # None for values that were not computed on the command line
    if note is not None and note.target != name:
        raise ValueError(
            f"The values in {str(path)!r} are for the target {note.target!r}, not for {name!r}: name another "
            "file, or value this target."
        )
    if note is not None and len(valuation) == len(target) and note.digest != _digest(target):
        raise ValueError(
            f"The values in {str(path)!r} were computed for a table whose {name!r} differs or has another "
            "order: value this table."
        )
    return valuation


def _digest(target: pa.ChunkedArray) -> str:
    hashed = pd.util.hash_pandas_object(target.to_pandas(), index=False).to_numpy()
    return hashlib.sha256(hashed.tobytes()).hexdigest()


def utility_of(attributes: Sequence[str], valuation: Valuation, utility: str, alpha: float) -> Any:
    """Make the utility of the named attributes: a valuation may have more."""
    for attribute in attributes:
        if attribute not in valuation.protected:
            has = ", ".join(map(repr, valuation.protected)) or "no protected attribute"
            raise ValueError(
                f"`--values` has no values for the protected attribute {attribute!r}; it has {has}."
            )
    return utility_class(utility)(alpha=alpha).over(attributes)


def given_options(options: Mapping[str, Any]) -> str:
    """List the options that were given, for a message; an empty text if none was."""
    return list_names([f"`{option}`" for option, value in options.items() if value not in (None, False, [])])


def names_several(data: Path) -> bool:
    """Say whether this is a directory or a pattern of names."""
    return data.is_dir() or (not data.exists() and is_pattern(str(data)))


def is_beyond_memory(data: Path, doing: str) -> bool:
    """Say whether work on a file would need more than the free memory, and print it."""
    free = free_memory()
    if free is None or not data.is_file() or data.suffix.lower() not in ENDINGS:
        return False
    if data.stat().st_size < _WORTH_A_LOOK * free:
        return False
    source = open_source(data)
    need = _TIMES_ITS_SIZE * source.bytes_per_row * source.about_rows
    if need <= free:
        return False
    print(
        f"{doing} {data} in memory would need about {format_memory(need)}, and {format_memory(free)} are "
        "free: it is read in parts, as with `--memory`.",
        file=sys.stderr,
    )
    return True


def read_elsewhere(path: Path, table: pa.Table, attributes: Sequence[str]) -> Valuation:
    """Read values for the target and each attribute, matched to a table's rows by position."""
    if "y" in attributes:
        raise ValueError("A protected attribute cannot be called 'y', the target's name: rename it.")
    values = read_table(path)
    names = values.column_names
    columns = {}
    for variable in ("y", *attributes):
        known = [variable, *(["v_y"] if variable == "y" else ["v_z"] if len(attributes) == 1 else [])]
        there = [name for name in known if name in names]
        what = "the target" if variable == "y" else f"the protected attribute {variable!r}"
        if not there:
            raise ValueError(
                f"{str(path)!r} has no column of values for {what}: it must be named "
                f"{' or '.join(map(repr, known))}{closest_names(variable, names)}"
            )
        if len(there) > 1:
            raise ValueError(
                f"{str(path)!r} has two columns of values for {what}, {there[0]!r} and {there[1]!r}: remove "
                "one."
            )
        columns[variable] = there[0]
    if values.num_rows != table.num_rows:
        raise ValueError(
            f"{str(path)!r} has {values.num_rows:,} rows and the table has {table.num_rows:,}: give every "
            "row a line, in the table's order, with an empty cell for a row without a value."
        )
    shared = set(names).intersection(table.column_names).difference(columns.values())
    differing = [name for name in names if name in shared and _differ(values[name], table[name])]
    if differing:
        warn_user(
            f"Rows are matched by position, but column {differing[0]!r} of {str(path)!r} differs from the "
            "table's: if it is a row id, sort the file like the table."
        )
    return Valuation.from_values(
        {variable: _read_numbers(path, name, values[name]) for variable, name in columns.items()}
    )


def _differ(first: pa.ChunkedArray, second: pa.ChunkedArray) -> bool:
    """Say whether two columns have different entries: numbers as numbers, anything else as text."""
    columns = [column.to_pandas() for column in (first, second)]
    if all(map(pd.api.types.is_numeric_dtype, columns)):
        one, other = (column.to_numpy(np.float64) for column in columns)
        return not np.array_equal(one, other, equal_nan=True)
    texts = [["" if pd.isna(entry) else str(entry) for entry in column] for column in columns]
    return texts[0] != texts[1]


def _read_numbers(path: Path, name: str, column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Give the values of a column, NaN where a row has none."""
    entries = column.to_pandas()
    numbers = pd.to_numeric(entries, errors="coerce").to_numpy(np.float64)
    wrong = (entries.notna() & ~np.isfinite(numbers)).to_numpy()
    if not wrong.any() and pd.api.types.infer_dtype(entries) in ("boolean", "string"):
        wrong = entries.notna().to_numpy()
    if entries.isna().all():
        raise ValueError(f"Column {name!r} of {str(path)!r} is empty: fill it.")
    if wrong.any():
        row = int(wrong.argmax())
        entry = column[row].as_py()
        shown = entry[:30] if isinstance(entry, str) else entry
        raise ValueError(
            f"Column {name!r} of {str(path)!r} must contain finite numbers, got {shown!r} in row {row} (the "
            "first is 0): correct it, or leave the cell empty if the row has no value."
        )
    return numbers
