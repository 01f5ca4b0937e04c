"""Trials as a study of Optuna, which optuna-dashboard opens."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._version import __version__
from fado.experiment._frame import Plain, identity_of, plain, rows_out, whole
from fado.experiment._trial import DONE, Trial
from fado.experiment.config import Config, Parameter, ratio_name
from fado.interventions import intervention_entries
from fado.metrics import RATIO_NAMES
from fado.utility import utility_names
from fado.valuation import valuator_names

if TYPE_CHECKING:
    import optuna

    from fado.experiment._results import Results

__all__ = ["add_trials"]

TRIAL = "fado.trial"
_TOLD = ("direction",)  # a setting that is found and not drawn: text of many numbers


def add_trials(
    results: Results, storage: Any, study_name: str | None, metric: str, part: str, attribute: str | None
) -> optuna.Study:
    """Do the work of `Results.to_optuna`."""
    optuna = _optuna()
    points = results.comparable_points(metric, part, attribute=attribute)
    objectives = [f"{part}_tpr", f"{part}_{ratio_name(metric, attribute)}"]
    identity = identity_of(results)
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
        rows = rows_out(results, identity)
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
    """Make one trial; what is done and may not be compared has no values, and counts as pruned."""
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
    """Say of every parameter where its values lie."""
    values: dict[str, dict[Plain, None]] = {}
    for row in rows:
        for name, value in _parameters(row).items():
            values.setdefault(name, {})[value] = None
    return {name: _distribution(kinds, name, list(own), config) for name, own in values.items()}


def _distribution(kinds: Any, name: str, values: list[Plain], config: Config) -> Any:
    drawn = config.models.space.get(name)
    choices = list(dict.fromkeys([*_choices(name, drawn), *values]))
    if any(isinstance(value, bool | str) for value in choices):
        # A study holds all trials to the same choices: those that may come later are among them.
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
    """List all that a text may be, and the choices of a parameter, as far as they are known."""
    if drawn is not None:
        return [whole(plain(choice)) for choice in drawn.choices if choice is not None]
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
    """Open what Optuna takes: a path is a SQLite file."""
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
    """Keep Optuna from telling that a study was made, and that names of objectives are new to it."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "`to_optuna` needs Optuna: install it with `pip install 'fado-ml[optuna]'`.", name=error.name
        ) from error
    return optuna
