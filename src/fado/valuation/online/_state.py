"""The state of an online valuator, and its directory: plain data, the rows of the window and the models."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from fado._records import encode, label_from, label_to, record_from, simplify
from fado._storage import DamagedError, Manifest, digest_of, replacing_directory, write_file
from fado._version import __version__, library_versions
from fado.tabular import Column, Problem, Table, variable_from
from fado.valuation._base import texts_of
from fado.valuation.entropy import ValuationModels, load_models
from fado.valuation.online._drift import DriftCheck, Pool, Reference

SAVED = Manifest(name="online.json", kind="fado online valuator", layout=2, what="online valuator")
SETTINGS = ("window", "refresh", "n_bags", "z_sees_target", "z_exclude", "kinds")
_ROWS, _MODELS, _WEIGHT, _MODELS_MANIFEST = "rows.parquet", "models", "weight", "models.json"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # of an object: another process has others


@dataclass(frozen=True)
class State:
    """What is known after some batches; a batch makes another state of it.

    Parameters
    ----------
    window : Problem or None
        The last rows.
    models : ValuationModels or None
        The models of the values.
    references : mapping of str to Reference
        The models' uncertainty out of bag, per variable.
    blank : tuple of int
        Columns without any entry in the rows that the models learnt from.
    version : int
        How often models have been trained.
    waiting : int
        Rows that arrived after the models.
    batches, rows : int
        All that arrived.
    pools : mapping of str to Pool
        Uncertainty about new rows that are too few for a check.
    checks : tuple of DriftCheck
        The last checks for drift.
    """

    window: Problem | None = None
    models: ValuationModels | None = None
    references: Mapping[str, Reference] = field(default_factory=dict)
    blank: tuple[int, ...] = ()
    version: int = 0
    waiting: int = 0
    batches: int = 0
    rows: int = 0
    pools: Mapping[str, Pool] = field(default_factory=dict)
    checks: tuple[DriftCheck, ...] = ()

    def as_learnt(self, table: Table) -> Table:
        """Empty the columns of text that were blank when models learnt: these do not know their content."""
        if self.window is None:
            return table
        named, names = table.is_named and self.window.table.is_named, self.window.table.names
        places = {place for j in self.blank for place in (table.positions(names[j]) if named else [j])}
        texts = {j for j in places if j < table.n_columns and table.column(j).levels is not None}
        if not texts:
            return table
        nothing = pa.chunked_array([pa.nulls(table.n_rows, pa.float64())])
        columns = [
            Column(column.name, nothing) if j in texts else column for j, column in enumerate(table.columns)
        ]
        return Table.of_columns(columns, named=table.is_named)


def blank_columns(table: Table) -> tuple[int, ...]:
    """Return the positions of the columns without any entry, which are read as numbers."""
    numbers = [(j, column) for j, column in enumerate(table.columns) if column.levels is None]
    return tuple(j for j, column in numbers if np.isnan(column.numbers()).all())


def write(online: Any, state: State, directory: str | os.PathLike[str]) -> None:
    """Write an online valuator into a directory, whole or not at all."""
    final = SAVED.check_directory(Path(directory), lambda name: name in (_ROWS, _MODELS))
    window, files = state.window, {}
    with replacing_directory(final, "The online valuator") as temporary:
        if window is not None:
            arrays = {f"x{j}": column.data for j, column in enumerate(window.table.columns)}
            arrays |= {f"v{j}": column.data for j, column in enumerate(window.sources)}
            if window.sample_weight is not None:
                arrays[_WEIGHT] = pa.chunked_array([window.sample_weight])
            buffer = io.BytesIO()  # columns by number, since names may repeat
            pyarrow.parquet.write_table(pa.table(arrays), buffer, compression="zstd")
            files[_ROWS] = buffer.getvalue()
            write_file(temporary / _ROWS, files[_ROWS], "The online valuator")
        if state.models is not None:
            state.models.save(temporary / _MODELS)
            files[_MODELS] = (temporary / _MODELS / _MODELS_MANIFEST).read_bytes()
        content = {
            "fado": __version__,
            "versions": library_versions(),
            "settings": {name: _plain(getattr(online, name)) for name in SETTINGS},
            "estimators": _texts(online.estimators),
            "seed": getattr(online, "seed_", None),
            "state": encode(replace(state, window=None, models=None)),
            "window": None if window is None else _describe(window),
            "files": {name: digest_of(file) for name, file in files.items()},
        }
        SAVED.write(temporary, content)


def read(directory: str | os.PathLike[str], estimators: Any) -> tuple[dict[str, Any], State, int | None]:
    """Read what `write` wrote: the settings, the state, and the seed, if one was drawn."""
    folder, manifest = Path(directory), SAVED.open(directory)
    try:
        saved_with, files = manifest["estimators"], manifest["files"]
        state = record_from(State, manifest["state"], "a state")
        if manifest["window"] is not None:
            rows = SAVED.read_file(folder / _ROWS, files[_ROWS])
            state = replace(state, window=_window_of(rows, manifest["window"]))
        if _MODELS in files:
            SAVED.read_file(folder / _MODELS / _MODELS_MANIFEST, files[_MODELS])
        settings, seed = manifest["settings"], manifest["seed"]
    except DamagedError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, pa.ArrowException) as error:
        raise ValueError(
            f"{str(folder / SAVED.name)!r} cannot be read as an online valuator: {error}"
        ) from error
    if saved_with is None and estimators is not None:
        raise ValueError(f"{str(folder)!r} was saved with the default models: leave `estimators` out.")
    if saved_with != _texts(estimators):
        raise ValueError(
            f"{str(folder)!r} was saved with the estimators {', '.join(saved_with)}, which are not in it: "
            "pass the same ones as `estimators`."
        )
    models = load_models(folder / _MODELS) if _MODELS in files else None
    return settings, replace(state, models=models), seed


def _plain(value: Any) -> Any:
    """Return a setting for JSON: whatever holds names, such as a set or an index, as a list."""
    if isinstance(value, Mapping):
        return {str(key): _plain(names) for key, names in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [simplify(name) for name in value]
    return simplify(value)


def _texts(estimators: Any) -> list[str] | None:
    """Return the `repr` of estimators, without addresses in memory; None for the default models."""
    if estimators is None:
        return None
    each = estimators if isinstance(estimators, list | tuple) else [estimators]
    return [_ADDRESS.sub("", text) for text in texts_of(each)]


def _describe(window: Problem) -> dict[str, Any]:
    """Describe the columns of the window; its rows are in a separate file."""
    features, variables = (
        [
            {
                "name": column.name,
                "levels": column.levels,
                "labels": None if column.labels is None else [label_to(label) for label in column.labels],
            }
            for column in columns
        ]
        for columns in (window.table.columns, window.sources)
    )
    return {
        "features": features,
        "variables": variables,
        "positions": window.positions,
        "named": window.table.is_named,
        "names_given": window.names_given,
        "unknown": [str(value) for value in window.unknown],
    }


def _window_of(content: bytes, description: Mapping[str, Any]) -> Problem:
    """Make the window from its rows and their description."""
    rows = pyarrow.parquet.read_table(io.BytesIO(content))
    columns = {}
    for letter, entries in (("x", description["features"]), ("v", description["variables"])):
        columns[letter] = [
            Column(
                entry["name"],
                rows.column(f"{letter}{j}"),
                None if entry["levels"] is None else tuple(entry["levels"]),
                None if entry["labels"] is None else tuple(map(label_from, entry["labels"])),
            )
            for j, entry in enumerate(entries)
        ]
    target, *protected = map(variable_from, columns["v"])
    return Problem(
        table=Table.of_columns(columns["x"], named=description["named"]),
        target=target,
        protected=tuple(protected),
        positions=tuple(description["positions"]),
        names_given=description["names_given"],
        sources=tuple(columns["v"]),
        sample_weight=rows.column(_WEIGHT).to_numpy() if _WEIGHT in rows.column_names else None,
        unknown=tuple(description["unknown"]),
    )
