"""Data generation: rows made where cells of label and group are short of them."""

from fado.generation._entries import take_entries
from fado.generation._making import draw_donors
from fado.generation._models import checking_estimator, train_and_score
from fado.generation._report import generation_report
from fado.generation._sampler import METHODS, UtilityAwareOverSampler

__all__ = [
    "METHODS",
    "UtilityAwareOverSampler",
    "checking_estimator",
    "draw_donors",
    "generation_report",
    "take_entries",
    "train_and_score",
]
