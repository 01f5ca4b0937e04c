"""The page of a table and its values."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fado.reporting._page import render_page

__all__ = ["explore_page"]

SCRIPTS = ("numbers.js", "svg.js", "scales.js", "plots.js", "sections.js", "slider.js", "aim.js", "main.js")
EFFECTS, POOL = "effects.js", "pool.js"  # run last, on pages that have something for them to draw


def explore_page(summary: dict[str, Any]) -> str:
    """Render a summary as a page.

    Parameters
    ----------
    summary : dict
        All that the page shows, as `fado.Exploration.to_dict` gives it.

    Returns
    -------
    str
        One self-contained text that loads nothing.
    """
    folder = files("fado.reporting.explore") / "templates"
    scripts = list(SCRIPTS)
    if any(attribute.get("effects") is not None for attribute in summary.get("attributes", ())):
        scripts.append(EFFECTS)
    if "pool" in summary:
        scripts.append(POOL)
    return render_page(folder, title="Exploration", scripts=scripts, data=summary)
