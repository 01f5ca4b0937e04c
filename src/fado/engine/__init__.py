"""Engines that fit models and score rows: LightGBM on shared bins, and any scikit-learn estimator."""

from fado.engine._base import Engine, Model, Task, Watch
from fado.engine._choice import engine_class
from fado.engine._sklearn import SklearnEngine
from fado.engine.lightgbm import LightGBMEngine, default_estimators

__all__ = [
    "Engine",
    "LightGBMEngine",
    "Model",
    "SklearnEngine",
    "Task",
    "Watch",
    "default_estimators",
    "engine_class",
]
