"""Judge a model by its errors: at a fixed false-positive rate, between groups, and against other models."""

from ._evaluate import evaluate
from ._pareto import hypervolume, pareto_frontier
from ._rates import fnr_ratio, fpr_ratio, selection_rate_ratio, tpr_ratio
from ._threshold import threshold_at_fpr, tpr_at_fpr

__all__ = [
    "evaluate",
    "fnr_ratio",
    "fpr_ratio",
    "hypervolume",
    "pareto_frontier",
    "selection_rate_ratio",
    "threshold_at_fpr",
    "tpr_at_fpr",
    "tpr_ratio",
]
