"""The second pass: score the parts that are not there yet, and write them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fado._progress import tracked
from fado.execution import LostTask, ThreadExecutor
from fado.tabular import Source, SourcePart
from fado.valuation._saved import About
from fado.valuation.bulk._parts import is_whole, part_name, write_part
from fado.valuation.bulk._scoring import Block, Scored, Scoring, score_block
from fado.valuation.bulk._summary import GroupSums

__all__ = ["Place", "score_parts"]


@dataclass(frozen=True)
class Place:
    """What every part needs.

    Parameters
    ----------
    source : Source
        The table, its rows counted.
    scoring : Scoring
        The models, and which of them score a row.
    about : About
        What the columns of values are.
    directory : Path
        Where parts are written.
    block_rows : int
        How many rows are scored at once; it changes nothing.
    run : str
        The digest of the run's plan; every part carries it, and its own number.
    """

    source: Source
    scoring: Scoring
    about: About
    directory: Path
    block_rows: int
    run: str

    def path(self, part: SourcePart) -> Path:
        """Say where a part stands."""
        return self.directory / part_name(part.number)

    def blocks(self, parts: Sequence[SourcePart]) -> Iterator[Block]:
        """Read the rows of some parts."""
        for part in parts:
            first = part.first_row or 0
            for table in self.source.blocks(part, self.scoring.roles.needed, self.block_rows):
                if table.num_rows:
                    yield Block(first, table, str(part.file.path))
                    first += table.num_rows

    def is_done(self, part: SourcePart) -> bool:
        """Tell whether a part stands there."""
        return is_whole(self.path(part), part.n_rows or 0, self.about, self._mark(part))

    def write(self, part: SourcePart, scored: Iterator[Scored]) -> None:
        """Write the values of a part, which come first of those that come."""
        sums = GroupSums([own.variable for own in self.scoring.kept])
        write_part(self.path(part), _first(scored, part), self.about, sums, self._mark(part))

    def _mark(self, part: SourcePart) -> bytes:
        return json.dumps({"run": self.run, "number": part.number}).encode()


def score_parts(
    place: Place, parts: Sequence[SourcePart], *, workers: int, client: Any = None, progress: bool = False
) -> None:
    """Score and write the parts that are not there yet.

    Parameters
    ----------
    place : Place
        What every part needs.
    parts : sequence of SourcePart
        All parts of the table.
    workers : int
        How many threads score blocks, where there is no cluster.
    client : dask.distributed.Client, optional
        Of a cluster whose workers see the same files: each scores and writes whole parts.
    progress : bool
        Whether to show a progress bar.
    """
    missing = [part for part in parts if not place.is_done(part)]
    if not missing:
        return
    done = _here(place, missing, workers) if client is None else _elsewhere(place, missing, client)
    for _ in tracked(done, len(missing), what="parts scored", show=progress):
        pass


def _here(place: Place, parts: Sequence[SourcePart], workers: int) -> Iterator[SourcePart]:
    """Score blocks in threads; while one part is written, blocks of the next are scored."""
    with closing(ThreadExecutor(workers).run(score_block, place.blocks(parts), place.scoring)) as scored:
        for part in parts:
            place.write(part, scored)
            yield part


def _elsewhere(place: Place, parts: Sequence[SourcePart], client: Any) -> Iterator[SourcePart]:
    """Score parts on the workers of a cluster."""
    from fado.execution import DaskExecutor

    place = replace(place, directory=place.directory.resolve())  # workers may have begun elsewhere
    parts = [replace(part, file=replace(part.file, path=part.file.path.resolve())) for part in parts]
    for batch in DaskExecutor(client).run_unordered(_score_part, parts, place):
        for own in batch:
            if isinstance(own, LostTask):
                raise RuntimeError(
                    f"Part {own.task.number} was lost with its workers ({own.reason}): run again to go on."
                )
            yield own


def _score_part(part: SourcePart, place: Place, stop: threading.Event) -> SourcePart:
    place.write(part, (score_block(block, place.scoring, stop) for block in place.blocks([part])))
    return part


def _first(scored: Iterator[Scored], part: SourcePart) -> Iterator[Scored]:
    """Give what is scored until a part has all its rows."""
    n_rows = 0
    while n_rows < (part.n_rows or 0):
        own = next(scored, None)
        if own is None:
            raise ValueError(
                f"{str(part.file.path)!r} has fewer rows than before: it was changed meanwhile; name another "
                "`out` to begin anew."
            )
        n_rows += own.n_rows
        yield own
