"""What a run is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fado.experiment.config import Config, Given
from fado.experiment.run._data import Data
from fado.experiment.search import Proposer

__all__ = ["RunOrder"]


@dataclass(frozen=True)
class RunOrder:
    """What a run is asked to do, in this process or in another.

    Parameters
    ----------
    config : Config
        The experiment.
    store : pathlib.Path
        Where results are kept.
    workers : int
        How many fits run side by side.
    progress : bool
        Whether to show a progress line.
    retry_failed : bool
        Whether what failed before is tried again.
    proposer : Proposer or None
        Says what to try; None tries the grid of the configuration.
    data : Data or None
        The rows, if they are in memory; None reads what the configuration names.
    given : Given or None
        The estimator and the metrics that were handed over in Python, if any were.
    """

    config: Config
    store: Path
    workers: int
    progress: bool = False
    retry_failed: bool = False
    proposer: Proposer | None = None
    data: Data | None = None
    given: Given | None = None
