"""Links between pages lead somewhere, on a forge as on the site; so do the commands of what was measured."""

import json
import re
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
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]


def prose(page):
    """Give a page's text without blocks of code."""
    return re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def links(page):
    return re.findall(r"\]\(([^()\s]+)\)", re.sub(r"`[^`]*`", "code", prose(page)))


def anchors(page):
    """Give the anchors that a forge makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_links_are_found():
    assert "docs/aim.md" in links(ROOT / "README.md")
    assert "how-far-to-trust-them" in anchors(DOCS / "effects.md")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_to_files_and_headings(page):
    dead = []
    for link in links(page):
        if re.match(r"https?://[\w.-]+\.\w+", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_headings_of_a_page_differ(page):
    if page.name != "CHANGELOG.md":
        found = anchors(page)
        assert len(set(found)) == len(found)


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
