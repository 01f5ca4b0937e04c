"""The metrics that effects are about: what people call them, and where they stand now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import log_loss

from fado.exploration._material import Attribute, Material
from fado.metrics import RATIO_NAMES, measure
from fado.tabular import MIN_GROUP_SIZE, group_rows, small_groups
from fado.valuation import Scale, Valuation

if TYPE_CHECKING:
    from fado.exploration._consequences import Consequences

__all__ = ["INFLUENCE", "Metrics", "level_now", "metrics_of"]

INFLUENCE = "influence"  # what TreeInfluence's values say of their algorithm
_PREFIX = "effect of the row's weight on "
_RATIOS = {
    "fpr_ratio": "FPR ratio",
    "fnr_ratio": "FNR ratio",
    "tpr_ratio": "TPR ratio",
    "selection_rate_ratio": "selection-rate ratio",
}


@dataclass(frozen=True)
class Metrics:
    """What people call the ratio and the performance; None for a performance that values say nothing of."""

    ratio: str
    performance: str | None


def metrics_of(valuation: Valuation, attribute: str, consequences: Consequences | None = None) -> Metrics:
    """Name the metrics that values of an attribute and of the target are effects on, or that were measured.

    Examples
    --------
    >>> from fado.valuation import Scale, Valuation
    >>> metrics_of(Valuation.from_values({"y": [0.1], "sex": [-0.2]}), "sex")
    Metrics(ratio='ratio', performance='performance')
    >>> scales = {name: Scale(f"effect of the row's weight on {on}")
    ...           for name, on in {"y": "accuracy", "sex": "fpr_ratio"}.items()}
    >>> metrics_of(Valuation.from_values({"y": [0.1], "sex": [-0.2]}, scales=scales), "sex")
    Metrics(ratio='FPR ratio', performance='accuracy')
    """
    budget = _budget(valuation)
    on_ratio, on_performance = (_metric(valuation.scales[name]) for name in (attribute, "y"))
    is_signed = valuation.scales["y"].is_signed
    if consequences is not None and not valuation.scales[attribute].is_signed:
        on_ratio, on_performance, budget = (
            consequences.fairness,
            consequences.performance,
            consequences.max_fpr,
        )
        is_signed = True
    ratio = "ratio" if on_ratio is None else _RATIOS.get(on_ratio, on_ratio)
    if not is_signed:
        return Metrics(ratio, None)
    shown = {
        None: "performance",
        "tpr_at_fpr": "TPR" if budget is None else f"TPR at {100 * budget:.3g} % FPR",
        "log_loss": "minus log-loss",
    }
    return Metrics(ratio, shown.get(on_performance, on_performance))


def level_now(material: Material, attribute: Attribute) -> dict[str, float] | None:
    """Give ratio and performance of the models that made the values, on rows they had not seen.

    None where that is not known: for values of other methods, and for those that are measured on other rows.
    """
    provenance, agreement = material.valuation.provenance, material.agreement("y")
    fairness, budget = provenance.settings.get("fairness"), _budget(material.valuation)
    positive = material.is_positive
    if (
        provenance.algorithm != INFLUENCE
        or fairness not in RATIO_NAMES
        or budget is None
        or agreement is None
        or np.isnan(agreement).any()
        or positive is None
        or len(material.target.classes) != 2
        or attribute.is_continuous
    ):
        return None
    groups = group_rows([attribute.variable])
    scores = np.where(positive, agreement, 1.0 - agreement)
    measured, _ = measure(
        positive,
        scores,
        groups.codes,
        groups.names,
        max_fpr=budget,
        sample_weight=material.weights,
        left_out=small_groups(groups.sizes, MIN_GROUP_SIZE),
    )
    performance = {
        "tpr_at_fpr": measured["tpr"],
        "accuracy": float(np.average(agreement >= 0.5, weights=material.weights)),
        "log_loss": -log_loss(positive, scores, sample_weight=material.weights),
    }.get(str(provenance.settings.get("performance")))
    if performance is None or np.isnan([performance, measured[fairness]]).any():
        return None
    return {"ratio": float(measured[fairness]), "performance": float(performance)}


def _metric(scale: Scale) -> str | None:
    """Read the metric's name off what a scale says; None if it names none."""
    name = scale.meaning.removeprefix(_PREFIX)
    return None if name == scale.meaning or name.startswith("a metric") else name


def _budget(valuation: Valuation) -> float | None:
    budget: Any = valuation.provenance.settings.get("max_fpr")
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget < 1:
        return None
    return float(budget)
