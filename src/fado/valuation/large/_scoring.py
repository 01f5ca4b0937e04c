"""The second pass over a table in files: rows that no model learnt from are scored, and parts are written.

Each such row is scored by as many models as a row that was learnt from and left out.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from fado._progress import tracked
from fado._storage import remove_unfinished, replacing
from fado._typing import Bools, Floats, Integers
from fado.execution import LostTask, ThreadExecutor
from fado.tabular import Roles, Source, SourcePart, in_blocks, row_hash
from fado.valuation._new_rows import known_labels
from fado.valuation._probabilities import RowsToScore, score_rows
from fado.valuation._saved import METADATA_KEY, About
from fado.valuation.entropy import ValuationModels
from fado.valuation.large._learning import FIELDS, read_features
from fado.valuation.large._run import LEARNT, Run, part_name
from fado.valuation.large._summary import SUMS_KEY, group_sums, read_sums

PART_ROWS = 1_000_000
_PLACE_KEY = b"fado.part"
_ROWS_AT_A_TIME = 1 << 17  # of a row group, so that neither blocks nor memory show

Block = tuple[SourcePart, int, pa.Table]  # its part, the position of its first row, its rows
ScoredBlock = tuple[SourcePart, pa.Table, dict[str, Floats]]  # its part, values, and sums over groups


def score_parts(
    source: Source,
    roles: Roles,
    models: ValuationModels,
    run: Run,
    digest: str,
    *,
    block_rows: int,
    workers: int,
    client: Any,
    progress: bool,
) -> None:
    """Score and write the parts that are missing, blocks in threads, or whole parts on a cluster."""
    learnt = LEARNT.open(run.directory)
    LEARNT.read_file(run.values, learnt["values"])  # refuses damaged values
    provenance = replace(models.provenance, target_pattern=learnt["target_pattern"])
    about = About(models.variables, list(FIELDS), models.scales, provenance, {})
    source = source.with_rows_counted(learnt["file_rows"])
    work = Scoring(source, roles, models, about, run, block_rows, digest)
    parts = source.parts(PART_ROWS)
    missing = [part for part in parts if not work.is_done(part)]
    done = _here(work, missing, workers) if client is None else _on_cluster(work, missing, client)
    for _ in tracked(done, len(missing), what="parts scored", show=progress and bool(missing)):
        pass
    remove_unfinished(run.directory)  # of workers that were killed
    run.finish([(work.place(part)[0], part.n_rows or 0) for part in parts], about.describe())


@dataclass(frozen=True)
class Scoring:
    """What writing the parts of a run needs, here or on the workers of a cluster.

    `source` has its rows counted, `about` describes the columns of values, `block_rows` are scored at once
    and change no value, and every part has `digest`, that of the run's plan, and its own number.
    """

    source: Source
    roles: Roles
    models: ValuationModels
    about: About
    run: Run
    block_rows: int
    digest: str

    def place(self, part: SourcePart) -> tuple[Path, bytes]:
        """Return the path of a part, and what it says of its place."""
        place = json.dumps({"run": self.digest, "number": part.number}).encode()
        return self.run.directory / part_name(part.number), place

    def is_done(self, part: SourcePart) -> bool:
        """Return whether this part of these values is written, by its footer."""
        path, place = self.place(part)
        try:
            footer = pa.parquet.read_metadata(path)
        except (pa.ArrowException, OSError):
            return False
        return bool(footer.num_rows == part.n_rows and (footer.metadata or {}).get(_PLACE_KEY) == place)

    @cached_property
    def learnt(self) -> pa.Table:
        """What `learn` kept of the rows that models learnt from, mapped into memory."""
        return pa.ipc.open_file(pa.memory_map(str(self.run.values))).read_all()

    @cached_property
    def learnt_rows(self) -> Integers:
        """The positions of those rows in the whole table."""
        return self.learnt.column("row").to_numpy()

    @cached_property
    def _learnt_groups(self) -> tuple[pa.Array, Bools]:
        """The row groups of those rows, and which bags left out each."""
        groups, bags = self.learnt.column("group"), self.learnt.column("bags").combine_chunks()
        names = groups.unique()
        _, first = np.unique(pc.index_in(groups, value_set=names).to_numpy(), return_index=True)
        left_out = bags.flatten().to_numpy(zero_copy_only=False).reshape(len(groups), -1)
        return names, left_out[first]

    @cached_property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The levels of the feature columns that hold text, as far as any model sees them."""
        schemas = [model.scorer.schema for variable in self.models.kept for model in variable.models]
        columns = [zip(schema.names, schema.levels, strict=True) for schema in schemas if schema is not None]
        return {name: levels for each in columns for name, levels in each if levels is not None}

    def blocks(self, parts: Sequence[SourcePart]) -> Iterator[Block]:
        """Read the rows of some parts; only labels and weights, if models learnt from all rows."""
        columns = self.roles.needed(features=len(self.learnt_rows) < (self.source.n_rows or 0))
        for part in parts:
            first = part.first_row or 0
            for table in self.source.blocks(part, columns, self.block_rows):
                yield part, first, table
                first += table.num_rows

    def scored_by(self, rows: Integers, table: pa.Table) -> Bools:
        """Return which bags score rows that no model learnt from: as many as leave out a row on average.

        A hash of the row's position selects them. If models learnt from other rows of its group, they are the
        bags that left out the group.
        """
        settings = self.about.provenance.settings
        n_bags, per_row = settings["n_bags"], max(1, round(settings["n_bags"] * settings["unseen_fraction"]))
        begin = (row_hash(self.about.provenance.seed or 0, rows) % np.uint64(n_bags)).astype(np.int64)
        chosen: Bools = (np.arange(n_bags) - begin[:, np.newaxis]) % n_bags < per_row
        if self.roles.groups is not None:
            names, bags = self._learnt_groups
            place = pc.index_in(table.column(self.roles.groups), value_set=names)
            place = place.fill_null(-1).to_numpy()
            chosen[place >= 0] = bags[place[place >= 0]]
        return chosen

    def write(self, part: SourcePart, scored: Iterable[ScoredBlock]) -> None:
        """Write a part; the file appears completely or not at all."""
        path, place = self.place(part)
        sums: dict[str, Any] = {}

        def values_of_part() -> Iterator[pa.Table]:
            for _, values, block_sums in scored:
                for name, numbers in block_sums.items():
                    sums[name] = sums.get(name, 0.0) + numbers
                yield values

        with _writer(path, self.about, tidy=False) as writer:
            for table in in_blocks(values_of_part(), _ROWS_AT_A_TIME):
                writer.write_table(table.combine_chunks(), row_group_size=_ROWS_AT_A_TIME)
            plain = {name: numbers.tolist() for name, numbers in sums.items()}
            writer.add_key_value_metadata({SUMS_KEY: json.dumps([plain]).encode(), _PLACE_KEY: place})


