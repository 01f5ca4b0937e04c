"""From a store to the frame of results: one row per trial."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fado.experiment.config import Config, ratio_name
from fado.experiment.store import DONE, FAILED, Keys, Store, StoredTrial, read_trials
from fado.interventions import intervention_entries
from fado.metrics import RATIO_NAMES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["frame_of", "parts_of"]

METRICS = ("threshold", "fpr", "tpr", *RATIO_NAMES)
PENDING, IMPOSSIBLE = "pending", "no training set"


def parts_of(config: Config) -> list[str]:
    """Name the parts that models are judged on."""
    return ["validation", "test"] if config.split.has_validation else ["test"]


def measured_columns(config: Config) -> list[str]:
    """Name the columns of metrics; those of single attributes come after all others of their part."""
    ends = ("", "_low", "_high") if config.evaluation.bootstrap else ("",)
    own = [ratio_name(ratio, attribute) for attribute in config.attributes for ratio in RATIO_NAMES]
    return [f"{part}_{name}{end}" for part in parts_of(config) for name in (*METRICS, *own) for end in ends]


def frame_of(store: Store, config: Config) -> pd.DataFrame:
    """Put together what a store holds; trials that are not done are there too, and say so."""
    import pandas as pd

    trials = read_trials(store)
    keys = Keys(store.about)
    known: dict[str, dict[str, Any]] = {}
    rows = [
        {
            "intervention": stored.trial.intervention,
            **stored.trial.settings,
            "model": stored.trial.model,
            **stored.trial.parameters,
            **_outcome(store, stored, keys, known),
        }
        for stored in trials
    ]
    kinds = _setting_kinds(trials)
    parameters = dict.fromkeys(name for stored in trials for name in stored.trial.parameters)
    measured = measured_columns(config)
    columns = ["intervention", *kinds, "model", *parameters, "training_rows", *measured, "status", "error"]
    texts = dict.fromkeys(["intervention", "status", "error"], "str")
    numbers = dict.fromkeys(measured, "float64")
    frame = pd.DataFrame(rows, columns=columns)
    return frame.astype(texts | kinds | numbers | {"training_rows": "Int64"}).copy()  # in one piece again


def _setting_kinds(trials: Sequence[StoredTrial]) -> dict[str, str]:
    """Give the columns of settings and their types: of all registered interventions, then of any other."""
    kinds = {"algorithm": "str", "utility": "str", "alpha": "float64"}
    for entry in intervention_entries():
        for setting in entry.settings:
            kinds.setdefault(setting.name, "str" if setting.kind == "choice" else "float64")
        for name, value in entry.fixed.items():
            kinds.setdefault(name, _kind(value))
    for stored in trials:
        for name, value in stored.trial.settings.items():
            if name not in kinds:
                kinds[name] = _kind(value)
    return kinds


def _kind(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "float64"
    return "str" if isinstance(value, str) else "object"


def _outcome(
    store: Store, stored: StoredTrial, keys: Keys, known: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Say what became of a trial; `known` holds what was read of fits that trials share."""
    made = store.get("set", stored.set_key)
    if made is None:
        return {"status": PENDING, "error": None}
    if made.state == FAILED:
        return {"status": IMPOSSIBLE, "error": made.text}
    about = json.loads(made.text)
    key = keys.fit(about["digest"], stored.trial.parameters)
    if key not in known:
        known[key] = _read_fit(store, key)
    return {"training_rows": about["rows"], **known[key]}


def _read_fit(store: Store, key: str) -> dict[str, Any]:
    record = store.get("fit", key)
    if record is None:
        return {"status": PENDING, "error": None}
    if record.state == FAILED:
        return {"status": FAILED, "error": record.text}
    metrics = store.load_fit(key)
    if metrics is None:
        return {"status": PENDING, "error": "the file of this fit is damaged: run the experiment again"}
    return {**metrics, "status": DONE, "error": None}
