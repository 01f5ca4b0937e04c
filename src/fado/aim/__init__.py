"""Aim: decisions that bring ratios between groups up to a line, from models of label and groups.

Names that are imported `as` themselves are for the other packages of FADO, not for users.
"""

from fado.aim._choose import default_student as default_student
from fado.aim._curve import demands_of as demands_of
from fado.aim._estimator import AimedEstimator
from fado.aim._groups import read_rows_apart as read_rows_apart
from fado.aim._interventions import AimedScores, AimedStudent, GroupThresholds
from fado.aim._interventions import count_events as count_events
from fado.aim._lines import check_confidence as check_confidence
from fado.aim._lines import check_line as check_line
from fado.aim._lines import expected_counts as expected_counts
from fado.aim._lines import read_lines as read_lines
from fado.aim._trade_off import trade_off, trade_off_of

__all__ = ["AimedEstimator", "AimedScores", "AimedStudent", "GroupThresholds", "trade_off", "trade_off_of"]
