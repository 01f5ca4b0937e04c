"""Aim: weights that bring a ratio between groups to a line, at the least loss of performance."""

from fado.aim._cells import cell_weights
from fado.aim._estimator import AimedEstimator
from fado.aim._interventions import (
    AimedScores,
    AimedStudent,
    GroupThresholds,
    count_events,
    demands_of,
    lines_of,
)
from fado.aim._judged import INTERVAL, JudgedRows
from fado.aim._memberships import Memberships, find_memberships
from fado.aim._search import Search, Step
from fado.aim._settings import check_confidence, check_line

__all__ = [
    "INTERVAL",
    "AimedEstimator",
    "AimedScores",
    "AimedStudent",
    "GroupThresholds",
    "JudgedRows",
    "Memberships",
    "Search",
    "Step",
    "cell_weights",
    "check_confidence",
    "check_line",
    "count_events",
    "demands_of",
    "find_memberships",
    "lines_of",
]
