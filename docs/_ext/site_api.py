"""What the reference lists of a class: FADO's own, not what scikit-learn's base classes bring along."""

import re
from inspect import unwrap
from typing import Any

from sphinx.application import Sphinx

ROUTING = re.compile(r"set_\w+_request|get_metadata_routing")


def _skip_member(app: Sphinx, kind: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    if ROUTING.fullmatch(name):
        return True
    function = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
    home = getattr(unwrap(function) if callable(function) else function, "__module__", None)
    if home is not None and home.partition(".")[0] != "fado":
        return True
    return None


def setup(app: Sphinx) -> dict[str, Any]:
    """Leave out members that were written elsewhere."""
    app.connect("autodoc-skip-member", _skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
