"""Data generation: rows made where cells of label and group are short of them."""

from fado.generation._making import draw_donors, take_entries
from fado.generation._report import checking_estimator, generation_report, train_and_score
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
