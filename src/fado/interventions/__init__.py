"""Interventions: what changes a training set or its weights before, or scores after a model is trained."""

from fado.interventions._base import BaseIntervention, NoIntervention, TrainingSet, row_utilities, value_rows
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
from fado.interventions._reweighing import Reweigher, UtilityAwareReweigher, minmax
from fado.interventions._sampling import (
    PrevalenceSampling,
    RandomPrevalenceSampler,
    UtilityAwarePrevalenceSampler,
)
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
