"""The two passes over a table in files: learn from a sample of its rows, or all; score the others, and write.

The sampled rows are a table in memory: bags, fits and values are those of `OutOfBagEntropy`, to the bit. No
model has seen the other rows, and each is scored by as many models as a sampled row.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from fado._messages import list_names, warn_user
from fado._progress import tracked
from fado._storage import digest_of, replacing, write_file
from fado._typing import Floats, Integers
from fado.execution import LostTask, ThreadExecutor, on_cluster
from fado.tabular import (
    TARGET,
    Column,
    LevelsCollector,
    Problem,
    SmallestRows,
    Source,
    SourcePart,
    Table,
    Variable,
    column_from,
    on_shelf,
    row_hash,
    warn_of_doubtful_columns,
    weights_of,
)
from fado.valuation._probabilities import RowsToScore, VariableModels, score_rows
from fado.valuation._saved import METADATA_KEY, About
from fado.valuation.entropy import OutOfBagEntropy, known_labels
from fado.valuation.large._plan import LearntNote, Run, sample_size
from fado.valuation.large._table import Roles, TablePass

Numbers = npt.NDArray[Any]

FIELDS = ("values", "standard_error", "counts", "agreement")
_MOST_GROUPS = 100  # of an attribute: more are no summary
_GRAIN = 2.0**30  # values are cut to multiples of 1 / 2**30, whose sums are exact in any order
_SUMS_KEY, _PLACE_KEY = b"fado.sums", b"fado.part"
_ROWS_AT_A_TIME = 1 << 17  # of a row group, so that neither blocks nor memory show


# --- the first pass


def learn(
    source: Source,
    roles: Roles,
    valuator: OutOfBagEntropy,
    run: Run,
    most_train_rows: int,
    *,
    block_rows: int,
    client: Any,
) -> None:
    """Read all rows once, train the models of all bags, and record what the second pass needs."""
    seed, share = valuator.random_state, valuator.unseen_fraction
    reading = TablePass(source, roles)
    levels = LevelsCollector(pa.schema([reading.schema.field(name) for name in roles.features]))
    smallest = SmallestRows(sample_size(most_train_rows, share), reading.schema)
    counted = dict.fromkeys((file.path for file in source.files), 0)
    for block in reading.blocks(block_rows, progress=valuator.progress):
        levels.add(block.table)
        smallest.add(row_hash(seed, block.rows), block.rows, block.table)
        counted[block.part.file.path] += block.table.num_rows
    variables = reading.variables()
    rows, sample = smallest.finish()
    pa.default_memory_pool().release_unused()
    problem = _problem(sample, roles, variables, levels.levels())
    _warn_of_unseen(problem)
    warn_of_doubtful_columns(problem.table)
    with ExitStack() as stack:
        if client is not None:  # fits on the sampled rows run on the cluster
            problem = replace(problem, table=stack.enter_context(on_shelf(problem.table, run.sample)))
            stack.enter_context(on_cluster(client))
        valuator.fit_problem(problem)
    longest = problem.n_rows - min(map(len, valuator.bags_))
    settings = {"train_rows": min(longest, most_train_rows), "n_rows": reading.n_rows}
    provenance = valuator.models_.provenance
    provenance = replace(provenance, settings={**provenance.settings, **settings})
    shutil.rmtree(run.models, ignore_errors=True)  # of a run that was ended before they were noted
    replace(valuator.models_, provenance=provenance).save(run.models)
    beside = {"row": pa.array(rows)}
    if roles.groups is not None and len(rows) < reading.n_rows:
        beside |= {"group": sample.column(roles.groups), "bags": _bags_by_row(valuator.bags_, len(rows))}
    content = _as_arrow(valuator, beside)
    write_file(run.values, content, "Values")
    run.note(LearntNote(tuple(counted.values()), digest_of(content), reading.target_pattern()))


def _problem(
    sample: pa.Table, roles: Roles, variables: Sequence[Variable], levels: Mapping[str, tuple[str, ...]]
) -> Problem:
    """Read the sampled rows like a table in memory, with the levels and classes of all rows."""
    sources = roles.variables(sample)
    labelled = [
        replace(own, labels=known_labels(own, column)) for own, column in zip(variables, sources, strict=True)
    ]
    return Problem(
        table=_features(sample, roles, levels),
        target=labelled[0],
        protected=tuple(labelled[1:]),
        positions=tuple(None for _ in roles.attributes),
        names_given=True,
        sources=tuple(sources),
        sample_weight=weights_of(roles.weights(sample), sample.num_rows),
        blocks=roles.blocks(sample),
        unknown=roles.unknown,
    )


def _features(table: pa.Table, roles: Roles, levels: Mapping[str, tuple[str, ...]]) -> Table:
    """Read the features of some rows, with text as codes into the levels of the whole table."""

    def with_levels(column: Column) -> Column:
        return column if column.levels is None else column.with_levels(levels.get(column.name, ()))

    return Table.of_columns([with_levels(column_from(name, table.column(name))) for name in roles.features])


def _warn_of_unseen(problem: Problem) -> None:
    """Warn of classes that are so rare that the sample has none of their rows."""
    for variable in problem.variables:
        if variable.kind == "continuous":
            continue
        sizes = np.bincount(variable.labels, minlength=len(variable.classes))
        lacking = [repr(variable.classes[code]) for code in np.flatnonzero(sizes == 0)]
        if lacking:
            warn_user(
                f"Variable {variable.name!r} has classes without a row among the {problem.n_rows:,} that "
                f"models learn from ({list_names(lacking)}): merge them with others to value their rows "
                "better."
            )


def _bags_by_row(left_out: Sequence[npt.NDArray[np.int32]], n_rows: int) -> pa.ListArray:
    """List for every row the bags that leave it out."""
    rows = np.concatenate(left_out)
    bags = np.repeat(np.arange(len(left_out), dtype=np.int32), list(map(len, left_out)))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), bags[np.argsort(rows, kind="stable")])


def _as_arrow(valuator: OutOfBagEntropy, beside: Mapping[str, Any]) -> bytes:
    """Return the values of the rows that models learnt from as the content of a file."""
    valuation = valuator.valuation_
    columns = {
        f"{field}/{place}": pa.array(valuation.field(field, name))
        for field in FIELDS
        for place, name in enumerate(valuation.variables)
    }
    table, sink = pa.table({**beside, **columns}), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


# --- the second pass


@dataclass(frozen=True)
class ScoredBlock:
    """Some consecutive rows: their values, per field and variable, labels and weights."""

    n_rows: int
    fields: Mapping[str, Mapping[str, Numbers]]
    labels: Mapping[str, Numbers]
    weights: Floats | None


@dataclass(frozen=True)
class Parts:
    """The parts that values are written in, and what each needs.

    Parameters
    ----------
    source : Source
        The table, its rows counted.
    roles : Roles
        The roles of its columns.
    kept : tuple of VariableModels
        The models, the target's first.
    about : About
        The description of the columns of values.
    directory : Path
        Where parts are written.
    block_rows : int
        How many rows are scored at once; it does not change values.
    run : str
        The digest of the run's plan; every part has it, and its own number.
    """

    source: Source
    roles: Roles
    kept: tuple[VariableModels, ...]
    about: About
    directory: Path
    block_rows: int
    run: str

    def path(self, part: SourcePart) -> Path:
        """Return the path of a part."""
        return self.directory / part_name(part.number)

    def is_done(self, part: SourcePart) -> bool:
        """Return whether this part of these values is written, by its footer."""
        try:
            found = pa.parquet.read_metadata(self.path(part))
        except (pa.ArrowException, OSError):
            return False
        told = found.metadata or {}
        fits = told.get(METADATA_KEY) == self.about.describe() and told.get(_PLACE_KEY) == self._mark(part)
        return bool(found.num_rows == part.n_rows and fits and _SUMS_KEY in told)

    def blocks(self, parts: Sequence[SourcePart]) -> Iterator[tuple[int, pa.Table, str]]:
        """Read some parts: the position of the first row of every block, its rows, and their file."""
        all_learnt = len(self.learnt_rows) == self.source.n_rows
        columns = self.roles.beside if all_learnt else self.roles.needed
        for part in parts:
            first = part.first_row or 0
            for table in self.source.blocks(part, columns, self.block_rows):
                if table.num_rows:
                    yield first, table, str(part.file.path)
                    first += table.num_rows

    def write(self, part: SourcePart, scored: Iterator[ScoredBlock]) -> None:
        """Write a part with the next rows that come; the file appears completely or not at all."""
        write_part(self.path(part), _first(scored, part), self.about, self.kept, self._mark(part))

    def _mark(self, part: SourcePart) -> bytes:
        return json.dumps({"run": self.run, "number": part.number}).encode()

    def labels(self, table: pa.Table, where: str) -> dict[str, Numbers]:
        """Encode the labels of some rows with the codes of the models."""
        found = {}
        for own, column in zip(self.kept, self.roles.variables(table), strict=True):
            name, labels = own.variable.name, known_labels(own.variable, column)
            if own.variable.kind == "classes" and (labels < 0).any():
                raise ValueError(
                    f"{where!r} holds labels of {name!r} that were not there when it was read first: it was "
                    "changed meanwhile; name another `out` to start again."
                )
            found[name] = labels
        return found

    def scored_by(self, rows: Integers, table: pa.Table) -> npt.NDArray[np.bool_]:
        """Return which bags score rows that no model learnt from: as many as leave out a row on average.

        A hash of the row's position selects them. If models learnt from other rows of its group, they are the
        bags that left out the group.
        """
        settings = self.about.provenance.settings
        n_bags, per_row = settings["n_bags"], max(1, round(settings["n_bags"] * settings["unseen_fraction"]))
        begin = (row_hash(self.about.provenance.seed or 0, rows) % np.uint64(n_bags)).astype(np.int64)
        chosen = (np.arange(n_bags) - begin[:, np.newaxis]) % n_bags < per_row
        if self.roles.groups is not None:
            names, bags = self._learnt_groups
            place = pc.index_in(table.column(self.roles.groups), value_set=names)
            place = place.fill_null(-1).to_numpy()
            chosen[place >= 0] = bags[place[place >= 0]]
        return chosen

    @cached_property
    def learnt(self) -> pa.Table:
        """What `learn` recorded of the rows that models learnt from, mapped into memory."""
        return pa.ipc.open_file(pa.memory_map(str(Run(self.directory).values))).read_all()

    @cached_property
    def learnt_rows(self) -> Integers:
        """The positions of those rows in the whole table."""
        return self.learnt.column("row").to_numpy()

    @cached_property
    def _learnt_groups(self) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """The groups of the rows that models learnt from, and which bags left out each."""
        groups = self.learnt.column("group")
        names = groups.unique()
        _, first = np.unique(pc.index_in(groups, value_set=names).to_numpy(), return_index=True)
        bags = np.zeros((len(names), self.about.provenance.settings["n_bags"]), dtype=bool)
        lists = self.learnt.column("bags").take(pa.array(first)).combine_chunks()
        bags[pc.list_parent_indices(lists).to_numpy(), lists.flatten().to_numpy()] = True
        return names, bags

    @cached_property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The levels of the feature columns that hold text, as far as any model sees them."""
        schemas = [model.scorer.schema for own in self.kept for model in own.models]
        seen = [zip(own.names, own.levels, strict=True) for own in schemas if own is not None]
        return {name: levels for each in seen for name, levels in each if levels is not None}


