"""Engines that fit models and score rows: LightGBM on shared bins, and any scikit-learn estimator."""

from fado.engine._base import Engine, Model, Scorer, Task, Watch
from fado.engine._choice import engine_class
from fado.engine._missing import MissingValuesError, explaining_missing_in_table
from fado.engine._schema import Schema
from fado.engine._scorer import detach, scorer_from
from fado.engine._sklearn import SklearnEngine
from fado.engine.lightgbm import Forest, LeafReader, LightGBMEngine, LightGBMModel, Tree, default_estimators

__all__ = [
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
    "Task",
    "Tree",
    "Watch",
    "default_estimators",
    "detach",
    "engine_class",
    "explaining_missing_in_table",
    "scorer_from",
]
