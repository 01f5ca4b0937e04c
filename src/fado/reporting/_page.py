"""Pages: one HTML text each, from a template and plain data, and their form in notebooks.

Documents (card, audit, dossier) are static: they read, print and mail without any script. The pages of an
exploration and of a landscape draw with their own scripts; they carry their content as JSON in a data block,
where every character is escaped that could end the block or that JavaScript takes for the end of a line. All
text from the data is escaped, and characters that change the text around them are made visible. The content
security policy allows the page's own style and scripts, by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from fado._messages import plain_number
from fado.reporting import _numbers

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 6
TEMPLATES = "templates"

_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&'\u2028\u2029"}
# Control, formatting (marks of direction), private use, surrogates, line ends.
_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}


def render_page(template: str, content: dict[str, Any]) -> str:
    """Render plain data as one text that makes no request.

    Parameters
    ----------
    template : str
        The name of the template: ``card.html``, ``card.md``, ``audit.html``, ``dossier.html``,
        ``explore.html`` or ``landscape.html``, which says what of the content it shows.
    content : dict
        Plain data: all that comes from the user's data, escaped as the template's format needs it.

    Returns
    -------
    str
        The page.
    """
    return str(_environment().get_template(template).render(content=_plain(content)))


@cache
def _environment() -> Any:
    """Return the environment of all templates, with the numbers and pieces that they call."""
    import jinja2
    from markupsafe import Markup

    def trusted(text: str) -> Markup:
        return Markup(text)  # noqa: S704 - our own files, and texts that were escaped before

    def source(names: Sequence[str]) -> Markup:
        return trusted("\n".join(loader.get_source(environment, name)[0] for name in names))

    loader = jinja2.PackageLoader("fado.reporting", TEMPLATES)
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"source": source, **{name: getattr(_numbers, name) for name in _numbers.__all__}}
    environment.filters |= {
        "as_json": lambda data: trusted(_as_json(data)),
        "digest": lambda text: f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}",
        "line": lambda text: trusted(_line(text)),
        "marked": lambda text: trusted(_marked(text)),
    }
    return environment


def _as_json(data: Any) -> str:
    """Write data for a script, numbers with six digits."""
    data = _plain(data, rounded=lambda number: float(f"{number:.{DIGITS}g}"))
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def _plain(value: Any, rounded: Callable[[float], float] = float) -> Any:
    """Make invisible characters visible that change the text around them, and round numbers."""
    if isinstance(value, dict):
        return {_plain(key): _plain(entry, rounded) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry, rounded) for entry in value]
    if isinstance(value, float):
        return rounded(value)
    return written_out(value) if isinstance(value, str) else value


def without_nan(value: Any) -> Any:
    """Return plain data with None in place of numbers that are not finite, which JSON does not have.

    Parameters
    ----------
    value : plain data
        Lists and dicts may hold others.
    """
    if isinstance(value, dict):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def written_out(text: str) -> str:
    r"""Make invisible characters visible that change the text around them.

    Examples
    --------
    >>> print(written_out("a\u202eb"))
    a\u202eb
    """
    return "".join(
        f"\\u{ord(character):04x}" if unicodedata.category(character) in _INVISIBLE else character
        for character in text
    )


def page_in_frame(page: str, height: int) -> str:
    """Return a page as an output for a notebook.

    A frame keeps the notebook's styles out of the page, and the page's scripts out of the notebook.

    Parameters
    ----------
    page : str
        The whole page.
    height : int
        Height of the frame in pixels.
    """
    return (
        f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(page)}" '
        f'style="width:100%;height:{height}px;border:0"></iframe>'
    )


def shown_table(title: str, texts: Sequence[str], table: pd.DataFrame | None = None) -> str:
    """Return a title, some sentences and a table as an output for a notebook.

    Parameters
    ----------
    title : str
        The title.
    texts : sequence of str
        Sentences.
    table : DataFrame, optional
        Numbers and texts; missing entries are empty, and the index is not shown.

    Examples
    --------
    >>> shown_table("Results of <x>", ["None are done."])
    '<div><p><b>Results of &lt;x&gt;</b></p><p>None are done.</p></div>'
    """
    parts = [f"<p>{_escaped(text)}</p>" for text in texts]
    if table is not None:
        cells = table.map(lambda cell: written_out(cell) if isinstance(cell, str) else cell)
        cells.columns = [written_out(str(name)) for name in table.columns]
        shown = cells.to_html(
            border=0, index=False, na_rep="", float_format=lambda number: plain_number(number, 4)
        )
        parts.append(shown)
    return f"<div><p><b>{_escaped(title)}</b></p>{''.join(parts)}</div>"


def _escaped(text: str) -> str:
    return html.escape(written_out(text))


# Characters that begin or end emphasis, code, links, images, HTML, tables, entities or formulas; addresses
# that some programs turn into links; and underscores, except within words.
_MARKS = re.compile(r"[\\`*\[\]<>|&~$@!]|(?<=[a-z]):(?=//)|(?<=www)\.|(?<!\w)_|_(?!\w)", re.IGNORECASE)
_STARTS = re.compile(r"^(\d*)([#+=.)-])")


def card_text(content: dict[str, Any]) -> str:
    r"""Render a card as Markdown.

    Parameters
    ----------
    content : dict
        Plain data, shown as they are.

        - ``title``, ``footer``: texts; ``lead``: a list of texts; ``fields``: pairs of texts.
        - ``verdict``: its ``colour``, "good", "bad" or "open", is that of the lead on the page.
        - ``sections``: each with a ``title``, ``texts``, ``points``, and a table, if it has a ``header`` and
          ``rows`` of as many texts.

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
    return CardText(render_page("card.md", content))


class CardText(str):
    """A text that notebooks show as Markdown."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


def _line(text: str) -> str:
    """Escape the start of a text so that it begins neither a heading nor a list."""
    return _STARTS.sub(lambda start: f"{start[1]}\\{start[2]}", _marked(text.strip()))


def _marked(text: str) -> str:
    return _MARKS.sub(lambda mark: "\\" + mark[0], written_out(text))
