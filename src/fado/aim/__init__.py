"""Aim: decisions that bring ratios between groups to a line, from what models of label and groups know."""

from fado.aim._curve import demands_of
from fado.aim._estimator import AimedEstimator
from fado.aim._interventions import (
    AimedScores,
    AimedStudent,
    GroupThresholds,
    count_events,
    lines_of,
)
from fado.aim._learning import check_confidence, check_line, read_lines, read_rows_apart
from fado.aim._trade_off import trade_off, trade_off_of
from fado.aim._weights import cell_weights

__all__ = [
    "AimedEstimator",
    "AimedScores",
    "AimedStudent",
    "GroupThresholds",
    "cell_weights",
    "check_confidence",
    "check_line",
    "count_events",
    "demands_of",
    "lines_of",
    "read_lines",
    "read_rows_apart",
    "trade_off",
    "trade_off_of",
]
