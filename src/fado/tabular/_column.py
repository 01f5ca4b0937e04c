"""One column of any library, as Arrow data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from fado._typing import Bools, Floats, Integers

FEWEST_OF_LEVEL = 5  # rows: a level of fewer may reveal a person, and teaches a model next to nothing


@dataclass(frozen=True)
class Column:
    """One column: numbers, or codes into `levels`.

    Parameters
    ----------
    name : str
        Its name in messages.
    data : pyarrow.ChunkedArray
        Numbers or booleans; for a column of levels, int32 codes. Missing entries are null or NaN.
    levels : tuple of str or None
        The sorted levels of a string or categorical column; None for numbers.
    labels : tuple or None
        The numbers or booleans of a categorical, by level; None for text.
    declared : tuple of int or None
        For a categorical, the position of each level among its declared categories.
    named : bool
        Whether the user named it.
    """

    name: str
    data: pa.ChunkedArray
    levels: tuple[str, ...] | None = None
    labels: tuple[Any, ...] | None = None
    declared: tuple[int, ...] | None = None
    named: bool = True

    def __len__(self) -> int:
        return len(self.data)

    @property
    def is_boolean(self) -> bool:
        """Whether the column holds booleans."""
        return pa.types.is_boolean(self.data.type)

    def numbers(self) -> Floats:
        """Return the numbers (or codes) as float64, with NaN where the entry is missing."""
        return self.data.cast(pa.float64(), safe=False).to_numpy()

    def codes(self) -> Integers:
        """Return the codes of a column of levels, -1 where the entry is missing."""
        return self.data.fill_null(-1).to_numpy().astype(np.int32, copy=False)

    def encode(self) -> tuple[Integers, Sequence[Any] | npt.NDArray[Any]]:
        """Return codes into the sorted distinct entries, -1 where the entry is missing, and these entries."""
        if self.labels is not None:
            order = self._by_value
            places = np.append(np.argsort(order), -1).astype(np.int32)
            return places[self.codes()], [self.labels[level] for level in order]
        if self.levels is not None:
            return self.codes(), self.levels
        values: Any = self.numbers() + 0.0  # one zero, not two
        if pa.types.is_integer(self.data.type):  # large ones do not fit a float
            values = pd.arrays.IntegerArray(self.data.fill_null(0).to_numpy(), self.data.is_null().to_numpy())
        codes, entries = pd.factorize(values, sort=True)
        return codes.astype(np.int32), np.asarray(entries)

    def label_of(self, entry: Any) -> Any:
        """Return an entry as the user wrote it: True rather than 1.0, 3 rather than 3.0."""
        if self.levels is not None:
            return entry
        if pa.types.is_boolean(self.data.type):
            return bool(entry)
        return int(entry) if float(entry).is_integer() else float(entry)

    def marked(self, values: Sequence[Any]) -> Bools:
        """Mark the entries that are one of some values: "1" is 1, 1.0 and "1", but not True."""
        codes, entries = self.encode()
        marked = np.zeros(len(entries) + 1, dtype=np.bool_)  # the last, which is also -1, is missing
        for text in map(str, values):
            if self.levels is None and not self.is_boolean:
                with suppress(ValueError):
                    marked[:-1] |= np.asarray(entries) == float(text)
                continue
            for code, label in enumerate(map(self.label_of, entries)):
                marked[code] |= str(label) == text or (not isinstance(label, bool) and is_label(label, text))
        return marked[codes]

    def without(self, unknown: Any) -> Column:
        """Return the column with a value, or a list of values, as missing entries."""
        values = unknown_values(unknown)
        if not values or not (marked := self.marked(values)).any():
            return self
        data = pc.if_else(pa.array(marked), pa.scalar(None, self.data.type), self.data)
        return replace(self, data=data).without_unused_levels()

    def to_pandas(self) -> Any:
        """Return the column for pandas: numbers, or text."""
        if self.levels is None:
            return self.numbers()
        return pa.array(self.levels, pa.large_string()).take(self.data.combine_chunks()).to_pandas()

    def frequent_levels(self) -> tuple[str, ...]:
        """Return the levels that at least five rows have; of a column without rows, all."""
        levels = self.levels or ()
        codes = self.codes()
        frequent = np.bincount(codes[codes >= 0], minlength=len(levels)) >= FEWEST_OF_LEVEL
        if frequent.all() or not len(codes):
            return levels
        return tuple(levels[code] for code in np.flatnonzero(frequent))

    def with_levels(self, levels: Sequence[str]) -> Column:
        """Return the column with codes into other levels; entries that are not among them are missing."""
        place = {level: code for code, level in enumerate(levels)}
        translated = pa.array([place.get(level) for level in self.levels or ()], pa.int32())
        codes = translated.take(self.data.combine_chunks())
        return Column(self.name, pa.chunked_array([codes]), tuple(levels))

    def digest(self) -> bytes:
        """Return a digest of the contents, whatever the name and the storage type."""
        numbers = self.numbers() + 0.0  # a copy, without negative zeros
        numbers[np.isnan(numbers)] = np.nan
        return hashlib.blake2b(numbers.data, digest_size=16).digest()

    def take(self, rows: Integers) -> Column:
        """Return the column at some row positions; levels keep their codes, whether or not they occur."""
        return replace(self, data=self.data.take(pa.array(rows)))

    def without_unused_levels(self) -> Column:
        """Return the column with only those levels that occur."""
        if self.levels is None:
            return self
        used = sorted(self.data.drop_null().unique().to_pylist())
        if len(used) == len(self.levels):
            return self
        column = self.with_levels([self.levels[code] for code in used])
        labels, declared = (
            each and tuple(each[code] for code in used) for each in (self.labels, self.declared)
        )
        return replace(column, labels=labels, declared=declared)

    @property
    def declared_places(self) -> tuple[int, ...] | None:
        """The declared position of each entry that `encode` returns; None if it is not a categorical."""
        if self.declared is None or self.labels is None:
            return self.declared
        return tuple(self.declared[level] for level in self._by_value)

    @property
    def _by_value(self) -> list[int]:
        """Order levels by what the user wrote: as text, 10 would come before 2."""
        labels = self.labels or ()
        return sorted(range(len(labels)), key=labels.__getitem__)


def column_from(name: str, values: Any, *, times: bool = False) -> Column:
    """Read one column: list, numpy array, pandas or polars Series, Arrow array.

    Dates and times are refused, because models cannot use them; with `times` they become numbers.
    """
    import narwhals as nw

    if isinstance(values, nw.Series):
        values = values.to_native()
    dtype = getattr(values, "dtype", None)
    if nw.dependencies.is_polars_series(values):
        values = (values.cast(float) if "Int128" in str(dtype) else values).to_arrow()
    elif isinstance(dtype, pd.SparseDtype):
        values = np.asarray(values)
    elif isinstance(dtype, pd.PeriodDtype):
        values = pd.Series(values).dt.to_timestamp()
    elif isinstance(dtype, pd.IntervalDtype | pd.CategoricalDtype):  # bands of `pd.cut`
        bands = pd.Series(values).astype("category").cat
        if isinstance(bands.categories.dtype, pd.IntervalDtype | pd.PeriodDtype):
            values = bands.rename_categories(list(map(str, bands.categories)))
    elif isinstance(dtype, np.dtype) and (
        np.ma.isMaskedArray(values) or dtype.kind in "cU" or not dtype.isnative or dtype.itemsize > 8
    ):
        values = _plain_numpy(name, values)
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        try:
            values = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise _mixed_types_error(name, values) from error
    data = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    kind = data.type
    if pa.types.is_null(kind) or pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return Column(name, data.cast(pa.float64()))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return Column(name, data)
    if is_text(kind) or pa.types.is_dictionary(kind):
        return _encode_levels(name, data)
    if pa.types.is_temporal(kind) and times:
        return Column(name, data.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))
    if pa.types.is_temporal(kind):
        raise ValueError(
            f"Column {name!r} holds dates or times ({kind}): turn it into numbers (days since a date, month, "
            "hour) or leave it out."
        )
    raise ValueError(f"Column {name!r} holds {kind}: use numbers, booleans, strings or categories.")


def unknown_values(unknown: Any) -> tuple[Any, ...]:
    """Read which values of protected attributes mean that a row's group is unknown."""
    if unknown is None:
        return ()
    if isinstance(unknown, Mapping):
        raise TypeError(f"`unknown` must be a value or a list of values, got {unknown!r}.")
    is_list = isinstance(unknown, list | tuple | set | frozenset | np.ndarray)
    return tuple(unknown) if is_list else (unknown,)


