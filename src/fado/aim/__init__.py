"""Aim: weights that bring a ratio between groups to a line, at the least loss of performance."""

from fado.aim._cells import cell_weights
from fado.aim._estimator import AimedEstimator
from fado.aim._memberships import Memberships, find_memberships
from fado.aim._search import Search, Step

__all__ = ["AimedEstimator", "Memberships", "Search", "Step", "cell_weights", "find_memberships"]
