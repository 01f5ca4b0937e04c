"""Shares of a model's worth that rows deserve: KNN-Shapley in closed form, Data Shapley by training."""

from fado.valuation.shapley._data import DataShapley
from fado.valuation.shapley._knn import KNNShapley

__all__ = ["DataShapley", "KNNShapley"]
