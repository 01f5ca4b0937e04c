"""The model that a user keeps: its decisions, its card, saved and loaded safely."""

from fado.models._card import digits_for as digits_for
from fado.models._check import Check, check_trend
from fado.models._chosen import ChosenModel
from fado.models._drift import ColumnSummary, summarize_columns
from fado.models._facts import Facts, GroupRates
from fado.models._saved import LANDSCAPE, check_directory, load_model, write_model

__all__ = [
    "LANDSCAPE",
    "Check",
    "ChosenModel",
    "ColumnSummary",
    "Facts",
    "GroupRates",
    "check_directory",
    "check_trend",
    "load_model",
    "summarize_columns",
    "write_model",
]
