"""Measure a model by its errors: at a budget, between groups, and against other models.

Names that are imported `as` themselves are for the other packages of FADO, not for users.
"""

from fado.metrics._audit import Audit, audit
from fado.metrics._evaluate import by_group, evaluate, measure, predictions_frame
from fado.metrics._intervals import effective_sizes as effective_sizes
from fado.metrics._intervals import is_above as is_above
from fado.metrics._intervals import lower_ratio_limit as lower_ratio_limit
from fado.metrics._intervals import ratio_interval as ratio_interval
from fado.metrics._intervals import ratio_limits as ratio_limits
from fado.metrics._intervals import share_limits as share_limits
from fado.metrics._models import aim_scorer, hypervolume, pareto_frontier
from fado.metrics._models import best_first as best_first
from fado.metrics._rates import RATES as RATES
from fado.metrics._rates import (
    RATIO_NAMES,
    RATIO_TITLES,
    equalized_odds_ratio,
    fnr_ratio,
    fpr_ratio,
    selection_rate_ratio,
    tpr_ratio,
)
from fado.metrics._rates import RATIOS as RATIOS
from fado.metrics._rates import GroupCounts as GroupCounts
from fado.metrics._rates import compared_counts as compared_counts
from fado.metrics._rates import count_by_group as count_by_group
from fado.metrics._rates import min_max_ratio as min_max_ratio
from fado.metrics._rows_needed import least_times as least_times
from fado.metrics._rows_needed import rows_needed as rows_needed
from fado.metrics._threshold import Budget, threshold_at_fpr, tpr_at_fpr
from fado.metrics._threshold import predicted_positive as predicted_positive

__all__ = [
    "RATIO_NAMES",
    "RATIO_TITLES",
    "Audit",
    "Budget",
    "aim_scorer",
    "audit",
    "by_group",
    "equalized_odds_ratio",
    "evaluate",
    "fnr_ratio",
    "fpr_ratio",
    "hypervolume",
    "measure",
    "pareto_frontier",
    "predictions_frame",
    "selection_rate_ratio",
    "threshold_at_fpr",
    "tpr_at_fpr",
    "tpr_ratio",
]
