"""The gallery's scripts are short, with a title, a picture and a place. Building the site runs them."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").rglob("*.py"))
NAMES = [script.stem for script in SCRIPTS]


def test_there_are_enough():
    assert len(SCRIPTS) >= 10


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_script_has_a_title_and_says_what_it_shows(script):
    lines = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))).splitlines()
    assert re.fullmatch("=+", lines[1])
    assert len(lines[1]) == len(lines[0])
    assert len(" ".join(lines[2:]).split()) >= 8


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_script_is_short_and_leaves_a_picture(script):
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert re.search("^chart = ", text, re.MULTILINE)


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_picture_has_a_title(script):
    assert re.search(r"\.properties\([^()]*title=", script.read_text(encoding="utf-8"))


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_script_is_run_and_listed(script):
    assert script.name.startswith("plot_")
    assert (script.parent / "GALLERY_HEADER.rst").exists()
    folders = re.search(r"for name in \((.*?)\)", (ROOT / "docs" / "conf.py").read_text(encoding="utf-8"))[1]
    assert script.parent.name in re.findall(r'"(\w+)"', folders)


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_script_reads_no_file_that_it_did_not_write(script):
    reads = r"read_csv|read_parquet|load_baf|fetch_|load_dataset|urlopen|requests"
    assert not re.search(reads, script.read_text(encoding="utf-8"))
