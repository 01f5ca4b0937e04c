"""What rows do to a model, through the leaves of its trees."""

from fado.valuation.influence._forests import forecast_problem, forecast_removals, readable_estimator
from fado.valuation.influence._tree_influence import TreeInfluence

__all__ = ["TreeInfluence", "forecast_problem", "forecast_removals", "readable_estimator"]
