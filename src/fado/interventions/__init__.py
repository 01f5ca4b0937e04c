"""Interventions: what changes a training set or its weights before a model is trained."""

from fado.interventions._estimator import ReweighedEstimator
from fado.interventions._prevalence import RandomPrevalenceSampler, UtilityAwarePrevalenceSampler
from fado.interventions._reweighing import Reweigher, UtilityAwareReweigher

__all__ = [
    "RandomPrevalenceSampler",
    "ReweighedEstimator",
    "Reweigher",
    "UtilityAwarePrevalenceSampler",
    "UtilityAwareReweigher",
]
