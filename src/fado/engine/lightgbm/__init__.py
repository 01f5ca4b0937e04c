"""LightGBM: bin the table once, fit many models on subsets of the bins, read their leaves."""

from fado.engine.lightgbm._defaults import default_estimators
from fado.engine.lightgbm._engine import LightGBMEngine
from fado.engine.lightgbm._leaves import LeafReader
from fado.engine.lightgbm._model import LightGBMModel
from fado.engine.lightgbm._scorer import LightGBMScorer
from fado.engine.lightgbm._trees import Forest, Tree

__all__ = [
    "Forest",
    "LeafReader",
    "LightGBMEngine",
    "LightGBMModel",
    "LightGBMScorer",
    "Tree",
    "default_estimators",
]
