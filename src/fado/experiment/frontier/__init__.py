"""The frontier: how much performance every level of a ratio costs, and the models on it."""

from fado.experiment.frontier._choosing import Choice, choose_row
from fado.experiment.frontier._find import find_frontier
from fado.experiment.frontier._frontier import Frontier
from fado.experiment.frontier._handing import fit_best_of, train_choice

__all__ = ["Choice", "Frontier", "choose_row", "find_frontier", "fit_best_of", "train_choice"]
