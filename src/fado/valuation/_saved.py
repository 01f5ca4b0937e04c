"""Valuations as files: Parquet with its description, or plain CSV.

A file may come from anybody: whatever it holds is checked, and what is wrong is said in a sentence that names
the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from fado._messages import warn_user
from fado._records import is_shallow, shorten
from fado._storage import replacing
from fado.tabular import TARGET, write_csv
from fado.valuation._fields import FIELDS, check_fields, check_probabilities
from fado.valuation._provenance import Provenance
from fado.valuation._result import Valuation
from fado.valuation._scale import CLOSENESS, EFFECT, ENTROPY, Scale
from fado.valuation._stored import Part, StoredColumns, open_one, open_parts

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["METADATA_KEY", "About", "open_values", "read", "read_lazily", "write"]

ENDINGS = (".parquet", ".csv")
FORMAT = 2
PROBABILITIES = "probabilities"
READABLE = (1, FORMAT)  # format 1 holds entropies, and always the first four fields
METADATA_KEY = b"fado.valuation"
_LARGEST_BLOCK = 1 << 30  # types are inferred from the first block: let it be the whole file up to here


@dataclass(frozen=True)
class About:
    """What a file says of its columns; `shapes` are those of a row's probabilities, per variable."""

    variables: list[str]
    fields: list[str]
    scales: Mapping[str, Scale]
    provenance: Provenance
    shapes: Mapping[str, tuple[int, ...]]

    def column_names(self) -> dict[tuple[str, str], str]:
        """Give the columns' names by field and variable, in their order."""
        names: dict[tuple[str, str], str] = {}
        taken: set[str] = set()
        wanted = [(own, variable) for own in self.fields for variable in self.variables]
        for own, variable in wanted + [(PROBABILITIES, variable) for variable in self.shapes]:
            name = variable if own == "values" else f"{variable}.{own}"
            while name in taken:
                name += "_"
            taken.add(name)
            names[own, variable] = name
        return names

    def describe(self) -> bytes:
        """Give all of it as a file holds it."""
        content = {
            "format": FORMAT,
            "variables": self.variables,
            "fields": self.fields,
            "scales": {name: scale.to_dict() for name, scale in self.scales.items()},
            "metadata": self.provenance.to_dict(),
        }
        if self.shapes:
            content[PROBABILITIES] = {name: list(shape) for name, shape in self.shapes.items()}
        return json.dumps(content).encode()


def write(path: str | os.PathLike[str], valuation: Valuation) -> None:
    """Write what is known, one column per field and variable; a row's probabilities are a list."""
    import pyarrow as pa
    import pyarrow.parquet

    ending, probabilities = _ending(path), valuation.probabilities or {}
    if ending == ".csv" and probabilities:
        warn_user("A CSV file keeps no probabilities: save the valuation as .parquet to keep them.")
        probabilities = {}
    shapes = {name: probabilities[name].shape[1:] for name in valuation.variables if name in probabilities}
    about = About(valuation.variables, valuation.fields, valuation.scales, valuation.provenance, shapes)
    names = about.column_names()
    if ending == ".csv":
        _check_csv(about)
    arrays = {
        field: {name: valuation.field(field, name) for name in about.variables} for field in about.fields
    }
    try:
        check_fields(arrays, about.scales, lambda field, variable: names[field, variable])
        told = {name: list(own.shape[1:]) for name, own in probabilities.items()}
        for name in _shapes(told, about.variables, about.provenance):
            check_probabilities(names[PROBABILITIES, name], probabilities[name])
    except ValueError as error:
        raise ValueError(f"The valuation cannot be saved: {error}") from error
    columns = [pa.array(arrays[field][variable]) for field in arrays for variable in arrays[field]]
    for name, shape in shapes.items():
        numbers = pa.array(probabilities[name].ravel())
        columns.append(pa.FixedSizeListArray.from_arrays(numbers, prod(shape)))
    table = pa.Table.from_arrays(columns, names=list(names.values())).replace_schema_metadata(
        {METADATA_KEY: about.describe()}
    )
    with replacing(path, "The values") as temporary:
        if ending == ".csv":
            write_csv(table, temporary)
        else:
            pyarrow.parquet.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def read(path: str | os.PathLike[str]) -> Valuation:
    """Read what `write` wrote, or the values of a directory in parts."""
    if Path(path).is_dir() and Path(path).suffix.lower() not in ENDINGS:
        return read_lazily(path)
    ending = _ending(path)
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    foreign = f"{str(path)!r} is not a valuation that FADO saved"
    if not Path(path).is_file():
        raise ValueError(f"{foreign}: it is not a file.")
    try:
        table, about = (_read_csv if ending == ".csv" else _read_parquet)(path)
        arrays = _arrays_of(table, about)
    except ValueError as error:
        raise ValueError(f"{foreign}: {error}") from error
    return Valuation(**arrays, scales=about.scales, provenance=about.provenance)


