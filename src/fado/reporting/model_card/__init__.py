"""The card of a model, as text and as a page."""

from fado.reporting.model_card._page import card_page
from fado.reporting.model_card._text import card_text

__all__ = ["card_page", "card_text"]
