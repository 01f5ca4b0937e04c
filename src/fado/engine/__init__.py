"""Engines that fit models and score rows: LightGBM on shared bins, and any scikit-learn estimator."""

from fado.engine._base import Engine, Model, Schema, Scorer, Task, Watch
from fado.engine._layout import MissingValuesError, explaining_missing_in_table
from fado.engine._lightgbm import LightGBMEngine, LightGBMModel, default_estimators
from fado.engine._scorers import (
    CombinedScorer,
    StudentScorer,
    combine_probabilities,
    detach,
    groups_given_labels,
    scorer_from,
)
from fado.engine._sklearn import SklearnEngine, engine_class
from fado.engine._trees import Forest, LeafReader

__all__ = [
    "CombinedScorer",
    "Engine",
    "Forest",
    "LeafReader",
    "LightGBMEngine",
    "LightGBMModel",
    "MissingValuesError",
    "Model",
    "Schema",
    "Scorer",
    "SklearnEngine",
    "StudentScorer",
    "Task",
    "Watch",
    "combine_probabilities",
    "default_estimators",
    "detach",
    "engine_class",
    "explaining_missing_in_table",
    "groups_given_labels",
    "scorer_from",
]
