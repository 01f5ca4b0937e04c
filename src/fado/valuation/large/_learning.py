"""The first pass over a table in files: models learn from a sample of its rows, or from all.

The sampled rows are a table in memory: bags, fits and values are those of `OutOfBagEntropy`, to the bit.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from fado._messages import list_names, warn_user
from fado._storage import digest_of, write_file
from fado.execution import on_cluster
from fado.tabular import (
    LevelsCollector,
    Problem,
    Roles,
    SmallestRows,
    Source,
    Table,
    TablePass,
    Variable,
    column_from,
    warn_of_doubtful_columns,
    weights_of,
)
from fado.valuation._new_rows import known_labels
from fado.valuation.entropy import OutOfBagEntropy, ValuationModels
from fado.valuation.large._run import LEARNT, Run

FIELDS = ("values", "standard_error", "counts", "label_probability")


def sample_size(train_rows: int, unseen_fraction: float) -> int:
    """Return how many rows to sample, so that about this many are left after a bag's share is taken out.

    Examples
    --------
    >>> sample_size(100, 0.2)
    125
    """
    return math.ceil(train_rows / (1 - unseen_fraction) - 1e-6)


def learn(
    source: Source,
    roles: Roles,
    valuator: OutOfBagEntropy,
    run: Run,
    train_rows: int,
    *,
    block_rows: int,
    client: Any,
) -> ValuationModels:
    """Read all rows once, train the models of all bags, and keep what the second pass needs."""
    reading = TablePass(source, roles)
    collector = LevelsCollector(pa.schema([reading.schema.field(name) for name in roles.features]))
    n_sampled = sample_size(train_rows, valuator.unseen_fraction)
    smallest = SmallestRows(n_sampled, valuator.random_state, reading.schema)
    for rows, table, _ in reading.blocks(block_rows, progress=valuator.progress):
        collector.add(table)
        smallest.add(rows, table)
    variables, levels = reading.variables(), collector.levels()
    rows, sample = smallest.finish()
    pa.default_memory_pool().release_unused()
    problem = _problem_of(sample, roles, variables, levels)
    with on_cluster(client) if client is not None else nullcontext():
        valuator.fit_problem(problem)
    models, bags = valuator.models_, valuator.bags_
    longest = problem.n_rows - min(map(len, bags))
    counts = {"train_rows": min(longest, train_rows), "n_rows": reading.n_rows}
    provenance = models.provenance
    models = replace(models, provenance=replace(provenance, settings={**provenance.settings, **counts}))
    shutil.rmtree(run.models, ignore_errors=True)  # of a run that was ended before they were noted
    models.save(run.models)

    columns: dict[str, Any] = {  # by position, as names may repeat
        f"{field}/{place}": pa.array(valuator.valuation_.field(field, name))
        for field in FIELDS
        for place, name in enumerate(models.variables)
    }
    columns["row"] = pa.array(rows)
    if roles.groups is not None and len(rows) < reading.n_rows:
        left_out = np.zeros((len(rows), len(bags)), dtype=np.bool_)
        for bag, places in enumerate(bags):
            left_out[places, bag] = True
        columns["group"] = sample.column(roles.groups)
        columns["bags"] = pa.FixedSizeListArray.from_arrays(pa.array(left_out.ravel()), len(bags))
    kept, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, kept.schema) as writer:
        writer.write_table(kept)
    content = sink.getvalue().to_pybytes()
    write_file(run.values, content, "Values")
    notes = {"file_rows": list(reading.file_rows.values()), "values": digest_of(content)}
    LEARNT.write(run.directory, {**notes, "target_pattern": reading.target_pattern()})
    return models


def _problem_of(
    sample: pa.Table, roles: Roles, variables: Sequence[Variable], levels: Mapping[str, tuple[str, ...]]
) -> Problem:
    """Read the sampled rows like a table in memory, with the levels and classes of all rows.

    Classes that are so rare that the sample has none of their rows cause a warning.
    """
    columns = roles.variables(sample)
    labelled = []
    for variable, column in zip(variables, columns, strict=True):
        labels = known_labels(variable, column)
        labelled.append(replace(variable, labels=labels))
        if variable.kind == "continuous":
            continue
        empty = np.flatnonzero(np.bincount(labels, minlength=len(variable.classes)) == 0)
        if len(empty):
            lacking = list_names([repr(variable.classes[code]) for code in empty])
            warn_user(
                f"Variable {variable.name!r} has classes without a row among the {len(labels):,} that models "
                f"learn from ({lacking}): merge them with others to value their rows better."
            )
    table = read_features(sample, roles, levels)
    warn_of_doubtful_columns(table)
    return Problem(
        table=table,
        target=labelled[0],
        protected=tuple(labelled[1:]),
        positions=tuple(None for _ in roles.attributes),
        names_given=True,
        sources=tuple(columns),
        sample_weight=weights_of(roles.weights(sample), sample.num_rows),
        blocks=roles.row_groups(sample),
        unknown=roles.unknown,
    )


def read_features(table: pa.Table, roles: Roles, levels: Mapping[str, tuple[str, ...]]) -> Table:
    """Read the features of some rows, with text as codes into the levels of the whole table."""
    columns = (column_from(name, table.column(name)) for name in roles.features)
    return Table.of_columns(
        [
            column if column.levels is None else column.with_levels(levels.get(column.name, ()))
            for column in columns
        ]
    )
