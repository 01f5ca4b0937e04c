"""The reference of the command line, read off the program itself: what it says under `--help` stands here."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from typer.main import get_command

from fado.cli._app import build_app

OUT = "api/_commands.rst"


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Give every command that does something: its full name, itself, and its context under `--help`."""
    yield from _below(get_command(build_app()), "fado", None)


def _below(command: Any, name: str, parent: Any) -> Iterator[tuple[str, Any, Any]]:
    context = command.make_context(name.rpartition(" ")[2], [], parent=parent, resilient_parsing=True)
    if not hasattr(command, "commands"):
        yield name, command, context
        return
    for own in command.list_commands(context):
        yield from _below(command.commands[own], f"{name} {own}", context)


def _as_text(help_text: str) -> str:
    """Escape what reStructuredText would read as its own signs; keep code between backticks as code."""
    pieces = re.split(r"`+([^`]+)`+", " ".join(help_text.split()))
    for number, piece in enumerate(pieces):
        pieces[number] = f"``{piece}``" if number % 2 else re.sub(r"([*_|\\<>])", r"\\\1", piece)
    return "".join(pieces)


def _section(name: str, command: Any, context: Any) -> Iterator[str]:
    yield from (name, "-" * len(name), "")
    yield from (_as_text(command.help), "")
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield from (".. code-block:: text", "", f"   {usage}", "")
    yield from (f".. program:: {name}", "")
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None:
            continue
        title, text = record[0].removesuffix(" <path>"), record[1]
        yield from (f".. option:: {title}", "", f"   {_as_text(text)}", "")


def _write(app: Sphinx) -> None:
    lines = [line for found in commands() for line in _section(*found)]
    text = "\n".join(lines) + "\n"
    path = Path(app.srcdir) / OUT
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages' text before anything is read."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
