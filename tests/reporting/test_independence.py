"""Reporting takes frames and plain data: it knows no other package of fado."""

import ast
from pathlib import Path

import fado.reporting

FOLDER = Path(fado.reporting.__file__).parent


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_no_other_package_is_imported():
    names = {name for path in FOLDER.rglob("*.py") for name in imported(path)}
    ours = {name for name in names if name.split(".")[0] == "fado"}
    assert {name for name in ours if not name.startswith("fado.reporting")} == {"fado._version"}
