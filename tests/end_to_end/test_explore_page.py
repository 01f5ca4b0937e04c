"""The page of `explore` in a real browser: it shows what Python computes, and runs nothing from the data."""

import re

import numpy as np
import pandas as pd
import pytest

from fado import (
    CobbDouglasUtility,
    DifferenceUtility,
    LinearUtility,
    TreeInfluence,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
    explore,
)
from fado.reporting import render_page

KINDS = {"linear": LinearUtility, "difference": DifferenceUtility, "cobb-douglas": CobbDouglasUtility}
RIGHT, LEFT = ("ArrowRight", 39), ("ArrowLeft", 37)

TABLE = """
(which) => [...document.querySelectorAll(`[data-table="${which}"] tbody tr`)].map((row) =>
  Object.fromEntries([...row.cells].map((cell) => [cell.dataset.label, cell.textContent])))
"""


class Case:
    """1,000 rows, two attributes, values with ties."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        n_rows = 1000
        self.X = pd.DataFrame(
            {"age": rng.integers(18, 80, n_rows), "job": rng.choice(["a", "b", "c"], n_rows)}
        )
        self.z = {
            "sex": pd.Series(rng.choice(["f", "m"], n_rows, p=[0.4, 0.6])),
            "origin": pd.Series(rng.choice(["here", "near", "far"], n_rows)),
        }
        self.y = pd.Series(rng.random(n_rows) < np.where(self.z["sex"] == "f", 0.15, 0.35), name="hired")
        certain = np.where(self.X["job"] == "a", 0.2, 1.0) * np.where(self.X["age"] > 50, 0.4, 1.0)
        p_y = np.round(certain * rng.random(n_rows), 2)
        p_z = {name: np.round(rng.random(n_rows) * (self.X["job"] != "b"), 2) for name in self.z}
        self.valuation = Valuation.from_probabilities(p_y, p_z)

    def explored(self):
        return explore(self.X, self.y, sensitive_features=self.z, valuation=self.valuation, retrain=0)


@pytest.fixture(scope="module")
def case():
    return Case()


@pytest.fixture(scope="module")
def address(case, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "explore.html"
    case.explored().write_html(path)
    return path.as_uri()


def show(browser, tmp_path, summary, view=""):
    """Show the page of a made-up summary."""
    path = tmp_path / "page.html"
    path.write_text(render_page("explore.html", summary), encoding="utf-8")
    browser.open(path.as_uri() + view)


def number(text):
    return float(text.replace(",", "").replace("%", "").replace("\u2013", "nan"))


def table(browser, which):
    return {row["group"]: row for row in browser.evaluate(f"({TABLE})('{which}')")}


def check_against_the_library(case, browser, utility, alpha, names):
    """Compare all that the two tables show with the sampler and the reweigher."""
    protected = {name: case.z[name] for name in names}
    betas = {name: (1 - alpha) / len(names) for name in names}
    kind = KINDS[utility](alpha=alpha, betas=betas)
    sampler = UtilityAwarePrevalenceSampler(kind, random_state=0)
    sampler.fit(case.X, case.y, sensitive_features=protected, valuation=case.valuation)
    kept = np.isin(np.arange(1000), sampler.sample_indices_)
    reweigher = UtilityAwareReweigher(kind)
    reweigher.fit(case.X, case.y, sensitive_features=protected, valuation=case.valuation)
    weights, y = reweigher.sample_weight_, case.y.to_numpy()
    groups = case.z[names[0]]
    if len(names) > 1:
        groups = "sex = " + case.z["sex"] + ", origin = " + case.z["origin"]
    sampling, weighing = table(browser, "sampling"), table(browser, "weights")
    assert set(sampling) == set(weighing) == set(groups)
    for group in set(groups):
        rows = (groups == group).to_numpy()
        shown = {label: number(text) for label, text in sampling[group].items() if label != "group"}
        assert shown["rows"] == rows.sum()
        assert shown["dropped"] == (rows & ~kept).sum()
        assert shown["kept"] == (rows & kept).sum()
        assert shown["rate before"] == pytest.approx(100 * y[rows].mean(), abs=0.051)
        assert shown["rate after"] == pytest.approx(100 * y[rows & kept].mean(), abs=0.051)
        if (rows & ~kept).any():
            values = np.mean([case.valuation[name] for name in names], axis=0)
            assert shown["dropped: mean v_y"] == pytest.approx(
                case.valuation["y"][rows & ~kept].mean(), abs=5.1e-4
            )
            assert shown["dropped: mean v_z"] == pytest.approx(values[rows & ~kept].mean(), abs=5.1e-4)
        shown = {label: number(text) for label, text in weighing[group].items() if label != "group"}
        assert shown["share of weight"] == pytest.approx(100 * weights[rows].sum() / weights.sum(), abs=0.051)
        assert shown["weighted"] == pytest.approx(100 * np.average(y[rows], weights=weights[rows]), abs=0.051)
    effective = number(browser.text("[data-number=effective]"))
    assert effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), abs=0.51)


def alpha_shown(browser):
    return float(browser.text("#controls output"))


def test_moving_the_slider_shows_what_the_library_computes(case, browser, address):
    browser.open(address)
    assert alpha_shown(browser) == 0.5
    expected = 0.5
    for utility in KINDS:
        browser.click(f"[data-utility='{utility}']")
        check_against_the_library(case, browser, utility, expected, ["sex"])
        for key, presses, step in ((RIGHT, 3, 0.05), (LEFT, 5, -0.05)):
            browser.evaluate("document.getElementById('alpha-slider').focus()")
            for _ in range(presses):
                browser.press(*key)
            expected = round(expected + presses * step, 2)
            assert alpha_shown(browser) == expected
            check_against_the_library(case, browser, utility, expected, ["sex"])
    assert browser.troubles() == []


@pytest.mark.parametrize("utility", KINDS)
@pytest.mark.parametrize("alpha", [0, 0.35, 1])
def test_an_address_leads_to_a_view(case, browser, address, utility, alpha):
    browser.open(f"{address}#attribute=origin&utility={utility}&alpha={alpha}")
    assert alpha_shown(browser) == alpha
    check_against_the_library(case, browser, utility, alpha, ["origin"])
    assert f"utility={utility}&alpha={alpha}" in browser.evaluate("location.hash")


@pytest.mark.parametrize("utility", KINDS)
def test_slices_move_with_the_slider(case, browser, address, utility):
    scene = case.explored().to_dict()["attributes"][0]["alpha"]
    for step in (2, 18):
        browser.open(f"{address}#utility={utility}&alpha={step / 20}")
        ranked = scene["utilities"][utility]["settings"][step]["slices"]
        for key, column in (("highest", "mean utility"), ("lowest", "mean utility")):
            shown = browser.evaluate(
                f"[...document.querySelectorAll('[data-slices={key}] tbody tr')].map((row) => "
                f"[row.cells[0].innerText, row.querySelector('[data-label=\"{column}\"]').textContent])"
            )
            assert len(shown) == len(ranked[key])
            for (conditions, text), (number_, score) in zip(shown, ranked[key], strict=True):
                assert conditions.split("\nand ") == scene["slices"][int(number_)]["conditions"]
                assert number(text) == pytest.approx(score, abs=0.051)


def test_switching_the_attribute_switches_every_part_and_all_can_be_taken_together(case, browser, address):
    browser.open(address)
    browser.click("[data-attribute='1']")
    text = browser.shown("main")
    assert "“near”" in text
    assert "“m”" not in text
    assert browser.count("#effects") == 0  # which are of other values
    browser.open(address)
    browser.click("[data-together]")
    check_against_the_library(case, browser, "linear", 0.5, ["sex", "origin"])
    assert "together=1" in browser.evaluate("location.hash")
    assert browser.troubles() == []


ANSWERS = """
[...document.querySelectorAll('[data-answer]')].map((one) => ({
  id: one.dataset.answer,
  title: one.querySelector('h3').textContent,
  sentence: one.querySelector('p').textContent,
  command: one.querySelector('pre') ? one.querySelector('pre').textContent : null,
}))
"""


BIASES = "[...document.querySelectorAll('[data-bias]')].map((card) => [card.dataset.bias, card.innerText])"


def test_the_first_screen_answers(case, browser, address, tmp_path):
    browser.open(address)
    assert browser.evaluate("document.querySelector('main section').id") == "answers"
    summary = case.explored().to_dict()
    for place, attribute in enumerate(summary["attributes"]):
        browser.click(f"[data-attribute='{place}']")
        assert browser.evaluate(ANSWERS) == attribute["answers"]
        cards = browser.evaluate(BIASES)
        for (name, text), bias in zip(cards, attribute["biases"], strict=True):
            assert name == bias["id"]
            assert bias["sentence"] in text
            assert bias["name"] in text
    made_up = {"id": "next", "title": "Next step", "sentence": HOSTILE[1], "command": f"fado '{HOSTILE[0]}'"}
    summary["attributes"][0]["answers"] = [made_up]
    show(browser, tmp_path, summary)
    assert browser.evaluate(ANSWERS) == [made_up]
    style = "getComputedStyle(document.querySelector('[data-answer] pre code'))"
    assert "mono" in browser.evaluate(f"{style}.fontFamily")
    assert browser.evaluate(f"{style}.userSelect") in ("all", "text", "auto")
    assert browser.troubles() == []


def test_a_setting_that_drops_most_of_the_table_is_called_that(case, browser, tmp_path):
    summary = case.explored().to_dict()
    for attribute in summary["attributes"]:
        attribute["alpha"]["sampling"]["dropped"] = [350, 151]  # of 1,000 rows
        for setting in attribute["alpha"]["utilities"]["linear"]["settings"]:
            setting["weights"]["effective_share"] = 0.49
        for setting in attribute["alpha"]["utilities"]["difference"]["settings"]:
            setting["weights"]["effective_share"] = 0.5
    show(browser, tmp_path, summary, "#utility=linear")
    assert browser.texts("#alpha .warning") == [
        "This would drop most of the table.",
        "At this alpha most rows would hardly count: the weights have an effective size of 49.0\u00a0% of "
        "the rows.",
    ]
    assert browser.text("[data-number=dropped]") == "501"
    browser.click("[data-utility=difference]")
    assert browser.texts("#alpha .warning") == ["This would drop most of the table."]


def test_symbols_are_explained_where_they_stand(case, browser, address):
    browser.open(address)
    for key, what in (("v_y", "hired"), ("v_z", "sex")):
        text = browser.shown(f"[data-values={key}]")
        assert (
            f"{key} of a row: how uncertain models are about its {what}, from 0 (certain) to 1 (no "
            "knowledge)." in text
        )
    assert "alpha is the weight of performance" in browser.shown("#alpha")
    browser.click("[data-utility=cobb-douglas]")
    text = browser.shown("#alpha")
    assert "Cobb-Douglas: the product of both values, each raised to the power of its weight" in text


OVERLAPS = """
(() => {
  const boxes = [...document.querySelectorAll('#columns svg text')].map((one) => one.getBoundingClientRect());
  return boxes.filter((a, i) => boxes.some((b, j) => i < j && a.left < b.right && b.left < a.right
    && a.top + 2 < b.bottom && b.top + 2 < a.bottom)).length;
})()
"""


@pytest.mark.parametrize("width", [1280, 400])
def test_a_hundred_columns_stay_legible(browser, tmp_path, width):
    rng = np.random.default_rng(0)
    n_rows = 5000
    names = [f"a column with a rather long name, number {j}" for j in range(125)]
    X = pd.DataFrame(rng.normal(size=(n_rows, 125)), columns=names)
    sex, y = np.where(X[names[:12]].sum(axis=1) > 0, "f", "m"), X[names[12:24]].sum(axis=1) > 0
    values = Valuation.from_probabilities(rng.random(n_rows), {"sex": rng.random(n_rows)})
    seen = explore(X, y, sensitive_features={"sex": sex}, valuation=values, retrain=0)
    seen.write_html(tmp_path / "columns.html")
    browser.open((tmp_path / "columns.html").as_uri(), width=width)
    assert browser.count("#columns svg rect") <= 40
    assert browser.evaluate(OVERLAPS) == 0
    drawn = browser.texts("#columns svg title")
    assert len(drawn) == 20
    assert set(drawn) <= set(names[:24])
    assert browser.text("#columns summary") == "Show all 126 columns"
    browser.evaluate("document.querySelector('#columns details').open = true")
    assert browser.count("#columns tbody tr") == 126
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.troubles() == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_sideways_scrolling_at_any_width(browser, address, width, scheme):
    browser.check_fit(address, width, scheme)


LINES = """
(box) => [...document.querySelectorAll(`${box} svg .neutral`)].map((line) => {
  const width = line.ownerSVGElement.viewBox.baseVal.width, left = Math.min(130, width * 0.3);
  return (line.x1.baseVal.value - left) / (width - left - 8);
})
"""
TICKS = "(box) => [...document.querySelectorAll(`${box} svg > .soft`)].map((text) => text.textContent)"


def test_values_and_utilities_are_drawn_on_the_scales_that_the_summary_gives(case, browser, tmp_path):
    summary = case.explored().to_dict()
    for attribute in summary["attributes"]:
        scales = {
            "v_y": {"low": -0.001, "high": 0.003, "neutral": 0.0, "cut": 0.0},
            "v_z": {"low": -4.0, "high": 6.0, "neutral": 6.0, "cut": 1.0},  # neutral not inside: no line
        }
        attribute["plane"]["cuts"] = "The dashed lines: v_y at 0 and v_z at 1."
        attribute["values"]["scales"] = attribute["plane"]["scales"] = scales
        attribute["alpha"]["utilities"]["linear"] |= {"low": -8.0, "high": 2.0, "neutral": 0.0}
        del attribute["alpha"]["utilities"]["cobb-douglas"]
        attribute["values"]["v_y"][0]["mean"] = 0.00012
    show(browser, tmp_path, summary)
    assert browser.troubles() == []
    assert browser.evaluate(f"({LINES})('[data-values=v_y]')") == pytest.approx([0.25])
    assert browser.evaluate(f"({LINES})('[data-values=v_z]')") == []
    assert browser.evaluate(f"({LINES})('#alpha')") == pytest.approx([0.8])
    shown = browser.evaluate(f"({TICKS})('[data-values=v_y]')")
    assert [text for text in shown if "rows" not in text][:5] == ["-0.001", "0", "0.001", "0.002", "0.003"]
    assert "0.000120" in browser.text("[data-values=v_y]")
    shown = browser.evaluate(f"({TICKS})('#alpha')")
    assert [text for text in shown if "mean" not in text][:5] == ["-8", "-5.5", "-3", "-0.5", "2"]
    plane = browser.shown("#plane")
    assert "Darker: more rows. The dashed lines: v_y at 0 and v_z at 1." in plane
    assert browser.evaluate(f"({TICKS})('#plane')") == ["-0.001", "0", "0.003"]
    buttons = browser.texts("[data-utility]")
    assert buttons == ["Linear", "Difference"]


def test_entropies_are_drawn_from_0_to_1_and_cut_where_the_summary_says(case, browser, address):
    cut = case.explored().to_dict()["attributes"][0]["plane"]["scales"]["v_y"]["cut"]
    assert 0.2 < cut < 0.49  # not in the middle: the labels are of unequal shares
    browser.open(address)
    assert browser.evaluate(f"({LINES})('main')") == []
    for box in ("[data-values=v_y]", "[data-values=v_z]"):
        shown = [text for text in browser.evaluate(f"({TICKS})('{box}')") if "rows" not in text]
        assert shown[:5] == ["0", "0.25", "0.5", "0.75", "1"]
    low, middle, high = browser.evaluate(f"({TICKS})('#plane')")
    assert (low, high) == ("0", "1")
    assert float(middle) == pytest.approx(cut, abs=0.01)
    plane = browser.shown("#plane")
    assert re.search(rf"The dashed lines separate certain from uncertain: v_y at {cut:.3g}, half of", plane)


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "{{7*7}}${alert(1)}$data",
    "\"'`;alert(1)//",
    "javascript:alert(1)",
    "\u202eright to left\u2066 \u2028line\u2029 \ufeff\0",
    "<svg onload=alert(1)><style>*{display:none}</style>",
    "http://127.0.0.1:9/x.png",
    "a" * 300,
]


def test_hostile_content_is_only_text(browser, tmp_path):
    rng = np.random.default_rng(0)
    n_rows = 900
    group = rng.integers(0, len(HOSTILE), n_rows)
    X = pd.DataFrame(
        {name + " column": np.array(HOSTILE, dtype=object)[rng.permutation(group)] for name in HOSTILE}
    )
    X[HOSTILE[0]] = np.where(group < 4, HOSTILE[1], HOSTILE[4])
    y = pd.Series(np.where(rng.random(n_rows) < 0.4, HOSTILE[0], HOSTILE[5]), name=HOSTILE[1])
    z = {HOSTILE[2]: np.array(HOSTILE, dtype=object)[group], HOSTILE[5]: rng.choice(HOSTILE[:2], n_rows)}
    seen = explore(X, y, sensitive_features=z, show_rows=True, retrain=0)
    seen.write_html(tmp_path / "hostile.html")
    address = (tmp_path / "hostile.html").as_uri()
    for width in (1280, 390):
        browser.open(f"{address}#alpha=0.2&utility=<script>alert(1)</script>&attribute=%00", width=width)
        browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        for button in range(2):
            browser.click(f"[data-attribute='{button}']")
        assert browser.troubles() == []
        assert browser.count("main img, main script, main style") == 0
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    text = browser.shown("body")
    assert "<img src=x onerror=alert(1)>" in text
    assert "\\u202eright to left\\u2066" in text
    assert not set("\u202e\u2066\u2028") & set(text)


def test_a_page_of_other_kinds_of_variables_draws_without_errors(browser, tmp_path):
    rng = np.random.default_rng(0)
    n_rows = 400
    X = pd.DataFrame({"a": rng.normal(size=n_rows), "b": rng.normal(size=n_rows)})
    cases = {
        "continuous": (X["a"] + rng.normal(size=n_rows), X["b"] + 0.1 * rng.normal(size=n_rows)),
        "classes": (rng.choice(["x", "y", "w"], n_rows), rng.choice(["p", "q", "r"], n_rows)),
    }
    for name, (y, z) in cases.items():
        path = tmp_path / f"{name}.html"
        explore(X, y, sensitive_features={"z": np.asarray(z)}, retrain=0).write_html(path)
        browser.open(path.as_uri())
        assert browser.troubles() == []
        assert browser.count("main svg") >= 9
        assert not re.search("NaN|undefined|null", browser.shown("main"))


SHOWN = """
(which) => [...document.querySelectorAll(`[data-effects="${which}"] tbody tr`)].map((row) =>
  Object.fromEntries([...row.cells].map((cell) => [cell.dataset.label, cell.innerText || cell.textContent])))
