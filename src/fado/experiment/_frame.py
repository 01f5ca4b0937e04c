"""The frame of results: one row per trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._compat import with_texts
from fado._typing import Bools
from fado.experiment._config import Config, ratio_name
from fado.experiment._metrics import check_metrics
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
    """Make the frame of trials, also of those that are not done."""
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
    # settings: registered interventions first
    kinds = {"algorithm": "str", "utility": "str", "alpha": "float64"}
    for entry in intervention_entries():
        for setting in entry.settings:
            kinds.setdefault(setting.name, "str" if setting.kind == "choice" else "float64")
    values = [item for entry in intervention_entries() for item in entry.fixed.items()]
    for name, value in [*values, *(item for trial in trials for item in trial.settings.items())]:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        kinds.setdefault(name, "float64" if is_number else "str" if isinstance(value, str) else "object")
    # metrics: single attributes after all others, the user's metrics last
    evaluation = config.evaluation
    ends = ("", "_low", "_high") if evaluation.bootstrap else ("",)
    built_in = ["threshold", "fpr", "tpr", *_RATES.get(evaluation.budget.kind, ()), *RATIO_NAMES]
    built_in += [ratio_name(ratio, attribute) for attribute in config.attributes for ratio in RATIO_NAMES]
    # a count of rows has no interval, nor have the user's metrics
    names = [f"{name}{end}" for name in built_in for end in ends if not (end and name == "selected")]
    measured = [f"{part}_{name}" for part in parts_of(config) for name in (*names, *evaluation.metrics)]
    parameters = dict.fromkeys(name for trial in trials for name in trial.parameters)
    columns = ["intervention", *kinds, "model", *parameters, "training_rows", *measured, "status", "error"]
    texts = ["intervention", "status", "error", *(name for name, kind in kinds.items() if kind == "str")]
    types = {name: kind for name, kind in kinds.items() if kind != "str"} | dict.fromkeys(measured, "float64")
    frame = with_texts(pd.DataFrame(rows, columns=columns), texts)
    return frame.astype(types | {"training_rows": "Int64"}).copy()  # in one piece again


def parameter_columns(frame: pd.DataFrame) -> list[str]:
    """Name the columns of a frame with the parameters of models."""
    columns = list(frame.columns)
    return columns[columns.index("model") + 1 : columns.index("training_rows")]


def is_whole(frame: pd.DataFrame) -> Bools:
    """Mark the models that were trained in full; a search trains many in part."""
    if "cost" not in frame.columns:
        return np.ones(len(frame), dtype=np.bool_)
    return ~frame["cost"].between(0, 1, inclusive="neither").to_numpy()


def remeasured_frame(
    store: Store,
    config: Config,
    metrics: Mapping[str, Callable[..., Any]] | Sequence[str],
    max_fpr: float | None,
    budget: Any,
    threshold: str | float | None,
    data: Any,
) -> pd.DataFrame:
    """Return the frame with other metrics; see `Results.remeasure`."""
    from fado.experiment._training import Measuring

    fixed = None if isinstance(threshold, str | None) else Budget("threshold", threshold)
    if (max_fpr is not None) + (budget is not None) + (fixed is not None) > 1:
        raise ValueError("`max_fpr`, `budget` and a fixed `threshold` all set the threshold: give one.")
    names = tuple(dict.fromkeys([*config.evaluation.metrics, *metrics]))
    evaluation = replace(config.evaluation, metrics=names)
    if isinstance(threshold, str):
        if threshold not in ("test", "validation"):
            raise ValueError(f"`threshold` must be 'test', 'validation' or a number, got {threshold!r}.")
        evaluation = replace(evaluation, threshold=threshold)
    if max_fpr is not None or budget is not None or fixed is not None:
        limit = fixed or Budget.read(budget, 0.05 if max_fpr is None else max_fpr)
        evaluation = evaluation.with_budget(limit)
    if evaluation.threshold == "validation" and not config.split.has_validation:
        raise ValueError("`threshold` is 'validation', but there is no validation part.")
    changed = replace(config, evaluation=evaluation)
    functions = check_metrics(metrics) if isinstance(metrics, Mapping) else {}
    measuring = Measuring.of(same_data(store, config, data), changed, functions)
    done = dict.fromkeys(trial.fit for trial in store.trials if trial.status == DONE)
    measured = {fit: measuring.measure(store.all_scores(fit), fit) for fit in done}
    return frame_of([replace(trial, metrics=measured.get(trial.fit)) for trial in store.trials], changed)


def same_data(store: Store, config: Config, data: Any) -> Data:
    """Read the data again; other data raise a ValueError."""
    from fado.experiment._data import Data, read_data

    if not isinstance(data, Data):
        if data is not None:
            if config.data.path is None:
                raise ValueError("`data` names a table, but the data of this experiment are not in a file.")
            config = replace(config, data=replace(config.data, path=str(data)))
        data = read_data(config)
    if data.fingerprint() != store.about.fingerprint:
        raise ValueError(
            f"The data are not those of the store {str(store.path)!r} (fingerprint "
            f"{data.fingerprint()[:12]}, and there {store.about.fingerprint[:12]}): pass them as `data`."
        )
    return data
