"""Which models may be compared, and the area that those of an intervention cover."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fado.experiment._trial import DONE
from fado.metrics import Budget, hypervolume

if TYPE_CHECKING:
    import pandas as pd

    from fado.experiment._results import Results

__all__ = ["areas_of", "mark_comparable"]


def mark_comparable(frame: pd.DataFrame, part: str, budget: Budget) -> npt.NDArray[np.bool_]:
    """Mark the models that are done and keep the budget on a part."""
    names = [name for name in ("fpr", "selection_rate", "selected") if f"{part}_{name}" in frame]
    spent = frame[[f"{part}_{name}" for name in names]].to_numpy(dtype=np.float64)
    kept = np.array([budget.kept(dict(zip(names, row, strict=True))) for row in spent], dtype=np.bool_)
    return kept & (frame["status"] == DONE).to_numpy()


def areas_of(results: Results, metric: str, n_boot: int, attribute: str | None) -> pd.DataFrame:
    """Do the work of `Results.hypervolume`."""
    import pandas as pd

    points = results.comparable_points(metric, "test", attribute=attribute)
    models, count = results.frame["model"].to_numpy(), results.config.models.count
    draws = np.random.default_rng(results.config.seed).integers(0, count, size=(n_boot, count))
    found = {}
    for name in results.interventions:
        own = (results.frame["intervention"] == name).to_numpy() & ~np.isnan(points).any(axis=1)
        mine, of_model = points[own], models[own]
        areas = [hypervolume(mine[np.isin(of_model, draw)]) for draw in draws]
        low = np.quantile(areas, 0.025) if areas else np.nan
        area = hypervolume(mine)
        found[name] = {"hypervolume": area, "low": low, "high": area, "models": int(own.sum())}
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("intervention")
