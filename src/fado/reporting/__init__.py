"""Pages and charts, from frames and plain data alone."""

from fado.reporting._notebook import page_in_frame, shown_table
from fado.reporting.explore import explore_chart, explore_page
from fado.reporting.landscape import landscape_chart, landscape_page, select_points, tabulate_points
from fado.reporting.model_card import card_page, card_text

__all__ = [
    "card_page",
    "card_text",
    "explore_chart",
    "explore_page",
    "landscape_chart",
    "landscape_page",
    "page_in_frame",
    "select_points",
    "shown_table",
    "tabulate_points",
]