def score_parts(
    work: Parts, parts: Sequence[SourcePart], *, workers: int, client: Any = None, progress: bool = False
) -> None:
    """Score and write the parts that are missing, blocks in threads, or whole parts on a cluster."""
    missing = [part for part in parts if not work.is_done(part)]
    if not missing:
        return
    done = _here(work, missing, workers) if client is None else _elsewhere(work, missing, client)
    for _ in tracked(done, len(missing), what="parts scored", show=progress):
        pass


def _here(work: Parts, parts: Sequence[SourcePart], workers: int) -> Iterator[SourcePart]:
    """Score blocks in threads; while one part is written, blocks of the next are scored."""
    with closing(ThreadExecutor(workers).run(score_block, work.blocks(parts), work)) as scored:
        for part in parts:
            work.write(part, scored)
            yield part


def _elsewhere(work: Parts, parts: Sequence[SourcePart], client: Any) -> Iterator[SourcePart]:
    """Score parts on the workers of a cluster."""
    from fado.execution import DaskExecutor

    work = replace(work, directory=work.directory.resolve())  # workers may have begun elsewhere
    parts = [replace(part, file=replace(part.file, path=part.file.path.resolve())) for part in parts]
    for batch in DaskExecutor(client).run_unordered(_score_part, parts, work):
        for own in batch:
            if isinstance(own, LostTask):
                raise RuntimeError(
                    f"Part {own.task.number} was lost with its workers ({own.reason}): run again to continue."
                )
            yield own


