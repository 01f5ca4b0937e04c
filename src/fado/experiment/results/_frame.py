"""From what came of trials to the frame of results: one row per trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fado._compat import with_texts
from fado.experiment.config import Config, ratio_name
from fado.experiment.search import Outcome, Trial
from fado.interventions import intervention_entries
from fado.metrics import RATIO_NAMES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["frame_of", "parts_of"]

_RATES = {"selection_rate": ("selection_rate",), "top_k": ("selection_rate", "selected")}


def parts_of(config: Config) -> list[str]:
    """Name the parts that models are measured on."""
    return ["validation", "test"] if config.split.has_validation else ["test"]


def measured_columns(config: Config) -> list[str]:
    """Name the columns of metrics; those of single attributes come after all others of their part.

    Last come the user's own, which have no intervals, as a count of rows has none.
    """
    asked = config.evaluation
    ends = ("", "_low", "_high") if asked.bootstrap else ("",)
    ours = ["threshold", "fpr", "tpr", *_RATES.get(asked.budget.kind, ()), *RATIO_NAMES]
    single = [ratio_name(ratio, attribute) for attribute in config.attributes for ratio in RATIO_NAMES]
    names = [f"{name}{end}" for name in (*ours, *single) for end in ends if not (end and name == "selected")]
    return [f"{part}_{name}" for part in parts_of(config) for name in (*names, *asked.metrics)]


def frame_of(outcomes: Sequence[Outcome], config: Config) -> pd.DataFrame:
    """Put together what came of trials; those that are not done are there too, and say so."""
    import pandas as pd

    trials = [outcome.trial for outcome in outcomes]
    rows = [
        {
            "intervention": outcome.trial.intervention,
            **outcome.trial.settings,
            "model": outcome.trial.model,
            **outcome.trial.parameters,
            "training_rows": outcome.training_rows,
            **(outcome.metrics or {}),
            "status": outcome.status,
            "error": outcome.error,
        }
        for outcome in outcomes
    ]
    kinds = _setting_kinds(trials)
    parameters = dict.fromkeys(name for trial in trials for name in trial.parameters)
    measured = measured_columns(config)
    columns = ["intervention", *kinds, "model", *parameters, "training_rows", *measured, "status", "error"]
    texts = ["intervention", "status", "error", *(name for name, kind in kinds.items() if kind == "str")]
    others = {name: kind for name, kind in kinds.items() if kind != "str"}
    numbers = dict.fromkeys(measured, "float64")
    frame = with_texts(pd.DataFrame(rows, columns=columns), texts)
    return frame.astype(others | numbers | {"training_rows": "Int64"}).copy()  # in one piece again


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
