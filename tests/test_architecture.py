"""Data flow one way: what a package may import, read off the source."""

import ast
import re
import sys
import tomllib
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import fado

ROOT = Path(fado.__file__).parent
# Each may import those before it, by their public names; the modules beside them (`_storage.py`) are for all.
ORDER = [
    "reporting",
    "tabular",
    "execution",
    "engine",
    "metrics",
    "datasets",
    "valuation",
    "utility",
    "columns",
    "interventions",
    "active",
    "generation",
    "models",
    "aim",
    "exploration",
    "experiment",
    "cli",
]
ALONE = {"reporting"}  # takes frames and dicts, and imports no other package
MODULES = sorted(ROOT.rglob("*.py"))


def name_of(path):
    parts = ["fado", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(module) for module in MODULES}


def imported(path, *, at_once=False):
    """The fado modules that a file imports; `at_once` leaves out what its functions import when called."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if at_once else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module.split(".")[0] == "fado":
            yield node.module
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in below if name in NAMES)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "fado")


def package_of(name):
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and not parts[1].startswith("_") else None


def test_every_package_has_its_place():
    there = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    there |= {path.stem for path in ROOT.glob("[!_]*.py")}
    assert there == set(ORDER)


def test_the_map_names_every_package_in_its_order_and_modules_that_there_are():
    text = (ROOT.parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (root modules|`[a-z/]+`) \| [^|]+ \|([^|]*)\|$", text, re.MULTILINE)
    places = {name.strip("`").rstrip("/"): re.findall(r"`(\w+)`", modules) for name, modules in rows}
    assert [name for name in places if "/" not in name] == ["root modules", *ORDER]
    assert {f"valuation/{path.parent.name}" for path in ROOT.glob("valuation/*/__init__.py")} <= set(places)
    for name, modules in places.items():
        folder = ROOT if name == "root modules" else ROOT / name
        assert [module for module in modules if not (folder / f"{module}.py").exists()] == [], name


def test_imports_go_with_the_data_and_by_public_names():
    for path in MODULES:
        package, inside = package_of(name_of(path)), path.relative_to(ROOT).parts[:-1]
        for name in imported(path):
            parts, other, what = name.split(".")[1:], package_of(name), f"{name_of(path)} imports {name}"
            if other not in (None, package):
                assert package is None or package not in ALONE, what
                assert package is None or ORDER.index(other) < ORDER.index(package), what
                assert not [part for part in parts[1:] if part.startswith("_")], f"{what}, which is private"
            elif len(parts) > 2 and parts[0] in inside and (ROOT / parts[0] / parts[1]).is_dir():
                assert parts[1] in inside, f"{what}, which is private"


def test_helpers_for_all_import_no_package():
    helpers = [path for path in ROOT.glob("_*.py") if path.name != "__init__.py"]
    for path in helpers:
        assert not [name for name in imported(path) if package_of(name)], path.name


def test_no_module_needs_one_that_needs_it():
    names = {name_of(path) for path in MODULES}
    graph = {
        name_of(path): {name for name in imported(path, at_once=True) if name in names} - {name_of(path)}
        for path in MODULES
        if path.name != "__init__.py"
    }
    inner = {name: {other for other in others if other in graph} for name, others in graph.items()}
    TopologicalSorter(inner).prepare()  # raises at a cycle


def test_files_are_of_a_size_to_be_read_in_one_sitting():
    long = [name_of(path) for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > 600]
    assert not long


def test_what_is_imported_is_declared():
    project = tomllib.loads((ROOT.parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    declared = {re.match(r"[A-Za-z0-9_.-]+", line)[0].lower() for line in needed}
    homes = {"sklearn": "scikit-learn", "imblearn": "imbalanced-learn", "vl_convert": "vl-convert-python"}
    homes |= {
        "markupsafe": "jinja2",
        "distributed": "dask",
        "click": "typer",
        "skactiveml": "scikit-activeml",
    }
    used = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            used |= {name.split(".")[0] for name in names}
    foreign = used - set(sys.stdlib_module_names) - {"fado"}
    foreign -= {"polars"}  # only ever imported where a user has passed one of its columns
    assert {homes.get(name, name) for name in foreign} <= declared