def is_label(label: Any, text: str) -> bool:
    """Return whether a text means a label: "1" for 1, 1.0 and "1"."""
    try:
        return str(label) == text or float(label) == float(text)
    except (TypeError, ValueError):
        return False


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is text in any of its forms."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _plain_numpy(name: str, values: Any) -> Any:
    """Turn numpy's entries that are masked, complex, text, swapped or too wide into what Arrow accepts."""
    kind, mask = values.dtype, np.ma.getmaskarray(values) if np.ma.isMaskedArray(values) else None
    if kind.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers.")
    if kind.kind in "biuf":
        native = np.dtype(np.float64) if kind.itemsize > 8 else kind.newbyteorder("=")
        return pa.array(np.ascontiguousarray(values, dtype=native), mask=mask)
    return pa.array(np.asarray(values, dtype=object), mask=mask, from_pandas=True)


def _mixed_types_error(name: str, values: Any) -> Exception:
    """Return the error for a column that mixes types."""
    types = sorted({type(value).__name__ for value in values if value is not None})
    if types == ["int"]:
        return ValueError(
            f"Column {name!r} holds whole numbers of more than 64 bits: turn them into floats, or into "
            "strings if they are names."
        )
    plain = {"bool", "int", "float", "str", "bytes", "Decimal"}
    if plain.issuperset(types) or any("int" in one for one in types):
        return ValueError(
            f"Column {name!r} mixes types ({', '.join(types)}): make it all numbers or all strings, "
            "for example with `.astype(str)`."
        )
    return TypeError(
        f"Column {name!r} holds {', '.join(types)}: every argument must be a string or a number."
    )


