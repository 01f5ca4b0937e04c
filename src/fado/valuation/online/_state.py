"""The state of an online valuator, how a batch changes it, and its directory.

Drift is detected by the models' uncertainty about a batch, compared with that out of bag. Uncertainty is 1
minus the agreement: the probability that models give to labels other than the row's own, or the error of a
predicted number over the largest. It is linear in the predictions. So, while rows do not change, its mean
over new rows, which all models score, equals that over rows out of bag, which a few score; and the mean of
enough of them is normal about it.
"""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from fado._checks import MOST_ROWS, check_count, check_share
from fado._messages import warn_user
from fado._records import encode, label_from, label_to, record_from, simplify
from fado._storage import DamagedError, Manifest, digest_of, replacing_directory, write_file
from fado._typing import Floats
from fado._version import __version__, library_versions
from fado.tabular import TARGET, UNSEEN, Column, Kind, Problem, Table, label_codes, variable_from
from fado.valuation._base import texts_of
from fado.valuation.entropy import OutOfBagEntropy, ValuationModels, load_models

Names = str | int | list[str | int]

FALSE_ALARMS = 0.001  # the share of checks that detect drift though nothing changed, over all variables
FEWEST_ROWS = 5  # of which a fifth can be out of bag
_FEWEST_CHECKED = 100  # rows whose mean is tested
_TOGETHER = 2.0  # to be safe: a mean out of bag varies more than one of as many independent rows
_PER_SKEWNESS = 25  # rows, times the squared skewness: Cochran's rule for a mean that is near enough normal
_MOST_CHECKS = 10_000  # that are remembered

SAVED = Manifest(name="online.json", kind="fado online valuator", layout=1, what="online valuator")
_ROWS, _MODELS, _WEIGHT, _MODELS_MANIFEST = "rows.parquet", "models", "weight", "models.json"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # of an object: another process has others


@dataclass(frozen=True)
class Reference:
    """Summary of the uncertainty about rows out of bag."""

    n_rows: int
    mean: float
    deviation: float
    skewness: float

    @classmethod
    def of(cls, doubts: Floats) -> Reference:
        """Summarise uncertainties; unknown ones are left out."""
        known = doubts[~np.isnan(doubts)]
        if not len(known):
            return cls(0, math.nan, math.nan, math.nan)
        mean, deviation = float(known.mean()), float(known.std())
        skewness = float(np.mean((known - mean) ** 3)) / deviation**3 if deviation > 0 else 0.0
        return cls(len(known), mean, deviation, skewness)

    @property
    def rows_needed(self) -> int:
        """How many new rows a check needs: more if large uncertainties are rare."""
        return max(_FEWEST_CHECKED, math.ceil(_PER_SKEWNESS * self.skewness**2))


@dataclass(frozen=True)
class Pool:
    """The uncertainty about new rows, added up over batches until there are enough, and what was expected."""

    n_rows: int = 0
    doubt: float = 0.0
    expected: float = 0.0

    def add(self, doubts: Floats, reference: Reference) -> Pool:
        """Add a batch."""
        known = doubts[~np.isnan(doubts)]
        expected = self.expected + len(known) * reference.mean
        return Pool(self.n_rows + len(known), self.doubt + float(known.sum()), expected)


@dataclass(frozen=True)
class DriftCheck:
    """One check of a variable: the mean uncertainty about some rows, what was expected, and the difference.

    Parameters
    ----------
    batch : int
        The last batch of these rows; the first is 1.
    variable : str
        The variable.
    rows : int
        How many rows.
    loss, expected : float
        The mean uncertainty, and that out of bag.
    statistic : float
        Their difference in standard errors.
    drift : bool
        Whether that is more than chance explains.
    """

    batch: int
    variable: str
    rows: int
    loss: float
    expected: float
    statistic: float
    drift: bool


def check_drift(
    doubts: Mapping[str, Floats],
    references: Mapping[str, Reference],
    pools: Mapping[str, Pool],
    batch: int,
) -> tuple[dict[str, Pool], list[DriftCheck]]:
    """Add a batch's uncertainties, and check those variables that have enough.

    Returns what waits for more rows, and the checks.

    Examples
    --------
    >>> coin = Reference(10_000, mean=0.5, deviation=0.1, skewness=0.0)
    >>> batch = {"y": np.full(400, 0.53)}
    >>> left, (check,) = check_drift(batch, {"y": coin}, {}, batch=7)
    >>> check.rows, round(check.statistic, 1), check.drift
    (400, 5.8, True)
    """
    left, checks = dict(pools), []
    for name, own in doubts.items():
        reference = references[name]
        pool = left.pop(name, Pool()).add(own, reference)
        if not reference.n_rows or pool.n_rows < reference.rows_needed:
            left[name] = pool
            continue
        loss, expected = pool.doubt / pool.n_rows, pool.expected / pool.n_rows
        statistic = _statistic(loss - expected, pool.n_rows, reference)
        alarm = statistic > _critical(FALSE_ALARMS / len(references), pool.n_rows, reference)
        checks.append(DriftCheck(batch, name, pool.n_rows, loss, expected, statistic, alarm))
    return left, checks


