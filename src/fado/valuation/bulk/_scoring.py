"""Every row is scored by the models that have not seen it, block by block."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado.tabular import Table, Variable, column_from
from fado.valuation.bulk._folds import Folds
from fado.valuation.bulk._roles import Roles
from fado.valuation.entropy._fits import KeptModel
from fado.valuation.entropy._labels import label_codes
from fado.valuation.entropy._moments import Moments
from fado.valuation.entropy._new_rows import VariableModels
from fado.valuation.entropy._statistics import row_statistics, what_is_wrong

__all__ = ["FIELDS", "Block", "Scored", "Scoring", "score_block"]

Numbers = npt.NDArray[Any]

FIELDS = ("values", "standard_error", "counts", "agreement")


@dataclass(frozen=True)
class Block:
    """Some consecutive rows.

    Parameters
    ----------
    first_row : int
        The place of the first in the whole table.
    table : pyarrow.Table
        The rows, with all columns that are needed.
    where : str
        The file that they come from, for messages.
    """

    first_row: int
    table: pa.Table
    where: str


@dataclass(frozen=True)
class Scored:
    """What is known of some consecutive rows.

    Parameters
    ----------
    n_rows : int
        How many.
    fields : mapping
        Per field and variable, one number per row.
    labels : mapping of str to ndarray
        Their labels, per variable.
    weights : ndarray or None
        What they count.
    """

    n_rows: int
    fields: Mapping[str, Mapping[str, Numbers]]
    labels: Mapping[str, Numbers]
    weights: npt.NDArray[np.float64] | None


@dataclass(frozen=True)
class Scoring:
    """What all blocks need.

    Parameters
    ----------
    roles : Roles
        What the columns are for.
    folds : Folds
        Which bags leave out which row.
    kept : tuple of VariableModels
        The models, the target's first.
    """

    roles: Roles
    folds: Folds
    kept: tuple[VariableModels, ...]

    @cached_property
    def by_bag(self) -> list[list[tuple[VariableModels, KeptModel]]]:
        """The models of each bag, the target's first."""
        bags: list[list[tuple[VariableModels, KeptModel]]] = [[] for _ in range(self.folds.n_bags)]
        for own in self.kept:
            for model in own.models:
                bags[model.bag].append((own, model))
        return bags

    @cached_property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The levels of the feature columns that hold text."""
        schemas = (model.scorer.schema for own in self.kept for model in own.models)
        known = next((own for own in schemas if own is not None), None)
        if known is None:  # every model says the same of every row
            return {}
        return {name: own for name, own in zip(known.names, known.levels, strict=True) if own is not None}


def score_block(block: Block, scoring: Scoring, stop: threading.Event | None = None) -> Scored:
    """Score the rows of a block, each by the models of the bags that leave it out.

    Parameters
    ----------
    block : Block
        The rows.
    scoring : Scoring
        What all blocks need.
    stop : threading.Event, optional
        When set, nobody waits for the result.
    """
    n_rows = block.table.num_rows
    variables = _labelled(block, scoring)
    table = _features(block.table, scoring)
    target = variables[0].labels
    moments = {variable.name: Moments(n_rows) for variable in variables}
    by_name = {variable.name: variable for variable in variables}
    rows = np.arange(block.first_row, block.first_row + n_rows, dtype=np.int64)
    for tile in range(scoring.folds.tiles):
        folds = scoring.folds.of(tile, rows)
        for fold in range(scoring.folds.n_folds):
            here = np.flatnonzero(folds == fold)
            if not len(here) or (stop is not None and stop.is_set()):
                continue
            part = table.take(here)
            for own, model in scoring.by_bag[tile * scoring.folds.n_folds + fold]:
                variable = by_name[own.variable.name]
                labels = target[here] if model.scorer.sees_target else None
                predicted = model.scorer.score(part, labels)
                _check(variable, len(here), predicted, block)
                said = row_statistics(variable, here, predicted, model.training_mean)
                moments[variable.name].add(here, *said)
    fields = {own.variable.name: _finish(own, moments[own.variable.name]) for own in scoring.kept}
    return Scored(
        n_rows,
        {field: {name: own[field] for name, own in fields.items()} for field in FIELDS},
        {name: variable.labels for name, variable in by_name.items()},
        scoring.roles.weights(block.table),
    )


def _labelled(block: Block, scoring: Scoring) -> list[Variable]:
    """Code the labels of a block's rows as the models' own."""
    found = []
    columns: Sequence[Any] = scoring.roles.variables(block.table)
    for own, column in zip(scoring.kept, columns, strict=True):
        labels = label_codes(own.variable, column)
        if own.variable.kind == "classes" and (labels < 0).any():
            raise ValueError(
                f"{block.where!r} holds labels of {own.variable.name!r} that were not there when it was read "
                "first: it was changed meanwhile; name another `out` to begin anew."
            )
        found.append(replace(own.variable, labels=labels))
    return found


def _features(block: pa.Table, scoring: Scoring) -> Table:
    """Read the features of a block, text in codes into the levels of the whole table."""
    columns = [column_from(name, block.column(name)) for name in scoring.roles.features]
    return Table.of_columns(
        [own if own.levels is None else own.with_levels(scoring.levels.get(own.name, ())) for own in columns]
    )


def _finish(own: VariableModels, moments: Moments) -> dict[str, Numbers]:
    mean, error, agreement = moments.mean, moments.standard_error, moments.agreement
    if own.variable.kind == "continuous":  # the furthest row that a model saw ends the scale
        mean = np.clip(1.0 - mean / own.furthest, 0.0, 1.0)
        error = error / own.furthest
        agreement = np.clip(1.0 - agreement / own.largest_error, 0.0, 1.0)
    return dict(zip(FIELDS, (mean, error, moments.count, agreement), strict=True))


def _check(variable: Variable, n_rows: int, predicted: Numbers, block: Block) -> None:
    wrong = what_is_wrong(variable, n_rows, predicted)
    if wrong:
        raise ValueError(
            f"A model of {variable.name!r} gave {wrong} of {block.where!r}: no value can come of that."
        )
