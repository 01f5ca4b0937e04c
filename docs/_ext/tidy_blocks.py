"""Blocks of code end with their last line, not with the empty one that doctest wants after it."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def _cut_empty_lines(app: Sphinx, doctree: nodes.document) -> None:
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():  # else Sphinx does not colour it
            text = block.astext().rstrip()
            block.rawsource = text
            block.children = []
            block += nodes.Text(text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Cut once a page is read."""
    app.connect("doctree-read", _cut_empty_lines)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
