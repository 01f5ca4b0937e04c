"""The store of an experiment: a directory with one SQLite file of trials, and a file of values per algorithm.

Somebody else may have written it. Everything is checked when it is read, and nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pyarrow as pa

from fado._messages import warn_user
from fado._storage import Lock, claims_of, remove_unfinished, writing
from fado._typing import Floats
from fado.experiment._database import (
    TRIALS,
    BrokenFileError,
    Database,
    ForeignStoreError,
    MemoryDatabase,
    open_database,
    read_json,
)
from fado.experiment._settings import CROSSED, PLUGIN_FIELDS, Config, decides_data
from fado.experiment._trial import DONE, FAILED, IMPOSSIBLE, PENDING, Trial, key_of
from fado.interventions import intervention_entries
from fado.metrics import RATIO_NAMES
from fado.valuation import Valuation

FORMAT = 1
DATABASE, LOCK, VALUES, SHELF = "experiment.sqlite", "lock", "values", "shelf"
_MOST = 2**53  # rows, or anything else that is counted
_MOST_SCORES = 2**27  # of one fit
_COLUMNS = [own.split()[0] for own in TRIALS.split(", ")]
_KEY = re.compile("[0-9a-f]{32}")  # also the name of a file
_CHECKSUM = re.compile("[0-9a-f]{64}")
_RESERVED = re.compile("intervention|model|training_rows|status|error|(?:validation|test)_.*", re.DOTALL)
_SHARE = re.compile(
    rf"(?:validation|test)_(?:fpr|tpr|selection_rate|{'|'.join(RATIO_NAMES)})(?:\[.*\])?", re.DOTALL
)


class Store:
    """The trials and values of an experiment so far.

    One thread of the process that holds the store's lock writes; any number of processes may read meanwhile.
    A method that writes returns when everything is on the disk. Every row of the file has a digest, the seal.
    A row with a wrong seal counts as absent, and its trial is run again.

    Parameters
    ----------
    path : pathlib.Path or None
        The directory; None if the store is in memory.
    database : Database or MemoryDatabase
        Its open file, or the rows in memory.

    Attributes
    ----------
    about : dict
        The description of the experiment: configuration, data, versions.
    """

    def __init__(self, path: Path | None, database: Database | MemoryDatabase) -> None:
        self.path = path
        self._database = database
        self.about = database.about()
        _check_about(self.about)
        self._trials = {row[0]: _trial_from(row) for row in database.rows("trials")}
        self._values = {name: tuple(row) for name, *row in database.rows("valuations")}
        for name, row in self._values.items():
            _check_valuation(name, *row)
        self._settings = self.about["settings"]
        self._identity = key_of([self.about[name] for name in ("format", "fingerprint", "versions")])

    @classmethod
    @contextmanager
    def writing(cls, path: str | os.PathLike[str], about: dict[str, Any]) -> Iterator[Store]:
        """Open a store for writing, or make a new one.

        Parameters
        ----------
        path : path-like
            The directory.
        about : dict
            The expected description of the experiment.

        Raises
        ------
        InUseError
            If another process is writing it.
        ValueError
            If it belongs to another experiment, holds links, or has content that no run writes.
        OSError
            If it cannot be written.
        """
        path = Path(path)
        with ExitStack() as held:
            with _explained(path), _told(path):
                path.mkdir(parents=True, exist_ok=True)
                _check_directory(path)
                held.enter_context(Lock(path / LOCK, f"The store {str(path)!r}"))
                (path / VALUES).mkdir(exist_ok=True)
                remove_unfinished(path / VALUES)
                rmtree(path / SHELF, ignore_errors=True)
                database = open_database(path / DATABASE, about)
                held.callback(database.close)
                store = cls(path, database)
                _refuse_other(store.about, about)
                store._drop_damaged()
            yield store

    @classmethod
    def in_memory(cls, about: dict[str, Any]) -> Store:
        """Make a store in memory, which saves no values."""
        return cls(None, MemoryDatabase(about))

    @classmethod
    @contextmanager
    def reading(cls, path: str | os.PathLike[str]) -> Iterator[Store]:
        """Open a store for reading, also while it is being written."""
        path = Path(path)
        if not (path / DATABASE).is_file():
            raise FileNotFoundError(f"There is no store in {str(path)!r}.")
        _check_links(path)
        with ExitStack() as held:
            with _told(path):
                try:
                    database = Database(path / DATABASE, reading=True)
                    held.callback(database.close)
                    store = cls(path, database)
                except BrokenFileError as error:
                    raise ValueError(
                        f"The store {str(path)!r} is damaged ({error}): run the experiment again, which "
                        "repairs it."
                    ) from error
                if database.n_broken:
                    warn_user(f"{database.n_broken} trial(s) of the store are damaged: run it again.")
                _check_configuration(store.about["configuration"])
                _check_shown(path, store.trials)
            yield store

    @property
    def trials(self) -> list[Trial]:
        """All trials with their outcomes, in the order in which they were proposed."""
        return [trial for number, trial in sorted(self._trials.items()) if number >= 0]

    @property
    def outcomes(self) -> list[Trial]:
        """All trials that were run, including those that only other trials need."""
        return [trial for trial in self._trials.values() if trial.status != PENDING]

    @property
    def named(self) -> list[Any]:
        """What the names of fits are made of, in addition to the training set and the parameters."""
        return [self._identity, self._of("seed", "evaluation", "models.estimator", "models.pipeline")]

    @property
    def keeps_scores(self) -> bool:
        """Whether the scores of fits are saved."""
        return bool(self._settings.get("evaluation.keep_scores", False))

    def add(self, trials: Sequence[Trial]) -> list[Trial]:
        """Save new trials under the next free numbers."""
        free = (number for number in range(len(self._trials) + len(trials)) if number not in self._trials)
        new = [replace(trial, number=number) for trial, number in zip(trials, free, strict=False)]
        self.write(new)
        return new

    def add_beside(self, trial: Trial) -> Trial:
        """Add a trial that only other trials need, with a negative number."""
        number = min([0, *self._trials]) - 1
        self._trials[number] = replace(trial, number=number)
        return self._trials[number]

    def write(
        self, trials: Sequence[Trial], scores: Mapping[str, Floats] | None = None, cut: int = 0
    ) -> None:
        """Save the outcomes of trials and the scores of fits, the first `cut` of validation rows."""
        rows = {"trials": [_row_of(trial) for trial in trials], "scores": []}
        for fit, own in (scores or {}).items():
            rows["scores"].append((fit, cut, len(own), _compressed(own)))
        with _explained(self.path):
            self._database.write(rows)
        self._trials |= {trial.number: replace(trial, scores=None) for trial in trials}

    def forget_failed(self) -> None:
        """Reset all failed trials, so that they are run again."""
        failed = [trial for trial in self._trials.values() if trial.status in (FAILED, IMPOSSIBLE)]
        self.write([_anew(own) for own in failed])
        self._forget_values([name for name, (checksum, *_) in self._values.items() if not checksum])

    def values(self, algorithm: str) -> Valuation | str | None:
        """Read the values of an algorithm; the reason as text if they failed; None if there are none.

        Raises
        ------
        ValueError
            If their file is damaged.
        """
        name = self._values_name(algorithm)
        if name not in self._values:
            return None
        checksum, error, _ = self._values[name]
        if not checksum:
            return str(error)
        path = self._values_file(name)
        if _checksum(path) != checksum:
            raise ValueError(
                f"{str(path)!r} is missing, damaged, or holds other values: run the experiment again."
            )
        return Valuation.load(path)

    def save_values(self, algorithm: str, made: Valuation | str, seconds: float = 0.0) -> None:
        """Save values, first the file, then the row; or the reason why there are none."""
        if self.path is None:
            return  # the run itself keeps them
        name = self._values_name(algorithm)
        row = ("", made, seconds)
        with _explained(self.path):
            if isinstance(made, Valuation):
                made.save(self._values_file(name))
                row = (str(_checksum(self._values_file(name))), "", seconds)
            self._database.write({"valuations": [(name, *row)]})
        self._values[name] = row

    def scores(self, fit: str) -> dict[str, Floats]:
        """Read the scores of a fit by part; the validation part may be empty.

        Raises
        ------
        ValueError
            If they are not saved, or damaged.
        """
        if not self.keeps_scores:
            raise ValueError(
                f"The store {str(self.path)!r} keeps no scores of this fit: run the experiment with "
                "`evaluation.keep_scores = true`."
            )
        rows = list(self._database.rows("scores", fit))
        found = _scores_from(*rows[0][1:]) if rows else None
        if found is None:
            raise ValueError(
                f"The scores of a fit in the store {str(self.path)!r} are damaged: run the experiment again."
            )
        cut = rows[0][1]
        return {"validation": found[:cut], "test": found[cut:]}

    def all_scores(self, fit: str) -> Floats:
        """Read the scores of a fit, of the validation rows, then of the test rows."""
        return np.concatenate(list(self.scores(fit).values()))

    def _values_name(self, algorithm: str) -> str:
        return key_of([self._identity, self._of("seed", "data.exclude", "valuation"), algorithm])

    def _of(self, *places: str) -> dict[str, Any]:
        return {name: value for name, value in self._settings.items() if name.startswith(places)}

    def _values_file(self, name: str) -> Path:
        return Path(str(self.path)) / VALUES / f"{name}.parquet"

    def _forget_values(self, names: Sequence[str]) -> None:
        with _explained(self.path):
            self._database.forget("valuations", names)
        for name in names:
            del self._values[name]

    def _drop_damaged(self) -> None:
        """Reset trials and values that are missing or damaged, so that they are computed again."""
        n_broken, lost = self._database.n_broken, []
        files = {name: checksum for name, (checksum, *_) in self._values.items() if checksum}
        gone = [name for name, own in files.items() if _checksum(self._values_file(name)) != own]
        self._forget_values(gone)
        if self.keeps_scores:
            whole = {row[0] for row in self._database.rows("scores") if _scores_from(*row[1:]) is not None}
            lost = [own for own in self._trials.values() if own.status == DONE and own.fit not in whole]
            self._database.forget("trials", [own.number for own in lost if own.number < 0])
            for own in lost:
                del self._trials[own.number]
            self.write([_anew(own) for own in lost if own.number >= 0])
        n = n_broken + len(gone) + len({own.fit for own in lost})
        if n:
            warn_user(f"{n} result(s) of the store are missing or damaged; they are computed again.")


def _anew(trial: Trial) -> Trial:
    """Return a trial without its outcome."""
    return Trial(trial.intervention, trial.settings, trial.model, trial.parameters, number=trial.number)


def _compressed(scores: Floats) -> bytes:
    """Compress scores without loss; bytes of the same place are stored together, which compresses better."""
    places = np.ascontiguousarray(scores, dtype="<f8").view(np.uint8).reshape(-1, 8).T
    return bytes(pa.compress(places.tobytes(), "zstd", asbytes=True))


def _scores_from(validation: Any, rows: Any, packed: Any) -> Floats | None:
    """Return scores; None if they are damaged."""
    if not (_is_count(rows, _MOST_SCORES) and _is_count(validation, rows) and isinstance(packed, bytes)):
        return None
    try:
        places = pa.decompress(packed, 8 * rows, "zstd", asbytes=True)
    except (pa.ArrowException, OSError, ValueError):
        return None
    found = np.frombuffer(places, np.uint8).reshape(8, rows).T.copy().view("<f8").reshape(rows)
    return found.astype(np.float64, copy=False) if np.isfinite(found).all() else None


def _row_of(trial: Trial) -> tuple[Any, ...]:
    values = [getattr(trial, name) for name in _COLUMNS]
    return tuple(json.dumps(dict(own)) if isinstance(own, Mapping) else own for own in values)


def _trial_from(row: Sequence[Any]) -> Trial:
    """Return a trial; content that no run writes raises an error, even with a correct seal."""
    told = dict(zip(_COLUMNS, row, strict=True))
    for name in ("settings", "parameters"):
        told[name] = read_json(told[name], "a trial")
    if told["metrics"] is not None:
        told["metrics"] = read_json(told["metrics"], "the metrics of a trial", constants=True)
    trial = Trial(**told)
    right = (
        isinstance(trial.number, int)
        and abs(trial.number) < _MOST
        and isinstance(trial.intervention, str)
        and _is_count(trial.model, 2**31)
        and _is_plain(trial.settings)
        and _is_plain(trial.parameters)
        and not trial.settings.keys() & trial.parameters.keys()
        and trial.status in (PENDING, DONE, FAILED, IMPOSSIBLE)
        and (trial.training_rows is None or _is_count(trial.training_rows))
        and (trial.metrics is not None) == (trial.status == DONE)
        and (trial.metrics is None or check_metrics(trial.metrics))
        and isinstance(trial.error, str | None)
        and isinstance(trial.fit, str)
        and (_KEY.fullmatch(trial.fit) or (not trial.fit and trial.status != DONE))
        and _is_number(trial.seconds)
    )
    if not right:
        raise ForeignStoreError("a trial is not what a run writes")
    return trial


def check_metrics(metrics: Any) -> bool:
    """Return whether metrics are possible: rates and ratios are in [0, 1], or undefined."""
    return isinstance(metrics, dict) and all(
        isinstance(name, str)
        and name.startswith(("validation_", "test_"))
        and isinstance(value, float)
        and (math.isnan(value) or _may_be(name, value))
        for name, value in metrics.items()
    )


def _may_be(name: str, value: float) -> bool:
    """Return whether a metric may have a value; thresholds and ends of intervals may be infinite."""
    if _SHARE.fullmatch(name):
        return -1e-6 <= value <= 1 + 1e-6
    return "_threshold" in name or name.endswith(("_low", "_high")) or _is_number(value)


def _is_number(value: Any) -> bool:
    """Return whether this is a number of reasonable size."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300


