"""Links to pages outside this folder, as a forge needs them, lead to the site's own copies."""

from typing import Any

from sphinx.application import Sphinx

COPIES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
    "examples": "auto_examples/index.rst",
}


def _lead_to_copies(app: Sphinx, docname: str, source: list[str]) -> None:
    up = "../" * (docname.count("/") + 1)
    for outside, copy in COPIES.items():
        source[0] = source[0].replace(f"]({up}{outside}", f"]({up.removeprefix('../')}{copy}")


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrite links when a page is read."""
    app.connect("source-read", _lead_to_copies)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
