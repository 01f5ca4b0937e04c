"""Links to the repository: its address stands in pyproject.toml, under `project.urls`, and nowhere else.

Without an address there, pages have no such links.
"""

import tomllib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ADDRESS: str | None = PROJECT.get("urls", {}).get("Repository")
MADE = ("api/generated/", "auto_examples/")  # pages that no one edits: scripts and docstrings make them


def theme_options() -> dict[str, Any]:
    """Give the options of the theme that show the repository."""
    if ADDRESS is None:
        return {}
    icon = "fa-brands fa-github" if "github.com" in ADDRESS else "fa-solid fa-code-branch"
    return {
        "icon_links": [{"name": "Repository", "url": ADDRESS, "icon": icon}],
        "use_edit_page_button": True,
        "secondary_sidebar_items": ["page-toc", "edit-this-page"],
    }


def html_context() -> dict[str, str]:
    """Give what the theme makes the address of a page's source from."""
    if ADDRESS is None:
        return {}
    return {"edit_page_url_template": f"{ADDRESS.rstrip('/')}/edit/main/docs/{{{{ file_name }}}}"}


def _hide_edit_link(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    if pagename.startswith(MADE):
        context["page_source_suffix"] = ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Hide the link where there is nothing to edit."""
    app.connect("html-page-context", _hide_edit_link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
