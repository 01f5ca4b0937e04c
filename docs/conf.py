"""How Sphinx builds the site: `make docs`."""

import json
import sys
import warnings
from pathlib import Path

import fado

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import repository  # noqa: E402 - it stands in the folder that the line above adds

project = "FADO"
author = "The FADO maintainers"
copyright = author
version = release = fado.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "command_line",
    "outside_pages",
    "linked_names",
    "rendered_math",
    "repository",
    "site_api",
    "tidy_blocks",
]
exclude_patterns = ["_build", "api/_*", "**/GALLERY_HEADER.*", "auto_examples/**/*.ipynb"]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
nitpicky = True
smartquotes = False  # what stands in quotes is often to be typed

# The pages: Markdown as a forge shows it.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_dmath_allow_space = False
myst_dmath_allow_digits = False
highlight_language = "none"  # a block that names no language holds commands for a shell
html_math_renderer = "svg"

# The reference.
autosummary_generate = [str(page) for page in (HERE / "api").glob("[!_]*.rst")]  # new pages at once, too
autodoc_typehints = "none"  # docstrings say it in words
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the class template lists them
numpydoc_xref_param_type = False
default_role = "literal"

# The gallery: its scripts run while the site is built.
# A warning that one of them shows does not name this machine's folders.
warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\n"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("fado",),
    "reference_url": {"fado": None},
    "image_scrapers": ("chart_scraper.scrape_charts",),
    "reset_modules": (),
    "capture_repr": (),
    "subsection_order": [f"../examples/{name}" for name in ("fairer", "rows", "training_sets", "new_rows")],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": False,  # -W makes a failed script fail the build
    "show_memory": False,
    "write_computation_times": False,  # these pages would load scripts from elsewhere
    "min_reported_time": 1,
    "plot_gallery": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "thumbnail_size": (560, 380),
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"FADO {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_context = {
    "versions": json.loads((HERE / "_static" / "switcher.json").read_text(encoding="utf-8")),
    **repository.html_context(),
}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "FADO", "image_light": "_static/logo_light.svg", "image_dark": "_static/logo_dark.svg"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "navigation_depth": 2,
    **repository.theme_options(),
}
html_sidebars = {
    "index": [],
    "install": [],
    "which": [],
    "tutorial_adult": [],
    "compared": [],
    "faq": [],
    "glossary": [],
    "bibliography": [],
    "how_it_works": [],
    "changelog": [],
}
