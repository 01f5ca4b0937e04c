"""The card as a page."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fado.reporting._page import render_page

__all__ = ["card_page"]


def card_page(content: dict[str, Any]) -> str:
    """Render a card as a page that makes no request.

    Parameters
    ----------
    content : dict
        Plain data, all to be read as they are.

        - ``title``, ``footer``: texts; ``lead``: a list of texts.
        - ``sections``: each with a ``title``, ``texts``, ``points``, and a table, if it has a ``header`` and
          ``rows`` of as many texts.

    Returns
    -------
    str
        The page.
    """
    folder = files("fado.reporting.model_card") / "templates"
    return render_page(folder, title="Model card", scripts=["card.js"], data=content)