def score_block(block: tuple[int, pa.Table, str], work: Parts, stop: threading.Event | None) -> ScoredBlock:
    """Take the values of rows that models learnt from; score the others."""
    first, table, where = block
    n_rows, labels = table.num_rows, work.labels(table, where)
    start, end = np.searchsorted(work.learnt_rows, [first, first + n_rows])
    learnt = work.learnt_rows[start:end] - first
    fields: dict[str, dict[str, Numbers]] = {field: {} for field in FIELDS}
    for field in FIELDS:
        for place, name in enumerate(labels):
            own = work.learnt.column(f"{field}/{place}").slice(start, end - start).to_numpy()
            fields[field][name] = np.empty(n_rows, own.dtype)
            fields[field][name][learnt] = own
    if len(learnt) < n_rows:
        others = np.delete(np.arange(n_rows), learnt)
        rest = table.take(pa.array(others))
        rows = RowsToScore(
            _features(rest, work.roles, work.levels),
            {name: own[others] for name, own in labels.items()},
            f" of {where!r}",
            work.scored_by(first + others, rest),
        )
        scored = score_rows(rows, work.kept, stop)
        for field in FIELDS:
            for name, own in scored[field].items():
                fields[field][name][others] = own
    return ScoredBlock(n_rows, fields, labels, work.roles.weights(table))


