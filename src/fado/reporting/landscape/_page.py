"""The report of an experiment: its landscapes, its best models and its data on one page."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fado._version import __version__
from fado.reporting._page import render_page
from fado.reporting.landscape._charts import landscape_spec
from fado.reporting.landscape._points import select_points

__all__ = ["landscape_page"]

TITLE = "FADO: the fairness-performance landscape"
SCRIPTS = ("choice.js", "charts.js", "sections.js", "main.js")
_NEEDED = "window.vegaEmbed = vegaEmbed;"  # of the charting library, by the page's own script


def landscape_page(content: dict[str, Any]) -> str:
    """Render all that a report tells as a page that makes no request.

    Parameters
    ----------
    content : dict
        Plain data; numbers to be read are texts already.

        - ``models``, how many there are; ``statuses``, a list such as ``["30 done"]``.
        - ``rule``, the ratio that models should reach; ``chosen_on``, the part they are chosen on.
        - ``looks``, see `landscape_chart`; ``marks``, what the shapes stand for, in words.
        - ``titles``, of the ratios; ``attributes``, what to call the groups that each is shown of: all, and,
          if there are several attributes to choose from, those of each. A view is one ratio of one of
          them; the views of the first ratio come first.
        - ``points``, what `tabulate_points` gives of the views.
        - ``best``, per view ``rows`` of the models above the line, ``closest``, of those that come closest
          where there is none (``intervention``, ``settings``, ``tpr``, ``ratio``, the ratio of ``each``
          attribute, ``model``), and the interventions ``without`` either.
        - ``areas``, per view ``rows`` (``intervention``, ``area``, ``interval``, ``models``).
        - ``groups`` and ``left_out``, the groups that ratios compare and those that they leave out, having
          fewer than ``min_group_size`` rows: the ``group``, and per entry of ``parts`` its ``rows`` and its
          ``rate``; ``positive``, the positive label or None.
        - ``errors``, rows of ``intervention``, ``models``, ``status`` and ``error``.
        - ``settings``, rows of ``name`` and ``value``.

    Returns
    -------
    str
        The page.
    """
    charts = [
        {"which": which, "zoom": zoom, "spec": _spec(content, which, zoom=zoom)}
        for which in range(len(content["titles"]) * len(content["attributes"]))
        for zoom in (True, False)
    ]
    folder = files("fado.reporting.landscape") / "templates"
    data = content | {"charts": charts, "version": __version__}
    return render_page(folder, title=TITLE, scripts=SCRIPTS, data=data, library=_charting_library())


def _spec(content: dict[str, Any], which: int, *, zoom: bool) -> dict[str, Any]:
    points = select_points(content["points"], which)
    title = "the best corner" if zoom else "all models"  # the section's heading says which ratio it is
    return landscape_spec(points, title=title, rule=content["rule"], looks=content["looks"], zoom=zoom)


def _charting_library() -> str:
    """Give the text of Vega-Embed and all that it needs, or say how to get it."""
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "A report needs vl-convert: install it with `pip install 'fado-ml[plot]'`.", name="vl_convert"
        ) from error
    return vl_convert.javascript_bundle(_NEEDED)
