"""The report in a real browser, with names that try to break out of it."""

import pandas as pd
import pytest

from fado.datasets import make_account_fraud
from fado.experiment import Experiment, Results
from fado.experiment.config import config_from

RATIOS = ("fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio")
EVIL = (
    "<img src=x onerror=alert(1)>'\"</script><script>alert(2)</script>{{7*7}}\u2028\u202e${1}"
    "javascript:alert(3)"
)

# A pixel of a mark: neither white nor grey, the larger marks' among them.
COLOURED = """(() => {
  const canvas = document.querySelector("#chart-0-full canvas");
  const { width, height } = canvas, box = canvas.getBoundingClientRect();
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  for (let y = 30; y < height - 60; y++) for (let x = 60; x < width * 0.65; x++) {
    const at = 4 * (y * width + x), [r, g, b] = [pixels[at], pixels[at + 1], pixels[at + 2]];
    if (Math.max(r, g, b) - Math.min(r, g, b) > 90)
      return [box.left + (x + 2) * box.width / width, box.top + (y + 2) * box.height / height];
  }
})()"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
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
            "models": {"count": 3, "space": {"n_estimators": {"log_uniform": [5, 20]}}},
        }
    )  # fmt: skip
    results = experiment.run(folder / "store", n_jobs=1)
    assert (results.frame["status"] == "done").all()
    results.report(folder / "report.html")
    return folder / "report.html"


def test_the_page_draws_tells_and_stays_at_home(report, browser):
    browser.open(report.absolute().as_uri(), width=1200, height=9000)
    browser.until("document.querySelectorAll('.chart canvas').length === 6")
    browser.hover(*browser.until(COLOURED))
    tooltip = browser.until("(document.querySelector('#vg-tooltip-element.visible') || {}).textContent")
    text = browser.evaluate("document.body.innerText")
    assert browser.troubles() == []
    assert f"Positive is fraud_bool = {EVIL[:20]}" in text
    assert "intervention" in tooltip
    assert "n_estimators" in tooltip
    assert EVIL[:28] in text
    assert "{{7*7}}" in text
    assert browser.evaluate("document.images.length") == 0
    assert browser.evaluate("document.scripts.length") == 3


def test_a_chart_can_be_saved(report, browser):
    browser.open(report.absolute().as_uri(), width=1200, height=9000)
    browser.until("document.querySelectorAll('.chart canvas').length === 6")
    assert not browser.evaluate("document.body.innerText.includes('Save as')")  # until the menu is opened
    links = "[...document.querySelectorAll('#chart-0-full .vega-actions a')]"
    assert browser.evaluate(f"{links}.map((a) => a.textContent)") == ["Save as SVG", "Save as PNG"]
    browser.evaluate(f"{links}.forEach((a) => a.dispatchEvent(new MouseEvent('mousedown')))")
    svg, png = browser.until(f"{links}.every((a) => !a.href.endsWith('#')) && {links}.map((a) => a.href)")
    assert svg.startswith("blob:")
    assert png.startswith("data:image/png")
    assert browser.troubles() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_sideways_scrolling_on_a_phone(report, browser, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", features=features)
    browser.open(report.absolute().as_uri(), width=390)
    browser.until("document.querySelectorAll('.chart canvas').length === 6")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    dark = browser.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(246, 246, 243)"
    assert dark == (scheme == "dark")
    browser.call("Emulation.setEmulatedMedia", features=[])


def test_the_page_is_small(report):
    assert report.stat().st_size < 1_200_000


def test_a_page_of_five_thousand_models_stays_below_three_megabytes(tmp_path):
    one = {"generator": "account_fraud", "target": "fraud_bool", "protected": "customer_age>=50"}
    config = config_from(
        {
            "data": one,
            "split": {"method": "random", "train": 0.5, "test": 0.5},
            "interventions": {},
            "models": {"space": {"n_estimators": 5}},
        }
    )
    n = 5025
    numbers = pd.Series(range(n))
    frame = pd.DataFrame(
        {
            "intervention": "UAR", "algorithm": "oob", "utility": "cobb-douglas", "scaling": "minmax",
            "alpha": (numbers // 25 % 11) / 10, "strength": 1.0, "floor": (numbers // 275) / 100,
            "correction": 1.0,
            "model": numbers % 25, "n_estimators": numbers % 25, "learning_rate": 0.0123456789,
            "training_rows": 10, "test_fpr": 0.05, "test_tpr": numbers / n,
            **{f"test_{ratio}": 1 - numbers / n for ratio in RATIOS},
            "status": "done", "error": None,
        }
    )  # fmt: skip
    Results(frame, config, []).report(tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 3_000_000
