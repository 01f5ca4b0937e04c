"""What notebooks show: a page in a frame of its own, or a small table; all escaped, nothing loaded."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fado.reporting._page import written_out

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["page_in_frame", "shown_table"]


def page_in_frame(page: str, height: int) -> str:
    """Give a page as an output of a notebook.

    A frame keeps the notebook's styles out of the page, and the page's scripts out of the notebook.

    Parameters
    ----------
    page : str
        The whole page.
    height : int
        Of the frame, in pixels.
    """
    return (
        f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(page)}" '
        f'style="width:100%;height:{height}px;border:0"></iframe>'
    )


def shown_table(title: str, texts: Sequence[str], table: pd.DataFrame | None = None) -> str:
    """Give a title, some sentences and a table as an output of a notebook.

    Parameters
    ----------
    title : str
        What it is.
    texts : sequence of str
        Sentences.
    table : DataFrame, optional
        Numbers and texts; what is missing is left empty, and the index is not shown.

    Examples
    --------
    >>> shown_table("Results of <x>", ["None are done."])
    '<div><p><b>Results of &lt;x&gt;</b></p><p>None are done.</p></div>'
    """
    told = [f"<p>{_escaped(text)}</p>" for text in texts]
    if table is not None:
        cells = table.map(lambda cell: written_out(cell) if isinstance(cell, str) else cell)
        cells.columns = [written_out(str(name)) for name in table.columns]
        shown = cells.to_html(border=0, index=False, na_rep="", float_format="{:.4g}".format)
        told.append(shown)
    return f"<div><p><b>{_escaped(title)}</b></p>{''.join(told)}</div>"


def _escaped(text: str) -> str:
    return html.escape(written_out(text))
