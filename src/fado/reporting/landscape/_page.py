"""The report of an experiment: the landscape to choose from, its models and its data on one page."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fado._version import __version__
from fado.reporting._page import render_page

__all__ = ["landscape_page"]

TITLE = "FADO: the fairness-performance landscape"
SHARED = ("numbers.js", "svg.js")
SCRIPTS = (
    "models.js",
    "choice.js",
    "words.js",
    "marks.js",
    "legend.js",
    "chart.js",
    "pointing.js",
    "controls.js",
    "winners.js",
    "card.js",
    "save.js",
    "sections.js",
    "main.js",
)


def landscape_page(content: dict[str, Any]) -> str:
    """Render all that a report tells as a page that makes no request.

    The page's own script draws the landscape and chooses the models above the line, which its reader moves.

    Parameters
    ----------
    content : dict
        Plain data; numbers to be read are texts already, except those of models.

        - ``models``, how many there are; ``statuses``, a list such as ``["30 done"]``; ``notes``, sentences
          that stand below them.
        - ``rule``, the ratio that models should reach at first; ``chosen_on``, the part they are chosen on.
        - ``looks``, see `landscape_chart`, with whether decisions need the group of a row (``needs_group``)
          and the ``statuses`` of the models; ``marks``, what the shapes stand for, in words.
        - ``titles``, of the ratios; ``attributes``, what to call the groups that each is shown of: all, and,
          if there are several attributes to choose from, those of each. A view is one ratio of one of
          them; the views of the first ratio come first.
        - ``points``, what `tabulate_points` gives of the views, with two frontiers in each: of the models
          that need no group, and of those that do. Rows by falling true-positive rate on the part that
          they are chosen on.
        - ``figures``, the metrics that a model's card tells: the ``name`` of each, without that of its part,
          and its ``title``.
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
    folder = files("fado.reporting.landscape") / "templates"
    return render_page(
        folder, title=TITLE, scripts=(*SHARED, *SCRIPTS), data=content | {"version": __version__}
    )