def _statistic(difference: float, n_rows: int, reference: Reference) -> float:
    error = reference.deviation * math.sqrt(1 / n_rows + _TOGETHER / reference.n_rows)
    if error > 0:
        return difference / error
    return math.inf if difference > 0 else 0.0


def _critical(rate: float, n_rows: int, reference: Reference) -> float:
    """Return the quantile of a mean of this many uncertainties, corrected for their skewness."""
    normal = NormalDist().inv_cdf(1 - rate)
    return normal + (normal**2 - 1) / 6 * reference.skewness / math.sqrt(n_rows)


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
        """Return new rows in the form that the models take, whatever columns hold that were blank."""
        return table if self.window is None else _without_text(table, self.blank, self.window.table)


def after_batch(
    state: State, batch: Problem, window: Problem, labels: tuple[Any, Any], n_jobs: int | None
) -> tuple[State, bool]:
    """Return the state with a batch in its window, checked for drift, and whether models must be retrained.

    `labels` are the batch's target and protected attributes, as they were given. Models must be retrained if
    the old ones, which stay, miss something: a label that they do not know, or drift.
    """
    counted = replace(
        state,
        window=window,
        waiting=state.waiting + batch.n_rows,
        batches=state.batches + 1,
        rows=state.rows + batch.n_rows,
    )
    if state.models is None:
        return counted, True
    if has_new_label(batch.sources[0], state.models.classes(TARGET)):  # which models cannot be asked about
        return counted, True
    told = state.models.value(state.as_learnt(batch.table), *labels, unknown=batch.unknown, n_jobs=n_jobs)
    doubts = {name: 1.0 - told.field("agreement", name) for name in state.models.variables}
    pools, checks = check_drift(doubts, state.references, state.pools, counted.batches)
    checked = replace(counted, pools=pools, checks=(*state.checks, *checks)[-_MOST_CHECKS:])
    strange = any(has_new_label(column, state.models.classes(column.name)) for column in window.sources)
    return checked, strange or any(check.drift for check in checks)


def rebuilt(state: State, window: Problem, valuator: OutOfBagEntropy) -> State:
    """Return the state with models of the rows in its window, from a valuator that keeps its models."""
    fitted: OutOfBagEntropy = valuator.fit_problem(window)
    agreement = {name: fitted.valuation_.field("agreement", name) for name in fitted.models_.variables}
    changed = _changed_kinds(state.models, fitted.models_)
    return replace(
        state,
        models=fitted.models_,
        references={name: Reference.of(1.0 - own) for name, own in agreement.items()},
        blank=_blank_columns(window.table),
        version=state.version + 1,
        waiting=0,
        pools={name: pool for name, pool in state.pools.items() if name not in changed},
    )


def warn_of_changes(before: State, after: State) -> None:
    """Warn of drift, as long as it lasts, and of variables whose kind has changed."""
    for check in after.checks:
        if check.drift and check.batch > before.batches:
            warn_user(
                f"Drift in batch {check.batch}: the uncertainty about labels of {check.variable!r} is "
                f"{check.loss:.3f} on average, and was {check.expected:.3f} before "
                f"({check.statistic:.1f} standard errors). Models are retrained with the new rows; if older "
                "rows no longer apply, drop them with `forget`."
            )
    for name, (old, new) in _changed_kinds(before.models, after.models).items():
        warn_user(
            f"Variable {name!r} was valued as {old} and is now valued as {new}, by the number of its labels: "
            f'set `kinds={{{name!r}: "classes"}}` or "continuous", whichever it is.'
        )


def _changed_kinds(
    before: ValuationModels | None, after: ValuationModels | None
) -> dict[str, tuple[str, str]]:
    """Return the variables whose kind differs between models, with both kinds."""
    if before is None or after is None:
        return {}
    pairs = [(old.variable, new.variable) for old, new in zip(before.kept, after.kept, strict=True)]
    return {old.name: (old.kind, new.kind) for old, new in pairs if old.kind != new.kind}


