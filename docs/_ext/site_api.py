"""What the reference shows of a class: FADO's own members, and the names of authors as they stand.

What scikit-learn's base classes bring along is left out. An initial at the start of a paragraph is not read
as the number of a list.
"""

import re
from inspect import unwrap
from typing import Any

from sphinx.application import Sphinx

INITIAL = re.compile(r"^(\s*[A-Z])\. (?=\S)")
ROUTING = re.compile(r"set_\w+_request|get_metadata_routing")


def _skip_member(app: Sphinx, kind: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    if ROUTING.fullmatch(name):
        return True
    function = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
    home = getattr(unwrap(function) if callable(function) else function, "__module__", None)
    if home is not None and home.partition(".")[0] != "fado":
        return True
    return None


def _keep_initials(app: Sphinx, what: str, name: str, member: Any, options: Any, lines: list[str]) -> None:
    for number, line in enumerate(lines):
        lines[number] = INITIAL.sub(r"\1\\. ", line)


def setup(app: Sphinx) -> dict[str, Any]:
    """Leave out members that were written elsewhere, and read docstrings before numpydoc does."""
    app.connect("autodoc-process-docstring", _keep_initials, priority=100)
    app.connect("autodoc-skip-member", _skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
