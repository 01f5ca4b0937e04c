"""Data generation: make rows where a label and group have few."""

from fado.generation._sampler import METHODS, UtilityAwareOverSampler

__all__ = ["METHODS", "UtilityAwareOverSampler"]
