"""Engines that fit models and score rows: LightGBM on shared bins, and any scikit-learn estimator."""

from fado.engine._base import Engine, Model, Task, Watch
from fado.engine._choice import engine_class
from fado.engine._sklearn import SklearnEngine
from fado.engine.lightgbm import Forest, LeafReader, LightGBMEngine, LightGBMModel, Tree, default_estimators

__all__ = [
    "Engine",
    "Forest",
    "LeafReader",
    "LightGBMEngine",
    "LightGBMModel",
    "Model",
    "SklearnEngine",
    "Task",
    "Tree",
    "Watch",
    "default_estimators",
    "engine_class",
]
