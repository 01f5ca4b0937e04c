"""The experiment: every intervention, the same models after each, and what they achieve."""

from fado.experiment._experiment import Experiment
from fado.experiment.results import Results

__all__ = ["Experiment", "Results"]
