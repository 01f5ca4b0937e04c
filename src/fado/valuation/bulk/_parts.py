"""Values in Parquet parts: written in row groups of one size, so that neither blocks nor memory show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from fado._storage import replacing
from fado.valuation._saved import METADATA_KEY, About
from fado.valuation.bulk._scoring import Scored
from fado.valuation.bulk._summary import GroupSums

__all__ = ["is_whole", "join_parts", "part_name", "read_sums", "write_part"]

_SUMS_KEY, _PLACE_KEY = b"fado.sums", b"fado.part"
_ROWS_AT_A_TIME = 1 << 17  # of a row group


def part_name(number: int) -> str:
    """Name the file of a part.

    Examples
    --------
    >>> part_name(7)
    'part-00007.parquet'
    """
    return f"part-{number:05d}.parquet"


def write_part(path: Path, scored: Iterable[Scored], about: About, sums: GroupSums, place: bytes) -> None:
    """Write the values of a part as they come; the file appears whole or not at all.

    Parameters
    ----------
    path : Path
        Where it is to stand.
    scored : iterable of Scored
        The rows in their order.
    about : About
        What the columns are.
    sums : GroupSums
        Empty; it is filled and written too.
    place : bytes
        Which part of which run it is.
    """
    names, schema = about.column_names(), _schema(about)
    pending: list[pa.Table] = []
    n_pending = 0
    with _writer(path, about, tidy=False) as writer:
        for own in scored:
            sums.add(own)
            columns = [pa.array(own.fields[field][variable]) for field, variable in names]
            pending.append(pa.Table.from_arrays(columns, schema=schema))
            n_pending += own.n_rows
            while n_pending >= _ROWS_AT_A_TIME:
                table = pa.concat_tables(pending)
                writer.write_table(table.slice(0, _ROWS_AT_A_TIME), row_group_size=_ROWS_AT_A_TIME)
                rest = table.slice(_ROWS_AT_A_TIME)
                pending, n_pending = [rest], rest.num_rows
        if n_pending:
            writer.write_table(pa.concat_tables(pending), row_group_size=_ROWS_AT_A_TIME)
        told = {_SUMS_KEY: json.dumps([sums.to_plain()]).encode(), _PLACE_KEY: place}
        writer.add_key_value_metadata(told)


def is_whole(path: Path, n_rows: int, about: About, place: bytes) -> bool:
    """Tell whether this part of these values stands there, by its footer."""
    try:
        found = pa.parquet.read_metadata(path)
    except (pa.ArrowException, OSError):
        return False
    told = found.metadata or {}
    fits = told.get(METADATA_KEY) == about.describe() and told.get(_PLACE_KEY) == place
    return bool(found.num_rows == n_rows and fits and _SUMS_KEY in told)


def join_parts(paths: Sequence[Path], final: Path, about: About) -> None:
    """Write the row groups of all parts into one file."""
    with _writer(final, about, tidy=True) as writer:
        for path in paths:
            with pa.parquet.ParquetFile(path, page_checksum_verification=True) as part:
                for group in range(part.num_row_groups):
                    writer.write_table(part.read_row_group(group), row_group_size=_ROWS_AT_A_TIME)
        told = [own for path in paths for own in read_sums(path)]
        writer.add_key_value_metadata({_SUMS_KEY: json.dumps(told).encode()})


@contextmanager
def _writer(path: Path, about: About, *, tidy: bool) -> Iterator[Any]:
    """Open a file of values, which appears whole or not at all."""
    with (
        replacing(path, "Values", tidy=tidy) as temporary,
        pa.parquet.ParquetWriter(
            temporary, _schema(about), compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        yield writer


def _schema(about: About) -> pa.Schema:
    kinds: Mapping[str, Any] = {"counts": pa.int32()}
    fields = [
        pa.field(name, kinds.get(field, pa.float64())) for (field, _), name in about.column_names().items()
    ]
    return pa.schema(fields, metadata={METADATA_KEY: about.describe()})


def read_sums(path: Path) -> list[Any]:
    """Read what a file of values tells of groups, part by part."""
    told = (pa.parquet.read_metadata(path).metadata or {}).get(_SUMS_KEY)
    if told is None:
        raise ValueError(f"{str(path)!r} does not tell of groups: it is not of `value_files`.")
    found: list[Any] = json.loads(told)
    return found
