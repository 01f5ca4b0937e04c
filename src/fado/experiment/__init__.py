"""Experiments: train the same models after every intervention, and compare what they achieve."""

from fado.experiment._experiment import Experiment
from fado.experiment._find import find_frontier
from fado.experiment._frontier import Frontier
from fado.experiment._metrics import register_metric
from fado.experiment._results import Results

__all__ = ["Experiment", "Frontier", "Results", "find_frontier", "register_metric"]
