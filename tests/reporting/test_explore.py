"""The page of an exploration: it loads nothing, and has only the scripts that it needs."""

import re

from fado.reporting import explore_page


def check_that_nothing_is_loaded(page):
    assert set(re.findall(r"https?://[^\s\"'`<)]*", page)) == {"http://www.w3.org/2000/svg"}
    for word in (
        "src=",
        "href=",
        "@import",
        "url(",
        "innerHTML",
        "insertAdjacentHTML",
        "eval(",
        "document.write",
    ):
        assert word not in page


def test_the_page_names_nothing_to_load():
    check_that_nothing_is_loaded(explore_page({}))


def test_only_a_page_of_effects_has_the_script_that_draws_them():
    plain = explore_page({"attributes": [{"name": "sex"}]})
    with_effects = explore_page({"attributes": [{"name": "sex"}, {"name": "age", "effects": {}}]})
    assert "function drawEffects" not in plain
    assert "function drawEffects" in with_effects
    assert plain.split("<script")[0].split("script-src")[0] == with_effects.split("script-src")[0]
    check_that_nothing_is_loaded(with_effects)