def _is_count(value: Any, most: int = _MOST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_plain(table: Any) -> bool:
    """Return whether settings have names and values that a frame can show."""
    return isinstance(table, dict) and all(
        not _RESERVED.fullmatch(name) and (_is_number(value) or isinstance(value, str | bool | None))
        for name, value in table.items()
    )


def _check_valuation(name: Any, checksum: Any, error: Any, seconds: Any) -> None:
    right = isinstance(error, str) and isinstance(checksum, str) and _is_number(seconds)
    if not right or not _KEY.fullmatch(str(name)) or not (_CHECKSUM.fullmatch(checksum) or not checksum):
        raise ForeignStoreError("what it says of values is not what a run writes")


def _is_group(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("part"), str)
        and isinstance(value.get("group"), str)
        and isinstance(value.get("attribute"), str | None)
        and _is_count(value.get("rows"))
        and _is_count(value.get("positives"), value["rows"])
    )


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(own, str) for own in value.values())


def _is_plugin(value: Any) -> bool:
    return _is_texts(value) and value.keys() == set(PLUGIN_FIELDS)


_ABOUT: dict[str, Callable[[Any], bool]] = {
    "settings": lambda own: isinstance(own, dict),
    "configuration": lambda own: isinstance(own, dict),
    "versions": _is_texts,
    "fingerprint": lambda own: isinstance(own, str),
    "summary": lambda own: isinstance(own, list) and all(map(_is_group, own)),
    "positive": lambda own: isinstance(own, str | None),
    "plugins": lambda own: own is None or (isinstance(own, list) and all(map(_is_plugin, own))),
}