def _encode_levels(name: str, data: pa.ChunkedArray) -> Column:
    """Encode strings or categories as codes into the sorted levels that occur."""
    if not pa.types.is_dictionary(data.type):
        texts = data.cast(pa.large_string())
        levels = texts.unique().drop_null().sort()
        codes = pc.index_in(texts, value_set=levels)
        return Column(name, pa.chunked_array([codes.combine_chunks()]), tuple(levels.to_pylist()))
    data = data.unify_dictionaries()
    categories = data.chunk(0).dictionary if data.num_chunks else pa.array([], data.type.value_type)
    kind = categories.type
    if pa.types.is_floating(kind):  # NaN is not a category
        categories = pc.if_else(pc.is_nan(categories), pa.scalar(None, kind), categories)
    texts = categories.cast(pa.large_string())
    places = pa.concat_arrays([pa.array([], data.type.index_type), *(part.indices for part in data.chunks)])
    levels = texts.take(places.unique().drop_null()).unique().drop_null().sort()
    codes = pc.index_in(texts, value_set=levels).take(places)
    declared = pc.index_in(levels, value_set=texts)
    labels = None
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        labels = tuple(
            int(label) if not isinstance(label, bool) and float(label).is_integer() else label
            for label in categories.take(declared).to_pylist()
        )
    return Column(
        name, pa.chunked_array([codes]), tuple(levels.to_pylist()), labels, tuple(declared.to_pylist())
    )


def is_frame(X: Any) -> bool:
    """Return whether this is a table with named columns: pandas, polars or pyarrow."""
    import narwhals as nw

    known = nw.dependencies
    return (
        isinstance(X, pa.Table | nw.DataFrame | nw.LazyFrame)
        or known.is_pandas_dataframe(X)
        or known.is_polars_dataframe(X)
        or known.is_polars_lazyframe(X)
    )