def _score_part(part: SourcePart, work: Parts, stop: threading.Event) -> SourcePart:
    work.write(part, (score_block(block, work, stop) for block in work.blocks([part])))
    return part


def _first(scored: Iterator[ScoredBlock], part: SourcePart) -> Iterator[ScoredBlock]:
    """Yield what is scored until a part has all its rows."""
    n_rows = 0
    while n_rows < (part.n_rows or 0):
        own = next(scored, None)
        if own is None:
            raise ValueError(
                f"{str(part.file.path)!r} has fewer rows than before: it was changed meanwhile; name another "
                "`out` to start again."
            )
        n_rows += own.n_rows
        yield own


# --- values in Parquet parts


def part_name(number: int) -> str:
    """Name the file of a part.

    Examples
    --------
    >>> part_name(7)
    'part-00007.parquet'
    """
    return f"part-{number:05d}.parquet"


def write_part(
    path: Path, scored: Iterable[ScoredBlock], about: About, kept: Sequence[VariableModels], place: bytes
) -> None:
    """Write the values of a part as they come, with sums over its groups and its place in the run."""
    names, schema = about.column_names(), _schema(about)
    sums: dict[str, Floats] = {}
    pending: list[pa.Table] = []
    n_pending = 0
    with _writer(path, about, tidy=False) as writer:
        for own in scored:
            for name, new in _group_sums(own, [each.variable for each in kept]).items():
                sums[name] = sums.get(name, 0.0) + new
            columns = [pa.array(own.fields[field][variable]) for field, variable in names]
            pending.append(pa.Table.from_arrays(columns, schema=schema))
            n_pending += own.n_rows
            while n_pending >= _ROWS_AT_A_TIME:
                table = pa.concat_tables(pending)
                writer.write_table(table.slice(0, _ROWS_AT_A_TIME), row_group_size=_ROWS_AT_A_TIME)
                rest = table.slice(_ROWS_AT_A_TIME)
                pending, n_pending = [rest], rest.num_rows
        if n_pending:
            writer.write_table(pa.concat_tables(pending), row_group_size=_ROWS_AT_A_TIME)
        plain = {name: own.tolist() for name, own in sums.items()}
        writer.add_key_value_metadata({_SUMS_KEY: json.dumps([plain]).encode(), _PLACE_KEY: place})