def _check_about(about: dict[str, Any]) -> None:
    """Check the description of the experiment."""
    if not _is_count(about.get("format")):
        raise ForeignStoreError("its `format` is not a number")
    if about["format"] != FORMAT:
        raise ForeignStoreError(f"it is of format {about['format']}, and this release knows format {FORMAT}")
    for name, right in _ABOUT.items():
        if not right(about.get(name)):
            raise ForeignStoreError(f"its `{name}` is not what a run writes")


def _check_configuration(table: dict[str, Any]) -> None:
    """Check the configuration of a store."""
    try:
        Config.from_plain(table)
    except (ValueError, TypeError) as error:
        raise ForeignStoreError(f"its configuration is wrong ({error})") from None


def _check_shown(path: Path, trials: Sequence[Trial]) -> None:
    """Check that settings have one type in all trials, and are not also parameters."""
    numeric = {"alpha": True, "algorithm": False, "utility": False}
    for entry in intervention_entries():
        numeric |= {setting.name: setting.kind != "choice" for setting in entry.settings}
        numeric |= {name: _is_number(value) for name, value in entry.fixed.items()}
    for trial in trials:
        for name, value in trial.settings.items():
            own = numeric.setdefault(name, _is_number(value))
            if value is not None and _is_number(value) != own:
                raise ValueError(
                    f"The store {str(path)!r} has trials with a {name!r} of {value!r}, which is "
                    f"{'not a' if own else 'a'} number."
                )
    both = sorted(numeric.keys() & {name for trial in trials for name in trial.parameters})
    if both:
        raise ValueError(
            f"The store {str(path)!r} has trials with a parameter {both[0]!r}, which is a setting."
        )


