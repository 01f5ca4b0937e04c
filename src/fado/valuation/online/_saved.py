"""An online valuator as a directory: its rows, its models, and a manifest that vouches for both."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from fado._checks import MOST_ROWS, check_count, check_share
from fado._records import decode, encode, label_from, label_to, record_from, simplify
from fado._storage import DamagedError, Manifest, digest_of, replacing_directory, write_file
from fado._version import __version__, library_versions
from fado.tabular import TARGET, Column, Kind, Problem, Table, variable_from
from fado.valuation.entropy import ValuationModels, load_models
from fado.valuation.online._drift import Check, Pool, Reference
from fado.valuation.online._state import State
from fado.valuation.online._window import FEWEST_ROWS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read", "write"]

SAVED = Manifest(name="online.json", kind="fado online valuator", layout=1, what="online valuator")
ROWS, MODELS, WEIGHT = "rows.parquet", "models", "weight"
_MODELS_MANIFEST = "models.json"
SETTINGS = ("window", "refresh", "n_bags", "z_sees_target", "z_exclude", "kinds")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # of an object: another process has others
_COUNTS = ("version", "waiting", "batches", "rows")


def write(online: Any, state: State, directory: str | os.PathLike[str]) -> None:
    """Write an online valuator into a directory, whole or not at all."""
    final = SAVED.check_directory(Path(directory), lambda name: name in (ROWS, MODELS))
    files = {} if state.window is None else {ROWS: _rows_as_file(state.window)}
    with replacing_directory(final, "The online valuator") as temporary:
        for name, content in files.items():
            write_file(temporary / name, content, "The online valuator")
        if state.models is not None:
            state.models.save(temporary / MODELS)
            files[MODELS] = (temporary / MODELS / _MODELS_MANIFEST).read_bytes()
        SAVED.write(
            temporary,
            {
                "fado": __version__,
                "versions": library_versions(),
                "settings": {name: _tell_setting(getattr(online, name)) for name in SETTINGS},
                "estimators": _shown(online.estimators),
                "seed": getattr(online, "seed_", None),
                "counts": {name: getattr(state, name) for name in _COUNTS},
                "window": None if state.window is None else _tell_window(state.window),
                "references": _tell_all(state.references),
                "blank": list(state.blank),
                "pools": _tell_all(state.pools),
                "checks": [encode(check) for check in state.checks],
                "files": {name: digest_of(content) for name, content in files.items()},
            },
        )


def read(directory: str | os.PathLike[str], estimators: Any) -> tuple[dict[str, Any], State, int | None]:
    """Read what `write` wrote: the settings, what is known, and the seed, if one was drawn."""
    folder, told = Path(directory), SAVED.open(directory)
    if told.get("estimators") != _shown(estimators):
        raise ValueError(_other_estimators(str(folder), told.get("estimators")))
    try:
        settings = _settings_of(told["settings"])
        if told["seed"] is not None:
            check_count("seed", told["seed"], 0, 2**32 - 1)
        return settings, _state_of(folder, told), told["seed"]
    except DamagedError as error:
        raise ValueError(str(error)) from error.__cause__
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError(
            f"{str(folder / SAVED.name)!r} does not tell of an online valuator: {error}"
        ) from error


def _tell_setting(value: Any) -> Any:
    """Give a setting as JSON holds it: whatever holds names, such as a set or an index, as a list."""
    if isinstance(value, Mapping):
        return {str(key): _tell_setting(own) for key, own in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [encode(simplify(own)) for own in value]
    return encode(simplify(value))


def _settings_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Read the settings, refusing those that the constructor's types do not allow."""
    settings = {name: decode(told[name]) for name in SETTINGS}
    check_count("window", settings["window"], FEWEST_ROWS, MOST_ROWS)
    check_count("n_bags", settings["n_bags"], 1, MOST_ROWS)
    check_share("refresh", settings["refresh"])
    if type(settings["z_sees_target"]) is not bool:
        raise ValueError(f"`z_sees_target` must be true or false, got {settings['z_sees_target']!r}.")
    excluded, kinds = settings["z_exclude"], settings["kinds"]
    each = excluded.values() if isinstance(excluded, dict) else [excluded or []]
    names = [name for own in each for name in (own if isinstance(own, list) else [own])]
    if not all(isinstance(name, str | int) for name in names):
        raise ValueError(f"`z_exclude` must name columns, got {excluded!r}.")
    if kinds is not None and not (isinstance(kinds, dict) and set(kinds.values()) <= set(get_args(Kind))):
        raise ValueError(f"`kinds` must be {' or '.join(get_args(Kind))} by variable, got {kinds!r}.")
    return settings


def _shown(estimators: Any) -> list[str] | None:
    """Give estimators as they print, without addresses in memory; None for the default models."""
    if estimators is None:
        return None
    each = estimators if isinstance(estimators, list | tuple) else [estimators]
    return [_ADDRESS.sub("", " ".join(repr(estimator).split())) for estimator in each]


def _other_estimators(folder: str, saved: Any) -> str:
    if not saved:
        return f"{folder!r} was saved with the default models: leave `estimators` out."
    return (
        f"{folder!r} was saved with the estimators {', '.join(map(str, saved))}, which are not in it: pass "
        "the same ones as `estimators`."
    )


