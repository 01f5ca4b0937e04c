"""Links, code, extras and commands that the pages show: all lead somewhere, fit the column and are there."""

import contextlib
import io
import json
import os
import re
import tomllib
from pathlib import Path

import pytest

import fado

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {"_build", "auto_examples", "generated", "backreferences"}
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    if not GENERATED & set(page.relative_to(ROOT).parts)
)
WIDEST = 79  # characters of a line of code: beside both sidebars a reader need not scroll
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ADULT = os.environ.get("FADO_ADULT")


def prose(page):
    """Give a page's text without blocks of code."""
    return re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def links(page):
    return re.findall(r"\]\(([^()\s]+)\)", re.sub(r"`[^`]*`", "code", prose(page)))


def anchors(page):
    """Give the anchors that a forge makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_links_lead_to_files_and_to_headings_that_differ():
    assert "docs/aim.md" in links(ROOT / "README.md")
    assert "how-far-to-trust-them" in anchors(DOCS / "effects.md")
    dead = []
    for page, link in ((source, link) for source in PAGES for link in links(source)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_there = target.exists() and (not anchor or anchor in anchors(target))
        if not is_there and not re.match(r"https?://[\w.-]+\.\w+", link):
            dead.append((page.name, link))
    assert dead == []
    for page in PAGES:
        names = anchors(page)
        assert page.name == "CHANGELOG.md" or len(set(names)) == len(names), page


def test_every_page_of_the_guide_is_reached_from_the_start():
    reached, ahead = set(), [DOCS / "index.md"]
    while ahead:
        page = ahead.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        trees = re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        entries = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
        paths = [page.parent / f"{re.sub('.*<|>', '', entry)}.md" for entry in entries]
        found = [list(path.parent.glob(path.name)) if "*" in path.name else [path] for path in paths]
        ahead += [path.resolve() for paths in found for path in paths]
        ahead = [page for page in ahead if page.exists()]  # others are the reference and the gallery
    assert sorted(set(DOCS.rglob("*.md")) & set(PAGES) - reached) == []


def test_the_versions_of_the_site_begin_with_this_one():
    versions = json.loads((DOCS / "_static" / "switcher.json").read_text(encoding="utf-8"))
    assert versions[0] == {"version": fado.__version__, "url": ""}
    assert all(entry["url"].endswith("/") for entry in versions[1:])


MEASURED = (DOCS / "measured.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"`(python benchmarks/[^`]+)`", MEASURED)))


def test_every_benchmark_has_its_command():
    scripts = {path.name for path in (ROOT / "benchmarks").glob("[!_]*.py")}
    told = {name for command in COMMANDS for name in re.findall(r"benchmarks/(\w+\.py)", command)}
    assert told == scripts


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_a_script_and_options_that_it_has(command):
    script = ROOT / command.split()[1]
    text = "".join(
        path.read_text(encoding="utf-8") for path in [script, *(ROOT / "benchmarks").glob("_*.py")]
    )
    for option in re.findall(r"--[\w-]+", command):
        assert f'"{option}"' in text or f'"{option[2:]}"' in text, option


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


def test_lines_of_code_are_found_and_short():
    lines = dict(code_lines(ROOT / "docs" / "index.md"))
    assert "from fado import AimedEstimator" in lines.values()
    assert not any(line.startswith((">>>", "0   0.4")) for line in lines.values())
    shown = [page for page in PAGES if page.name == "README.md" or DOCS in page.parents]
    wide = [(page.name, *line) for page in shown for line in code_lines(page) if len(line[1]) > WIDEST]
    assert wide == []


def test_every_extra_is_told_with_what_it_brings():
    page = (DOCS / "install.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", page, re.MULTILINE))
    extras = PROJECT["optional-dependencies"]
    assert set(rows) == set(extras)
    for extra in set(extras) - {"all"}:
        brought = {re.match(r"[\w-]+", line)[0].lower() for line in extras[extra]}
        assert brought <= set(re.findall(r"[\w-]+", rows[extra].lower())), extra
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in page


def example(page):
    """Give the ten lines on Adult, and what they print."""
    text = page.read_text(encoding="utf-8")
    return re.search(r"```python\n([^>].*?)```\n\n```text\n(.*?)```", text, re.DOTALL).groups()


def test_the_readme_and_the_start_page_show_the_same_lines():
    assert example(ROOT / "README.md") == example(DOCS / "index.md")


@pytest.mark.skipif(ADULT is None, reason="FADO_ADULT names no file of the Adult data")
def test_the_lines_print_the_table_below_them():
    code, printed = example(ROOT / "README.md")
    assert code.count("fetch_adult()") == 1
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code.replace("fetch_adult()", f"fetch_adult({ADULT!r})"), {})
    assert out.getvalue().split() == printed.split()
