"""Valuations as files: Parquet with a description, plain CSV, or a directory of Parquet parts.

A file may come from anybody, so its content is checked, and errors name the file. The columns of a directory
are read when they are first used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from fado._messages import warn_user
from fado._records import encode, record_from, shorten
from fado._storage import Manifest, replacing
from fado.tabular import TARGET, write_csv
from fado.valuation._provenance import (
    EFFECT,
    ENTROPY,
    FIELDS,
    Provenance,
    Scale,
    check_field,
    check_probabilities,
)
from fado.valuation._result import Valuation

METADATA_KEY = b"fado.valuation"
PLAN = Manifest(name="_plan.json", kind="fado plan of values", layout=1, what="plan")
DONE = Manifest(name="_done.json", kind="fado values in parts", layout=1, what="valuation in parts")
_ENDINGS = (".parquet", ".csv")
_FORMAT = 3
_PROBABILITIES = "probabilities"
_LARGEST_BLOCK = 1 << 30  # types are inferred from the first block: let it be the whole file up to here
_ROWS_AT_A_TIME = 1 << 17
_PAGES = 1 << 16  # bytes of a column that are read at once
_TAIL = 8  # bytes that end a Parquet file: the length of its footer, and "PAR1"


@dataclass(frozen=True)
class About:
    """What a file states about its columns; `shapes` are those of a row's probabilities, per variable."""

    variables: list[str]
    fields: list[str]
    scales: Mapping[str, Scale]
    provenance: Provenance
    shapes: Mapping[str, tuple[int, ...]]

    def column_names(self) -> dict[tuple[str, str], str]:
        """Return the names of the columns by field and variable, in their order."""
        names: dict[tuple[str, str], str] = {}
        taken: set[str] = set()
        columns = [(field, variable) for field in self.fields for variable in self.variables]
        for field, variable in columns + [(_PROBABILITIES, variable) for variable in self.shapes]:
            name = variable if field == "values" else f"{variable}.{field}"
            while name in taken:
                name += "_"
            taken.add(name)
            names[field, variable] = name
        return names

    def describe(self) -> bytes:
        """Return the description as a file holds it."""
        return json.dumps({"format": _FORMAT, **encode(self)}).encode()


def write(path: str | os.PathLike[str], valuation: Valuation) -> None:
    """Write the known fields, one column per field and variable; the probabilities of a row are a list."""
    ending, probabilities = _ending(path), valuation.probabilities or {}
    if ending == ".csv" and probabilities:
        warn_user("A CSV file keeps no probabilities: save the valuation as .parquet to keep them.")
        probabilities = {}
    ordered = [name for name in valuation.variables if name in probabilities]
    shapes = {name: probabilities[name].shape[1:] for name in dict.fromkeys([*ordered, *probabilities])}
    about = About(valuation.variables, valuation.fields, valuation.scales, valuation.provenance, shapes)
    names = about.column_names()
    if ending == ".csv":
        _check_csv(about)  # it would be read as something else
    arrays = {
        field: {name: valuation.field(field, name) for name in about.variables} for field in about.fields
    }
    try:
        _check_arrays(arrays, about)
        _check_shapes(about)
        for name in shapes:
            check_probabilities(names[_PROBABILITIES, name], probabilities[name])
    except ValueError as error:
        raise ValueError(f"The valuation cannot be saved: {error}") from error
    columns = [pa.array(arrays[field][variable]) for field in arrays for variable in arrays[field]]
    for name, shape in shapes.items():
        columns.append(pa.FixedSizeListArray.from_arrays(pa.array(probabilities[name].ravel()), prod(shape)))
    table = pa.Table.from_arrays(columns, names=list(names.values()))
    table = table.replace_schema_metadata({METADATA_KEY: about.describe()})
    with replacing(path, "The values") as temporary:
        if ending == ".csv":
            write_csv(table, temporary)
        else:
            pyarrow.parquet.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def read(path: str | os.PathLike[str]) -> Valuation:
    """Read what `write` wrote, or the values of a directory in parts."""
    if Path(path).is_dir() and Path(path).suffix.lower() not in _ENDINGS:
        return read_lazily(path)
    ending = _ending(path)
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    with _naming(path):
        if not Path(path).is_file():
            raise ValueError("it is not a file.")
        table, about = _read_table(Path(path), ending)
        names = about.column_names()
        arrays: dict[str, dict[str, npt.NDArray[Any]]] = {field: {} for field in about.fields}
        for (field, variable), column in zip(names, table.columns, strict=True):
            name = names[field, variable]
            if field == _PROBABILITIES:
                numbers = _lists(name, column, about.shapes[variable])
                check_probabilities(name, numbers)
            else:
                numbers = _numbers(name, column)
            arrays.setdefault(field, {})[variable] = numbers
        _check_arrays(arrays, about)
    if "counts" in arrays:
        arrays["counts"] = {name: counts.astype(np.int32) for name, counts in arrays["counts"].items()}
    return Valuation(**arrays, scales=about.scales, provenance=about.provenance)


