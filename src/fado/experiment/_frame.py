"""The frame of results, one row per trial: made, and measured again from kept scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._compat import with_texts
from fado.experiment._settings import BUDGET_FIELDS, Config, EvaluationConfig, Given, ratio_name
from fado.experiment._store import Store
from fado.experiment._trial import DONE, Trial
from fado.interventions import intervention_entries
from fado.metrics import RATIO_NAMES, Budget

if TYPE_CHECKING:
    import pandas as pd

    from fado.experiment._data import Data

_RATES = {"selection_rate": ("selection_rate",), "top_k": ("selection_rate", "selected")}


def parts_of(config: Config) -> list[str]:
    """Name the parts that models are measured on."""
    return ["validation", "test"] if config.split.has_validation else ["test"]


def frame_of(trials: Sequence[Trial], config: Config) -> pd.DataFrame:
    """Put trials together; those that are not done are there too, and say so."""
    import pandas as pd

    rows = [
        {
            "intervention": trial.intervention,
            **trial.settings,
            "model": trial.model,
            **trial.parameters,
            "training_rows": trial.training_rows,
            **(trial.metrics or {}),
            "status": trial.status,
            "error": trial.error,
        }
        for trial in trials
    ]
    kinds = _setting_kinds(trials)
    parameters = dict.fromkeys(name for trial in trials for name in trial.parameters)
    measured = _measured_columns(config)
    columns = ["intervention", *kinds, "model", *parameters, "training_rows", *measured, "status", "error"]
    texts = ["intervention", "status", "error", *(name for name, kind in kinds.items() if kind == "str")]
    others = {name: kind for name, kind in kinds.items() if kind != "str"}
    numbers = dict.fromkeys(measured, "float64")
    frame = with_texts(pd.DataFrame(rows, columns=columns), texts)
    return frame.astype(others | numbers | {"training_rows": "Int64"}).copy()  # in one piece again


def _measured_columns(config: Config) -> list[str]:
    """Name the columns of metrics: those of single attributes after all others, the user's own last."""
    asked = config.evaluation
    ends = ("", "_low", "_high") if asked.bootstrap else ("",)
    ours = ["threshold", "fpr", "tpr", *_RATES.get(asked.budget.kind, ()), *RATIO_NAMES]
    single = [ratio_name(ratio, attribute) for attribute in config.attributes for ratio in RATIO_NAMES]
    # a count of rows has no interval, nor have the user's own
    names = [f"{name}{end}" for name in (*ours, *single) for end in ends if not (end and name == "selected")]
    return [f"{part}_{name}" for part in parts_of(config) for name in (*names, *asked.metrics)]


def _setting_kinds(trials: Sequence[Trial]) -> dict[str, str]:
    """Give the columns of settings and their types: of all registered interventions, then of any other."""
    kinds = {"algorithm": "str", "utility": "str", "alpha": "float64"}
    for entry in intervention_entries():
        for setting in entry.settings:
            kinds.setdefault(setting.name, "str" if setting.kind == "choice" else "float64")
        for name, value in entry.fixed.items():
            kinds.setdefault(name, _kind(value))
    for trial in trials:
        for name, value in trial.settings.items():
            if name not in kinds:
                kinds[name] = _kind(value)
    return kinds


def _kind(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "float64"
    return "str" if isinstance(value, str) else "object"


def remeasured_frame(
    store: Store,
    config: Config,
    metrics: Mapping[str, Callable[..., Any]] | Sequence[str],
    max_fpr: float | None,
    budget: Any,
    threshold: str | float | None,
    data: Any,
) -> pd.DataFrame:
    """Give the frame with the metrics that are asked for; see `Results.remeasure`."""
    from fado.experiment._bench import Measuring

    evaluation = _changed(config.evaluation, metrics, max_fpr, budget, threshold)
    if evaluation.threshold == "validation" and not config.split.has_validation:
        raise ValueError("`threshold` is 'validation', and there is no validation part.")
    changed = replace(config, evaluation=evaluation)
    functions = dict(Given(metrics=metrics).metrics) if isinstance(metrics, Mapping) else {}
    measuring = Measuring.of(same_data(store, config, data), changed, functions)
    measured: dict[str, dict[str, float]] = {}
    trials = store.trials
    for fit in dict.fromkeys(trial.fit for trial in trials if trial.status == DONE):
        found = store.scores(fit)
        measured[fit] = measuring.measure(np.concatenate([found["validation"], found["test"]]), fit)
    told = [
        replace(trial, metrics=measured[trial.fit]) if trial.status == DONE else trial for trial in trials
    ]
    return frame_of(told, changed)


def _changed(
    settings: EvaluationConfig,
    metrics: Mapping[str, Callable[..., Any]] | Sequence[str],
    max_fpr: float | None,
    budget: Any,
    threshold: str | float | None,
) -> EvaluationConfig:
    """Give other settings of how models are measured."""
    fixed = None if isinstance(threshold, str | None) else Budget("threshold", threshold)
    if (max_fpr is not None) + (budget is not None) + (fixed is not None) > 1:
        raise ValueError("`max_fpr`, `budget` and a fixed `threshold` all set the threshold: give one.")
    changes: dict[str, Any] = {"metrics": tuple(dict.fromkeys([*settings.metrics, *metrics]))}
    if isinstance(threshold, str):
        if threshold not in ("test", "validation"):
            raise ValueError(f"`threshold` must be 'test', 'validation' or a number, got {threshold!r}.")
        changes["threshold"] = threshold
    if max_fpr is not None or budget is not None or fixed is not None:
        own = fixed or Budget.read(budget, 0.05 if max_fpr is None else max_fpr)
        changes |= dict.fromkeys(BUDGET_FIELDS.values()) | {BUDGET_FIELDS[own.kind]: own.limit}
    return replace(settings, **changes)


def same_data(store: Store, config: Config, data: Any) -> Data:
    """Read the data again, and refuse others."""
    from fado.experiment._data import Data, read_data

    if not isinstance(data, Data):
        if data is not None:
            if config.data.path is None:
                raise ValueError("`data` names a table, and those of this experiment are not in a file.")
            config = replace(config, data=replace(config.data, path=str(data)))
        data = read_data(config)
    if data.fingerprint() != store.about["fingerprint"]:
        raise ValueError(
            f"The data are not those of the store {str(store.path)!r} (fingerprint "
            f"{data.fingerprint()[:12]}, and there {store.about['fingerprint'][:12]}): name them by `data`."
        )
    return data