def _blank_columns(table: Table) -> tuple[int, ...]:
    """Return the positions of the columns without any entry, which are read as numbers."""
    return tuple(
        j
        for j, column in enumerate(table.columns)
        if column.levels is None and np.isnan(column.numbers()).all()
    )


def _without_text(table: Table, blank: Collection[int], window: Table) -> Table:
    """Empty the columns of text that were blank when models learnt: these do not know their content."""
    named = table.is_named and window.is_named
    places = {place for j in blank for place in (table.positions(window.names[j]) if named else [j])}
    texts = {j for j in places if j < table.n_columns and table.column(j).levels is not None}
    if not texts:
        return table
    nothing = pa.chunked_array([pa.nulls(table.n_rows, pa.float64())])
    columns = [Column(own.name, nothing) if j in texts else own for j, own in enumerate(table.columns)]
    return Table.of_columns(columns, named=table.is_named)


def has_new_label(column: Column, classes: tuple[Any, ...]) -> bool:
    """Return whether a column has a label that is not among these classes; numbers have no classes."""
    return bool(classes) and bool((label_codes(column, classes) == UNSEEN).any())


@dataclass(frozen=True)
class _Settings:
    """The settings of an online valuator that are saved."""

    window: int
    refresh: float
    n_bags: int
    z_sees_target: bool
    z_exclude: Names | Mapping[str, Names] | None
    kinds: Mapping[str, str] | None


@dataclass(frozen=True)
class _ColumnNote:
    """The name of a column, and the meaning of its codes."""

    name: str
    levels: tuple[str, ...] | None = None
    labels: tuple[Mapping[str, str | bool | int], ...] | None = None

    @classmethod
    def of(cls, column: Column) -> _ColumnNote:
        """Note a column."""
        labels = None if column.labels is None else tuple(label_to(label) for label in column.labels)
        return cls(column.name, column.levels, labels)

    def column(self, data: pa.ChunkedArray, path: Path) -> Column:
        """Make the column, refusing codes without a level."""
        labels = None if self.labels is None else tuple(label_from(own) for own in self.labels)
        column = Column(self.name, data, self.levels, labels)
        if self.levels is not None:
            codes = column.codes()
            if len(codes) and not -1 <= codes.min() <= codes.max() < len(self.levels):
                raise DamagedError(f"{str(path)!r} holds codes of {self.name!r} that have no level.")
        return column


@dataclass(frozen=True)
class _WindowNote:
    """The columns of the window; its rows are in a separate file."""

    features: tuple[_ColumnNote, ...]
    variables: tuple[_ColumnNote, ...]
    positions: tuple[int | None, ...]
    named: bool
    names_given: bool
    weighted: bool
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Told:
    """The manifest of a directory."""

    settings: _Settings
    state: State  # without its window and models
    files: Mapping[str, str]
    estimators: tuple[str, ...] | None = None
    seed: int | None = None
    window: _WindowNote | None = None


def write(online: Any, state: State, directory: str | os.PathLike[str]) -> None:
    """Write an online valuator into a directory, whole or not at all."""
    final = SAVED.check_directory(Path(directory), lambda name: name in (_ROWS, _MODELS))
    files = {} if state.window is None else {_ROWS: _rows_as_file(state.window)}
    settings = {own.name: _plain(getattr(online, own.name)) for own in fields(_Settings)}
    with replacing_directory(final, "The online valuator") as temporary:
        for name, content in files.items():
            write_file(temporary / name, content, "The online valuator")
        if state.models is not None:
            state.models.save(temporary / _MODELS)
            files[_MODELS] = (temporary / _MODELS / _MODELS_MANIFEST).read_bytes()
        told = _Told(
            settings=_Settings(**settings),
            state=replace(state, window=None, models=None),
            files={name: digest_of(content) for name, content in files.items()},
            estimators=_shown(online.estimators),
            seed=getattr(online, "seed_", None),
            window=None if state.window is None else _note(state.window),
        )
        SAVED.write(temporary, {"fado": __version__, "versions": library_versions(), **encode(told)})


