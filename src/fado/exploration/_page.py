"""The page: one self-contained text, from the summary and the templates beside this file.

Whatever the data contain reaches the page as JSON inside a data block, with every character escaped that
could end the block or that JavaScript treats as a line's end; the page's script only ever sets it as text.
The content security policy allows the page's own style and script, by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import unicodedata
from importlib.resources import files
from string import Template
from typing import Any

__all__ = ["page"]

SCRIPTS = ("dom.js", "plots.js", "sections.js", "slider.js", "main.js")
DIGITS = 6

_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&'\u2028\u2029"}
_INVISIBLE = {
    "Cc",
    "Cf",
    "Co",
    "Cs",
    "Zl",
    "Zp",
}  # control, formatting (marks of direction), surrogates, line ends


def page(summary: dict[str, Any]) -> str:
    """Render the summary as a page."""
    style = _template("page.css")
    script = "\n".join(map(_template, SCRIPTS))
    return Template(_template("page.html")).substitute(
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=_as_json(summary),
    )


def _template(name: str) -> str:
    return (files("fado.exploration") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _as_json(summary: dict[str, Any]) -> str:
    text = json.dumps(_compact(summary), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def _compact(value: Any) -> Any:
    """Round numbers to what a page can show, and make characters visible that change those around them."""
    if isinstance(value, dict):
        return {key: _compact(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_compact(entry) for entry in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, str):
        return "".join(map(_visible, value))
    return value


def _visible(character: str) -> str:
    if unicodedata.category(character) in _INVISIBLE:
        return f"\\u{ord(character):04x}"
    return character
