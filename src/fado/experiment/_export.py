"""Trials for other tools: runs of MLflow, and studies of Optuna, which optuna-dashboard opens."""

from __future__ import annotations

import math
import os
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fado._version import __version__
from fado.experiment._section import Parameter
from fado.experiment._settings import Config, ratio_name
from fado.experiment._trial import DONE, PENDING, Trial, key_of
from fado.interventions import intervention_entries
from fado.metrics import RATIO_NAMES
from fado.utility import utility_names
from fado.valuation import valuator_names

if TYPE_CHECKING:
    import optuna
    import pandas as pd

    from fado.experiment._results import Results
    from fado.experiment._store import Store

Plain: TypeAlias = bool | int | float | str

TRIAL, STORE = "fado.trial", "fado.store"
_AT_ONCE = 100  # entries of a kind that a server takes in one request
_LONGEST = 500  # characters of a parameter, and of an error, that every server takes
_FORBIDDEN = re.compile(r"[^\w./: -]")  # in MLflow's names
_WORDS = {">=": " ge ", "<=": " le ", "!=": " ne ", "==": " eq ", ">": " gt ", "<": " lt ", "=": " eq "}


def log_runs(results: Results, experiment_name: str, tracking_uri: str | None) -> pd.Series[str]:
    """Do the work of `Results.to_mlflow`."""
    import pandas as pd

    client = _extra("mlflow", "MLflow").MlflowClient(tracking_uri=tracking_uri)
    identity, rows = _sent(results)
    found = client.get_experiment_by_name(experiment_name)
    experiment = client.create_experiment(experiment_name) if found is None else found.experiment_id
    known = _known_runs(client, experiment, identity)
    runs = {}
    for key, row in rows.items():
        run = known.get(key)
        if run is None:
            name = f"{row.intervention} {row.number}"
            tags = _tags(row) | {TRIAL: key, STORE: identity}
            run = client.create_run(experiment, tags=tags, run_name=name).info
        if run.status == "RUNNING":  # new, or cut short when it was sent before
            _fill(client, run.run_id, row)
        runs[row.number] = run.run_id
    return pd.Series(runs, name="run_id", dtype="str")


def _known_runs(client: Any, experiment: str, identity: str) -> dict[str, Any]:
    """Find the runs that were sent earlier, by trial."""
    known: dict[str, Any] = {}
    token = None
    while True:
        page = client.search_runs(
            [experiment], filter_string=f"tags.`{STORE}` = '{identity}'", page_token=token
        )
        known |= {run.data.tags[TRIAL]: run.info for run in page}
        token = page.token
        if not token:
            return known


def _tags(row: Trial) -> dict[str, str]:
    tags = {"fado.version": __version__, "fado.status": row.status}
    return tags if row.error is None else tags | {"fado.error": row.error[:_LONGEST]}