def read_lazily(path: str | os.PathLike[str]) -> Valuation:
    """Read a valuation from a Parquet file or a directory of parts; its columns are read when first used.

    Probabilities, which `Valuation.load` returns, are left in the file.

    Parameters
    ----------
    path : path-like
        What `fado.value_files` or `Valuation.save` wrote.

    Raises
    ------
    ValueError
        If it is not a valuation, or is damaged.
    """
    parts, about = open_values(path)
    names = about.column_names()
    arrays: dict[str, Any] = {}
    for field in about.fields:
        columns = {variable: names[field, variable] for variable in about.variables}
        arrays[field] = _StoredColumns(parts, field, columns, about.scales)
    return Valuation(**arrays, scales=about.scales, provenance=about.provenance)


def open_values(path: str | os.PathLike[str]) -> tuple[list[StoredPart], About]:
    """Open a Parquet file or a directory of parts: its parts, and its description."""
    if not Path(path).exists():
        raise ValueError(f"There is no file or directory {str(path)!r}.")
    if Path(path).is_dir():
        parts, description = open_parts(path)
    elif Path(path).suffix.lower() != ".parquet":
        raise ValueError(
            "`values` of a table in files must be a directory of parts or end in .parquet, as `fado value` "
            f"writes them, got {str(path)!r}."
        )
    else:
        try:
            footer = pyarrow.parquet.read_metadata(path)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{str(path)!r} is not a Parquet file, or it is damaged.") from error
        parts = [StoredPart(Path(path), footer.num_rows, footer_digest(Path(path)))]
        description = (footer.metadata or {}).get(METADATA_KEY)
    with _naming(path):
        return parts, _described(description)


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in errors about its content."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is not a valuation that FADO saved: {error}") from error


def _check_arrays(arrays: Mapping[str, Mapping[str, npt.NDArray[Any]]], about: About) -> None:
    """Raise an error for numbers that no valuator can have returned."""
    names = about.column_names()
    for field in about.fields:
        for variable, numbers in arrays[field].items():
            counts = arrays["counts"][variable] if field == "values" and "counts" in arrays else None
            check_field(field, numbers, about.scales[variable], names[field, variable], counts=counts)


