"""The fairness-performance landscape of many models: its points, its charts and its page."""

from fado.reporting.landscape._charts import landscape_chart
from fado.reporting.landscape._page import landscape_page
from fado.reporting.landscape._points import select_points, tabulate_points

__all__ = ["landscape_chart", "landscape_page", "select_points", "tabulate_points"]
