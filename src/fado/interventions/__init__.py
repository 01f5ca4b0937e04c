"""Interventions change a training set or its weights before training, or the scores of a trained model.

Names that are imported `as` themselves are for the other packages of FADO, not for users.
"""

from fado.interventions._base import REQUESTS as REQUESTS
from fado.interventions._base import BaseIntervention, NoIntervention, TrainingSet
from fado.interventions._base import warn_of_small as warn_of_small
from fado.interventions._changes import FilesChange, GroupChange
from fado.interventions._estimator import FairlearnGrid, ReweighedEstimator
from fado.interventions._large import reweigh_files, sample_files
from fado.interventions._registry import (
    Entry,
    Setting,
    intervention_entries,
    intervention_named,
    register_intervention,
)
from fado.interventions._reweighing import Reweigher, UtilityAwareReweigher
from fado.interventions._reweighing import minmax as minmax
from fado.interventions._sampling import PrevalenceSampling as PrevalenceSampling
from fado.interventions._sampling import RandomPrevalenceSampler, UtilityAwarePrevalenceSampler
from fado.interventions._scores import BaseScoreIntervention, EvaluatedRows, KnownRows

__all__ = [
    "BaseIntervention",
    "BaseScoreIntervention",
    "Entry",
    "EvaluatedRows",
    "FairlearnGrid",
    "FilesChange",
    "GroupChange",
    "KnownRows",
    "NoIntervention",
    "RandomPrevalenceSampler",
    "ReweighedEstimator",
    "Reweigher",
    "Setting",
    "TrainingSet",
    "UtilityAwarePrevalenceSampler",
    "UtilityAwareReweigher",
    "intervention_entries",
    "intervention_named",
    "register_intervention",
    "reweigh_files",
    "sample_files",
]
