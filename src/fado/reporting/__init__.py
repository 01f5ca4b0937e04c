"""Pages and charts, from frames and plain data alone."""

from fado.reporting._landscape import landscape_chart, select_points, tabulate_points
from fado.reporting._page import card_text, page_in_frame, render_page, shown_table, without_nan

__all__ = [
    "card_text",
    "landscape_chart",
    "page_in_frame",
    "render_page",
    "select_points",
    "shown_table",
    "tabulate_points",
    "without_nan",
]
