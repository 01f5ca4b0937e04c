"""The oldest versions that the tests run on are those that `pyproject.toml` asks for."""

import tomllib
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "oldest.txt"


def required():
    """The lowest version of everything that users and tests install, as `pyproject.toml` has it."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = about["project"]
    optional = project["optional-dependencies"].items()
    extras = [texts for name, texts in optional if name != "all"]  # which names the others
    lowest = {}
    for text in chain(project["dependencies"], *extras, about["dependency-groups"]["test"]):
        requirement = Requirement(text)
        (bound,) = requirement.specifier
        assert bound.operator == ">=", f"{text} has no lower bound alone"
        assert lowest.setdefault(requirement.name, Version(bound.version)) == Version(bound.version), text
    return lowest


def pinned():
    lines = FILE.read_text(encoding="utf-8").splitlines()
    pins = [line.partition("==") for line in lines if line and not line.startswith("#")]
    assert all(separator for _, separator, _ in pins)
    return {name: Version(number) for name, _, number in pins}


def test_the_oldest_environment_has_the_lowest_versions_that_are_promised():
    assert pinned() == required()


def test_pythons_are_those_that_can_be_had():
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    minors = [int(line.removeprefix(prefix)) for line in about["classifiers"] if line.startswith(prefix)]
    assert minors == list(range(min(minors), max(minors) + 1))
    assert about["requires-python"] == f">=3.{min(minors)}"
