"""Values that were made elsewhere, matched to the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fado._messages import closest_names, list_names, warn_user
from fado.tabular import read_table
from fado.valuation import Valuation

__all__ = ["read_elsewhere"]

_TARGET = "y"
_SHORT = {"target": "v_y", "attribute": "v_z"}  # what the columns may be called if there is one attribute


def read_elsewhere(path: Path, table: pa.Table, attributes: Sequence[str], row_id: str | None) -> Valuation:
    """Read a column of values for the target and for each attribute, in the order of a table's rows.

    Parameters
    ----------
    path : Path
        CSV or Parquet. Its columns are called ``y`` and as the attributes are; with one attribute, ``v_y``
        and ``v_z`` will do. A cell that is empty or NaN is a row without value.
    table : pyarrow.Table
        The rows that the values are for.
    attributes : sequence of str
        The protected attributes' names.
    row_id : str or None
        A column of both files by which rows are matched; None matches them by position.
    """
    values = read_table(path)
    columns = _columns_of_values(path, values.column_names, attributes)
    if row_id is None:
        _check_positions(path, values, table, [*columns.values()])
    else:
        values = values.take(_places(path, values, table, row_id))
    return Valuation.from_values(
        {name: _numbers(path, own, values.column(own)) for name, own in columns.items()}
    )


def _columns_of_values(path: Path, names: Sequence[str], attributes: Sequence[str]) -> dict[str, str]:
    """Find the column that holds each variable's values."""
    if _TARGET in attributes:
        raise ValueError("A protected attribute cannot be called 'y', the target's name: rename it.")
    called = {_TARGET: [_TARGET, _SHORT["target"]], **{name: [name] for name in attributes}}
    if len(attributes) == 1:
        called[attributes[0]].append(_SHORT["attribute"])
    columns = {}
    for variable, known in called.items():
        found = [name for name in known if name in names]
        what = "the target" if variable == _TARGET else f"the protected attribute {variable!r}"
        if not found:
            wanted = " or ".join(map(repr, known))
            raise ValueError(
                f"{str(path)!r} has no column of values for {what}: it must be called {wanted}"
                f"{closest_names(variable, names)}"
            )
        if len(found) > 1:
            raise ValueError(
                f"{str(path)!r} has two columns of values for {what}, {found[0]!r} and {found[1]!r}: leave "
                "one out."
            )
        columns[variable] = found[0]
    return columns


def _check_positions(path: Path, values: pa.Table, table: pa.Table, used: Sequence[str]) -> None:
    """Refuse another number of rows; warn if a column of both files says that the rows are others."""
    if values.num_rows != table.num_rows:
        raise ValueError(
            f"{str(path)!r} has {values.num_rows:,} rows and the table has {table.num_rows:,}: give every "
            "row a line, or name a row id that both files have by `--from-id`."
        )
    shared = set(table.column_names).difference(used)
    for name in values.column_names:
        if name not in shared:
            continue
        theirs, own = _comparable(values.column(name), table.column(name))
        if not theirs.equals(own):
            warn_user(
                f"Rows are matched by their position, but column {name!r} of {str(path)!r} differs from the "
                f"table's: if it is a row id, name it by `--from-id {name}`."
            )
            return


def _places(path: Path, values: pa.Table, table: pa.Table, row_id: str) -> pa.Array:
    """Find the line of each row of the table by its id."""
    for what, names in (("The table", table.column_names), (repr(str(path)), values.column_names)):
        if row_id not in names:
            raise ValueError(
                f"{what} has no column {row_id!r}, which `--from-id` names{closest_names(row_id, names)}"
            )
    theirs, own = _comparable(values.column(row_id), table.column(row_id))
    _check_ids("The table", row_id, own)
    _check_ids(repr(str(path)), row_id, theirs)
    places = pc.index_in(own, value_set=theirs)
    lacking = own.filter(pc.is_null(places))
    if len(lacking):
        raise ValueError(
            f"{str(path)!r} has no line for {len(lacking):,} of the table's {len(own):,} rows ({row_id} "
            f"{list_names(_shown(lacking))}): add them, with an empty value if they have none."
        )
    if len(theirs) > len(own):
        warn_user(f"{len(theirs) - len(own):,} lines of {str(path)!r} are of no row of the table: left out.")
    return places


def _check_ids(what: str, row_id: str, ids: pa.Array) -> None:
    missing = ids.null_count
    if missing:
        raise ValueError(f"{what} has no {row_id!r} in {missing:,} rows: give each an id of its own.")
    counts = pc.value_counts(ids)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        raise ValueError(
            f"{what} has more than one row with {row_id} {list_names(_shown(repeated))}: ids must differ."
        )


def _shown(ids: pa.Array) -> list[str]:
    """Give ids for a message, which names a few of them."""
    return [repr(entry) for entry in ids.slice(0, 6).to_pylist()] + [""] * max(len(ids) - 6, 0)


def _comparable(first: pa.ChunkedArray, second: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Give two columns the same type: whole numbers if both are, else text if either is."""
    plain = [_plain(column) for column in (first, second)]
    if plain[0].type == plain[1].type:
        return plain[0], plain[1]
    for kind in (pa.int64(), pa.float64(), pa.string()):
        if kind != pa.string() and any(pa.types.is_string(own.type) for own in plain):
            continue
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):  # then the next kind may do
            return plain[0].cast(kind), plain[1].cast(kind)
    raise ValueError(f"Row ids of the types {plain[0].type} and {plain[1].type} cannot be compared.")


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Give a column in one piece, categories and the kinds of text as text, NaN as missing."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        kind = pa.string()
    array = column.cast(kind).combine_chunks()
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    return pc.if_else(pc.is_nan(array), None, array) if pa.types.is_floating(kind) else array


def _numbers(path: Path, name: str, column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Give the values of a column, NaN where a row has none."""
    kind = column.type
    if pa.types.is_null(kind) or (len(column) and column.null_count == len(column)):
        raise ValueError(f"Column {name!r} of {str(path)!r} holds no value at all: fill it.")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        row, shown = _first_text(column)
        raise ValueError(
            f"Column {name!r} of {str(path)!r} must hold numbers, got {shown!r} in row {row} (the first is "
            "0): mend it, or leave the cell empty if the row has no value."
        )
    numbers = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64, copy=False)
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise ValueError(
            f"Column {name!r} of {str(path)!r} must hold finite numbers, got {numbers[row]} in row {row} "
            "(the first is 0): mend it, or leave the cell empty if the row has no value."
        )
    if np.isnan(numbers).all():
        raise ValueError(f"Column {name!r} of {str(path)!r} holds no value at all: fill it.")
    return numbers


def _first_text(column: pa.ChunkedArray) -> tuple[int, Any]:
    """Find the first entry that is no number."""
    for row, entry in enumerate(column.to_pylist()):
        try:
            float(entry)
        except (TypeError, ValueError):
            if entry is not None:
                return row, str(entry)[:30]
        else:
            if isinstance(entry, bool):
                return row, entry
    return 0, column[0].as_py()