def read_lazily(path: str | os.PathLike[str]) -> Valuation:
    """Read a valuation from a Parquet file or a directory of parts; its columns are read when first used.

    Probabilities, which `Valuation.load` gives, are left in the file.

    Parameters
    ----------
    path : path-like
        What `fado.value_files` or `Valuation.save` wrote.

    Raises
    ------
    ValueError
        If it is no valuation, or is damaged.
    """
    parts, about = open_values(path)
    names = about.column_names()
    arrays: dict[str, Any] = {}
    for field in about.fields:
        columns = {variable: names[field, variable] for variable in about.variables}
        arrays[field] = StoredColumns(parts, field, columns, about.scales)
    return Valuation(**arrays, scales=about.scales, provenance=about.provenance)


def open_values(path: str | os.PathLike[str]) -> tuple[list[Part], About]:
    """Open a Parquet file or a directory of parts: where its rows lie, and what it says of itself."""
    if Path(path).is_dir():
        parts, description = open_parts(path)
    else:
        parts, description = open_one(path, METADATA_KEY)
    try:
        about = _described(description)
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is not a valuation that FADO saved: {error}") from error
    return parts, about


def _arrays_of(table: pa.Table, about: About) -> dict[str, Any]:
    names = about.column_names()
    arrays: dict[str, dict[str, npt.NDArray[Any]]] = {field: {} for field in about.fields}
    probabilities: dict[str, npt.NDArray[np.float64]] = {}
    for (field, variable), column in zip(names, table.columns, strict=True):
        name = names[field, variable]
        if field == PROBABILITIES:
            probabilities[variable] = _lists(name, column, about.shapes[variable])
            check_probabilities(name, probabilities[variable])
        else:
            arrays[field][variable] = _numbers(name, column)
    check_fields(arrays, about.scales, lambda field, variable: names[field, variable])
    if "counts" in arrays:
        arrays["counts"] = {name: own.astype(np.int32) for name, own in arrays["counts"].items()}
    return arrays | ({PROBABILITIES: probabilities} if probabilities else {})


def _lists(name: str, column: pa.ChunkedArray, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Read a column that has as many numbers in every row as a shape has entries."""
    import pyarrow as pa

    kind, wanted = column.type, f"column {shorten(name)} must hold {prod(shape)} numbers in every row"
    if not pa.types.is_fixed_size_list(kind) or (kind.list_size, kind.value_type) != (
        prod(shape),
        pa.float64(),
    ):
        raise ValueError(f"{wanted}, got {shorten(str(kind))}.")
    numbers = column.combine_chunks().flatten()
    if column.null_count or numbers.null_count:
        raise ValueError(f"{wanted}, and some are missing.")
    return np.array(numbers).reshape(len(column), *shape)


def _numbers(name: str, column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        shown = column[0].as_py() if len(column) else None
        raise ValueError(
            f"it holds something other than numbers: column {shorten(name)} has {shorten(str(kind))}, "
            f"{shorten(shown)} in row 0."
        )
    return column.cast(pa.float64(), safe=False).to_numpy()


def _check_csv(about: About) -> None:
    """Refuse to write what could not be read as what it is: a CSV file has nothing but its columns' names."""
    told = _guessed(list(about.column_names().values()))
    if (
        told is None
        or (told.variables, told.fields) != (about.variables, about.fields)
        or any(told.scales[name].is_unit != own.is_unit for name, own in about.scales.items())
    ):
        raise ValueError(
            "A CSV file keeps neither scales nor odd names, and would be read as other values: save the "
            "valuation as .parquet, or the numbers alone with `valuation.values.to_csv`."
        )


def _ending(path: str | os.PathLike[str]) -> str:
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"A valuation's file must end in .parquet or .csv, got {str(path)!r}.")
    return ending


