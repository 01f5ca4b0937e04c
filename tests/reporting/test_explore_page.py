import base64
import hashlib
import json
import re

import pytest

from fado.reporting import explore_page

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>&amp;'\"{{7*7}}${7}"


@pytest.fixture(scope="module")
def text():
    return explore_page({"about": HOSTILE, "line": "a\u2028b\u2029c\u202ed\0e"})


def embedded(text):
    return re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1]


def test_the_policy_allows_the_page_s_own_style_and_script_alone(text):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag in ("style", "script"):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_the_page_names_nothing_to_load(text):
    page = text.replace(embedded(text), "")
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


def test_markup_in_data_never_reaches_the_page_as_markup(text):
    inside = embedded(text)
    assert not set("<>&'\u2028\u2029\u202e\0") & set(inside)
    data = json.loads(inside)
    assert data["about"] == HOSTILE
    assert data["line"] == "a\\u2028b\\u2029c\\u202ed\\u0000e"


def test_a_dollar_sign_in_data_is_no_placeholder():
    page = explore_page({"about": "$script $$ ${data}"})
    assert json.loads(embedded(page)) == {"about": "$script $$ ${data}"}


def test_only_a_page_with_a_pool_has_the_script_that_draws_it():
    plain = {"attributes": [{"name": "sex"}]}
    assert "function drawPool" not in explore_page(plain)
    for summary in (plain, {"attributes": [{"name": "age", "effects": {}}]}):
        page = explore_page(summary | {"pool": {}})
        assert "function drawPool" in page
        assert explore_page(summary).split("script-src")[0] == page.split("script-src")[0]
        test_the_policy_allows_the_page_s_own_style_and_script_alone(page)
        test_the_page_names_nothing_to_load(page)
        names = re.findall(r"^(?:function|const|let) (\w+)", page, re.MULTILINE)
        assert len(names) == len(set(names))  # the scripts share one scope


def test_only_a_page_of_effects_has_the_script_that_draws_them():
    plain = explore_page({"attributes": [{"name": "sex"}]})
    with_effects = explore_page({"attributes": [{"name": "sex"}, {"name": "age", "effects": {}}]})
    assert "function drawEffects" not in plain
    assert "function drawEffects" in with_effects
    assert plain.split("<script")[0].split("script-src")[0] == with_effects.split("script-src")[0]
    test_the_policy_allows_the_page_s_own_style_and_script_alone(with_effects)
    test_the_page_names_nothing_to_load(with_effects)
