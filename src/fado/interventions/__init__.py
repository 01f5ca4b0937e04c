"""Interventions: what changes a training set or its weights before, or scores after a model is trained."""

import fado.interventions._catalogue  # noqa: F401  # registers what follows
from fado.interventions._base import BaseIntervention
from fado.interventions._estimator import ReweighedEstimator
from fado.interventions._fairlearn import FairlearnGrid
from fado.interventions._prevalence import RandomPrevalenceSampler, UtilityAwarePrevalenceSampler
from fado.interventions._registry import (
    Entry,
    Setting,
    intervention_entries,
    intervention_named,
    register_intervention,
)
from fado.interventions._reweighing import Reweigher, UtilityAwareReweigher
from fado.interventions._sampling import PrevalenceSampling
from fado.interventions._scores import BaseScoreIntervention, EvaluatedRows, KnownRows
from fado.interventions._training_set import TrainingSet
from fado.interventions._untouched import NoIntervention
from fado.interventions._utilities import row_utilities, value_rows
from fado.interventions._weights import minmax
from fado.interventions.bulk import FilesChange, GroupChange, reweigh_files, sample_files

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
    "PrevalenceSampling",
    "RandomPrevalenceSampler",
    "ReweighedEstimator",
    "Reweigher",
    "Setting",
    "TrainingSet",
    "UtilityAwarePrevalenceSampler",
    "UtilityAwareReweigher",
    "intervention_entries",
    "intervention_named",
    "minmax",
    "register_intervention",
    "reweigh_files",
    "row_utilities",
    "sample_files",
    "value_rows",
]
