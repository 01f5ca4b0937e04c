"""What stands around the code says the same as the code."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from fado import __version__

ROOT = Path(__file__).parent.parent
FORGE = ROOT / ".github"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
pytestmark = pytest.mark.skipif(not FORGE.is_dir(), reason="a source archive has no forge")


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_citation_and_changelog_are_of_this_version_and_name_the_paper():
    citation = read(ROOT / "CITATION.cff")
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert (citation["version"], citation["license"]) == (__version__, PROJECT["license"])
    assert citation["keywords"] == PROJECT["keywords"]
    (paper,) = citation["references"]
    assert paper["identifiers"][0]["value"] == "arXiv:2303.16963"
    authors = [one["family-names"] for one in paper["authors"]]
    assert authors == ["Pombal", "Saleiro", "Figueiredo", "Bizarro"]
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == __version__


def test_the_forge_runs_commands_that_there_are():
    jobs = read(FORGE / "workflows" / "test.yml")["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands == ["make test", "make test-slow", "make test-oldest", "make docs", "make dist"]
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {command.split()[1] for command in commands} <= set(targets)
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert jobs["test"]["strategy"]["matrix"]["python"][0] == oldest


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_issue_forms_are_whole(name):
    form = read(FORGE / "ISSUE_TEMPLATE" / f"{name}.yml")
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
