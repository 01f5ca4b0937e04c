"""Who says what a configuration asks to try: the grid, and the dials that are turned after it."""

from __future__ import annotations

from typing import Any

from fado.aim import INTERVAL, JudgedRows
from fado.experiment.config import Config
from fado.experiment.run._data import Data
from fado.experiment.search import Dial, DialProposer, GridProposer, Proposer
from fado.interventions import intervention_entries

__all__ = ["dial_of", "proposer_of"]


def proposer_of(config: Config, data: Data) -> Proposer:
    """Give who proposes the trials of a configuration."""
    grid = GridProposer.of(config)
    dials = []
    for entry in intervention_entries():
        asked: Any = config.interventions.get(entry.key)
        if entry.dial and asked:
            dials += [
                dial_of(entry.name, ratio, tuple(asked["targets"]), asked["max_fits"], config, data)
                for ratio in asked["ratios"]
            ]
    return DialProposer(grid, tuple(dials)) if dials else grid


def dial_of(
    intervention: str, ratio: str, targets: tuple[float, ...], max_fits: int, config: Config, data: Data
) -> Dial:
    """Make a dial that is turned by the validation rows."""
    compared = data.compared
    if compared.sum() < 2:
        raise ValueError("There are no two groups that are large enough to be compared in every part.")
    part = data.part("validation")
    judged = JudgedRows(
        part.positive,
        part.groups.codes,
        part.groups.names,
        compared,
        part.weights,
        ratio,
        config.evaluation.budget,
        INTERVAL,
        config.seed,
    )
    return Dial(intervention, judged, targets, max_fits)
