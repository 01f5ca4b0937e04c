"""Values in files, block by block, for another job on the same table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from fado._messages import list_names
from fado.tabular import Expression
from fado.valuation._base import is_same_pattern
from fado.valuation._provenance import FIELDS
from fado.valuation._result import Valuation
from fado.valuation._saved import open_values, value_blocks


def with_group_names(valuation: Valuation, attributes: Sequence[Expression]) -> Valuation:
    """Return values with the group names of these attributes; files of values hold labels, not names."""
    notes = dict(valuation.provenance.variables)
    for attribute in attributes:
        note = notes.get(attribute.name)
        if note is not None and note.classes:
            titles = tuple(attribute.called(label) for label in note.classes)
            notes[attribute.name] = replace(note, classes=titles)
    return valuation.with_provenance(variables=notes)


class StoredValues:
    """The values of all rows, as `value_files` wrote them; only one block is in memory at a time.

    Values on another scale than [0, 1] raise an error: a utility divides those by their standard deviation
    over all rows.

    Examples
    --------
    >>> import tempfile
    >>> from fado import Valuation
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Valuation.from_probabilities([0.5, 1.0, 0.0]).save(f"{folder}/v.parquet")
    ...     stored = StoredValues(f"{folder}/v.parquet")
    ...     [block["y"].tolist() for block in stored.blocks(2)]
    [[1.0, 0.0], [0.0]]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._parts, self._about = open_values(path)
        signed = [name for name, scale in self._about.scales.items() if not scale.is_unit]
        if signed:
            raise ValueError(
                f"The values of {signed[0]!r} in {str(path)!r} are on another scale than [0, 1], and a "
                "utility divides them by their standard deviation: that needs all rows in memory."
            )

    @property
    def n_rows(self) -> int:
        """How many rows have values."""
        return sum(part.n_rows for part in self._parts)

    @property
    def n_bytes(self) -> int:
        """How many bytes all fields of all variables take in memory."""
        return 8 * self.n_rows * len(FIELDS) * len(self._about.variables)

    def check(
        self,
        target: str,
        attributes: Sequence[str],
        n_rows: int | None,
        pattern: str | None = None,
        n_labels: int = 0,
    ) -> None:
        """Raise an error for values of another target, other rows or labels, or without some attribute."""
        values, note = f"The values in {str(self.path)!r}", self._about.provenance.made_for
        if note is not None and note.target != target:
            raise ValueError(
                f"{values} are of the target {note.target!r}, not of {target!r}: name others, or value this "
                "target."
            )
        valued = self._about.variables[1:]
        lacking = [name for name in attributes if name not in valued]
        if lacking:
            has = list_names([repr(name) for name in valued]) or "no protected attribute"
            raise ValueError(
                f"{values} are of {has}, and there are none of {lacking[0]!r}, which `protected` asks for: "
                "value that attribute."
            )
        if n_rows is not None and n_rows != self.n_rows:
            raise ValueError(
                f"{values} are of {self.n_rows:,} rows, and the table has {n_rows:,}: value this table."
            )
        if not is_same_pattern(self._about.provenance, pattern, n_labels):
            raise ValueError(
                f"{values} were computed with other labels of the target, or with the rows in another order: "
                "value this table."
            )

    def blocks(self, block_rows: int) -> Iterator[Valuation]:
        """Yield the values of the rows, block by block."""
        columns = self._about.column_names()
        names = {variable: columns["values", variable] for variable in self._about.variables}
        for arrays in value_blocks(self._parts, names, self._about.scales, block_rows):
            yield Valuation(arrays, scales=self._about.scales)
