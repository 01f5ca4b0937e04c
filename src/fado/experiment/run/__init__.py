"""The difference between what is asked and what is done: data, fits, and the runner of them."""

from fado.experiment.run._bench import Bench, Job, Measured, run_job
from fado.experiment.run._data import Data, Part
from fado.experiment.run._estimate import estimate_seconds
from fado.experiment.run._measuring import Comparison, Measuring
from fado.experiment.run._reading import data_from, read_data
from fado.experiment.run._runner import run_experiment

__all__ = [
    "Bench",
    "Comparison",
    "Data",
    "Job",
    "Measured",
    "Measuring",
    "Part",
    "data_from",
    "estimate_seconds",
    "read_data",
    "run_experiment",
    "run_job",
]
