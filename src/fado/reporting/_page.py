"""Pages: self-contained HTML texts from templates and plain data, and their form in notebooks.

All data reach the page as JSON inside a data block. Every character that could end the block, or that
JavaScript treats as the end of a line, is escaped, and the page's script only inserts data as text. The
content security policy allows the page's own style and script, by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
import unicodedata
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 6

_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&'\u2028\u2029"}
# Control, formatting (marks of direction), private use, surrogates, line ends.
_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}


def render_page(page: str, *, title: str, scripts: Sequence[str], data: Any) -> str:
    """Render a folder of templates and the data as one page that makes no request.

    Parameters
    ----------
    page : str
        The folder of the page's own templates: ``body.html``, ``page.css`` and its scripts. All pages share
        ``page.html``, ``base.css`` and ``dom.js``, which comes before the scripts.
    title : str
        The title of the page, which must not come from the data.
    scripts : sequence of str
        Names of the page's scripts in the order in which they run: its own, or shared ones.
    data : plain data
        All content that comes from the data, for JSON.

    Returns
    -------
    str
        The page.
    """
    shared = files("fado.reporting") / "templates"
    folder = shared / page
    style = _read(shared, "base.css") + _read(folder, "page.css")
    homes = [folder if (folder / name).is_file() else shared for name in scripts]
    own = [_read(home, name) for home, name in zip(homes, scripts, strict=True)]
    script = "\n".join([_read(shared, "dom.js"), *own])
    return Template(_read(shared, "page.html")).substitute(
        title=title,
        style=style,
        style_hash=_hash(style),
        script_hash=_hash(script),
        body=_read(folder, "body.html"),
        data=_as_json(data),
        script=script,
    )


def _read(folder: Traversable, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _as_json(data: Any) -> str:
    text = json.dumps(_compact(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def _compact(value: Any) -> Any:
    """Round numbers, and make invisible characters visible that change the text around them."""
    if isinstance(value, dict):
        return {_compact(key): _compact(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_compact(entry) for entry in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, str):
        return written_out(value)
    return value


def without_nan(value: Any) -> Any:
    """Return plain data with None in place of NaN, which JSON does not have.

    Parameters
    ----------
    value : plain data
        Lists and dicts may hold others.
    """
    if isinstance(value, dict):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [without_nan(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value


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
    told = [f"<p>{_escaped(text)}</p>" for text in texts]
    if table is not None:
        cells = table.map(lambda cell: written_out(cell) if isinstance(cell, str) else cell)
        cells.columns = [written_out(str(name)) for name in table.columns]
        shown = cells.to_html(border=0, index=False, na_rep="", float_format=written_number)
        told.append(shown)
    return f"<div><p><b>{_escaped(title)}</b></p>{''.join(told)}</div>"


def written_number(number: float) -> str:
    """Write a number with at least four digits, and never in powers of ten if it is large.

    Examples
    --------
    >>> written_number(0.12345), written_number(93900.4), written_number(9390)
    ('0.1235', '93,900', '9,390')
    """
    return f"{number:,.0f}" if 1000 <= abs(number) < math.inf else f"{number:.4g}"


def _escaped(text: str) -> str:
    return html.escape(written_out(text))


def load_altair() -> Any:
    """Import Altair, or say how to install it."""
    try:
        import altair
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Charts need Altair: install it with `pip install 'fado-ml[plot]'`.", name="altair"
        ) from error
    return altair


# Characters that begin or end emphasis, code, links, images, HTML, tables, entities or formulas; addresses
# that some programs turn into links; and underscores, except within words.
_MARKS = re.compile(r"[\\`*\[\]<>|&~$@!]|(?<=[a-z]):(?=//)|(?<=www)\.|(?<!\w)_|_(?!\w)", re.IGNORECASE)
_STARTS = re.compile(r"^(\d*)([#+=.)-])")


def card_page(content: dict[str, Any]) -> str:
    """Render a card as a page that makes no request.

    Parameters
    ----------
    content : dict
        Plain data, shown as they are.

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
    fields = [f"- {_marked(f'{name.capitalize()}: {text}')}" for name, text in content.get("fields", ())]
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
    """A text that notebooks show as Markdown."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


def _line(text: str) -> str:
    """Escape the start of a text so that it begins neither a heading nor a list."""
    return _STARTS.sub(lambda start: f"{start[1]}\\{start[2]}", _marked(text.strip()))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_marked, cells))} |"


def _marked(text: str) -> str:
    return _MARKS.sub(lambda mark: "\\" + mark[0], written_out(text))
