"""The ten lines on Adult that the README and the start page show print what stands below them."""

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md"]
ADULT = os.environ.get("FADO_ADULT")


def example(page):
    """Give the page's code and what it prints."""
    text = page.read_text(encoding="utf-8")
    return re.search(r"```python\n([^>].*?)```\n\n```text\n(.*?)```", text, re.DOTALL).groups()


def test_both_pages_show_the_same():
    assert example(PAGES[0]) == example(PAGES[1])


@pytest.mark.skipif(ADULT is None, reason="FADO_ADULT names no file of the Adult data")
def test_the_lines_print_the_table_below_them():
    code, printed = example(PAGES[0])
    assert code.count("fetch_adult()") == 1
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code.replace("fetch_adult()", f"fetch_adult({ADULT!r})"), {})
    assert out.getvalue().split() == printed.split()
