"""The index that pandas leaves in an Arrow table."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

__all__ = ["named_index", "without_index"]

_UNNAMED = r"__index_level_\d+__"


def named_index(table: pa.Table) -> list[str]:
    """List the columns that are a pandas table's index and have a name.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1]}, index=pd.Index([7], name="id"))
    >>> named_index(pa.Table.from_pandas(frame))
    ['id']
    """
    index = _told(table).get("index_columns")
    names = [name for name in index if isinstance(name, str)] if isinstance(index, list) else []
    return [name for name in names if name in table.column_names and not re.fullmatch(_UNNAMED, name)]


def without_index(table: pa.Table) -> pa.Table:
    """Give a table without the index that has no name; one that has is a column like any other.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 8], name="id"))
    >>> without_index(pa.Table.from_pandas(frame)).to_pandas()
       a  id
    0  1   7
    1  2   8
    >>> without_index(pa.Table.from_pandas(frame.rename_axis(None))).column_names
    ['a']
    """
    unnamed = [name for name in table.column_names if re.fullmatch(_UNNAMED, name)]
    named = named_index(table)
    if unnamed:
        table = table.drop_columns(unnamed)
    if not named:
        return table
    told = json.dumps(_told(table) | {"index_columns": []}).encode()
    return table.replace_schema_metadata((table.schema.metadata or {}) | {b"pandas": told})


def _told(table: pa.Table) -> dict[str, Any]:
    """Give what pandas told of its table; nothing, if it did not or that is broken."""
    try:
        told = json.loads((table.schema.metadata or {})[b"pandas"])
    except (KeyError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
