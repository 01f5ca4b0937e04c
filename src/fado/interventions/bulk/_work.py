"""From what is asked for to what is written: the passes over a table in files, one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._storage import remove_abandoned
from fado.interventions._base import BaseIntervention
from fado.interventions._utilities import checked_utility, utilities_of
from fado.interventions.bulk._blocks import BLOCK_ROWS, Block, Lockstep
from fado.interventions.bulk._cells import Cells, Counter, Rows
from fado.interventions.bulk._change import ChangeSums, FilesChange
from fado.interventions.bulk._room import check_room, check_room_for_values
from fado.interventions.bulk._streams import stream_of
from fado.interventions.bulk._writing import row_group_rows, write_rows
from fado.tabular import GroupNames, LabelPattern, Source, open_source
from fado.utility import CobbDouglasUtility, DifferenceUtility, LinearUtility
from fado.valuation import Valuation
from fado.valuation.bulk import (
    Paths,
    Roles,
    StoredValues,
    check_group_names,
    check_out,
    memory_bound,
    name_roles,
)

__all__ = ["Asked", "Work"]

_ROW_BY_ROW = (LinearUtility, DifferenceUtility, CobbDouglasUtility)  # no row's utility depends on others
_WEIGHTS = pa.schema([pa.field("weight", pa.float64())])


@dataclass(frozen=True)
class Asked:
    """What is asked for, as `sample_files` and `reweigh_files` take it.

    Parameters
    ----------
    changes : {"rows", "weights"}
        What the intervention is to change.
    paths, intervention, target, protected, out, values, weight, memory, progress, group_names
        As these functions take them.
    """

    paths: Paths
    intervention: Any
    changes: str
    target: str
    protected: str | Sequence[str]
    out: str | os.PathLike[str]
    values: str | os.PathLike[str] | None
    weight: str | None
    memory: str | int | None
    progress: bool
    group_names: GroupNames | None


class Work:
    """An intervention on a table in files; what is wrong with it is said before a row is read.

    Parameters
    ----------
    asked : Asked
        What is asked for.
    """

    def __init__(self, asked: Asked) -> None:
        intervention = asked.intervention
        _check_kind(intervention, asked.changes)
        self._intervention = intervention
        self._stream = stream_of(intervention)
        intervention._check_settings()
        self._utility = checked_utility(intervention.utility) if intervention.uses_values else None
        self._bound = memory_bound(asked.memory)
        self._source = open_source(asked.paths)
        self._roles = name_roles(
            self._source.schema,
            asked.target,
            asked.protected,
            weight=asked.weight,
            group_names=asked.group_names,
        )
        values = None if self._utility is None else _open_values(asked)
        self._out = Path(asked.out)
        _check_out(self._out, self._source, asked.paths, values)
        if values is not None:
            _check_values(values, self._roles, self._source)
        self._lockstep = Lockstep(self._source, values, asked.progress)
        named = isinstance(asked.paths, str | os.PathLike)
        self._where = str(asked.paths if named else self._source.files[0].path)

    def sample(self, pos_label: Any) -> FilesChange:
        """Write the rows that stay."""
        schema = self._source.schema
        group_rows = row_group_rows(len(schema.names))
        check_room(self._source, self._roles.needed, group_rows, self._bound)
        return self._run(pos_label, schema, None, min(group_rows, BLOCK_ROWS))

    def reweigh(self, positive: Any) -> FilesChange:
        """Write the weights of all rows."""
        check_room(self._source, self._roles.needed, None, self._bound)
        return self._run(positive, _WEIGHTS, self._roles.needed, BLOCK_ROWS)

    def _run(
        self, pos_label: Any, schema: pa.Schema, columns: Sequence[str] | None, block_rows: int
    ) -> FilesChange:
        """Count, decide, and write what is left of the rows, or their weights."""
        counts_cells = self._intervention._counts_cells
        check_group_names(self._source, self._roles)
        counter = Counter(self._roles, self._utilities(), counts_cells=counts_cells, where=self._where)
        cells = self._count(counter, pos_label)

        def passes(what: str) -> Iterator[Rows]:
            return (counter.rows(block) for block in self._lockstep.blocks(self._roles.needed, what))

        factors_of = self._stream(self._intervention, cells, passes)
        sums = ChangeSums(cells)

        def written() -> Iterator[pa.Table]:
            for block in self._lockstep.blocks(columns, "blocks written", block_rows):
                rows = counter.rows(block)
                factors = factors_of(rows)
                sums.add(rows, factors)
                if schema is _WEIGHTS:
                    yield pa.table([pa.array(factors)], schema=schema)
                else:
                    yield block.table.filter(pa.array(factors > 0))

        write_rows(self._out, written(), schema)
        return sums.finish(self._roles.names[1:], getattr(self._intervention, "min_group_size", 0))

    def _utilities(self) -> Callable[[Block], npt.NDArray[np.float64]] | None:
        """Say how blocks get utilities: from their own values, or, if others may count, from those of all."""
        utility, values = self._utility, self._lockstep.values
        if utility is None or values is None:
            return None
        if type(utility) in _ROW_BY_ROW:
            return lambda block: utilities_of(utility, block.values, block.table.num_rows)
        check_room_for_values(utility, values, self._bound)
        every = utilities_of(utility, Valuation.load(values.path), values.n_rows)
        return lambda block: every[block.first : block.first + block.table.num_rows]

    def _count(self, counter: Counter, pos_label: Any) -> Cells:
        pattern, n_rows, values = LabelPattern(), 0, self._lockstep.values
        for block in self._lockstep.blocks(self._roles.needed, "blocks counted"):
            pattern.add(counter.count(block))
            n_rows += block.table.num_rows
        if values is not None:
            values.check_rows(n_rows)
            values.check_pattern(pattern.hexdigest(), counter.n_labels)
        return counter.cells(pos_label)


def _check_kind(intervention: Any, changes: str) -> None:
    if not isinstance(intervention, BaseIntervention):
        raise TypeError(f"`intervention` must be an intervention, got {intervention!r}.")
    if intervention.changes != changes:
        raise ValueError(
            f"`intervention` must change {changes}, and {type(intervention).__name__} changes "
            f"{intervention.changes}: use the other function."
        )


def _open_values(asked: Asked) -> StoredValues:
    if asked.values is None:
        raise ValueError(
            f"`values` must be given, as {type(asked.intervention).__name__} uses them: make them with "
            "`fado.value_files`."
        )
    return StoredValues(asked.values)


def _check_values(values: StoredValues, roles: Roles, source: Source) -> None:
    """Refuse values of another table, as far as can be told before its rows are read."""
    values.check(roles.target.name, roles.names[1:])
    if source.n_rows is not None:
        values.check_rows(source.n_rows)


def _check_out(out: Path, source: Source, paths: Paths, values: StoredValues | None) -> None:
    check_out(out, source, paths, [] if values is None else [values.path])
    if out.is_dir() and any(out.iterdir()):
        remove_abandoned(out)
        raise ValueError(f"The directory {str(out)!r} is not empty: name another `out`.")
