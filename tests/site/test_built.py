"""The site as it was built: `make docs` builds it and then runs this."""

import json
import os
import re
import sys
import tomllib
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest

import fado

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_build" / "html"
RELATIONS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "manifest"}
COLOUR = re.compile(r'(?:fill|stroke)="([^"]+)"')
REMOTE = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)

pytestmark = pytest.mark.skipif(
    "SITE_IS_BUILT" not in os.environ, reason="`make docs` looks at the site that it has just built"
)


class Loaded(HTMLParser):
    """Collects what a browser fetches by itself when it shows a page."""

    def __init__(self, text):
        super().__init__()
        self.addresses = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "link" and RELATIONS & set((given.get("rel") or "").split()):
            self.addresses.append(given.get("href") or "")
        if tag in {"script", "img", "iframe", "embed", "source", "audio", "video", "track", "input"}:
            self.addresses.append(given.get("src") or "")
        if tag == "object":
            self.addresses.append(given.get("data") or "")
        if tag in {"use", "image"}:
            self.addresses += [given.get("href") or "", given.get("xlink:href") or ""]
        self.addresses += [part.split()[0] for part in (given.get("srcset") or "").split(",") if part.strip()]
        self.addresses += styled(given.get("style") or "")


def styled(text):
    """Give the addresses that style sheets name."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return [
        *re.findall(r"url\(\s*[\"']?([^\"')]+)", text),
        *re.findall(r"@import\s+[\"']([^\"']+)", text),
    ]


def loaded_by(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        return styled(text)
    if path.suffix == ".js":
        calls = r"(?:import|fetch|importScripts|open)\(\s*(?:\"GET\",\s*)?[\"'`]((?:https?:)?//[^\"'`]+)"
        sources = r"\.(?:src|href)\s*=\s*[\"'`]((?:https?:)?//[^\"'`]+)"
        return [
            *re.findall(calls, text),
            *re.findall(sources, text),
            *re.findall(r"\bfrom\s*[\"'](https?:[^\"']+)", text),
        ]
    styles = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL)
    return [*Loaded(text).addresses, *styled(" ".join(styles))]


def test_what_a_browser_would_fetch_is_seen(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        '<link rel="stylesheet" href="https://a/b.css"><script src="//c/d.js"></script>'
        '<p style="background: url(x.png)">'
    )
    assert loaded_by(page) == ["https://a/b.css", "//c/d.js", "x.png"]
    sheet = tmp_path / "sheet.css"
    sheet.write_text("@import 'https://a/b.css'; p { background: url(\"https://c/d.png\") }")
    assert loaded_by(sheet) == ["https://c/d.png", "https://a/b.css"]
    script = tmp_path / "script.js"
    script.write_text('import("https://a/b.js"); element.src = "https://c/d.js"')
    assert loaded_by(script) == ["https://a/b.js", "https://c/d.js"]


def test_nothing_is_fetched_from_elsewhere():
    files = [path for path in SITE.rglob("*") if path.suffix in {".html", ".css", ".js"}]
    remote = {
        (path.relative_to(SITE).as_posix(), address)
        for path in files
        for address in loaded_by(path)
        if REMOTE.match(address)
    }
    assert len(files) > 100
    assert remote == set()


def test_what_is_fetched_is_there():
    missing = set()
    for page in SITE.rglob("*.html"):
        if "_static" in page.parts:  # parts of the theme that no one opens
            continue
        for address in Loaded(page.read_text(encoding="utf-8")).addresses:
            path = re.sub(r"[?#].*", "", address)
            if path and not path.startswith("data:") and not (page.parent / path).exists():
                missing.add((page.name, address))
    assert missing == set()


def test_pages_do_not_name_the_folders_of_the_machine_that_built_them_nor_nest_links():
    pages = [path for path in SITE.rglob("*") if path.suffix in {".html", ".js", ".py", ".ipynb"}]
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    assert [page.name for page, text in texts.items() if str(ROOT) in text] == []
    shown = [text for page, text in texts.items() if page.suffix == ".html" and "_static" not in page.parts]
    nested = [re.search(r"<a\b(?:(?!</a>).)*?<a\b[^>]*>", text, re.DOTALL) for text in shown]
    assert [found[0][-80:] for found in nested if found] == []


def test_pages_list_the_versions_and_name_the_repository_where_the_project_does():
    versions = json.loads((ROOT / "docs" / "_static" / "switcher.json").read_text(encoding="utf-8"))
    page = (SITE / "guide" / "index.html").read_text(encoding="utf-8")
    assert page.count('role="option"') == 2 * len(versions)  # once for narrow windows
    assert 'role="option" href="../index.html"' in page
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project.get("urls", {}).get("Repository")
    page = (SITE / "aim.html").read_text(encoding="utf-8")
    assert (f'{address}/edit/main/docs/aim.md"' in page) == (address is not None)


def test_every_public_class_and_function_has_a_page():
    modules = [
        "fado",
        *sorted(f"fado.{page.stem[5:]}" for page in (ROOT / "docs" / "api").glob("fado.*.rst")),
    ]
    for module in modules:
        for name in import_module(module).__all__:
            place = "fado" if name in fado.__all__ else module
            if callable(getattr(import_module(module), name)):
                page = SITE / "api" / "generated" / f"{place}.{name}.html"
                assert f'id="{place}.{name}"' in page.read_text(encoding="utf-8"), name


def test_every_command_and_option_stands_in_the_reference():
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    try:
        commands = list(pytest.importorskip("command_line").commands())
    finally:
        sys.path.pop(0)
    page = (SITE / "api" / "command_line.html").read_text(encoding="utf-8")
    assert len(commands) >= 12
    for name, command, _ in commands:
        assert f'id="{name.replace(" ", "-")}"' in page
        for option in (
            option for parameter in command.params for option in parameter.opts if option[0] == "-"
        ):
            if option != "--help":
                assert f'id="cmdoption-{name.replace(" ", "-")}-{option.lstrip("-")}"' in page, (name, option)


def test_formulas_are_drawn():
    page = (SITE / "how_it_works.html").read_text(encoding="utf-8")
    assert page.count('<div class="formula"><svg') >= 10
    colours = {
        found for one in re.findall(r"<svg role.*?</svg>", page, re.DOTALL) for found in COLOUR.findall(one)
    }
    assert colours == {"currentColor"}  # that of the text around, which is light on dark pages
    assert "$" not in re.sub(r"<script.*?</script>|<[^>]+>", "", page, flags=re.DOTALL)


def test_every_script_has_its_picture():
    for script in (ROOT / "examples").rglob("plot_*.py"):
        page = SITE / "auto_examples" / script.parent.name / f"{script.stem}.html"
        assert f"sphx_glr_{script.stem}_001.png" in page.read_text(encoding="utf-8")
        assert (SITE / "_images" / f"sphx_glr_{script.stem}_001.png").stat().st_size > 5_000
