"""One schema for all files of a table: the types that hold what each of them has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from fado._messages import list_names

__all__ = ["as_united", "united_schema"]


def united_schema(schemas: Sequence[tuple[Path, pa.Schema]]) -> pa.Schema:
    """Unite the columns of files, or say in which file which column differs.

    Text in any form is text, and numbers are the numbers that hold them all: whole numbers beside floats are
    floats. A column without entries in one file is what it is in the others. Columns stand as in the first.

    Parameters
    ----------
    schemas : sequence of (pathlib.Path, pyarrow.Schema)
        Of each file that has rows.

    Examples
    --------
    >>> first = pa.schema({"age": pa.int32(), "sex": pa.string()})
    >>> second = pa.schema({"sex": pa.null(), "age": pa.float32()})
    >>> united = united_schema([(Path("a.parquet"), first), (Path("b.parquet"), second)])
    >>> dict(zip(united.names, united.types))
    {'age': DataType(double), 'sex': DataType(large_string)}
    """
    first_path, first = schemas[0]
    types = [dict(zip(schema.names, schema.types, strict=True)) for _, schema in schemas]
    differences = []
    for (path, _), own in zip(schemas, types, strict=True):
        missing = [repr(name) for name in first.names if name not in own]
        added = [repr(name) for name in own if name not in types[0]]
        if missing:
            differences.append(f"{str(path)!r} has no column {list_names(missing)}")
        if added:
            differences.append(f"{str(path)!r} has {list_names(added)}, which {str(first_path)!r} has not")
    fields = []
    for name in first.names:
        found = [(path, own[name]) for (path, _), own in zip(schemas, types, strict=True) if name in own]
        known = [(path, type_) for path, type_ in found if not kinds.is_null(type_)]
        differences += [
            f"column {name!r} holds {_word(type_)} in {str(path)!r} and {_word(known[0][1])} in "
            f"{str(known[0][0])!r}"
            for path, type_ in known
            if _kind(type_) != _kind(known[0][1])
        ]
        fields.append(pa.field(name, _united([type_ for _, type_ in known])))
    if differences:
        raise ValueError(
            f"The files differ in their columns: {list_names(differences, most=4)}. Give them the same "
            "columns of the same types, or name only those that belong together."
        )
    return pa.schema(fields)


def as_united(path: Path, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give a file's rows in the types of all files, with the columns of `schema` alone."""
    columns = []
    for field in schema:
        column = table.column(field.name)
        if column.type == field.type:
            columns.append(column)
            continue
        if kinds.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            columns.append(column.cast(field.type, safe=not kinds.is_floating(field.type)))
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"Column {field.name!r} of {str(path)!r} holds {column.type} entries that do not fit the "
                f"{field.type} of the other files: write it in the same type everywhere."
            ) from error
    return pa.table(columns, schema=schema)


def _kind(type_: pa.DataType) -> Any:
    """Tell types apart as far as they cannot be united."""
    if kinds.is_dictionary(type_):
        return _kind(type_.value_type)
    if kinds.is_string(type_) or kinds.is_large_string(type_) or kinds.is_string_view(type_):
        return "text"
    if kinds.is_integer(type_) or kinds.is_floating(type_) or kinds.is_decimal(type_):
        return "numbers"
    if kinds.is_boolean(type_):
        return "booleans"
    return ("times", getattr(type_, "tz", None)) if kinds.is_timestamp(type_) else str(type_)


def _word(type_: pa.DataType) -> str:
    kind = _kind(type_)
    return kind if isinstance(kind, str) else str(type_)


def _united(types: Sequence[pa.DataType]) -> pa.DataType:
    """Give the type that holds the entries of some types of one kind."""
    if not types:
        return pa.null()
    kind = _kind(types[0])
    if kind == "text":
        return pa.large_string()  # the offsets of others end at two gigabytes
    if kind == "numbers":
        return _united_numbers(types)
    if kinds.is_timestamp(types[0]):
        return max(types, key=lambda type_: ["s", "ms", "us", "ns"].index(type_.unit))
    return types[0]


def _united_numbers(types: Sequence[pa.DataType]) -> pa.DataType:
    if any(kinds.is_decimal(type_) or kinds.is_float16(type_) for type_ in types):
        return pa.float64()
    if len(set(types)) == 1:
        return types[0]
    if any(kinds.is_floating(type_) for type_ in types):
        return pa.float64()
    signed = [kinds.is_signed_integer(type_) for type_ in types]
    if len(set(signed)) > 1:
        return pa.int64()
    return max(types, key=lambda type_: type_.bit_width)
