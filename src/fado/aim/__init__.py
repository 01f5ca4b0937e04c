"""Aim: decisions that bring ratios between groups to a line, from what models of label and groups know."""

from fado.aim._comparing import check_confidence, check_line, read_lines
from fado.aim._estimator import AimedEstimator
from fado.aim._trade_off import trade_off
from fado.aim._weights import cell_weights

__all__ = ["AimedEstimator", "cell_weights", "check_confidence", "check_line", "read_lines", "trade_off"]
