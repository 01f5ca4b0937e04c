"""Values in files, with a note of the target that they were made for."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
import pyarrow as pa

from fado.cli._inputs import Inputs
from fado.valuation import TargetNote, Valuation
from fado.valuation.bulk import with_group_names

__all__ = ["load_values", "save_values"]


def save_values(valuation: Valuation, path: Path, name: str, target: pa.ChunkedArray) -> None:
    """Write values with the target's name and a digest of its labels, row by row."""
    valuation.with_provenance(made_for=TargetNote(name, _digest(target))).save(path)


def load_values(path: Path, inputs: Inputs) -> Valuation:
    """Read values, and refuse those of another target or of rows in another order."""
    valuation = with_group_names(Valuation.load(path), [*inputs.expressions.values()])
    name, target = inputs.name, inputs.target
    note = valuation.provenance.made_for  # values that were not made on a command line have none
    if note is not None and note.target != name:
        raise ValueError(
            f"The values in {str(path)!r} are of the target {note.target!r}, not of {name!r}: name another "
            "file, or value this target."
        )
    if note is not None and len(valuation) == len(target) and note.digest != _digest(target):
        raise ValueError(
            f"The values in {str(path)!r} were made for a table whose {name!r} differs or stands in another "
            "order: value this table."
        )
    return valuation


def _digest(target: pa.ChunkedArray) -> str:
    hashed = pd.util.hash_pandas_object(target.to_pandas(), index=False).to_numpy()
    return hashlib.sha256(hashed.tobytes()).hexdigest()
