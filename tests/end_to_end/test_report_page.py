"""The report in a real browser: it chooses what Python chooses, and runs nothing from the data."""

import numpy as np
import pandas as pd
import pytest

from fado.datasets import make_account_fraud
from fado.experiment import Experiment, Results
from fado.experiment._config import config_from
from fado.experiment._results_page import describe_settings
from fado.experiment._results_page import looks_of as looks_before
from fado.metrics import RATIO_NAMES, RATIO_TITLES

EVIL = (
    "<img src=x onerror=alert(1)>'\"</script><script>alert(2)</script>{{7*7}}\u2028\u202e${1}"
    "javascript:alert(3)"
)
RIGHT, LEFT, UP = ("ArrowRight", 39), ("ArrowLeft", 37), ("ArrowUp", 38)

# What the page tells of its winners, in its order: the table of those above the line, then the closest.
TOLD = """(() => {
  const cells = (row) => Object.fromEntries(
    [...row.cells].map((cell) => [cell.dataset.label, cell.textContent]));
  const best = [...document.querySelectorAll("[data-table=best] tbody tr")].map(cells).map((row) =>
    [row.intervention, row.settings, row["true-positive rate"], row.ratio, row.model, true]);
  const text = (item, key) => item.querySelector(`[data-${key}]`).textContent;
  const missed = [...document.querySelectorAll("[data-missed]")].map((item) =>
    [...["row", "model", "tpr", "ratio", "model"].map((key) => text(item, key)), false]);
  return [...best, ...missed];
})()"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    frame = make_account_fraud(4000, random_state=0)
    frame["customer_age"] = (frame["customer_age"] >= 50).map({True: EVIL, False: "young"})
    frame["fraud_bool"] = frame["fraud_bool"].map({1: EVIL, 0: "honest"})
    frame = frame.rename(columns={"customer_age": EVIL, "income": "<b>income</b>"})
    frame.to_parquet(folder / "data.parquet")
    experiment = Experiment(
        {
            "data": {
                "path": str(folder / "data.parquet"), "target": "fraud_bool", "positive": EVIL,
                "protected": [EVIL], "drop": ["<b>income</b>"],
            },
            "split": {"method": "random", "train": 0.5, "validation": 0.25, "test": 0.25},
            "valuation": {"bags": 5},
            "interventions": {"uaps": {"alphas": [0.5]}, "uar": {"alphas": [0.0, 1.0]}},
            "models": {"count": 4, "space": {"n_estimators": {"log_uniform": [5, 20]}}},
            "evaluation": {"bootstrap": 20},
        }
    )  # fmt: skip
    found = experiment.run(folder / "store", n_jobs=1)
    assert (found.frame["status"] == "done").all()
    return found


@pytest.fixture(scope="module")
def address(results, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    results.report(path)
    return path.as_uri()


def told_numbers(text):
    return [float(piece) for piece in text.replace("(", " ").replace(")", " ").replace("to", " ").split()]


def winners_on_validation(results, metric, line):
    """Tell what `Results.winners` tells, by validation rows and in their order."""
    chosen = pd.concat(
        [
            results.best(metric, line).assign(reached=True),
            results.closest(metric, line).assign(reached=False),
        ]
    )
    names = {f"validation_{metric}{end}": f"ratio{end}" for end in ("", "_low", "_high")}
    names |= {f"validation_tpr{end}": f"tpr{end}" for end in ("", "_low", "_high")}
    settings = pd.Series(describe_settings(results.frame), results.frame.index)[chosen.index]
    told = chosen[["intervention", "model", "reached", *(name for name in names if name in chosen)]]
    return told.rename(columns=names).assign(settings=settings)


def check_against_the_results(browser, results, metric, line, part="validation"):
    """Compare all that the page tells of winners with what `Results` chooses."""
    tell = results.winners if part == "test" else lambda *asked: winners_on_validation(results, *asked)
    expected = tell(metric, line).to_dict("records")
    told = browser.evaluate(TOLD)
    assert [(row[0], row[5]) for row in told] == [(row["intervention"], row["reached"]) for row in expected]
    for row, one in zip(told, expected, strict=True):
        assert one["settings"] in row[1]
        assert f"{one['model']}: n_estimators" in row[4]
        for text, name in ((row[2], "tpr"), (row[3], "ratio")):
            ends = [one[f"{name}{end}"] for end in ("", "_low", "_high")]
            assert told_numbers(text) == pytest.approx([end for end in ends if end == end], abs=5.1e-4)
    verdict = browser.text("#verdict")
    reached = sum(row["reached"] for row in expected)
    assert verdict.startswith(f"{reached} of 5 interventions" if reached else "Nothing reaches")


def test_moving_the_line_shows_what_the_results_choose(results, browser, address):
    browser.open(address)
    line = 0.8
    for number, metric in enumerate(RATIO_NAMES):
        browser.click(f"[data-ratio='{number}']")
        check_against_the_results(browser, results, metric, line)
        for key, presses, step in ((RIGHT, 20, 0.005), (LEFT, 35, -0.005), (RIGHT, 15, 0.005)):
            browser.evaluate("document.getElementById('line-slider').focus()")
            for _ in range(presses):
                browser.press(*key)
            line = round(line + presses * step, 3)
            assert float(browser.text("#controls output")) == line
            check_against_the_results(browser, results, metric, line)
    browser.until(f"location.hash === '#ratio={RATIO_NAMES[-1]}&line=0.8'")
    assert browser.troubles() == []


@pytest.mark.parametrize("line", [0, 0.6, 0.9, 1])
@pytest.mark.parametrize("metric", RATIO_NAMES)
def test_an_address_leads_to_a_view(results, browser, address, metric, line):
    for part in ("validation", "test"):
        browser.open(f"{address}#ratio={metric}&line={line}&rows={part}")
        assert float(browser.text("#controls output")) == line
        check_against_the_results(browser, results, metric, line, part)
        if line in (0, 1):  # the zoom holds every model of the frontier
            assert browser.evaluate("state.corner")
            front = "state.points.filter((point) => point.frontier !== null)"
            count = len(results.pareto(metric, part))
            assert browser.evaluate(f"{front}.filter(state.scene.inside).length") == count


def test_test_rows_are_shown_of_the_chosen_model_alone_unless_one_asks_for_all(results, browser, address):
    browser.open(f"{address}#ratio=fpr_ratio&line=0", height=1400)
    drawn = """state.points.map((point) => [models.look(point.row).name, models.setting(point.row),
      Number(models.model(point.row).split(":")[0]), point.tpr, point.ratio])"""
    columns, voided = "#card thead th", "#voided"
    frame = results.frame.assign(settings=describe_settings(results.frame))
    frame = frame.set_index(["intervention", "settings", "model"])

    def check_points(part):
        points, front = browser.evaluate(drawn), results.pareto("fpr_ratio", part)
        assert len(points) == np.isfinite(results.comparable_points("fpr_ratio", part)[:, 0]).sum()
        for *which, tpr, ratio in points:
            row = frame.loc[tuple(which)]
            assert (tpr, ratio) == pytest.approx((row[f"{part}_tpr"], row[f"{part}_fpr_ratio"]), abs=1.1e-6)
        assert browser.evaluate("state.points.filter((p) => p.frontier !== null).length") == len(front)

    check_points("validation")
    assert browser.text(voided) == ""
    assert browser.texts(columns) == ["metric", "validation", "test"]  # of the model that is chosen
    best = results.best("fpr_ratio", 0).iloc[0]
    verdict = browser.text("#verdict")
    assert f"On test rows, which did not select it: true-positive rate {best['test_tpr']:.3f} " in verdict
    browser.evaluate("document.querySelectorAll('[data-table=best] button')[1].click()")
    assert browser.texts(columns) == ["metric", "validation"]  # of another
    browser.click("[data-part='1']")
    check_points("test")
    assert browser.texts(columns) == ["metric", "validation", "test"]
    assert browser.text(voided).startswith(
        "This shows all models on test rows. Select models on validation rows"
    )
    assert "no longer show" in browser.text(voided)
    browser.until("location.hash.endsWith('&rows=test')")
    assert browser.troubles() == []


@pytest.mark.parametrize("metric", RATIO_NAMES)
def test_the_page_opens_on_the_ratio_and_the_line_that_were_asked_for(results, browser, tmp_path, metric):
    results.report(tmp_path / "r.html", metric, 0.8125)
    browser.open((tmp_path / "r.html").as_uri())
    assert browser.evaluate("models.views[state.view].ratio") == metric
    assert browser.text("#controls [data-ratio][aria-pressed=true]") == RATIO_TITLES[metric]
    assert browser.count("#controls [data-ratio]") == 4
    assert browser.text("#controls output") == "0.8125"
    check_against_the_results(browser, results, metric, 0.8125)


def luminance(colour):
    """Give the relative luminance of `rgb(r, g, b)`, as WCAG defines it."""
    parts = np.array([int(one) for one in colour[4:-1].split(",")]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_stand_out_from_the_paper_and_alpha_is_told_by_lightness(browser, address, scheme):
    browser.check_fit(address, 390, scheme)  # a phone
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(address)
    paper = luminance(browser.evaluate("getComputedStyle(document.querySelector('.paper')).backgroundColor"))
    assert (paper < 0.05) == (scheme == "dark")
    fills = "[...document.querySelectorAll('SELECTOR path')].map((path) => getComputedStyle(path).fill)"
    kinds, alphas = (
        [luminance(fill) for fill in browser.evaluate(fills.replace("SELECTOR", one))]
        for one in ("#legend .kind", "#legend .alphas")
    )
    assert len(kinds) == 5
    for mark in (*kinds, *alphas):
        assert (max(mark, paper) + 0.05) / (min(mark, paper) + 0.05) >= 2.95
    assert len(alphas) == 3  # 0, 0.5 and 1: those that there are
    assert alphas == sorted(alphas)
    assert min(np.diff(alphas)) > 0.05
    browser.call("Emulation.setEmulatedMedia", features=[])


def test_the_legend_tells_nothing_that_is_not_there(results, browser, tmp_path):
    frame = results.frame[results.frame["intervention"].isin(["none", "RW"])].reset_index(drop=True)
    _, address = written(frame, tmp_path)
    browser.open(address)
    text = browser.shown(".paper")
    assert "Circles are baselines." in text
    for word in ("alpha", "triangles", "squares", "crosses", "Hollow", "only in part"):
        assert word not in text
    assert browser.count("#legend .mark") == 2


def test_areas_of_unequal_numbers_of_models_are_not_ranked(results, browser, address, tmp_path):
    rows = """[...document.querySelectorAll('#areas tbody tr')].map((row) => row.cells[0].textContent)"""
    browser.open(address)
    assert browser.evaluate(rows) == results.interventions  # UAR has 8 models, the others 4
    assert "Not ranked: more models cover more" in browser.shown("#areas")
    frame = results.frame[results.frame["intervention"].isin(["none", "RPS", "RW"])].reset_index(drop=True)
    equal, address = written(frame, tmp_path)
    browser.open(address)
    areas = equal.hypervolume("fpr_ratio", part="validation")["hypervolume"]
    assert browser.evaluate(rows) == list(areas.sort_values(ascending=False, kind="stable").index)
    assert "Not ranked" not in browser.shown("#areas")


def mouse(browser, kind, x, y):
    browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)


def test_the_line_is_dragged_with_the_mouse(results, browser, address):
    browser.open(f"{address}#ratio=fpr_ratio&line=0.8", height=1400)
    browser.click("[data-corner='0']")  # all models: 0 to 1
    x, y, height = browser.evaluate("""(() => {
      const box = state.scene.svg.getBoundingClientRect();
      return [box.left + 100, box.top + state.scene.y(0.8), state.scene.floor - state.scene.top];
    })()""")
    mouse(browser, "mousePressed", x, y)
    for step in range(1, 11):
        mouse(browser, "mouseMoved", x, y + step * 0.03 * height)
    assert float(browser.text("#controls output")) == pytest.approx(0.5, abs=0.011)
    mouse(browser, "mouseReleased", x, y + 0.3 * height)
    line = float(browser.text("#controls output"))
    check_against_the_results(browser, results, "fpr_ratio", line)
    browser.until(f"location.hash.endsWith('line={line:g}')")
    best = browser.evaluate("models.look(bestOfAll(models, state.chosen)).name")
    assert browser.shown("#card").splitlines()[0] == best  # the card goes with the line
    mouse(browser, "mouseMoved", x, y)
    assert float(browser.text("#controls output")) == line  # it was let go
    browser.evaluate("document.getElementById('chart').focus()")
    browser.press(*UP)
    assert float(browser.text("#controls output")) == round(line + 0.005, 3)
    assert browser.troubles() == []


def test_a_mark_tells_its_model_and_a_click_shows_its_card(results, browser, address):
    browser.open(f"{address}#ratio=fnr_ratio&line=0.8", height=1400)
    told = results.frame.assign(
        settings=describe_settings(results.frame), on=results.on_frontier("fnr_ratio", "validation")
    )
    told = told[told["on"]].set_index(["intervention", "settings", "model"], drop=False).sort_index()
    x, y, *which = browser.evaluate("""(() => {
      const box = state.scene.svg.getBoundingClientRect();
      const front = state.points.filter((point) => point.frontier !== null);
      const most = front.reduce((a, b) => (b.tpr > a.tpr ? b : a));
      return [box.left + state.scene.x(most.tpr), box.top + state.scene.y(most.ratio),
        models.look(most.row).name, models.setting(most.row), Number(models.model(most.row).split(":")[0])];
    })()""")
    best = told.loc[tuple(which)]
    assert best["validation_tpr"] == told["validation_tpr"].max()
    browser.hover(x, y)
    tip = browser.shown("#tip")
    assert tip.startswith(best["intervention"])
    assert f"model {best['model']}: n_estimators" in tip
    assert f"true-positive rate {best['validation_tpr']:.2f}" in tip
    mouse(browser, "mousePressed", x, y)
    mouse(browser, "mouseReleased", x, y)
    card = browser.shown("#card")
    assert card.startswith(best["intervention"])
    assert f"{best['model']}: n_estimators" in card
    assert f"{best['training_rows']:,}" in card
    assert "need no group" in card
    figures = browser.evaluate("""[...document.querySelectorAll("#card tbody tr")].map((row) =>
      [...row.cells].map((cell) => cell.textContent))""")
    measured = browser.texts("#card thead th")[1:]
    assert measured == ["validation", "test"][: 1 + browser.evaluate("state.shown === state.best")]
    assert len(figures) == 7  # two rates, four ratios and the threshold
    names = ["tpr", "fpr", *RATIO_NAMES, "threshold"]
    for name, (_, *parts) in zip(names, figures, strict=True):
        for part, text in zip(measured, parts, strict=True):
            ends = [best[f"{part}_{name}{end}"] for end in ("", "_low", "_high")]
            expected = [end for end in ends if end == end]
            assert ([] if text == "\u2013" else told_numbers(text)) == pytest.approx(expected, abs=5.1e-4)
    browser.evaluate("document.getElementById('chart').focus()")
    browser.press(*LEFT)
    shown = browser.evaluate("models.figure('validation_tpr', state.shown)")
    assert browser.shown("#card") != card
    assert shown in told["validation_tpr"].to_numpy().astype(float).round(6)
    assert browser.troubles() == []


def test_a_row_shows_its_card_and_says_how_many_were_tried(results, browser, address):
    browser.open(f"{address}#ratio=fpr_ratio&line=0")
    browser.evaluate("""[...document.querySelectorAll("[data-table=best] button")]
      .find((one) => one.textContent === "UAR").focus()""")
    browser.press(" ", 32)
    card = browser.shown("#card")
    assert browser.evaluate("document.activeElement.textContent") == "UAR"  # though it was drawn anew
    assert browser.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert card.startswith("UAR")
    best = "Best of 8 models tried with UAR. Its validation figures are optimistic, its test figures are not."
    assert best in card
    assert "Every model here is the best of several" in browser.shown("#best")


def test_a_kind_can_be_shown_alone_the_configuration_unfolded_and_the_chart_saved(browser, address):
    browser.open(address)
    counted, settings = "#chart path.model, #chart path.front", "document.querySelector('#settings table')"
    many = browser.count(counted)
    for _ in range(2):
        browser.click("#legend button")
    assert browser.count(counted) == many
    browser.click("#legend button")
    assert 0 < browser.count(counted) <= 2 < many
    for is_shown in (False, True):
        assert browser.evaluate(f"{settings}.checkVisibility()") is is_shown
        browser.click("#settings summary")
    saved, *parsed = browser.evaluate("""(() => {
      const text = savedPicture(state.scene.svg);
      const read = new DOMParser().parseFromString(text, "image/svg+xml");
      return [text, read.documentElement.tagName, read.querySelectorAll("path").length];
    })()""")
    assert parsed == ["svg", browser.evaluate("state.scene.svg.querySelectorAll('path').length")]
    assert "var(" not in "".join(piece.split('"')[0] for piece in saved.split('fill="')[1:])
    browser.click("#save")
    assert browser.troubles() == []


def test_the_page_tells_all_as_text_and_stays_at_home(browser, address):
    browser.open(address, width=1200, height=5000)
    text = browser.shown("body")
    assert browser.troubles() == []
    assert f"Positive is fraud_bool = {EVIL[:20]}" in text
    assert EVIL[:28] in text
    assert "{{7*7}}" in text
    assert browser.evaluate("document.images.length") == 0
    assert browser.evaluate("document.scripts.length") == 2


def written(frame, folder, *, groups="crossed", protected=("customer_age>=50",), validation=True):
    """Write the report of a frame that nobody trained."""
    validated = {"validation": 0.25, "test": 0.25} if validation else {"test": 0.5}
    config = config_from(
        {
            "data": {"generator": "account_fraud", "target": "fraud_bool", "protected": list(protected)},
            "split": {"method": "random", "train": 0.5, **validated},
            "interventions": {},
            "models": {"space": {"n_estimators": 5}},
            "evaluation": {"groups": groups},
        }
    )
    results = Results(frame, config, [])
    results.report(folder / "r.html")
    return results, (folder / "r.html").as_uri()


def test_without_a_validation_part_the_page_says_that_figures_are_optimistic(results, browser, tmp_path):
    columns = [name for name in results.frame.columns if not name.startswith("validation_")]
    found, address = written(results.frame[columns], tmp_path, validation=False)
    browser.open(f"{address}#ratio=fpr_ratio&line=0.5")
    check_against_the_results(browser, found, "fpr_ratio", 0.5, "test")
    assert "selected on the test part itself: its test figures are optimistic" in browser.shown("#card")
    assert "models are selected on test rows" in browser.shown("body")
    assert browser.count("#card thead th") == 2
    assert browser.troubles() == []


def test_ties_budgets_and_what_is_undefined_are_chosen_as_in_python(browser, tmp_path):
    rng = np.random.default_rng(0)
    n, protected = 400, ["customer_age>=50", "employment_status"]
    grid = np.concatenate([np.arange(0, 1.01, 0.05), [np.nextafter(0.85, 1), 0.799999, 0.849999]])
    metrics = {}
    for part in ("validation", "test"):
        metrics[f"{part}_fpr"] = rng.choice([0.04, 0.05, 0.0500001, np.nan], n, p=[0.5, 0.3, 0.1, 0.1])
        metrics[f"{part}_tpr"] = np.where(rng.random(n) < 0.05, np.nan, rng.choice(grid, n))
        for ratio in RATIO_NAMES:
            own = [np.where(rng.random(n) < 0.05, np.nan, rng.choice(grid, n)) for _ in protected]
            metrics |= {
                f"{part}_{ratio}[{name}]": column for name, column in zip(protected, own, strict=True)
            }
            metrics[f"{part}_{ratio}"] = np.min(own, axis=0)
    kinds = rng.choice(["none", "RW", "UAR", "theirs", "rare"], n, p=[0.3, 0.3, 0.3, 0.09, 0.01])
    frame = pd.DataFrame(
        {
            "intervention": kinds, "algorithm": None, "utility": None, "alpha": np.nan, "model": range(n),
            "n_estimators": 5, "training_rows": 10, **metrics, "fits": 3,
            "status": rng.choice(["done", "failed"], n, p=[0.9, 0.1]), "error": None,
        }
    )  # fmt: skip
    results, address = written(frame, tmp_path, groups="each", protected=protected)
    browser.open(address)
    lines = [0, 0.05, 0.3, 0.6, 0.75, 0.795, 0.8, 0.805, 0.85, 0.95, 1]
    views = [(ratio, attribute) for ratio in RATIO_NAMES for attribute in (None, *protected)]
    for view, (ratio, attribute) in enumerate(views):
        chosen = browser.evaluate(f"""{lines}.map((line) => chooseModels(models, {view}, line, "test")
          .map((one) =>
            [models.look(one.row).name, Number(models.model(one.row).split(":")[0]), one.reached]))""")
        for line, told in zip(lines, chosen, strict=True):
            expected = results.winners(ratio, line, attribute=attribute)
            assert told == expected[["intervention", "model", "reached"]].to_numpy().tolist()
        for part in ("validation", "test"):
            frontier = browser.evaluate(f"""pointsOf(models, {view}, "{part}")
              .filter((point) => point.frontier !== null)
              .map((point) => Number(models.model(point.row).split(":")[0]))""")
            assert sorted(frontier) == sorted(results.pareto(ratio, part, attribute=attribute)["model"])
    browser.click("[data-attribute='2']")
    assert browser.evaluate("state.view") == 2
    assert "3, to find its settings" in browser.shown("#card")
    assert browser.troubles() == []


def test_where_nothing_reaches_the_line_the_page_says_so_and_why(browser, tmp_path):
    rows = [
        {
            "intervention": name, "algorithm": None, "utility": None, "alpha": np.nan, "model": model,
            "n_estimators": 5, "training_rows": 10, "status": status, "error": error,
            **{f"{part}_{key}": value for part in ("validation", "test") for key, value in metrics.items()},
        }
        for name, model, status, error, metrics in (
            ("none", 0, "done", None, {"tpr": 0.7, "fpr": 0.05, "fpr_ratio": 0.7999999}),
            ("none", 1, "done", None, {"tpr": 0.9, "fpr": 0.06, "fpr_ratio": 0.95}),
            ("RW", 0, "done", None, {"tpr": 0.6, "fpr": 0.05, "fpr_ratio": 0.5}),
            ("UAR", 0, "no training set", "Weights are all 0.", dict.fromkeys(["tpr", "fpr", "fpr_ratio"])),
        )
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    frame = frame.assign(
        **{f"{part}_{ratio}": np.nan for part in ("validation", "test") for ratio in RATIO_NAMES[1:]}
    )
    _, address = written(frame, tmp_path)
    browser.open(address)
    assert browser.text("#verdict") == (
        "Nothing reaches 0.8 on the validation part, of 2 models that can be compared. "
        "The closest is none, model 0, at 0.799999."
    )
    assert "1 over the budget or undefined" in browser.shown(".missed")
    without = browser.text(".without")
    assert without == "UAR: no model that can be compared. 1 no training set (Weights are all 0)"
    browser.click("[data-ratio='1']")
    assert browser.text("#verdict") == "No model can be compared in this ratio: 3 done, 1 no training set."
    areas = browser.text("#areas article")
    assert areas == "No model can be compared in this ratio."
    assert browser.troubles() == []


def test_what_needs_the_group_is_hollow_and_has_a_frontier_of_its_own(
    results, browser, tmp_path, monkeypatch
):
    from fado.experiment import _results_page as _report

    monkeypatch.setattr(
        _report, "looks_of", lambda frame: [
            look | {"needs_group": look["name"] == "RW"} for look in looks_before(frame)
        ]
    )  # fmt: skip
    results.report(tmp_path / "r.html")
    browser.open((tmp_path / "r.html").as_uri())
    names = """((number) => pointsOf(models, 0, "test").filter((point) => point.frontier === number)
      .map((point) => models.look(point.row).name))"""
    assert set(browser.evaluate(f"{names}(1)")) == {"RW"}
    without = browser.evaluate(f"{names}(0)")
    assert without
    assert "RW" not in without
    assert browser.count("#chart .stairs") == 2
    legend = (
        "[...document.querySelectorAll('#legend button')].find((one) => one.textContent.startsWith('RW'))"
    )
    assert "needs the group" in browser.evaluate(f"{legend}.textContent")
    assert browser.evaluate(f"getComputedStyle({legend}.querySelector('path')).fill") == "none"
    assert "Hollow marks need the group" in browser.shown("body")


def test_a_page_of_five_thousand_models_stays_small_and_its_picture_of_few_pieces(browser, tmp_path):
    n = 5025
    numbers = pd.Series(range(n))
    parts, ends = ("validation", "test"), {"": 0.0, "_low": -0.01, "_high": 0.01}
    frame = pd.DataFrame(
        {
            "intervention": "UAR", "algorithm": "oob", "utility": "cobb-douglas", "scaling": "minmax",
            "alpha": (numbers // 25 % 11) / 10, "strength": 1.0, "floor": (numbers // 275) / 100,
            "correction": 1.0,
            "model": numbers % 25, "n_estimators": numbers % 25, "learning_rate": 0.0123456789,
            "training_rows": 10, "validation_fpr": 0.05, "test_fpr": 0.05,
            **{f"{part}_tpr{end}": numbers / n + add for part in parts for end, add in ends.items()},
            **{
                f"{part}_{ratio}{end}": 1 - numbers / n + add
                for part in parts for ratio in RATIO_NAMES for end, add in ends.items()
            },
            "status": "done", "error": None,
        }
    )  # fmt: skip
    _, address = written(frame, tmp_path)
    assert (tmp_path / "r.html").stat().st_size < 2_000_000
    browser.open(f"{address}#line=0.25")
    assert browser.evaluate("state.points.length") == n
    assert browser.count("#chart svg *") < 100
    assert "of 5,025 models tried with UAR" in browser.shown("#card")
    assert browser.troubles() == []
