"""Aim: weights that bring a ratio between groups to a line, at the least loss of performance."""

from fado.aim._cells import cell_weights
from fado.aim._dialled import (
    AimedWeights,
    GroupThresholds,
    InferredThresholds,
    dial_settings,
    log_factors_of,
    move_scores,
)
from fado.aim._estimator import AimedEstimator
from fado.aim._judged import INTERVAL, JudgedRows
from fado.aim._memberships import Memberships, find_memberships
from fado.aim._search import Search, Step
from fado.aim._settings import check_confidence, check_line

__all__ = [
    "INTERVAL",
    "AimedEstimator",
    "AimedWeights",
    "GroupThresholds",
    "InferredThresholds",
    "JudgedRows",
    "Memberships",
    "Search",
    "Step",
    "cell_weights",
    "check_confidence",
    "check_line",
    "dial_settings",
    "find_memberships",
    "log_factors_of",
    "move_scores",
]
