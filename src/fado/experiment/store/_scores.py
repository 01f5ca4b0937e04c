"""The kept scores of one fit: a Parquet file that vouches for itself, and loses not a bit."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

__all__ = ["read_scores", "write_scores"]

_KEY = b"fado.scores"
_MOST = 2**31  # rows

Floats = npt.NDArray[np.float64]


def write_scores(path: Path, key: str, scores: Floats, n_validation: int) -> None:
    """Write a file of scores.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    key : str
        The fit's.
    scores : ndarray
        Of the rows of the validation part, then of the test part.
    n_validation : int
        How many are of the validation part.
    """
    told = {"key": key, "validation": n_validation, "seal": _seal(key, scores, n_validation)}
    table = pa.table({"score": pa.array(scores, pa.float64())})
    pyarrow.parquet.write_table(
        table.replace_schema_metadata({_KEY: json.dumps(told).encode()}),
        path,
        compression="zstd",
        use_dictionary=False,
        use_byte_stream_split=True,  # near scores have the same first bytes
        write_page_checksum=True,
    )


def read_scores(path: Path, key: str) -> dict[str, Floats] | None:
    """Read the scores of a fit by part; None if the file is not as it was written."""
    try:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            if file.metadata.num_rows > _MOST:
                return None
            table = file.read()
        told: dict[str, Any] = json.loads(table.schema.metadata[_KEY])
        scores = np.asarray(table.column("score").to_numpy(), dtype=np.float64)
        cut = told["validation"]
        whole = told["key"] == key and told["seal"] == _seal(key, scores, cut)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not whole or not 0 <= cut <= len(scores) or not np.isfinite(scores).all():
        return None
    return {"validation": scores[:cut], "test": scores[cut:]}


def _seal(key: str, scores: Floats, n_validation: int) -> str:
    digest = hashlib.sha256(repr((key, n_validation, len(scores))).encode())
    digest.update(np.ascontiguousarray(scores).data)
    return digest.hexdigest()