def differences(before: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    """Describe the entries in which two mappings of plain data differ.

    A missing entry equals None or False.

    Examples
    --------
    >>> differences({"models.count": 25, "seed": 0}, {"models.count": 5, "seed": 0, "data.weight": None})
    {'models.count': '`models.count` = 25, the configuration says 5'}
    """
    found = {}
    for name in dict.fromkeys([*before, *now]):
        old, new = (given.get(name) for given in (before, now))
        known = name in before and name in now
        if old != new and (known or (old or new) not in (None, False)):
            told = f"`{name}` = {old!r}" if name in before else f"no `{name}`"
            found[name] = (
                f"{told}, the configuration {f'says {new!r}' if name in now else 'does not name it'}"
            )
    return found


def _refuse_other(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise a ValueError if a store belongs to another experiment."""
    usual = {"evaluation.groups": CROSSED}  # left out where it is so
    settings = differences(usual | before["settings"], usual | now["settings"])
    found = list(settings.values())
    for name in dict.fromkeys([*before["versions"], *now["versions"]]):
        old, new = (about["versions"].get(name) for about in (before, now))
        if old != new:
            found.append(f"{name} {old}, here is {new}")
    if before["fingerprint"] != now["fingerprint"] and not any(map(decides_data, settings)):
        told = [f"{own['fingerprint'][:12]}, {_n_rows(own['summary']):,} rows" for own in (before, now)]
        found.append(f"other data (fingerprint {told[0]}, and now {told[1]})")
    if found:
        raise ValueError(
            f"The store was made with {'; with '.join(found)}: undo the change, or use another store."
        )


def _n_rows(summary: list[dict[str, Any]]) -> int:
    """Count the rows of all parts, once if there are several attributes."""
    first = summary[0].get("attribute") if summary else None
    return sum(entry["rows"] for entry in summary if entry.get("attribute") == first)


def _check_directory(path: Path) -> None:
    """Refuse a directory with other files; a store that was just begun has no database yet."""
    lock = path / LOCK
    _check_links(path)
    if (path / DATABASE).exists():
        return
    ours = {f"{DATABASE}-journal", LOCK, VALUES, *(claim.name for claim in claims_of(lock))}
    foreign = [entry for entry in path.iterdir() if entry.name not in ours]
    if foreign or (lock.is_file() and lock.stat().st_size):
        raise ValueError(f"{str(path)!r} is neither empty nor a store: name a new directory.")


def _check_links(path: Path) -> None:
    """Refuse links, pipes and devices: a store reads and writes its own files only."""
    names = [LOCK, *(f"{DATABASE}{end}" for end in ("", "-journal", "-wal", "-shm"))]
    kinds = dict.fromkeys([*(path / name for name in names), *claims_of(path / LOCK)], stat.S_ISREG)
    kinds |= dict.fromkeys([path / VALUES, path / SHELF], stat.S_ISDIR)
    if (path / VALUES).is_dir() and not (path / VALUES).is_symlink():
        for entry in os.scandir(path / VALUES):
            if not (entry.name.endswith(".part") and entry.is_dir(follow_symlinks=False)):  # being written
                kinds[Path(entry.path)] = stat.S_ISREG
    for path, right in kinds.items():
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:  # or done with meanwhile
            continue
        if stat.S_ISLNK(mode):
            raise ValueError(f"{str(path)!r} is a link: a store holds regular files only.")
        if not right(mode):
            raise ValueError(f"{str(path)!r} is not what a store holds there: name another directory.")


def _checksum(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn an error about foreign content into a sentence about the store."""
    try:
        yield
    except ForeignStoreError as error:
        raise ValueError(
            f"The store {str(path)!r} is not as runs of this release write it: {error}."
        ) from None


def _explained(path: Path | None) -> AbstractContextManager[None]:
    """Turn an error of the disk into a sentence about the store."""
    if path is None:
        return nullcontext()
    return writing(path, "The store", "; all earlier results are kept")
