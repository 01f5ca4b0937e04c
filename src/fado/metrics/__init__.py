"""Measure a model by its errors: at a budget, between groups, and against other models."""

from fado.metrics._audit import Audit, audit
from fado.metrics._evaluate import by_group, evaluate, measure, predictions_frame
from fado.metrics._intervals import effective_sizes, lower_ratio_limit, ratio_limits, share_limits
from fado.metrics._pareto import hypervolume, pareto_frontier
from fado.metrics._rates import (
    RATIO_NAMES,
    RATIO_TITLES,
    equalized_odds_ratio,
    fnr_ratio,
    fpr_ratio,
    selection_rate_ratio,
    tpr_ratio,
)
from fado.metrics._scorer import aim_scorer
from fado.metrics._threshold import Budget, lowest_threshold, threshold_at_fpr, tpr_at_fpr

__all__ = [
    "RATIO_NAMES",
    "RATIO_TITLES",
    "Audit",
    "Budget",
    "aim_scorer",
    "audit",
    "by_group",
    "effective_sizes",
    "equalized_odds_ratio",
    "evaluate",
    "fnr_ratio",
    "fpr_ratio",
    "hypervolume",
    "lower_ratio_limit",
    "lowest_threshold",
    "measure",
    "pareto_frontier",
    "predictions_frame",
    "ratio_limits",
    "selection_rate_ratio",
    "share_limits",
    "threshold_at_fpr",
    "tpr_at_fpr",
    "tpr_ratio",
]
