"""The model that a user keeps: its decisions, its card, saved and loaded safely."""

from fado.models._check import Check
from fado.models._chosen import ChosenModel
from fado.models._facts import Facts, GroupCount, Part
from fado.models._saved import load_model

__all__ = ["Check", "ChosenModel", "Facts", "GroupCount", "Part", "load_model"]