def _plain(value: Any) -> Any:
    """Return a setting for JSON: whatever holds names, such as a set or an index, as a list."""
    if isinstance(value, Mapping):
        return {str(key): _plain(own) for key, own in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [simplify(own) for own in value]
    return simplify(value)


def _note(window: Problem) -> _WindowNote:
    return _WindowNote(
        features=tuple(map(_ColumnNote.of, window.table.columns)),
        variables=tuple(map(_ColumnNote.of, window.sources)),
        positions=tuple(window.positions),
        named=window.table.is_named,
        names_given=window.names_given,
        weighted=window.sample_weight is not None,
        unknown=tuple(map(str, window.unknown)),
    )


def _shown(estimators: Any) -> tuple[str, ...] | None:
    """Return the `repr` of estimators, without addresses in memory; None for the default models."""
    if estimators is None:
        return None
    each = estimators if isinstance(estimators, list | tuple) else [estimators]
    return tuple(_ADDRESS.sub("", text) for text in texts_of(each))


def read(directory: str | os.PathLike[str], estimators: Any) -> tuple[dict[str, Any], State, int | None]:
    """Read what `write` wrote: the settings, the state, and the seed, if one was drawn."""
    folder = Path(directory)
    content = {name: own for name, own in SAVED.open(folder).items() if name in _Told.__dataclass_fields__}
    try:
        told = record_from(_Told, content, "an online valuator")
        settings = told.settings
        check_count("window", settings.window, FEWEST_ROWS, MOST_ROWS)
        check_count("n_bags", settings.n_bags, 1, MOST_ROWS)
        check_share("refresh", settings.refresh)
        if not set((settings.kinds or {}).values()) <= set(get_args(Kind)):
            raise ValueError(f"`kinds` must be {' or '.join(get_args(Kind))}, got {settings.kinds!r}.")
        if told.seed is not None:
            check_count("seed", told.seed, 0, 2**32 - 1)
        if told.estimators == _shown(estimators):
            return dict(vars(settings)), _state_of(folder, told), told.seed
    except DamagedError as error:
        raise ValueError(str(error)) from error.__cause__
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{str(folder / SAVED.name)!r} cannot be read as an online valuator: {error}"
        ) from error
    if told.estimators is None:
        raise ValueError(f"{str(folder)!r} was saved with the default models: leave `estimators` out.")
    raise ValueError(
        f"{str(folder)!r} was saved with the estimators {', '.join(told.estimators)}, which are not in it: "
        "pass the same ones as `estimators`."
    )


def _state_of(folder: Path, told: _Told) -> State:
    """Make the state that a manifest describes."""
    state = told.state
    if min(state.version, state.waiting, state.batches, state.rows) < 0:
        raise ValueError("its counts must be whole numbers from 0 on.")
    window = None if told.window is None else _window_of(folder / _ROWS, told.window, told.files.get(_ROWS))
    models = None
    if _MODELS in told.files:
        SAVED.read_file(folder / _MODELS / _MODELS_MANIFEST, told.files[_MODELS])
        try:
            models = load_models(folder / _MODELS)
        except ValueError as error:
            raise DamagedError(str(error)) from error
    names = [] if models is None else models.variables
    variables = [] if window is None else [column.name for column in window.sources]
    if list(state.references) != names or (window is not None and names not in ([], variables)):
        raise ValueError("its models are not those of its rows.")
    if not all(0 <= j < (0 if window is None else window.table.n_columns) for j in state.blank):
        raise ValueError("its list of columns without entries is broken.")
    return replace(state, window=window, models=models)


def _rows_as_file(window: Problem) -> bytes:
    """Return the rows as Parquet: features and variables by number, since names may repeat, and weights."""
    arrays = {f"x{j}": column.data for j, column in enumerate(window.table.columns)}
    arrays |= {f"v{j}": column.data for j, column in enumerate(window.sources)}
    if window.sample_weight is not None:
        arrays[_WEIGHT] = pa.chunked_array([window.sample_weight])
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(arrays), buffer, compression="zstd")
    return buffer.getvalue()


def _window_of(path: Path, told: _WindowNote, digest: str | None) -> Problem:
    try:
        rows = pyarrow.parquet.read_table(io.BytesIO(SAVED.read_file(path, digest)))
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(f"{str(path)!r} does not hold rows that can be read.") from error
    n_features, notes = len(told.features), told.features + told.variables
    expected = [f"x{j}" for j in range(n_features)] + [f"v{j}" for j in range(len(told.variables))]
    if rows.column_names != expected + [_WEIGHT] * told.weighted or not rows.num_rows:
        raise DamagedError(f"{str(path)!r} does not hold the rows that {SAVED.name} describes.")
    columns = [own.column(rows.column(name), path) for own, name in zip(notes, expected, strict=True)]
    sources = tuple(columns[n_features:])
    if not sources or sources[0].name != TARGET or len(told.positions) != len(sources) - 1:
        raise ValueError("its description of variables is broken.")
    target, *protected = map(variable_from, sources)
    return Problem(
        table=Table.of_columns(columns[:n_features], named=told.named),
        target=target,
        protected=tuple(protected),
        positions=told.positions,
        names_given=told.names_given,
        sources=sources,
        sample_weight=rows.column(_WEIGHT).to_numpy() if told.weighted else None,
        unknown=told.unknown,
    )
