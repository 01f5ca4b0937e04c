"""Names of the library that stand in plain `code`, on any page, lead to the reference."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

import fado

PACKAGES = sorted(page.stem[5:] for page in (Path(__file__).parents[1] / "api").glob("fado.*.rst"))
WORDS = {"evaluate", "Experiment", "Results", "Frontier", "Budget", "Exploration"}


def _short_names() -> Iterator[tuple[str, str]]:
    """Names that a reader cannot take for anything else, and the place of each in the reference."""
    for package in PACKAGES:
        for name in import_module(f"fado.{package}").__all__:
            if name in WORDS or "_" in name.strip("_") or sum(letter.isupper() for letter in name) > 1:
                yield name, f"fado.{package}.{name}"
    for name in fado.__all__:
        yield name, f"fado.{name}"  # the shorter place is the one that the reference has


SHORT = dict(_short_names())


def target_of(text: str) -> str | None:
    """Give the full name that a piece of code stands for; None if it is something else.

    Calls and members are cut off or kept as they come: `explore`, `explore(X)`, `fado.Valuation.agreement`.
    """
    name = text.partition("(")[0]
    full = SHORT.get(name.partition(".")[0])
    if full is not None:
        return ".".join([full, *name.split(".")[1:]])
    if name.startswith("fado."):
        parts = name.split(".")
        own = SHORT.get(parts[2]) if len(parts) > 2 and parts[1] in PACKAGES else None
        return ".".join([own, *parts[3:]]) if own else name
    return None


def _is_inside_link_or_title(node: nodes.Node) -> bool:
    """Say whether a link around the node would stand in another one, or in a title."""
    parent = node.parent
    while parent is not None:
        if isinstance(parent, nodes.reference | nodes.title):
            return True
        parent = parent.parent
    return False


def _link_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    documented = app.env.domains.python_domain.objects
    for node in list(doctree.findall(nodes.literal)):
        found = documented.get(target_of(node.astext()) or "")
        if found is None or found.docname == docname or _is_inside_link_or_title(node):
            continue
        link = make_refnode(app.builder, docname, found.docname, found.node_id, node.deepcopy())
        node.replace_self(link)


def setup(app: Sphinx) -> dict[str, Any]:
    """Link names once all pages are read."""
    app.connect("doctree-resolved", _link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