def _here(work: Scoring, parts: Sequence[SourcePart], workers: int) -> Iterator[SourcePart]:
    """Score blocks in threads; while one part is written, blocks of the next are scored."""
    with closing(ThreadExecutor(workers).run(score_block, work.blocks(parts), work)) as scored:
        for part, blocks in groupby(scored, key=lambda block: block[0]):
            work.write(part, blocks)
            yield part


def _on_cluster(work: Scoring, parts: Sequence[SourcePart], client: Any) -> Iterator[SourcePart]:
    """Score parts on the workers of a cluster."""
    from fado.execution import DaskExecutor

    work = replace(work, run=Run(work.run.directory.resolve()))  # workers may have begun in another directory
    parts = [replace(part, file=replace(part.file, path=part.file.path.resolve())) for part in parts]
    for batch in DaskExecutor(client).run_unordered(_score_part, parts, work):
        for part in batch:
            if isinstance(part, LostTask):
                raise RuntimeError(
                    f"Part {part.task.number} was lost with its workers ({part.reason}): run again to "
                    "continue."
                )
            yield part


def _score_part(part: SourcePart, work: Scoring, stop: threading.Event) -> SourcePart:
    work.write(part, (score_block(block, work, stop) for block in work.blocks([part])))
    return part


def score_block(block: Block, work: Scoring, stop: threading.Event | None) -> ScoredBlock:
    """Take the values of rows that models learnt from; score the others."""
    part, first, table = block
    n_rows, variables = table.num_rows, [kept.variable for kept in work.models.kept]
    columns = zip(variables, work.roles.variables(table), strict=True)
    labels = {variable.name: known_labels(variable, column) for variable, column in columns}
    start, end = np.searchsorted(work.learnt_rows, [first, first + n_rows])
    schema = _schema(work.about)
    values = work.learnt.slice(start, end - start).columns[: len(schema)]
    values = pa.Table.from_arrays(values, schema=schema)
    if end - start < n_rows:
        learnt = work.learnt_rows[start:end] - first
        others = np.delete(np.arange(n_rows), learnt)
        rest = table.take(pa.array(others))
        rows = RowsToScore(
            read_features(rest, work.roles, work.levels),
            {name: codes[others] for name, codes in labels.items()},
            f" of {str(part.file.path)!r}",
            work.scored_by(first + others, rest),
        )
        fields: Mapping[str, Any] = score_rows(rows, work.models.kept, stop)
        scored = [pa.array(fields[field][variable]) for field, variable in work.about.column_names()]
        order = pa.array(np.argsort(np.concatenate([learnt, others])))
        values = pa.concat_tables([values, pa.Table.from_arrays(scored, schema=schema)]).take(order)
    return part, values, group_sums(values, variables, labels, work.roles.weights(table))


def join_parts(paths: Sequence[Path], final: Path, about: About) -> None:
    """Write the row groups of all parts into one file."""
    with _writer(final, about, tidy=True) as writer:
        for path in paths:
            with pa.parquet.ParquetFile(path, page_checksum_verification=True) as part:
                for group in range(part.num_row_groups):
                    writer.write_table(part.read_row_group(group), row_group_size=_ROWS_AT_A_TIME)
        sums = [part for path in paths for part in read_sums(path)]
        writer.add_key_value_metadata({SUMS_KEY: json.dumps(sums).encode()})


@contextmanager
def _writer(path: Path, about: About, *, tidy: bool) -> Iterator[Any]:
    """Open a file of values, which appears completely or not at all."""
    options = {"compression": "zstd", "write_page_checksum": True}
    with (
        replacing(path, "Values", tidy=tidy) as temporary,
        pa.parquet.ParquetWriter(temporary, _schema(about), **options) as writer,
    ):
        yield writer


def _schema(about: About) -> pa.Schema:
    fields = [
        pa.field(name, pa.int32() if field == "counts" else pa.float64())
        for (field, _), name in about.column_names().items()
    ]
    return pa.schema(fields, metadata={METADATA_KEY: about.describe()})
