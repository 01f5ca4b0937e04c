"""Pages and charts, from frames and plain data alone."""

from fado.reporting.explore import explore_chart, explore_page
from fado.reporting.landscape import landscape_chart, landscape_page, select_points, tabulate_points

__all__ = [
    "explore_chart",
    "explore_page",
    "landscape_chart",
    "landscape_page",
    "select_points",
    "tabulate_points",
]
