"""Engines that fit models and score rows: LightGBM on shared bins, and any scikit-learn estimator."""

from fado.engine._base import Engine, Model, Scorer, Task, Watch
from fado.engine._choice import engine_class
from fado.engine._combined import CombinedScorer, StudentScorer, combine_probabilities, groups_given_labels
from fado.engine._missing import MissingValuesError, explaining_missing_in_table
from fado.engine._schema import Schema
from fado.engine._scorer import detach, scorer_from
from fado.engine._sklearn import SklearnEngine
from fado.engine.lightgbm import Forest, LeafReader, LightGBMEngine, LightGBMModel, Tree, default_estimators

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
    "Tree",
    "Watch",
    "combine_probabilities",
    "default_estimators",
    "detach",
    "engine_class",
    "explaining_missing_in_table",
    "groups_given_labels",
    "scorer_from",
]
