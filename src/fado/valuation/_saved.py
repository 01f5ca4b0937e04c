"""Valuations as files: Parquet with its metadata, or plain CSV."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado._files import replacing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PARTS", "read", "write"]

FORMAT = 1
PARTS = ("values", "standard_error", "counts", "agreement")
_METADATA_KEY = b"fado.valuation"

Arrays = Mapping[str, Mapping[str, npt.NDArray[Any]]]


def write(
    path: str | os.PathLike[str], variables: Sequence[str], arrays: Arrays, metadata: Mapping[str, Any]
) -> None:
    """Write the parts of a valuation, one column per part and variable."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    ending = _ending(path)
    names: list[str] = []
    columns = []
    for part in PARTS:
        for variable in variables:
            names.append(_column_name(part, variable, names))
            columns.append(pa.array(arrays[part][variable]))
    about = {"format": FORMAT, "variables": list(variables), "metadata": dict(metadata)}
    table = pa.Table.from_arrays(columns, names=names).replace_schema_metadata(
        {_METADATA_KEY: json.dumps(about).encode()}
    )
    with replacing(path) as temporary:
        if ending == ".csv":
            pyarrow.csv.write_csv(table, temporary)
        else:
            pyarrow.parquet.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `write` wrote, as keyword arguments of `Valuation`."""
    ending = _ending(path)
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    foreign = f"{str(path)!r} is not a valuation that FADO saved"
    table = _read_csv(path, foreign) if ending == ".csv" else _read_parquet(path, foreign)
    about = _described(table, foreign) if ending == ".parquet" else _guessed(table.column_names)
    variables = about["variables"]
    if not variables or variables[0] != "y" or table.num_columns != len(PARTS) * len(variables):
        raise ValueError(f"{foreign}: its columns do not match its description.")
    try:
        arrays = [column.to_numpy().astype(np.float64, copy=False) for column in table.columns]
    except ValueError as error:
        raise ValueError(f"{foreign}: it holds something other than numbers.") from error
    parts: dict[str, Any] = {
        part: dict(zip(variables, arrays[start : start + len(variables)], strict=True))
        for part, start in zip(PARTS, range(0, len(arrays), len(variables)), strict=True)
    }
    parts["counts"] = {name: counts.astype(np.int32) for name, counts in parts["counts"].items()}
    return {**parts, "metadata": about["metadata"]}


def _ending(path: str | os.PathLike[str]) -> str:
    ending = Path(path).suffix.lower()
    if ending not in (".parquet", ".csv"):
        raise ValueError(f"A valuation's file must end in .parquet or .csv, got {str(path)!r}.")
    return ending


def _column_name(part: str, variable: str, taken: Sequence[str]) -> str:
    name = variable if part == "values" else f"{variable}.{part}"
    while name in taken:
        name += "_"
    return name


def _read_parquet(path: str | os.PathLike[str], foreign: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(path, page_checksum_verification=True, partitioning=None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{foreign}, or it is damaged: {_first_line(error)}") from error


def _read_csv(path: str | os.PathLike[str], foreign: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv

    try:
        return pyarrow.csv.read_csv(path)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{foreign}, or it is damaged: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def _described(table: pa.Table, foreign: str) -> dict[str, Any]:
    try:
        about = json.loads((table.schema.metadata or {})[_METADATA_KEY])
        layout, _, _ = about["format"], about["variables"], about["metadata"]
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{foreign}: it carries no description of its values.") from error
    if layout != FORMAT:
        raise ValueError(f"The valuation was saved in format {layout}; this release reads format {FORMAT}.")
    return about


def _guessed(names: Sequence[str]) -> dict[str, Any]:
    """Read the variables off the columns of a CSV file."""
    variables = list(names[: len(names) // len(PARTS)])
    expected: list[str] = []
    for part in PARTS:
        for variable in variables:
            expected.append(_column_name(part, variable, expected))
    matches = expected == list(names)
    return {"variables": variables if matches else [], "metadata": {}}
