"""Checks of many days are counted together by month, and shown on a page."""

import json

import pandas as pd
import pytest
from tests.models.made import stub
from tests.models.test_check import rows_of

from fado.models import add_check, check_trend

MODEL = stub()


def checks_of(*days, n=1_000, a=100, b=100):
    return [MODEL.check(*rows_of(a, b, n), date=day) for day in days]


def test_a_month_tells_what_a_night_cannot():
    checks = checks_of(*[f"2026-04-{day:02}" for day in range(1, 21)], a=100, b=95)
    by_day, by_month = check_trend(checks, by="day"), check_trend(checks)
    assert set(by_day["verdict"]) == {"undecided"}
    (month,) = by_month.to_dict("records")
    whole = MODEL.check(*rows_of(2_000, 1_900, 20_000, 200))
    assert month["period"] == "2026-04"
    assert (month["checks"], month["rows"], month["verdict"]) == (20, 20 * 2_020, "held")
    assert month["value"] == pytest.approx(0.95)
    assert (month["low"], month["high"]) == pytest.approx(
        (whole.metrics["fpr_ratio_low"], whole.metrics["fpr_ratio_high"])
    )
    assert month["budget_used"] == pytest.approx(3_900 / 40_000 / 0.1)
    assert (month["line"], month["level"], month["drifted"]) == (0.8, 0.95, ())


def test_months_and_models_stay_apart_in_the_order_of_their_days():
    other = stub(threshold=0.6).check(*rows_of(100, 10, 1_000), date="2026-04-30")
    trend = check_trend([*checks_of("2026-05-01", "2026-03-31"), other, *checks_of("2026-04-01")])
    assert trend["period"].tolist() == ["2026-03", "2026-04", "2026-04", "2026-05"]
    assert trend["threshold"].tolist() == [0.5, 0.5, 0.6, 0.5]
    assert trend["verdict"].tolist() == ["undecided", "undecided", "missed", "undecided"]
    assert check_trend([]).columns.tolist() == trend.columns.tolist()
    with pytest.raises(ValueError, match="`by`"):
        check_trend([], by="year")


def test_a_directory_keeps_one_check_a_day_and_writes_the_page(tmp_path):
    checks = checks_of("2026-05-01", "2026-05-02")
    for check in checks:
        page = add_check(check, tmp_path / "checks")
    add_check(checks_of("2026-05-02", b=10)[0], tmp_path / "checks")  # the same day again
    assert sorted(path.name for path in page.parent.iterdir()) == [
        "2026-05-01.json",
        "2026-05-02.json",
        "trend.html",
    ]
    found = check_trend(tmp_path / "checks", by="day")
    pd.testing.assert_frame_equal(found, check_trend([checks[0], *checks_of("2026-05-02", b=10)], by="day"))
    assert found["verdict"].tolist() == ["undecided", "missed"]
    text = page.read_text(encoding="utf-8")
    assert "The line is not held: fpr_ratio 0.100" in text
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert (data["checks"], data["models"]) == (2, 1)
    assert data["ratios"][0]["months"][0]["checks"] == 2


def test_what_is_no_check_is_refused_by_name(tmp_path):
    (tmp_path / "notes.json").write_text("{}")  # not called like a check
    add_check(checks_of("2026-05-01")[0], tmp_path)
    whole = json.loads((tmp_path / "2026-05-01.json").read_text())
    for change in (
        {"kind": "x"},
        {"date": "2026-05-03"},
        {"groups": [{"group": "a"}]},
        {"lines": {"odd": 1}},
    ):
        (tmp_path / "2026-05-02.json").write_text(json.dumps({**whole, "date": "2026-05-02", **change}))
        with pytest.raises(
            ValueError, match=r"2026-05-02\.json' is not a check of this release: move it out"
        ):
            check_trend(tmp_path)
    with pytest.raises(ValueError, match="There is no directory"):
        check_trend(tmp_path / "none")
