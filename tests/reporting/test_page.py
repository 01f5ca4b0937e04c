"""The page helper: nothing in the data can become markup, script or placeholder."""

import base64
import hashlib
import json
import re
import sys

import pytest

from fado.reporting._page import load_altair, render_page

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>&amp;'\"{{7*7}}${7}"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "body.html").write_text("<main>$5 and ${data}</main>\n")
    (tmp_path / "page.css").write_text("main::before { content: '$style'; }\n")
    (tmp_path / "first.js").write_text("const price = `$${1 + 1} $data`;\n")
    (tmp_path / "second.js").write_text("price.length;\n")
    return tmp_path


@pytest.fixture
def render(folder):
    def rendered(data, scripts=("first.js", "second.js")):
        return render_page(folder, title="A title", scripts=scripts, data=data)

    return rendered


def embedded(text):
    return re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1]


def policy_of(text):
    return re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]


def digest(body):
    return "'sha256-" + base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() + "'"


def test_markup_in_data_never_reaches_the_page_as_markup(render):
    text = render({"about": HOSTILE, HOSTILE: 1})
    assert not set("<>&'") & set(embedded(text))
    assert json.loads(embedded(text)) == {"about": HOSTILE, HOSTILE: 1}
    assert text.count("<script") == text.count("</script") == 2
    assert "<!--" not in text


def test_characters_that_change_those_around_them_are_made_visible(render):
    inside = embedded(render({"line": "a\u2028b\u2029c\u202ed\0e", "\u202e": ["\ufeff"]}))
    assert not set("\u2028\u2029\u202e\0\ufeff") & set(inside)
    assert json.loads(inside) == {"line": "a\\u2028b\\u2029c\\u202ed\\u0000e", "\\u202e": ["\\ufeff"]}


@pytest.mark.parametrize("text", ["$script $$ ${data}", "$title", "$"])
def test_a_dollar_sign_in_data_is_no_placeholder(render, text):
    assert json.loads(embedded(render({"about": text}))) == {"about": text}


def test_a_dollar_sign_in_a_template_is_no_placeholder(render):
    text = render({})
    assert "<main>$5 and ${data}</main>" in text
    assert "content: '$style';" in text
    assert "const price = `$${1 + 1} $data`;\n" in text


def test_the_policy_allows_the_page_s_own_style_and_script_alone(render):
    text = render({"about": HOSTILE})
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert policy_of(text) == (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def test_scripts_run_in_the_order_asked_for_after_what_all_pages_share(render):
    (script,) = re.findall(r"<script>(.*?)</script>", render({}, ["second.js", "svg.js", "first.js"]), re.S)
    assert script.startswith('"use strict";')
    places = [script.index(own) for own in ("function el(", "price.length", "function svgEl(", "const price")]
    assert places == sorted(places)


def test_a_page_s_own_script_comes_before_a_shared_one_of_its_name(render, folder):
    (folder / "svg.js").write_text("const ours = 1;\n")
    text = render({}, ["svg.js"])
    assert "const ours" in text
    assert "function svgEl(" not in text


def test_numbers_keep_six_digits_and_nan_is_refused(render):
    assert json.loads(embedded(render([1 / 3, 1234567, None, True]))) == [0.333333, 1234567, None, True]
    with pytest.raises(ValueError, match="not JSON compliant"):
        render([float("nan")])


def test_the_page_is_one_document_with_its_title(render):
    text = render({})
    assert text.startswith("<!doctype html>")
    assert text.count("<title>A title</title>") == 1
    assert text.endswith("</html>\n")


def test_without_altair_charts_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ModuleNotFoundError, match=r"Charts need Altair: .* 'fado-ml\[plot\]'"):
        load_altair()
