"""What came of it: the frame, the landscape and its report."""

from fado.experiment.results._frame import frame_of
from fado.experiment.results._remeasure import same_data
from fado.experiment.results._results import Results
from fado.experiment.results._shown import results_shown

__all__ = ["Results", "frame_of", "results_shown", "same_data"]
