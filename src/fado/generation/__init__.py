"""Data generation: make rows where a label and group have few.

Names that are imported `as` themselves are for the other packages of FADO, not for users.
"""

from fado.generation._making import draw_donors as draw_donors
from fado.generation._making import take_entries as take_entries
from fado.generation._report import generation_report
from fado.generation._sampler import METHODS, UtilityAwareOverSampler

__all__ = ["METHODS", "UtilityAwareOverSampler", "generation_report"]
