"""Models measured again from their kept scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado.experiment.config import Config, EvaluationConfig, Given
from fado.experiment.results._frame import frame_of
from fado.experiment.store import DONE, Keys, Store, fit_key_of, read_outcomes, read_trials
from fado.metrics import Budget

if TYPE_CHECKING:
    import pandas as pd

    from fado.experiment.run import Data

__all__ = ["Asked", "kept_scores", "remeasured_frame", "same_data"]

_FIELDS = {
    "fpr": "max_fpr",
    "selection_rate": "max_selection_rate",
    "top_k": "top_k",
    "threshold": "fixed_threshold",
}


@dataclass(frozen=True)
class Asked:
    """What `Results.remeasure` is asked for; see there."""

    metrics: Mapping[str, Callable[..., Any]] | Sequence[str]
    max_fpr: float | None
    budget: Any
    threshold: str | float | None

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """The metrics that come as functions."""
        return dict(Given(metrics=self.metrics).metrics) if isinstance(self.metrics, Mapping) else {}

    def applied_to(self, settings: EvaluationConfig) -> EvaluationConfig:
        """Give other settings of how models are measured."""
        fixed = None if isinstance(self.threshold, str | None) else Budget("threshold", self.threshold)
        if (self.max_fpr is not None) + (self.budget is not None) + (fixed is not None) > 1:
            raise ValueError("`max_fpr`, `budget` and a fixed `threshold` all set the threshold: give one.")
        changes: dict[str, Any] = {"metrics": tuple(dict.fromkeys([*settings.metrics, *self.metrics]))}
        if isinstance(self.threshold, str):
            if self.threshold not in ("test", "validation"):
                raise ValueError(
                    f"`threshold` must be 'test', 'validation' or a number, got {self.threshold!r}."
                )
            changes["threshold"] = self.threshold
        if self.max_fpr is not None or self.budget is not None or fixed is not None:
            limit = 0.05 if self.max_fpr is None else self.max_fpr
            budget = fixed or Budget.read(self.budget, limit)
            changes |= dict.fromkeys(_FIELDS.values()) | {_FIELDS[budget.kind]: budget.limit}
        return replace(settings, **changes)


def kept_scores(path: Path | None, row: Any) -> dict[str, npt.NDArray[np.float64]]:
    """Give the scores of the model in a row of the frame, by part."""
    with Store.reading(_checked(path)) as store:
        trials = read_trials(store)
        if not isinstance(row, int | np.integer) or not 0 <= row < len(trials):
            raise ValueError(
                f"`row` must be a label of the frame's index, 0 to {len(trials) - 1}, got {row!r}."
            )
        key = fit_key_of(store, trials[row], Keys(store.about))
        record = None if key is None else store.get("fit", key)
        if key is None or record is None or record.state != DONE:
            raise ValueError(f"The model in row {row} is not done, and has no scores.")
        return store.load_scores(key)


def remeasured_frame(path: Path | None, config: Config, asked: Asked, data: Any) -> pd.DataFrame:
    """Give the frame with the metrics that are asked for."""
    evaluation = asked.applied_to(config.evaluation)
    if evaluation.threshold == "validation" and not config.split.has_validation:
        raise ValueError("`threshold` is 'validation', and there is no validation part.")
    changed = replace(config, evaluation=evaluation)
    with Store.reading(_checked(path)) as store:
        measuring = same_data(store, config, data).measuring(changed, asked.functions)
        trials, keys = read_trials(store), Keys(store.about)
        measured: dict[str, dict[str, float]] = {}
        outcomes = []
        for stored, outcome in zip(trials, read_outcomes(store, trials), strict=True):
            key = fit_key_of(store, stored, keys)
            if outcome.status != DONE or key is None:
                outcomes.append(outcome)
                continue
            if key not in measured:
                found = store.load_scores(key)
                measured[key] = measuring.measure(np.concatenate([found["validation"], found["test"]]), key)
            outcomes.append(replace(outcome, metrics=measured[key]))
    return frame_of(outcomes, changed)


def same_data(store: Store, config: Config, data: Any) -> Data:
    """Read the data again, and refuse others."""
    from fado.experiment.run import Data, read_data

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


def _checked(path: Path | None) -> Path:
    if path is None:
        raise ValueError("These results do not come from a store: load them from one that keeps scores.")
    return path