def _fill(client: Any, run: str, row: Trial) -> None:
    """Send a trial, and close its run."""
    from mlflow.entities import Metric, Param

    now = int(1000 * time.time())
    told = {"intervention": row.intervention, **row.settings, "model": row.model, **row.parameters}
    parameters = [Param(name, str(value)[:_LONGEST]) for name, value in _named(told).items()]
    metrics = [Metric(name, value, now, 0) for name, value in _named(dict(row.metrics or {})).items()]
    for start in range(0, max(len(parameters), len(metrics)), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        client.log_batch(run, metrics=metrics[part], params=parameters[part])
    with redirect_stdout(StringIO()):  # MLflow prints the address of each run
        client.set_terminated(run, "FINISHED" if row.status == DONE else "FAILED")


def _named(entries: dict[str, Any]) -> dict[str, Any]:
    """Rename entries to unique names that MLflow accepts.

    Examples
    --------
    >>> list(_named({"tpr": 1, "fpr_ratio[age>=50]": 1, "fpr_ratio[age<50]": 1, "a(b": 1, "a)b": 1}))
    ['tpr', 'fpr_ratio/age ge 50', 'fpr_ratio/age lt 50', 'a_b', 'a_b_2']
    """
    named: dict[str, Any] = {}
    for name, value in entries.items():
        text = name.removesuffix("]").replace("[", "/")
        for sign, word in _WORDS.items():
            text = re.sub(rf"\s*{sign}\s*", word, text)
        text = plain = _FORBIDDEN.sub("_", text).strip()
        number = 2
        while text in named:
            text, number = f"{plain}_{number}", number + 1
        named[text] = value
    return named


_TOLD = ("direction",)  # a setting that is computed, not drawn


def add_trials(
    results: Results, storage: Any, study_name: str | None, metric: str, part: str, attribute: str | None
) -> optuna.Study:
    """Do the work of `Results.to_optuna`."""
    optuna = _extra("optuna", "Optuna")
    points = results.comparable_points(metric, part, attribute=attribute)
    objectives = [f"{part}_tpr", f"{part}_{ratio_name(metric, attribute)}"]
    identity, rows = _sent(results)
    name = f"fado {identity[:8]} {objectives[1]}" if study_name is None else study_name
    with _quiet(optuna):
        study = optuna.create_study(
            storage=_storage(optuna, storage),
            study_name=name,
            directions=["maximize"] * 2,
            load_if_exists=True,
        )
        directions = [direction.name.lower() for direction in study.directions]
        if directions != ["maximize"] * 2:  # of a study that was there before
            raise ValueError(
                f"The study {name!r} has {len(directions)} objective(s) ({' and '.join(directions)}), and "
                f"these trials have two to maximize, {objectives}: give another `study_name`."
            )
        known = study.get_trials(deepcopy=False)
        if not known:
            study.set_metric_names(objectives)
            study.set_user_attr("fado.version", __version__)
        elif study.metric_names != objectives:
            told = study.metric_names or "trials of objectives without names"
            raise ValueError(
                f"The study {name!r} has the objectives {told}, and these trials "
                f"{objectives}: give another `study_name`."
            )
        sent = {trial.user_attrs.get(TRIAL) for trial in known}
        values = dict(zip(results.frame.index, points, strict=True))
        spaces = _distributions(optuna.distributions, list(rows.values()), results.config)
        study.add_trials(
            [
                _trial(optuna.trial, key, row, values[row.number], spaces)
                for key, row in rows.items()
                if key not in sent
            ]
        )
    return study


def _trial(trials: Any, key: str, row: Trial, point: Any, spaces: dict[str, Any]) -> Any:
    """Make one trial; a model that cannot be compared has no values, and counts as pruned."""
    states = trials.TrialState
    comparable = not np.isnan(point).any()
    done = states.COMPLETE if comparable else states.PRUNED
    told = {name: value for name, value in row.settings.items() if name in _TOLD}
    about = {TRIAL: key, "status": row.status, "model": row.model, **told, **(row.metrics or {})}
    parameters = _parameters(row)
    return trials.create_trial(
        state=done if row.status == DONE else states.FAIL,
        values=point.tolist() if comparable else None,
        params=parameters,
        distributions={name: spaces[name] for name in parameters},
        user_attrs=about if row.error is None else about | {"error": row.error},
    )


def _parameters(row: Trial) -> dict[str, Plain]:
    drawn = {name: value for name, value in row.settings.items() if name not in _TOLD}
    return {"intervention": row.intervention, **drawn, **row.parameters}


def _distributions(kinds: Any, rows: Sequence[Trial], config: Config) -> dict[str, Any]:
    """Return the distribution of every parameter."""
    values: dict[str, dict[Plain, None]] = {}
    for row in rows:
        for name, value in _parameters(row).items():
            values.setdefault(name, {})[value] = None
    return {name: _distribution(kinds, name, list(own), config) for name, own in values.items()}


def _distribution(kinds: Any, name: str, values: list[Plain], config: Config) -> Any:
    drawn = config.models.space.get(name)
    choices = list(dict.fromkeys([*_choices(name, drawn), *values]))
    if any(isinstance(value, bool | str) for value in choices):
        # All trials of a study have the same choices, so include those that may come later.
        return kinds.CategoricalDistribution(choices)
    is_log = drawn is not None and drawn.low is not None
    numbers = [number for number in choices if not isinstance(number, str)]
    if drawn is not None and drawn.low is not None and drawn.high is not None:
        numbers += [drawn.low, drawn.high]
    low, high = min(numbers), max(numbers)
    if all(isinstance(number, int) for number in numbers):
        return kinds.IntDistribution(low, high, log=is_log)
    return kinds.FloatDistribution(float(low), float(high), log=is_log)


def _choices(name: str, drawn: Parameter | None) -> list[Plain]:
    """List the known values of a text setting, or the choices of a parameter."""
    if drawn is not None:
        return [choice for choice in drawn.choices if choice is not None]
    entries = intervention_entries()
    known: dict[str, Sequence[str]] = {
        "intervention": [entry.name for entry in entries],
        "utility": utility_names(),
        "algorithm": valuator_names(),
        "ratio": RATIO_NAMES,
    }
    for setting in (setting for entry in entries for setting in entry.settings):
        known.setdefault(setting.name, setting.choices)
    return list(known.get(name, ()))


def _storage(optuna: Any, storage: Any) -> Any:
    """Open an Optuna storage; a path is a SQLite file."""
    if storage is None or isinstance(storage, optuna.storages.BaseStorage):
        return storage
    if not isinstance(storage, str | os.PathLike):
        raise TypeError(
            "`storage` must be a file, the address of a database or an Optuna storage, got "
            f"{type(storage).__name__}."
        )
    where = os.fspath(storage)
    try:
        return optuna.storages.get_storage(where if "://" in where else f"sqlite:///{where}")
    except Exception as error:  # SQLAlchemy's, a driver's, or Optuna's own
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"`storage` {where!r} cannot be opened: {said}") from error


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Suppress Optuna's messages about new studies and experimental features."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _extra(name: str, title: str) -> Any:
    """Import a library that is an extra."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"`to_{name}` needs {title}: install it with `pip install 'fado-ml[{name}]'`.", name=error.name
        ) from error


def _sent(results: Results) -> tuple[str, dict[str, Trial]]:
    """Return a name for the experiment, made of all that its results depend on, and its trials."""
    with results.opened() as store:
        identity = key_of([store.about[name] for name in ("format", "fingerprint", "versions", "settings")])
        return identity, _rows_out(results, store, identity)


def _rows_out(results: Results, store: Store, identity: str) -> dict[str, Trial]:
    """Return the trials that are not pending, with all finite numbers.

    Each has a unique name for this trial and its status, by which trials that were sent are recognised.
    """
    frame = results.frame  # the store may have gone on meanwhile
    costs = frame["cost"] if "cost" in frame else [math.nan] * len(frame)
    rows = zip(store.trials, frame["status"], frame["error"], costs, strict=False)
    found = {}
    for number, (trial, status, error, cost) in enumerate(rows):
        if status != PENDING:
            settings, parameters = (
                {name: own for name, own in given.items() if own is not None}
                for given in (trial.settings, trial.parameters)
            )
            told = {"training_rows": trial.training_rows, "cost": cost, **(trial.metrics or {})}
            known = {name: float(own) for name, own in told.items() if own is not None}
            own = Trial(
                trial.intervention,
                settings,
                trial.model,
                parameters,
                status,
                metrics={name: value for name, value in known.items() if math.isfinite(value)},
                error=error if isinstance(error, str) else None,
                number=number,
            )
            found[key_of([identity, number, own.key, status])] = own
    return found
