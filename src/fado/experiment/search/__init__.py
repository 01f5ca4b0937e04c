"""What to try next: trials, and who proposes them."""

from fado.experiment.search._grid import GridProposer
from fado.experiment.search._shared import shared_recipe
from fado.experiment.search._trial import PENDING, UNTOUCHED, Outcome, Proposer, Recipe, Trial, key_of

__all__ = [
    "PENDING",
    "UNTOUCHED",
    "GridProposer",
    "Outcome",
    "Proposer",
    "Recipe",
    "Trial",
    "key_of",
    "shared_recipe",
]
