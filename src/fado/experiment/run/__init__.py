"""The difference between what is asked and what is done: data, fits, and the runner of them."""

from fado.experiment.run._bench import Bench, Job, Judged, run_job
from fado.experiment.run._data import Data, Part
from fado.experiment.run._estimate import estimate_seconds
from fado.experiment.run._judging import Comparison, Judging
from fado.experiment.run._reading import data_from, read_data
from fado.experiment.run._runner import run_experiment

__all__ = [
    "Bench",
    "Comparison",
    "Data",
    "Job",
    "Judged",
    "Judging",
    "Part",
    "data_from",
    "estimate_seconds",
    "read_data",
    "run_experiment",
    "run_job",
]
