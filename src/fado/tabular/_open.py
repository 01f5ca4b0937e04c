"""Tables of any supported library, and a helpful word when a column is not there."""

import difflib
from collections.abc import Sequence
from typing import Any

import pandas as pd

__all__ = ["nearest_names", "open_table"]


def open_table(frame: Any) -> Any:
    """Wrap a pandas, polars or pyarrow table as a narwhals DataFrame."""
    # Imported here so that the generator and the loader need numpy and pandas alone.
    import narwhals.stable.v2 as nw

    if isinstance(frame, pd.DataFrame) and not frame.columns.is_unique:
        repeated = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"`frame` must have distinct column names, got {repeated!r} more than once.")
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        kind = type(frame).__name__
        raise TypeError(f"`frame` must be a pandas, polars or pyarrow table, got {kind}.") from None


def nearest_names(names: Sequence[str], wanted: str) -> str:
    """Say which names come closest to a wrong one, or which there are when none does."""
    by_lower = {name.lower(): name for name in names}
    close = [by_lower[match] for match in difflib.get_close_matches(wanted.lower(), by_lower)]
    if close:
        return f"the closest are {close}"
    return f"the table has {list(names[:10])}{' and more' if len(names) > 10 else ''}"
