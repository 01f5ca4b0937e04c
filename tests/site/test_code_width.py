"""Lines of code on the pages fit beside both sidebars: a reader need not scroll."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATED = {"_build", "auto_examples", "generated", "backreferences"}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not GENERATED & set(page.relative_to(ROOT).parts)]
WIDEST = 79


def code_lines(page):
    """Give the lines of blocks of code with their numbers, without prompts and what examples print."""
    text = page.read_text(encoding="utf-8")
    for block in re.finditer(r"^( *)```[^\n]*\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE):
        first = text.count("\n", 0, block.start(2)) + 1
        is_session = ">>> " in block[2]
        for number, line in enumerate(block[2].splitlines(), start=first):
            prompt = re.match(r" *(?:>>>|\.\.\.) ?", line)
            if prompt or not is_session:
                yield number, line[prompt.end() :] if prompt else line


def test_lines_are_found():
    lines = dict(code_lines(ROOT / "docs" / "index.md"))
    assert "from fado import AimedEstimator" in lines.values()
    assert not any(line.startswith((">>>", "0   0.4")) for line in lines.values())


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_lines_of_code_are_short(page):
    wide = [(number, len(line)) for number, line in code_lines(page) if len(line) > WIDEST]
    assert wide == []
