"""The pages: nothing in the data becomes markup, script or placeholder, and nothing is loaded."""

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser

import pytest

from fado.metrics import audit
from fado.reporting import card_text, landscape_chart, render_page

HOSTILE = (
    "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>&amp;'\"{{7*7}}{%x%}${7}\u202e\u2028"
)
SEEN = HOSTILE.replace("\u202e", "\\u202e").replace("\u2028", "\\u2028")


def card(name):
    table = {"title": name, "texts": [name], "points": [name]}
    table |= {"header": [name, "rows"], "rows": [[name, name]]}
    return {
        "title": name, "fields": [["owner", name]], "verdict": {"colour": "good"}, "lead": [name],
        "sections": [table], "footer": name,
    }  # fmt: skip


def audited(name):
    names = [name] * 20 + ["others"] * 20 + [None] * 20
    report = audit([0, 1] * 30, [0, 1, 1] * 20, sensitive_features={name: names, "town": ["Ulm"] * 60})
    law = report.local_law_144().replace({float("nan"): None}).to_dict("records")
    return report.to_dict() | {"local_law_144": law}


def dossier(name):
    interval = [0.5, 0.4, 0.6]
    group = {"group": name, "rows": 20, "positives": 5, "compared": False, "reason": name}
    group |= dict.fromkeys(("selection_rate", "tpr", "fpr"), interval)
    own = {"groups": [group], "ratios": {"fpr_ratio": interval}, "tpr": 0.5, "fpr": 0.004}
    model = {
        "title": name, "about": {name: name, "trees": 5.0}, "threshold": 0.25,
        "parts": {"validation": own | {"tpr_change": -0.01, "tpr_change_error": 0.02}},
    }  # fmt: skip
    return {
        "required": name, "lines": {"fpr_ratio": 0.8}, "budget": "a rate", "confidence": 0.95, "target": name,
        "chosen_on": "validation", "parts": {"train": 2000, "validation": 20}, "models": [model, model],
        "points": [[0.5, 0.5], [0.4, 0.9]],
        "searched": {
            "fits": 8, "models": 2, "points": 2, "interventions": [name], "ranges": {name: [1, 2.5]},
            "choices": {name: [name, 0.25]}, "seed": 0,
        },
        "further": {"models": 4, "gained": 0.126, "at_most": 0.2, "within": 0.02},
    }  # fmt: skip


DOCUMENTS = {"card.html": card, "audit.html": audited, "dossier.html": dossier}
DRAWN = {
    "explore.html": lambda name: {"about": name, name: 1},
    "landscape.html": lambda name: {"positive": name},
}


class Markup(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data):
        self.text += f"{data} "


def policy_of(page):
    return re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]


def digest(body):
    return "'sha256-" + base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() + "'"


@pytest.mark.parametrize("template", DOCUMENTS)
def test_a_document_has_no_script_and_names_change_nothing_of_its_markup(template):
    page = render_page(template, DOCUMENTS[template](HOSTILE))
    found, plain = Markup(page), Markup(render_page(template, DOCUMENTS[template]("plain")))
    assert found.tags == plain.tags
    assert not {"script", "noscript", "img", "link"} & {tag for tag, _ in found.tags}
    assert SEEN in found.text
    assert not set("\u2028\u202e") & set(page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.S)
    assert policy_of(page) == (
        f"default-src 'none'; style-src {digest(style)}; base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize("template", DRAWN)
def test_a_drawn_page_has_its_own_script_alone_and_data_in_the_data_block_alone(template):
    page = render_page(template, DRAWN[template](HOSTILE))
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.S)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert policy_of(page) == (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1]
    assert not set("<>&'\u2028\u202e") & set(data)
    assert json.loads(data) == DRAWN[template](SEEN)
    rest = page.replace(data, "")
    assert "alert(1)" not in rest
    assert "{{7*7}}" not in rest
    assert rest.count("<script") == rest.count("</script") == 2
    assert script.startswith('"use strict";')
    assert script.index("function el(") < script.index("function count(") < script.index("function svgEl(")


@pytest.mark.parametrize("template", [*DOCUMENTS, *DRAWN])
def test_a_page_is_one_document_that_names_nothing_to_load(template):
    page = render_page(template, (DOCUMENTS | DRAWN)[template]("plain"))
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>\n")
    assert page.split("<body>")[0].count("<title>") == 1
    assert set(re.findall(r"https?://[^\s\"'`<)]*", page)) <= {"http://www.w3.org/2000/svg"}
    loading = r"src=|href=|@import|url\(|innerHTML|insertAdjacentHTML|eval\(|document\.write"
    assert not re.search(loading, page)


def test_only_a_page_of_effects_has_their_script_and_numbers_keep_six_digits():
    for more in ([], [{"name": "age", "effects": {}}]):
        page = render_page("explore.html", {"attributes": [{"name": "sex"}, *more]})
        assert ("function drawEffects" in page) is bool(more)
    page = render_page("explore.html", {"numbers": [1 / 3, 1234567, None, True]})
    assert '{"numbers":[0.333333,1234567,null,true]}' in page
    with pytest.raises(ValueError, match="not JSON compliant"):
        render_page("explore.html", {"number": float("nan")})


def test_a_document_writes_numbers_with_few_digits_and_a_dash_for_none():
    text = Markup(render_page("dossier.html", dossier("plain"))).text
    text = re.sub("[ \n]+", " ", text).replace(" .", ".").replace(" ,", ",")
    assert (
        "Required: plain, on plain, at the budget: a rate. 2,000 training rows, 20 validation rows." in text
    )
    assert "plain 50.0\u00a0% \u2013 0.40\u00a0% 0.50 (0.40 to 0.60)" in text
    assert "-1.0\u00a0p.p. ± 3.9\u00a0p.p." in text
    assert "On validation rows, at the threshold 0.250. Settings: plain plain, trees 5." in text
    assert "the second half raised the best ratio by 0.13 of its line on average" in text
    assert "plain: 1 to 2.500" in text
    assert "plain : plain, 0.250" in text


def test_a_picture_shows_every_model_at_its_place():
    page = render_page("dossier.html", dossier("plain"))
    circles = re.findall(r'<circle class="(\w+)" cx="([\d.]+)%" cy="([\d.]+)"', page)
    assert [kind for kind, *_ in circles] == ["point", "point", "used", "alternative"]
    places = [(float(x), float(y)) for _, x, y in circles]
    assert places[0] == pytest.approx((10 + 88 * 0.5 / 1.02, 280 - 268 * 21 / 22), abs=0.1)
    assert places[1] == pytest.approx((10 + 88 * 0.9 / 1.02, 280 - 268 / 22), abs=0.1)
    assert places[2:] == [places[0]] * 2


def test_a_card_as_text_shows_the_same_and_escapes_markup():
    text = card_text(card("a *b* <c>"))
    assert text._repr_markdown_() == text
    named = r"a \*b\* \<c\>"
    assert text == (
        f"# {named}\n\n- Owner: {named}\n\n{named}\n\n## {named}\n\n{named}\n\n- {named}\n\n"
        f"| {named} | rows |\n| --- | --- |\n| {named} | {named} |\n\n{named}\n"
    )


def test_without_altair_charts_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ModuleNotFoundError, match=r"Charts need Altair: .* 'fado-ml\[plot\]'"):
        landscape_chart([], title="", rule=0.8, looks=[], zoom=False)
