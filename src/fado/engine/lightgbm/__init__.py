"""LightGBM: bin the table once, fit many models on subsets of the bins."""

from fado.engine.lightgbm._defaults import default_estimators
from fado.engine.lightgbm._engine import LightGBMEngine

__all__ = ["LightGBMEngine", "default_estimators"]
