"""The gallery's scripts are short, with a title, a picture and a place. Building the site runs them."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").rglob("*.py"))
FOLDERS = re.search(r"for name in \((.*?)\)", (ROOT / "docs" / "conf.py").read_text(encoding="utf-8"))[1]
READS = r"read_csv|read_parquet|load_baf|fetch_|load_dataset|urlopen|requests"


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_a_script_is_short_listed_and_says_what_its_picture_shows(script):
    assert len(SCRIPTS) >= 10
    text = script.read_text(encoding="utf-8")
    lines = ast.get_docstring(ast.parse(text)).splitlines()
    assert re.fullmatch("=+", lines[1])
    assert len(lines[1]) == len(lines[0])
    assert len(" ".join(lines[2:]).split()) >= 8
    assert len(text.splitlines()) < 60
    assert re.search("^chart = ", text, re.MULTILINE)
    assert re.search(r"\.properties\([^()]*title=", text)
    assert script.name.startswith("plot_")
    assert (script.parent / "GALLERY_HEADER.rst").exists()
    assert script.parent.name in re.findall(r'"(\w+)"', FOLDERS)
    assert not re.search(READS, text), "it reads a file that it did not write"
