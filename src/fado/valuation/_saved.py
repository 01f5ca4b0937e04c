"""Valuations as files: Parquet with its description, or plain CSV."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._files import replacing
from fado.valuation._provenance import Provenance
from fado.valuation._result import FIELDS, Valuation
from fado.valuation._scale import CLOSENESS, EFFECT, ENTROPY, Scale

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read", "write"]

FORMAT = 2
READABLE = (1, FORMAT)  # format 1 holds entropies, and always all fields
_METADATA_KEY = b"fado.valuation"


def write(path: str | os.PathLike[str], valuation: Valuation) -> None:
    """Write what is known, one column per field and variable."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    ending = _ending(path)
    names: list[str] = []
    columns = []
    for field in valuation.fields:
        for variable in valuation.variables:
            names.append(_column_name(field, variable, names))
            columns.append(pa.array(valuation.field(field, variable)))
    if ending == ".csv":
        _check_csv(valuation, names)
    about = {
        "format": FORMAT,
        "variables": valuation.variables,
        "fields": valuation.fields,
        "scales": {name: scale.to_dict() for name, scale in valuation.scales.items()},
        "metadata": valuation.metadata,
    }
    table = pa.Table.from_arrays(columns, names=names).replace_schema_metadata(
        {_METADATA_KEY: json.dumps(about).encode()}
    )
    with replacing(path) as temporary:
        if ending == ".csv":
            pyarrow.csv.write_csv(table, temporary)
        else:
            pyarrow.parquet.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def read(path: str | os.PathLike[str]) -> Valuation:
    """Read what `write` wrote."""
    ending = _ending(path)
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    foreign = f"{str(path)!r} is not a valuation that FADO saved"
    table = _read_csv(path, foreign) if ending == ".csv" else _read_parquet(path, foreign)
    about = _described(table, foreign) if ending == ".parquet" else _guessed(table.column_names)
    variables, fields = about["variables"], about["fields"]
    if not variables or variables[0] != "y" or table.num_columns != len(fields) * len(variables):
        raise ValueError(f"{foreign}: its columns do not match its description.")
    try:
        arrays = [column.to_numpy().astype(np.float64, copy=False) for column in table.columns]
    except ValueError as error:
        raise ValueError(f"{foreign}: it holds something other than numbers.") from error
    arrays_of: dict[str, Any] = {
        field: dict(zip(variables, arrays[start : start + len(variables)], strict=True))
        for field, start in zip(fields, range(0, len(arrays), len(variables)), strict=True)
    }
    if "counts" in arrays_of:
        arrays_of["counts"] = {name: own.astype(np.int32) for name, own in arrays_of["counts"].items()}
    return Valuation(**arrays_of, scales=about["scales"], provenance=about["provenance"])


def _check_csv(valuation: Valuation, names: Sequence[str]) -> None:
    """Refuse to write what could not be read as what it is: a CSV file has nothing but its columns' names."""
    told = _guessed(names)
    same = (told["variables"], told["fields"]) == (valuation.variables, valuation.fields)
    if not same or any(told["scales"][name].is_unit != own.is_unit for name, own in valuation.scales.items()):
        raise ValueError(
            "A CSV file keeps neither scales nor odd names, and would be read as other values: save the "
            "valuation as .parquet, or the numbers alone with `valuation.values.to_csv`."
        )


def _ending(path: str | os.PathLike[str]) -> str:
    ending = Path(path).suffix.lower()
    if ending not in (".parquet", ".csv"):
        raise ValueError(f"A valuation's file must end in .parquet or .csv, got {str(path)!r}.")
    return ending


def _column_name(field: str, variable: str, taken: Sequence[str]) -> str:
    name = variable if field == "values" else f"{variable}.{field}"
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
        layout, variables, metadata = about["format"], about["variables"], about["metadata"]
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{foreign}: it carries no description of its values.") from error
    if layout not in READABLE:
        raise ValueError(f"The valuation was saved in format {layout}; this release reads format {FORMAT}.")
    fields = about.get("fields", list(FIELDS))
    if not isinstance(variables, list) or not isinstance(fields, list) or not set(fields) <= set(FIELDS):
        raise ValueError(f"{foreign}: its columns do not match its description.")
    try:
        provenance = Provenance.from_dict(metadata)
        scales = {name: _first_scale(provenance.kind_of(name)) for name in variables}
        scales |= {name: Scale.from_dict(scale) for name, scale in about.get("scales", {}).items()}
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{foreign}: {error}") from error
    return {"variables": variables, "fields": fields, "scales": scales, "provenance": provenance}


def _first_scale(kind: str) -> Scale:
    """Give the scale that a variable of this kind had before files told it."""
    return CLOSENESS if kind == "continuous" else ENTROPY


def _guessed(names: Sequence[str]) -> dict[str, Any]:
    """Read variables and fields off the columns of a CSV file.

    Our own valuators leave more than values behind; values alone are taken for effects.
    """
    fields = ["values", *(field for field in FIELDS[1:] if f"y.{field}" in names)]
    variables = list(names[: len(names) // len(fields)])
    expected: list[str] = []
    for field in fields:
        for variable in variables:
            expected.append(_column_name(field, variable, expected))
    matches = expected == list(names)
    return {
        "variables": variables if matches else [],
        "fields": fields,
        "scales": dict.fromkeys(variables, ENTROPY if len(fields) > 1 else EFFECT),
        "provenance": Provenance(),
    }
