"""From a store to the frame of results: one row per intervention, setting and model."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fado.experiment._ledger import DONE, FAILED
from fado.experiment._plan import Plan
from fado.experiment._runner import Keys
from fado.experiment._settings import Config
from fado.experiment._store import Store

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["METRICS", "RATIOS", "frame_of", "parts_of"]

RATIOS = ("fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio")
METRICS = ("threshold", "fpr", "tpr", *RATIOS)
PENDING, IMPOSSIBLE = "pending", "no training set"


def parts_of(config: Config) -> list[str]:
    """Name the parts that models are judged on."""
    return ["validation", "test"] if config.split.has_validation else ["test"]


def frame_of(store: Store, config: Config) -> pd.DataFrame:
    """Put together what a store holds; rows that are not done are there too, and say so."""
    import pandas as pd

    plan, keys = Plan.of(config), Keys(store.about)
    endings = ("", "_low", "_high") if config.evaluation.bootstrap else ("",)
    measured = [f"{part}_{metric}{end}" for part in parts_of(config) for metric in METRICS for end in endings]
    known: dict[str, dict[str, Any]] = {}
    rows = []
    for setting in plan.settings:
        made = store.get("set", keys.set(setting.recipe(plan.n_protected)))
        about = json.loads(made.text) if made is not None and made.state == DONE else {}
        for number, parameters in enumerate(plan.models):
            if made is None:
                outcome: dict[str, Any] = {"status": PENDING, "error": None}
            elif made.state == FAILED:
                outcome = {"status": IMPOSSIBLE, "error": made.text}
            else:
                key = keys.fit(about["digest"], parameters)
                if key not in known:
                    known[key] = _outcome(store, key)
                outcome = known[key]
            rows.append(
                {
                    **asdict(setting),
                    "model": number,
                    **parameters,
                    "training_rows": about.get("rows"),
                    **dict.fromkeys(measured, float("nan")),
                    **outcome,
                }
            )
    frame = pd.DataFrame(rows)
    ends = ["status", "error"]
    return frame[[name for name in frame.columns if name not in ends] + ends].astype(
        {
            "intervention": "str",
            "algorithm": "str",
            "utility": "str",
            "scaling": "str",
            "status": "str",
            "error": "str",
            **dict.fromkeys(["alpha", "strength", "floor", "correction"], "float64"),
            "training_rows": "Int64",
        }
    )


def _outcome(store: Store, key: str) -> dict[str, Any]:
    record = store.get("fit", key)
    if record is None:
        return {"status": PENDING, "error": None}
    if record.state == FAILED:
        return {"status": FAILED, "error": record.text}
    metrics = store.load_fit(key)
    if metrics is None:
        return {"status": PENDING, "error": "the file of this fit is damaged: run the experiment again"}
    return {**metrics, "status": DONE, "error": None}