"""


def signed(text):
    return float(text.replace("\u2212", "-"))


@pytest.fixture(scope="module")
def effects():
    """What rows do to a model, by two attributes, and what retraining measured."""
    rng = np.random.default_rng(0)
    n_rows = 3000
    X = pd.DataFrame(
        {"score": rng.normal(size=n_rows), "job": rng.choice(["clerk", "nurse", "<b>cook</b>"], n_rows)}
    )
    z = {
        "sex": np.where((X["job"] == "nurse") ^ (rng.random(n_rows) < 0.1), "f", "<i>m</i>"),
        "side": rng.choice(["left", "right"], n_rows),
    }
    y = pd.Series(X["score"] + (z["sex"] != "f") + rng.normal(size=n_rows) > 1, name="hired")
    with pytest.warns(UserWarning, match="'side' .* too close to say"):
        valuation = TreeInfluence(random_state=0).fit(X, y, sensitive_features=z).valuation_
    return explore(X, y, sensitive_features=z, valuation=valuation, retrain=60, show_rows=True)


def shown_change(figures, key):
    """Write a measured change as the page does."""
    change, reach = figures[f"{key}_change"], 1.96 * figures[f"{key}_error"]
    sign = "" if f"{abs(change):.3f}" == "0.000" else "\u2212" if change < 0 else "+"
    text = f"{sign}{abs(change):.3f} ± {reach:.3f}"
    return text if abs(change) > reach else f"{text}, no measurable change"


def test_a_page_of_effects_shows_what_rows_do_to_the_model(browser, effects, tmp_path):
    effects.write_html(tmp_path / "effects.html")
    browser.open((tmp_path / "effects.html").as_uri())
    for place, name in enumerate(("sex", "side")):
        browser.click(f"[data-attribute='{place}']")
        browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        frames, part = effects.effects(name), effects.to_dict()["attributes"][place]["effects"]
        text = browser.shown("#effects")
        assert text.startswith("Effects of rows on the model\n")
        assert part["lead"] in text
        measured = part["measured"]
        assert (
            f"Slices were found on one half of the rows ({measured['search_rows']:,}) and measured on the "
            f"other half ({measured['validation_rows']:,}), with {measured['fits']} fits." in text
        )
        shown = browser.evaluate(f"({SHOWN})('cells')")
        assert [(row["group"], row["label"]) for row in shown] == [
            (cell.group, cell.label) for cell in frames["cells"].itertuples()
        ]
        for row, cell in zip(shown, frames["cells"].itertuples(), strict=True):
            assert signed(row["on the FPR ratio"]) == pytest.approx(cell.ratio_effect, abs=5.1e-4)
            assert signed(row["on the TPR at 5 % FPR"]) == pytest.approx(cell.performance_effect, abs=5.1e-4)
        shown = browser.evaluate(f"({SHOWN})('slices')")
        assert len(shown) == len(part["slices"])
        for row, one in zip(shown, part["slices"], strict=True):
            assert row["rows where"].split("\nand ") == one["conditions"]
            for column, key in (("FPR ratio", "ratio"), ("TPR at 5 % FPR", "performance")):
                told = "not tried" if one["measured"] is None else shown_change(one["measured"], key)
                assert row[f"change of {column}"] == told
        shown, points = browser.evaluate(f"({SHOWN})('curve')"), [own["measured"] for own in part["curve"]]
        assert [row["change of FPR ratio"] for row in shown] == [shown_change(one, "ratio") for one in points]
        assert browser.count("#effects svg") == 4
        assert browser.count("#effects [data-point]") == 6
        assert browser.count("[data-effects=curve] .whisker") == 6
    assert any(one["measured"] for one in part["slices"])
    assert browser.troubles() == []
    spans = "main b:not(.corner b, td b), main i:not(.legend i)"
    assert browser.count(spans) == 0


def test_what_was_not_measured_has_no_figures(browser, effects, tmp_path):
    summary = effects.to_dict()
    reason = "Nothing was measured, as <b>nobody</b> wanted it."
    for attribute in summary["attributes"]:
        nothing = {"measured": None}
        slices = [one | nothing for one in attribute["effects"]["slices"]]
        attribute["effects"] |= {"slices": slices, "curve": [], "measured": None, "reason": reason}
    show(browser, tmp_path, summary)
    assert browser.text("[data-effects=reason]") == reason
    assert browser.count("[data-effects=curve]") == 0
    shown = browser.evaluate(f"({SHOWN})('slices')")
    assert shown
    assert all(set(row) == {"rows where", "rows"} for row in shown)
    assert not re.search("\u00b1|would raise", browser.shown("#effects"))
    assert browser.troubles() == []


@pytest.mark.parametrize("width", [1280, 390])
def test_effects_need_no_sideways_scrolling_and_follow_the_window(browser, effects, tmp_path, width):
    effects.write_html(tmp_path / "effects.html")
    browser.open((tmp_path / "effects.html").as_uri(), width=700)
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
    )
    browser.until(f"window.innerWidth === {width}")
    assert browser.count("#effects") == 1
    browser.until(  # the page is drawn anew for this width
        "[...document.querySelectorAll('#effects svg')].every((one) => "
        "Math.abs(one.viewBox.baseVal.width - one.getBoundingClientRect().width) < 2)"
    )
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.troubles() == []


def aim_of(case, attribute):
    return next(own["aim"] for own in case.explored().to_dict()["attributes"] if own["name"] == attribute)


def test_the_cost_of_aiming_follows_the_chosen_ratio(case, browser, address):
    browser.open(address)
    aim = aim_of(case, "sex")
    for own in aim["ratios"]:
        browser.evaluate(f"document.querySelector('[data-ratio={own['ratio']}]').focus()")
        browser.press(" ", 32)
        assert browser.texts("#aim-answer p") == own["sentences"]
        assert browser.evaluate("document.activeElement.dataset.ratio") == own["ratio"]  # the focus stays
        assert browser.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
        label = browser.evaluate("document.querySelector('#aim svg[role=img]').getAttribute('aria-label')")
        assert own["sentences"][0] in label
        n_rows = browser.count("#aim tbody tr")
        assert n_rows == len(own["points"])
        drawn = browser.evaluate("document.querySelector('#aim [data-curve=ratio]').getAttribute('d')")
        assert drawn.count("L") + 1 == sum(point["ratio"] is not None for point in own["points"])
    browser.open(f"{address}#attribute=sex&ratio=fnr_ratio")
    assert browser.texts("#aim-answer p") == aim["ratios"][2]["sentences"]
    assert aim["note"] in browser.shown("#aim")
    assert browser.troubles() == []


def test_a_page_without_probabilities_says_how_to_get_them(case, browser, address):
    browser.open(f"{address}#attribute=origin")  # of three groups, and the probabilities are of two
    assert aim_of(case, "origin") is None
    assert "OutOfBagEntropy(keep_probabilities=True)" in browser.shown("#aim")
    assert browser.count("#aim svg, #aim .card") == 0
    assert browser.evaluate("document.getElementById('aim-controls').offsetHeight") == 0
    assert browser.troubles() == []
