"""The page on installation names every extra, and what each brings."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")


def test_every_extra_is_told_with_what_it_brings():
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", PAGE, re.MULTILINE))
    extras = PROJECT["optional-dependencies"]
    assert set(rows) == set(extras)
    for extra in set(extras) - {"all"}:
        brought = {re.match(r"[\w-]+", line)[0].lower() for line in extras[extra]}
        assert brought <= set(re.findall(r"[\w-]+", rows[extra].lower())), extra


def test_the_page_names_the_python_that_is_needed():
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in PAGE
