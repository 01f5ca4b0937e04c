"""Pages and charts, from frames and plain data alone."""

from fado.reporting._explore import explore_page
from fado.reporting._landscape import landscape_chart, landscape_page, select_points, tabulate_points
from fado.reporting._page import card_page, card_text, page_in_frame, render_page, shown_table, without_nan

__all__ = [
    "card_page",
    "card_text",
    "explore_page",
    "landscape_chart",
    "landscape_page",
    "page_in_frame",
    "render_page",
    "select_points",
    "shown_table",
    "tabulate_points",
    "without_nan",
]
