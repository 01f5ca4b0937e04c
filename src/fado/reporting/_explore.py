"""The page of an exploration."""

from __future__ import annotations

from typing import Any

from fado.reporting._page import render_page

SCRIPTS = ("numbers.js", "svg.js", "scales.js", "plots.js", "sections.js", "slider.js", "aim.js", "main.js")


def explore_page(summary: dict[str, Any]) -> str:
    """Render a summary as a page.

    Parameters
    ----------
    summary : dict
        The content of the page, from `fado.Exploration.to_dict`.

    Returns
    -------
    str
        One self-contained text that loads nothing.
    """
    scripts = list(SCRIPTS)  # and, last, that of a part that only some pages have
    if any(attribute.get("effects") is not None for attribute in summary.get("attributes", ())):
        scripts.append("effects.js")
    return render_page("explore", title="Exploration", scripts=scripts, data=summary)
