"""Tables of any supported library."""

from typing import Any

import pandas as pd

__all__ = ["open_table"]


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
