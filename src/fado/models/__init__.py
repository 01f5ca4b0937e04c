"""The model that a user keeps: its decisions, its card, saved and loaded safely."""

from fado.models._card import Facts, GroupCount, GroupRates, Part
from fado.models._check import Check
from fado.models._chosen import ChosenModel
from fado.models._saved import LANDSCAPE, check_directory, load_model, write_model

__all__ = [
    "LANDSCAPE",
    "Check",
    "ChosenModel",
    "Facts",
    "GroupCount",
    "GroupRates",
    "Part",
    "check_directory",
    "load_model",
    "write_model",
]
