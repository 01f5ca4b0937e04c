"""What came of it: the frame, the landscape and its report."""

from fado.experiment.results._frame import frame_of
from fado.experiment.results._remeasure import same_data
from fado.experiment.results._results import Results

__all__ = ["Results", "frame_of", "same_data"]
