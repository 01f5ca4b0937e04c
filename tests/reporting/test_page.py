"""The page helper: nothing in the data can become markup, script or placeholder."""

import base64
import hashlib
import json
import re

import pytest

from fado.reporting._page import render_page

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>&amp;'\"{{7*7}}${7}"
LIBRARY = "const el = '</script><b>$title'; window.drawn = 1; // </SCRIPT>"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "body.html").write_text("<main>$5 and ${data}</main>\n")
    (tmp_path / "page.css").write_text("main::before { content: '$style'; }\n")
    (tmp_path / "first.js").write_text("const price = `$${1 + 1} $data`;\n")
    (tmp_path / "second.js").write_text("price.length;\n")
    return tmp_path


@pytest.fixture
def render(folder):
    def rendered(data, library=None):
        scripts = ["first.js", "second.js"]
        return render_page(folder, title="A title", scripts=scripts, data=data, library=library)

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
    text = render({}, LIBRARY)
    assert "<main>$5 and ${data}</main>" in text
    assert "content: '$style';" in text
    assert "const price = `$${1 + 1} $data`;\n" in text
    assert "$title'; window.drawn" in text


@pytest.mark.parametrize("library", [None, LIBRARY])
def test_the_policy_allows_the_page_s_own_style_and_scripts_alone(render, library):
    text = render({"about": HOSTILE}, library)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert len(scripts) == (1 if library is None else 2)
    assert policy_of(text) == (
        f"default-src 'none'; script-src {' '.join(map(digest, scripts))}; style-src {digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def test_a_library_cannot_end_its_script_and_keeps_its_names_to_itself(render):
    library, own = re.findall(r"<script>(.*?)</script>", render({}, LIBRARY), re.S)
    assert library == ("(() => {const el = '<\\/script><b>$title'; window.drawn = 1; // <\\/SCRIPT>\n})();")
    assert own.startswith('"use strict";')
    assert own.index("function el(") < own.index("const price") < own.index("price.length")


def test_numbers_keep_six_digits_and_nan_is_refused(render):
    assert json.loads(embedded(render([1 / 3, 1234567, None, True]))) == [0.333333, 1234567, None, True]
    with pytest.raises(ValueError, match="not JSON compliant"):
        render([float("nan")])


def test_the_page_is_one_document_with_its_title(render):
    text = render({})
    assert text.startswith("<!doctype html>")
    assert text.count("<title>A title</title>") == 1
    assert text.endswith("</html>\n")