def _state_of(folder: Path, told: Mapping[str, Any]) -> State:
    """Make the state that a manifest tells of."""
    counts = {name: told["counts"][name] for name in _COUNTS}
    if any(type(count) is not int or count < 0 for count in counts.values()):
        raise ValueError("its counts must be whole numbers from 0 on.")
    window = None if told["window"] is None else _window_of(folder, told)
    models = _models_of(folder, told["files"][MODELS]) if MODELS in told["files"] else None
    references = {
        name: record_from(Reference, own, "its references") for name, own in told["references"].items()
    }
    names = [] if models is None else models.variables
    if list(references) != names or (window is not None and names not in ([], _names(window))):
        raise ValueError("its models are not those of its rows.")
    return State(
        window=window,
        models=models,
        references=references,
        blank=_blank_of(told["blank"], window),
        pools={name: record_from(Pool, own, "a pool") for name, own in told["pools"].items()},
        checks=tuple(record_from(Check, own, "a check") for own in told["checks"]),
        **counts,
    )


def _blank_of(told: Any, window: Problem | None) -> tuple[int, ...]:
    end = 0 if window is None else window.table.n_columns
    if not isinstance(told, list) or not all(type(j) is int and 0 <= j < end for j in told):
        raise ValueError("its columns without entries are not told as they should be.")
    return tuple(told)


def _models_of(folder: Path, digest: Any) -> ValuationModels:
    SAVED.read_file(folder / MODELS / _MODELS_MANIFEST, digest)
    try:
        return load_models(folder / MODELS)
    except ValueError as error:
        raise DamagedError(str(error)) from error


def _tell_all(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: encode(own) for name, own in entries.items()}


def _names(window: Problem) -> list[str]:
    return [column.name for column in window.sources]


def _rows_as_file(window: Problem) -> bytes:
    """Give the rows as Parquet: features and variables by number, since names may repeat, and the weights."""
    import pyarrow as pa
    import pyarrow.parquet

    arrays = {f"x{j}": column.data for j, column in enumerate(window.table.columns)}
    arrays |= {f"v{j}": column.data for j, column in enumerate(window.sources)}
    if window.sample_weight is not None:
        arrays[WEIGHT] = pa.chunked_array([window.sample_weight])
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(arrays), buffer, compression="zstd")
    return buffer.getvalue()


def _tell_window(window: Problem) -> dict[str, Any]:
    return {
        "features": [_tell_column(column) for column in window.table.columns],
        "named": window.table.is_named,
        "variables": [_tell_column(column) for column in window.sources],
        "names_given": window.names_given,
        "positions": list(window.positions),
        "weighted": window.sample_weight is not None,
    }


def _tell_column(column: Column) -> dict[str, Any]:
    labels = None if column.labels is None else [label_to(label) for label in column.labels]
    return {
        "name": column.name,
        "levels": None if column.levels is None else list(column.levels),
        "labels": labels,
    }


def _window_of(folder: Path, told: Mapping[str, Any]) -> Problem:
    about, path = told["window"], folder / ROWS
    rows = _rows_of(path, SAVED.read_file(path, told["files"].get(ROWS)))
    features, variables = about["features"], about["variables"]
    expected = [f"x{j}" for j in range(len(features))] + [f"v{j}" for j in range(len(variables))]
    if rows.column_names != expected + ([WEIGHT] if about["weighted"] else []) or not rows.num_rows:
        raise DamagedError(f"{str(path)!r} does not hold the rows that {SAVED.name} tells of.")
    columns = [_column_of(own, rows.column(f"x{j}"), path) for j, own in enumerate(features)]
    sources = [_column_of(own, rows.column(f"v{j}"), path) for j, own in enumerate(variables)]
    positions = tuple(about["positions"])
    if sources[0].name != TARGET or len(positions) != len(sources) - 1:
        raise ValueError("its variables are not told as they should be.")
    target, *protected = map(variable_from, sources)
    return Problem(
        table=Table.of_columns(columns, named=bool(about["named"])),
        target=target,
        protected=tuple(protected),
        positions=positions,
        names_given=bool(about["names_given"]),
        sources=tuple(sources),
        sample_weight=rows.column(WEIGHT).to_numpy() if about["weighted"] else None,
    )


def _rows_of(path: Path, content: bytes) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(f"{str(path)!r} holds no rows that can be read.") from error


def _column_of(about: Mapping[str, Any], data: pa.ChunkedArray, path: Path) -> Column:
    """Make a column, refusing codes that stand for no level."""
    levels, labels = _texts(about["levels"]), about["labels"]
    column = Column(
        about["name"], data, levels, None if labels is None else tuple(label_from(own) for own in labels)
    )
    if levels is not None:
        codes = column.codes()
        if len(codes) and not -1 <= codes.min() <= codes.max() < len(levels):
            raise DamagedError(f"{str(path)!r} holds codes of {column.name!r} that stand for no level.")
    return column


def _texts(given: Sequence[Any] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    if not all(isinstance(own, str) for own in given):
        raise ValueError("its levels must be text.")
    return tuple(given)
