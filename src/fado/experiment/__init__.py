"""The experiment: every intervention, the same models after each, and what they achieve."""

from fado.experiment._experiment import Experiment
from fado.experiment._results import Results
from fado.experiment.config import register_metric
from fado.experiment.frontier import Frontier, find_frontier

__all__ = ["Experiment", "Frontier", "Results", "find_frontier", "register_metric"]
