"""The reference lists every public name, and no other."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import fado

API = Path(__file__).parents[2] / "docs" / "api"
INSIDE = {"tabular", "engine", "reporting", "cli"}  # for who works on FADO; the last has a page of commands
ROOT = Path(fado.__file__).parent
FOUND = {path.parent.name for path in ROOT.glob("*/__init__.py")} | {
    path.stem for path in ROOT.glob("[!_]*.py")
}
PACKAGES = sorted(FOUND - INSIDE)
MODULES = ["fado", *(f"fado.{package}" for package in PACKAGES)]


def listed(module):
    """Names on the page of a module, each with the module that it is listed from."""
    current = module
    for line in (API / f"{module}.rst").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. (?:current)?module:: (\S+)", line):
            current = found[1]
        elif found := re.match(r"\.\. py:data:: (\S+)", line):
            yield module, found[1]
        elif found := re.match(r"   ([A-Za-z_]\w*)$", line):
            yield current, found[1]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_of_a_module_is_on_its_page_once_from_the_shortest_place(module):
    assert module in (API / "index.rst").read_text(encoding="utf-8").split()
    names = list(listed(module))
    assert sorted(name for _, name in names) == sorted(import_module(module).__all__)
    assert [place for place, _ in names] == ["fado" if name in fado.__all__ else module for _, name in names]