def _lists(name: str, column: pa.ChunkedArray, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Read a column that has a fixed number of numbers in every row."""
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
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        shown = column[0].as_py() if len(column) else None
        raise ValueError(
            f"it holds something other than numbers: column {shorten(name)} has {shorten(str(kind))}, "
            f"{shorten(shown)} in row 0."
        )
    return column.cast(pa.float64(), safe=False).to_numpy()


def _check_csv(about: About) -> None:
    """Refuse to write what would be read as something else: a CSV file has only the names of its columns."""
    guessed = _guessed(list(about.column_names().values()))
    if (
        guessed is None
        or (guessed.variables, guessed.fields) != (about.variables, about.fields)
        or any(guessed.scales[name].is_unit != scale.is_unit for name, scale in about.scales.items())
    ):
        raise ValueError(
            "A CSV file keeps neither scales nor odd names, and would be read as other values: save the "
            "valuation as .parquet, or the numbers alone with `valuation.values.to_csv`."
        )


def _ending(path: str | os.PathLike[str]) -> str:
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise ValueError(f"A valuation's file must end in .parquet or .csv, got {str(path)!r}.")
    return ending


def _read_table(path: Path, ending: str) -> tuple[pa.Table, About]:
    """Read the columns of a file, if they match its description."""
    try:
        if ending == ".csv":
            block = min(path.stat().st_size + 1, _LARGEST_BLOCK)
            table = pyarrow.csv.read_csv(path, read_options=pyarrow.csv.ReadOptions(block_size=block))
            about = _guessed(table.column_names)
            if about is None:
                raise ValueError("its columns do not match those of a valuation.")
            return table, about
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            about = _described((file.schema_arrow.metadata or {}).get(METADATA_KEY))
            if names != list(about.column_names().values()):
                raise ValueError("its columns do not match its description.")
            return file.read(), about
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        what = "CSV" if ending == ".csv" else "Parquet"
        first = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise ValueError(f"it is not a {what} file, or it is damaged: {first}") from error


def _described(description: bytes | None) -> About:
    """Read the description of a file."""
    if description is None:
        raise ValueError("it has no description of its values.")
    try:
        content = json.loads(description)
        layout = content.pop("format")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError("the description of its values is not JSON that can be read.") from error
    if layout != _FORMAT:
        raise ValueError(f"it is in format {shorten(layout)}, and this release reads {_FORMAT}.")
    about = record_from(About, content, "the description of its values")
    if about.variables[:1] != [TARGET] or len(set(about.variables)) != len(about.variables):
        raise ValueError("its `variables` must be distinct names, 'y' first.")
    if about.scales.keys() != set(about.variables):
        raise ValueError("its `scales` must be those of its `variables`.")
    if about.fields != [name for name in FIELDS if name == "values" or name in about.fields]:
        raise ValueError(f"its `fields` must be some of {', '.join(FIELDS)}, in this order, 'values' first.")
    _check_shapes(about)
    return about


def _check_shapes(about: About) -> None:
    """Check the shapes of a row's probabilities: (K,) for the target, (K, G) for an attribute."""
    n_labels = about.shapes.get(TARGET, (0,))
    for name, shape in about.shapes.items():
        fits = len(n_labels) == 1 and shape[:1] == n_labels and len(shape) == (1 if name == TARGET else 2)
        if not fits or name not in about.variables:
            raise ValueError(
                "its `shapes` must state how many classes 'y' has and, for an attribute, this and how many "
                "groups it has."
            )


def _guessed(names: Sequence[str]) -> About | None:
    """Read variables and fields from the column names of a CSV file; None if it is not a valuation.

    FADO's valuators write more fields than values; values alone are effects.
    """
    fields = ["values", *(name for name in FIELDS[1:] if f"y.{name}" in names)]
    variables = list(names[: len(names) // len(fields)])
    scales = dict.fromkeys(variables, ENTROPY if len(fields) > 1 else EFFECT)
    about = About(variables, fields, scales, Provenance(), {})
    matches = variables[:1] == ["y"] and len(set(variables)) == len(variables)
    return about if matches and list(about.column_names().values()) == list(names) else None


@dataclass(frozen=True)
class StoredPart:
    """One file of values: its path, its number of rows, and the digest of its footer."""

    path: Path
    n_rows: int
    digest: str


@dataclass(eq=False)
class _StoredColumns(Mapping[str, npt.NDArray[Any]]):
    """One field of all variables, by name; an array is read when it is first used, and kept."""

    _parts: Sequence[StoredPart]
    _field: str
    _columns: Mapping[str, str]
    _scales: Mapping[str, Scale]
    _rows: npt.NDArray[np.int64] | None = None  # the places of those that are wanted, in that order

    def __post_init__(self) -> None:
        self._read: dict[str, npt.NDArray[Any]] = {}

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(part.n_rows for part in self._parts) if self._rows is None else len(self._rows)

    def take(self, rows: npt.NDArray[np.int64]) -> _StoredColumns:
        """Return the same of some rows; only a little of the others is in memory at once."""
        places = rows if self._rows is None else self._rows[rows]
        taken = replace(self, _rows=places)
        taken._read = {name: array[rows] for name, array in self._read.items()}
        return taken

    def __getitem__(self, variable: str) -> npt.NDArray[Any]:
        if variable not in self._read:
            self._read[variable] = self._column(variable)
        return self._read[variable]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def _column(self, variable: str) -> npt.NDArray[Any]:
        """Read one column of all parts."""
        array = np.empty(self.n_rows, dtype=np.int32 if self._field == "counts" else np.float64)
        order = None if self._rows is None else np.argsort(self._rows, kind="stable")
        rows = None if self._rows is None else self._rows[order]
        first, names = 0, {variable: self._columns[variable]}
        for part in self._parts:
            for batch in _batches(part, self._field, names, self._scales, _ROWS_AT_A_TIME):
                numbers = batch[variable]
                if rows is None or order is None:
                    array[first : first + len(numbers)] = numbers
                else:
                    start, stop = np.searchsorted(rows, [first, first + len(numbers)])
                    array[order[start:stop]] = numbers[rows[start:stop] - first]
                first += len(numbers)
        return array


def open_parts(directory: str | os.PathLike[str]) -> tuple[list[StoredPart], bytes | None]:
    """Find the parts of a finished valuation, all of which must be complete, and its description."""
    folder = Path(directory)
    if (folder / PLAN.name).is_file() and not (folder / DONE.name).is_file():
        raise ValueError(
            f"The values in {str(folder)!r} are not finished: run the same command again to finish them."
        )
    done = DONE.open(folder)
    parts = [
        StoredPart(folder / Path(part["file"]).name, part["rows"], part["digest"]) for part in done["parts"]
    ]
    for part in parts:
        name = repr(str(part.path))
        if not part.path.is_file():
            raise ValueError(f"{name} is missing: the valuation is not complete.")
        if footer_digest(part.path) != part.digest:
            raise ValueError(
                f"{name} is another part, of another valuation, or damaged: put back the original file, or "
                "delete it and run `value_files` again."
            )
    return parts, done["description"].encode()


def value_blocks(
    parts: Sequence[StoredPart], names: Mapping[str, str], scales: Mapping[str, Scale], block_rows: int
) -> Iterator[dict[str, npt.NDArray[np.float64]]]:
    """Yield the values of all rows by variable, in blocks of one size across parts."""
    held: list[dict[str, npt.NDArray[np.float64]]] = []
    for part in parts:
        for batch in _batches(part, "values", names, scales, block_rows):
            held.append(batch)
            if sum(len(block[TARGET]) for block in held) >= block_rows:
                joined = _joined(held)
                yield {name: array[:block_rows] for name, array in joined.items()}
                held = [{name: array[block_rows:] for name, array in joined.items()}]
    if sum(len(block[TARGET]) for block in held):
        yield _joined(held)


def _joined(blocks: Sequence[Mapping[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[np.float64]]:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _batches(
    part: StoredPart, field: str, names: Mapping[str, str], scales: Mapping[str, Scale], most_rows: int
) -> Iterator[dict[str, npt.NDArray[np.float64]]]:
    """Yield some columns of a part as numbers, some rows at a time; invalid numbers raise an error."""
    first = 0
    try:
        with pyarrow.parquet.ParquetFile(  # with its own buffer, it would hold all row groups before
            part.path, page_checksum_verification=True, pre_buffer=False, buffer_size=_PAGES
        ) as file:
            if footer_digest(part.path) != part.digest:
                raise pa.ArrowException("it was replaced after it was opened")
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(most_rows, [group], list(names.values()), use_threads=False):
                    arrays = {
                        variable: batch.column(name)
                        .cast(pa.float64(), safe=False)
                        .to_numpy(zero_copy_only=False)
                        for variable, name in names.items()
                    }
                    for variable, numbers in arrays.items():
                        check_field(field, numbers, scales[variable], names[variable], first)
                    first += batch.num_rows
                    yield arrays
    except (pa.ArrowException, OSError, IndexError, KeyError) as error:
        raise ValueError(
            f"{str(part.path)!r} cannot be read: it is damaged, or of another valuation."
        ) from error
    except ValueError as error:
        raise ValueError(f"{str(part.path)!r} is not a part of a valuation: {error}") from error


def footer_digest(path: Path) -> str:
    """Return the digest of a Parquet file's footer, which describes every column."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        length = int.from_bytes(file.read(_TAIL)[:4], "little")
        file.seek(max(0, size - _TAIL - length))
        return hashlib.sha256(file.read()).hexdigest()