def join_parts(paths: Sequence[Path], final: Path, about: About) -> None:
    """Write the row groups of all parts into one file."""
    with _writer(final, about, tidy=True) as writer:
        for path in paths:
            with pa.parquet.ParquetFile(path, page_checksum_verification=True) as part:
                for group in range(part.num_row_groups):
                    writer.write_table(part.read_row_group(group), row_group_size=_ROWS_AT_A_TIME)
        told = [own for path in paths for own in read_sums(path)]
        writer.add_key_value_metadata({_SUMS_KEY: json.dumps(told).encode()})


@contextmanager
def _writer(path: Path, about: About, *, tidy: bool) -> Iterator[Any]:
    """Open a file of values, which appears completely or not at all."""
    with (
        replacing(path, "Values", tidy=tidy) as temporary,
        pa.parquet.ParquetWriter(
            temporary, _schema(about), compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        yield writer


def _schema(about: About) -> pa.Schema:
    kinds: Mapping[str, Any] = {"counts": pa.int32()}
    fields = [
        pa.field(name, kinds.get(field, pa.float64())) for (field, _), name in about.column_names().items()
    ]
    return pa.schema(fields, metadata={METADATA_KEY: about.describe()})


def read_sums(path: Path) -> list[Any]:
    """Read the sums over groups of a file of values, part by part."""
    told = (pa.parquet.read_metadata(path).metadata or {}).get(_SUMS_KEY)
    if told is None:
        raise ValueError(f"{str(path)!r} has no sums of groups: `value_files` did not write it.")
    found: list[Any] = json.loads(told)
    return found


def _group_sums(scored: ScoredBlock, variables: Sequence[Variable]) -> dict[str, Floats]:
    """Add up over the groups of attributes of classes: rows, values with their counts, weights by label."""
    target, *attributes = variables
    weights = np.ones(scored.n_rows) if scored.weights is None else scored.weights
    by_label = [weights]
    if 0 < len(target.classes) <= _MOST_GROUPS:
        by_label = [weights * (scored.labels[TARGET] == code) for code in range(len(target.classes))]
    found = {}
    for own in attributes:
        if 0 < len(own.classes) <= _MOST_GROUPS:
            added = [np.ones(scored.n_rows)]
            for name in (TARGET, own.name):
                values = scored.fields["values"][name]
                known = np.isfinite(values)
                added += [known, np.where(known, np.floor(_GRAIN * values) / _GRAIN, 0.0)]
            codes, n_groups = scored.labels[own.name], len(own.classes)
            found[own.name] = np.array([np.bincount(codes, each, n_groups) for each in added + by_label])
    return found
