"""The page of a model's checks in a real browser: it shows the trend, and runs nothing from the data."""

import numpy as np
import pandas as pd
import pytest
from tests.end_to_end.test_report_page import EVIL
from tests.models.made import Stub, facts_of

from fado.engine import Schema
from fado.models import ChosenModel, add_check, check_trend, summarize_columns
from fado.tabular import Table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trend") / "checks"
    rng = np.random.default_rng(0)
    first = Table.from_input(pd.DataFrame({"score": rng.random(1000), EVIL: ["a", "b"] * 500}))
    scorer = Stub()
    scorer.schema = Schema.of(first)
    facts = facts_of(lines={"fpr_ratio": 0.8, "tpr_ratio": 0.8})
    model = ChosenModel(
        scorer, classes=(0, 1), threshold=0.9, metrics={}, facts=facts, columns=summarize_columns(first)
    )
    for day, level in (("2026-03-30", "a"), ("2026-03-31", "b"), ("2026-04-01", EVIL)):
        X = pd.DataFrame({"score": rng.random(400), EVIL: [level, "b"] * 200})
        groups = pd.Series(rng.choice([EVIL, "other"], 400), name="sex")
        add_check(model.check(X, rng.integers(0, 2, 400), groups, date=day), folder)
    return folder


def test_the_page_shows_the_trend(browser, folder):
    browser.open((folder / "trend.html").as_uri())
    trend = check_trend(folder)
    shown = browser.evaluate(
        "[...document.querySelectorAll('article')].slice(0, 2).map((card) => [...card.querySelector('table')"
        ".tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.innerText)))"
    )
    for (_, own), rows in zip(trend.groupby("ratio", sort=False), shown, strict=True):
        for month, cells in zip(own[::-1].to_dict("records"), rows, strict=True):
            assert cells[0] == month["period"]
            assert cells[1] == f"{month['value']:.3f}"
            assert cells[4:7] == [month["verdict"], str(month["checks"]), str(month["rows"])]
    assert browser.evaluate("document.querySelectorAll('svg[role=img] circle').length") == 6
    text = browser.evaluate("document.body.innerText")
    assert "<img src=x onerror=alert(1)>" in text
    assert "Levels that the model has not seen" in text
    assert browser.troubles() == []


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(browser, folder, width):
    browser.open((folder / "trend.html").as_uri(), width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
