r"""The card of a model, as Markdown text and as a page.

Whatever the data contain stays on its line and changes nothing around it: characters that Markdown reads are
escaped, and those that cannot be seen are written out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fado.reporting._page import render_page, written_out

__all__ = ["card_page", "card_text"]

# What begins or ends emphasis, code, links, images, HTML, tables, entities or formulas; addresses that some
# readers turn into links; and underscores, except within words, where they mean nothing.
_MARKS = re.compile(r"[\\`*\[\]<>|&~$@!]|(?<=[a-z]):(?=//)|(?<=www)\.|(?<!\w)_|_(?!\w)", re.IGNORECASE)
_STARTS = re.compile(r"^(\d*)([#+=.)-])")


def card_page(content: dict[str, Any]) -> str:
    """Render a card as a page that makes no request.

    Parameters
    ----------
    content : dict
        Plain data, all to be read as they are.

        - ``title``, ``footer``: texts; ``lead``: a list of texts; ``fields``: pairs of texts.
        - ``verdict``: its ``outcome`` ("reached" or "missed", either perhaps "by the estimate", or None) and
          ``budget_kept`` colour the lead.
        - ``sections``: each with a ``title``, ``texts``, ``points``, and a table, if it has a ``header`` and
          ``rows`` of as many texts.

    Returns
    -------
    str
        The page.
    """
    return render_page("model_card", title="Model card", scripts=["card.js"], data=content)


def card_text(content: dict[str, Any]) -> str:
    r"""Render a card as Markdown.

    Parameters
    ----------
    content : dict
        See `card_page`.

    Examples
    --------
    >>> table = {"header": ["group"], "rows": [["# <b>"]]}
    >>> section = {"title": "Groups", "texts": ["Two."], "points": []} | table
    >>> about = {"title": "Card", "lead": ["Hello."], "fields": [["owner", "me"]], "footer": "End."}
    >>> print(card_text(about | {"sections": [section]}))
    # Card
    <BLANKLINE>
    - Owner: me
    <BLANKLINE>
    Hello.
    <BLANKLINE>
    ## Groups
    <BLANKLINE>
    Two.
    <BLANKLINE>
    | group |
    | --- |
    | # \<b\> |
    <BLANKLINE>
    End.
    <BLANKLINE>
    """
    fields = [f"- {_escaped(f'{name.capitalize()}: {text}')}" for name, text in content.get("fields", ())]
    blocks = [f"# {_line(content['title'])}", *(["\n".join(fields)] if fields else [])]
    blocks += map(_line, content["lead"])
    for section in content["sections"]:
        blocks.append(f"## {_line(section['title'])}")
        blocks += map(_line, section["texts"])
        if section["points"]:
            blocks.append("\n".join(f"- {_line(point)}" for point in section["points"]))
        if section["rows"]:
            rule = " | ".join(["---"] * len(section["header"]))
            rows = "\n".join(map(_row, section["rows"]))
            blocks.append(f"{_row(section['header'])}\n| {rule} |\n{rows}")
    return CardText("\n\n".join([*blocks, _line(content["footer"])]) + "\n")


class CardText(str):
    """A text that notebooks show as what it is."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


def _line(text: str) -> str:
    """Give a text that may begin a line, and begins neither a heading nor a list by it."""
    return _STARTS.sub(lambda start: f"{start[1]}\\{start[2]}", _escaped(text.strip()))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    return _MARKS.sub(lambda mark: "\\" + mark[0], written_out(text))
