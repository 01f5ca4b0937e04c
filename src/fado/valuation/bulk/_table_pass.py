"""All rows of a table in files, block by block, with the classes of its target and attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._messages import list_names
from fado._progress import tracked
from fado.tabular import TARGET, LabelPattern, Source, SourcePart, Variable
from fado.valuation.bulk._checks import check_comparisons, check_rows
from fado.valuation.bulk._classes import Classes
from fado.valuation.bulk._roles import Roles

__all__ = ["Block", "TablePass"]

_ROWS_OF_A_PART = 1_000_000


class Block(NamedTuple):
    """Some rows: the part they are of, their places in the whole table, their columns, their labels' codes.

    Codes are of the target and then of each attribute, numbered as rows first show the labels.
    """

    part: SourcePart
    rows: npt.NDArray[np.int64]
    table: pa.Table
    codes: list[npt.NDArray[np.int64]]


class TablePass:
    """One reading of all rows, which finds out what target and attributes are.

    Parameters
    ----------
    source : Source
        The table.
    roles : Roles
        What its columns are for.
    """

    def __init__(self, source: Source, roles: Roles) -> None:
        needed = set(roles.needed)
        self.schema = pa.schema([field for field in source.schema if field.name in needed])
        self.n_rows = 0
        self._source = source
        self._roles = roles
        self._seen = [Classes(name) for name in roles.names]
        self._pattern = LabelPattern()

    def blocks(self, most_rows: int, *, progress: bool) -> Iterator[Block]:
        """Read all rows, and refuse those of whose target or weight nothing can be made.

        Parameters
        ----------
        most_rows : int
            How many are read at once; it changes nothing else.
        progress : bool
            Whether to show a progress bar.
        """
        parts = self._source.parts(_ROWS_OF_A_PART)
        for part in tracked(parts, len(parts), what="parts read", show=progress):
            for table in self._source.blocks(part, self._roles.needed, most_rows):
                if table.num_rows:
                    yield self._block(part, table)

    def variables(self) -> tuple[Variable, ...]:
        """Give the target and the attributes with the classes of all rows; they must tell rows apart."""
        variables = tuple(own.variable() for own in self._seen)
        check_comparisons(variables, self._roles)
        _check_two_classes(variables)
        return variables

    def labels(self) -> list[tuple[Any, ...] | None]:
        """Give the labels of the target and of each attribute in the order of their codes.

        A missing label is None; so are the labels of numbers that are no classes.
        """
        return [None if own.are_numbers else own.labels for own in self._seen]

    def target_pattern(self) -> str | None:
        """Digest which rows share a label of the target; None for numbers."""
        return self._pattern.hexdigest() if self._seen[0].variable().kind == "classes" else None

    def _block(self, part: SourcePart, table: pa.Table) -> Block:
        columns = self._roles.variables(table)
        check_rows(columns[0], self._roles.weights(table), str(part.file.path))
        rows = np.arange(self.n_rows, self.n_rows + table.num_rows, dtype=np.int64)
        codes = [own.add(column) for own, column in zip(self._seen, columns, strict=True)]
        self._pattern.add(codes[0])
        self.n_rows += table.num_rows
        return Block(part, rows, table, codes)


def _check_two_classes(variables: tuple[Variable, ...]) -> None:
    """Refuse variables that do not tell rows apart."""
    for variable in variables:
        if variable.kind == "classes" and len(variable.classes) < 2:
            what = "The target" if variable.name == TARGET else f"Protected attribute {variable.name!r}"
            shown = list_names([repr(label) for label in variable.classes])
            raise ValueError(
                f"{what} has only one class ({shown}): there is nothing to tell apart; leave it out or check "
                "the data."
            )