def _read_parquet(path: str | os.PathLike[str]) -> tuple[pa.Table, About]:
    """Read the description and, if the columns are those that it tells of, these."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            about = _described((schema.metadata or {}).get(METADATA_KEY))
            _check_names(schema.names, about)
            return file.read(), about
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"it is no Parquet file, or it is damaged: {_first_line(error)}") from error


def _read_csv(path: str | os.PathLike[str]) -> tuple[pa.Table, About]:
    import pyarrow as pa
    import pyarrow.csv

    block = min(Path(path).stat().st_size + 1, _LARGEST_BLOCK)
    try:
        table = pyarrow.csv.read_csv(path, read_options=pyarrow.csv.ReadOptions(block_size=block))
        names = table.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"it is no CSV file, or it is damaged: {_first_line(error)}") from error
    about = _guessed(names)
    if about is None:
        raise ValueError("its columns do not match those of a valuation.")
    return table, about


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def _check_names(names: Sequence[str], about: About) -> None:
    if len(names) != len(about.fields) * len(about.variables) + len(about.shapes) or (
        list(names) != list(about.column_names().values())
    ):
        raise ValueError("its columns do not match its description.")


def _described(told: bytes | None) -> About:
    """Read a file's description of itself."""
    if told is None:
        raise ValueError("it carries no description of its values.")
    try:
        content = json.loads(told)
        json.dumps(content, ensure_ascii=False).encode()  # half a surrogate is no text
    except (ValueError, RecursionError) as error:
        raise ValueError("its description of its values is no JSON that can be read.") from error
    if not isinstance(content, Mapping) or not is_shallow(content):
        raise ValueError("its description of its values must be a mapping, and not deeply nested.")
    layout = content.get("format")
    if isinstance(layout, bool) or not isinstance(layout, int) or layout not in READABLE:
        raise ValueError(
            f"it is in format {shorten(layout)}, and this release reads {' and '.join(map(str, READABLE))}."
        )
    variables = content.get("variables")
    fields = content.get("fields", list(FIELDS[:4]) if layout == 1 else None)
    if not _are_names(variables) or variables[0] != "y":
        raise ValueError("its `variables` must be distinct names, 'y' first.")
    if not _are_names(fields) or fields != [field for field in FIELDS if field in fields]:
        raise ValueError(f"its `fields` must be some of {', '.join(FIELDS)}, in this order.")
    if fields[0] != "values":
        raise ValueError("its `fields` must hold 'values'.")
    provenance = Provenance.from_dict(content.get("metadata"))
    if layout == 1:
        scales = {name: _first_scale(provenance.kind_of(name)) for name in variables}
    else:
        given = content.get("scales")
        if not isinstance(given, Mapping) or set(given) != set(variables):
            raise ValueError("its `scales` must hold one scale for every variable.")
        scales = {name: Scale.from_dict(given[name]) for name in variables}
    shapes = _shapes(content.get(PROBABILITIES), variables, provenance)
    return About(variables, fields, scales, provenance, shapes)


def _shapes(given: Any, variables: Sequence[str], provenance: Provenance) -> dict[str, tuple[int, ...]]:
    """Read of how many classes a row's probabilities are: K of the target, K and G of an attribute."""
    if given is None or given == {}:
        return {}
    if (
        not isinstance(given, Mapping)
        or not set(given) <= set(variables)
        or not all(_are_counts(own, 1 if name == TARGET else 2) for name, own in given.items())
        or any(own[0] != given.get(TARGET, [0])[0] for own in given.values())
    ):
        raise ValueError(
            "its `probabilities` must tell how many classes 'y' has and, of an attribute, this and how many "
            "groups it has."
        )
    for name, own in given.items():
        note = provenance.variables.get(name)
        if note is not None and note.classes and len(note.classes) != own[-1]:
            raise ValueError(
                f"its `probabilities` of {shorten(name)} are of {own[-1]} classes, and it names "
                f"{len(note.classes)}."
            )
    return {name: tuple(given[name]) for name in variables if name in given}


def _are_counts(given: Any, how_many: int) -> bool:
    return (
        isinstance(given, list)
        and len(given) == how_many
        and all(type(own) is int and own > 1 for own in given)
    )


def _are_names(given: Any) -> TypeGuard[list[str]]:
    return (
        isinstance(given, list)
        and bool(given)
        and all(isinstance(name, str) for name in given)
        and len(set(given)) == len(given)
    )


def _first_scale(kind: str) -> Scale:
    """Give the scale that a variable of this kind had before files told it."""
    return CLOSENESS if kind == "continuous" else ENTROPY


def _guessed(names: Sequence[str]) -> About | None:
    """Read variables and fields off the columns of a CSV file; None if they are those of no valuation.

    Our own valuators leave more than values behind; values alone are taken for effects.
    """
    fields = ["values", *(field for field in FIELDS[1:] if f"y.{field}" in names)]
    variables = list(names[: len(names) // len(fields)])
    scales = dict.fromkeys(variables, ENTROPY if len(fields) > 1 else EFFECT)
    about = About(variables, fields, scales, Provenance(), {})
    matches = variables[:1] == ["y"] and len(set(variables)) == len(variables)
    return about if matches and list(about.column_names().values()) == list(names) else None
