"""Results: frontier, choice and areas of a landscape small enough to work out by hand."""

import re

import numpy as np
import pandas as pd
import pytest

from fado.experiment import Results
from fado.experiment._config import config_from
from fado.experiment._results_page import describe_settings, looks_of, report_content, setting_columns

NAN = float("nan")


def results_of(rows, *, validation=True, count=2):
    """Rows: intervention, model, (tpr, ratio) on validation, (tpr, ratio, fpr) on test, status."""
    split = {"method": "random", "train": 0.5, "validation": 0.25, "test": 0.25}
    if not validation:
        split = {"method": "random", "train": 0.5, "test": 0.5}
    config = config_from(
        {
            "data": {"generator": "account_fraud", "target": "fraud_bool", "protected": "customer_age>=50"},
            "split": split,
            "interventions": {},
            "models": {"count": count, "space": {"n_estimators": 5}},
        }
    )
    frame = pd.DataFrame(
        [
            {
                "intervention": name, "algorithm": None, "utility": None, "alpha": alpha, "scaling": None,
                "strength": NAN, "floor": NAN, "prevalence_correction": NAN, "model": model,
                "n_estimators": 5, "training_rows": 10,
                "validation_tpr": v_tpr, "validation_fpr_ratio": v_ratio, "validation_fpr": 0.05,
                "test_tpr": tpr, "test_fpr_ratio": ratio, "test_fpr": fpr, "status": status, "error": None,
            }
            for name, alpha, model, v_tpr, v_ratio, tpr, ratio, fpr, status in rows
        ]
    )  # fmt: skip
    return Results(frame, config, [])


ROWS = [
    ("none", NAN, 0, 0.90, 0.30, 0.80, 0.40, 0.05, "done"),
    ("none", NAN, 1, 0.70, 0.85, 0.70, 0.70, 0.05, "done"),
    ("RW", NAN, 0, 0.60, 0.90, 0.60, 0.90, 0.05, "done"),
    ("RW", NAN, 1, 0.65, 0.95, 0.50, 0.80, 0.05, "done"),
    ("UAR", 0.5, 0, 0.99, 0.99, 0.99, 0.99, 0.06, "done"),  # beyond the budget on test
    ("UAR", 0.5, 1, NAN, NAN, 0.90, NAN, 0.05, "done"),  # undefined
    ("UAR", 1.0, 0, 0.80, 0.80, NAN, NAN, NAN, "failed"),
]


def test_the_frontier_leaves_out_what_cannot_be_compared():
    frontier = results_of(ROWS).pareto("fpr_ratio")
    assert frontier[["intervention", "model"]].to_numpy().tolist() == [["none", 0], ["none", 1], ["RW", 0]]


def test_the_best_on_validation_is_told_with_its_test_metrics():
    chosen = results_of(ROWS).select("fpr_ratio", at_least=0.8)
    assert chosen[["intervention", "model", "test_tpr"]].to_numpy().tolist() == [
        ["UAR", 0, 0.99],
        ["none", 1, 0.70],
        ["RW", 1, 0.50],
    ]


def test_without_a_validation_part_the_choice_on_test_is_warned_of():
    results = results_of(ROWS, validation=False)
    with pytest.warns(UserWarning, match="There is no validation part"):
        chosen = results.select("fpr_ratio", at_least=0.8)
    assert chosen[["intervention", "model"]].to_numpy().tolist() == [["RW", 0]]


def test_areas_by_hand():
    areas = results_of(ROWS).hypervolume("fpr_ratio")
    assert areas["hypervolume"].to_dict() == pytest.approx(
        {"none": 0.7 * 0.7 + 0.1 * 0.4, "RW": 0.6 * 0.9, "UAR": 0.0}
    )
    assert areas["models"].to_dict() == {"none": 2, "RW": 2, "UAR": 0}
    # A resample of two models holds one alone half the time: the interval runs from the smaller one to both.
    assert areas.loc["none", "low"] == pytest.approx(0.8 * 0.4)
    assert areas.loc["RW", "low"] == pytest.approx(0.5 * 0.8)
    assert (areas["high"] == areas["hypervolume"]).all()
    results = results_of(ROWS)
    areas = results.hypervolume("fpr_ratio", part="validation")
    assert areas["hypervolume"].to_dict() == pytest.approx(
        {"none": 0.7 * 0.85 + 0.2 * 0.3, "RW": 0.65 * 0.95, "UAR": 0.99 * 0.99}
    )
    assert areas["models"].to_dict() == {"none": 2, "RW": 2, "UAR": 1}
    results.frame["cost"] = [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]  # the first was trained in part
    areas = results.hypervolume("fpr_ratio", part="validation")
    assert areas.loc["none", ["hypervolume", "models"]].tolist() == pytest.approx([0.7 * 0.85, 1])


def test_a_page_opens_on_what_was_asked_for(undisturbed):
    content = report_content(undisturbed[1], "tpr_ratio", 0.9)
    ratios = [view["ratio"] for view in content["points"]["views"]]
    assert ratios == ["tpr_ratio", "fpr_ratio", "fnr_ratio", "selection_rate_ratio"]
    assert content["titles"][0] == "Ratio of true-positive rates"
    assert content["rule"] == 0.9
    with pytest.raises(ValueError, match=r"`metric` must be 'fpr_ratio' or .*, got 'accuracy'"):
        report_content(undisturbed[1], "accuracy")
    with pytest.raises(ValueError, match=r"`at_least` must be in \[0, 1\], got 80"):
        report_content(undisturbed[1], "fpr_ratio", 80)


def test_unknown_metrics_and_parts_are_refused():
    results = results_of(ROWS, validation=False)
    with pytest.raises(ValueError, match="`metric` must be 'fpr_ratio' or"):
        results.pareto("accuracy")
    with pytest.raises(ValueError, match="`part` must be 'test', got 'validation'"):
        results.pareto("fpr_ratio", part="validation")


def test_the_chart_holds_every_comparable_model_and_marks_the_frontier(tmp_path):
    chart = results_of(ROWS).plot("fpr_ratio")
    (points,) = (values for values in chart.to_dict()["datasets"].values() if len(values) > 1)
    assert [(p["intervention"], p["tpr"], p["ratio"], p["frontier"]) for p in points] == [
        ("RW", 0.5, 0.8, False),
        ("none", 0.8, 0.4, True),
        ("none", 0.7, 0.7, True),
        ("RW", 0.6, 0.9, True),
    ]
    assert points[0]["model"] == "1: n_estimators 5"
    for ending in ("png", "svg"):
        chart.save(tmp_path / f"chart.{ending}")
        assert (tmp_path / f"chart.{ending}").stat().st_size > 5000


def test_shapes_are_the_papers_and_colours_those_that_all_can_read():
    rows = [
        (name, alpha, 0, 0.5, 0.5, 0.5, 0.5, 0.05, "done")
        for name, alpha in (("none", NAN), ("RPS", NAN), ("UAPS", 0.0), ("UAR", 1.0))
    ]
    layers = results_of(rows).plot("fpr_ratio").to_dict()["layer"]
    shape = layers[1]["encoding"]["shape"]["scale"]
    assert dict(zip(shape["domain"], shape["range"], strict=True)) == {
        "none": "circle",
        "RPS": "circle",
        "UAPS": "triangle-up",
        "UAR": "square",
    }
    dark, *_, light = layers[1]["encoding"]["color"]["scale"]["range"]
    assert (dark, light) == ("#440154", "#22a784")  # viridis
    assert layers[0]["data"]["values"] == [{"line": 0.8}]


def test_the_zoom_holds_the_whole_frontier():
    encoding = results_of(ROWS).plot("fpr_ratio", zoom=True).to_dict()["layer"][1]["encoding"]
    x, y = (encoding[axis]["scale"]["domain"] for axis in "xy")
    assert x == [0.59, 0.808]  # from RW's (0.6, 0.9) on
    assert y == [0.35, 1.0]  # down to none's (0.8, 0.4)


def test_a_report_of_a_pending_store_can_be_written(undisturbed, tmp_path):
    results = undisturbed[1]
    frame = results.frame.copy()
    frame.loc[:, "status"] = "pending"
    frame.loc[:, [name for name in frame.columns if name.startswith(("test_", "validation_"))]] = np.nan
    Results(frame, results.config, results.summary).report(tmp_path / "r.html")
    assert "30 pending" in (tmp_path / "r.html").read_text()
    with pytest.raises(ValueError, match=r"must end in \.html"):
        results.report(tmp_path / "r.pdf")


def test_what_is_not_registered_comes_last_in_a_look_of_its_own():
    rows = [
        (name, alpha, 0, 0.5, 0.5, 0.5, 0.5, 0.05, "done")
        for name, alpha in (("theirs", 0.5), ("plain", NAN), ("UAR", 0.5), ("none", NAN))
    ]
    results = results_of(rows)
    assert results.interventions == ["none", "UAR", "theirs", "plain"]
    looks = {look["name"]: (look["shape"], look["colour"]) for look in looks_of(results.frame)}
    assert looks == {
        "none": ("circle", "#111111"), "UAR": ("square", None), "theirs": ("circle", None),
        "plain": ("circle", "#777777"),
    }  # fmt: skip
    assert list(results.hypervolume("fpr_ratio").index) == results.interventions


def test_settings_of_one_value_per_experiment_are_not_told_of_every_point(undisturbed):
    told = setting_columns(undisturbed[1].frame)
    assert told[:7] == [
        "algorithm", "utility", "alpha", "strength", "scaling", "floor", "prevalence_correction"
    ]  # fmt: skip
    assert "negative" in undisturbed[1].frame
    assert "negative" not in told


MISSED = [
    ("none", NAN, 0, 0.90, 0.30, 0.80, 0.45, 0.05, "done"),
    ("none", NAN, 1, 0.70, 0.79, 0.70, 0.60, 0.05, "done"),
    ("UAR", 0.5, 0, 0.70, 0.79, 0.65, 0.90, 0.05, "done"),
    ("UAR", 1.0, 1, 0.75, 0.79, 0.60, 0.50, 0.05, "done"),  # as close, and finds more
    ("RPS", NAN, 0, NAN, NAN, NAN, NAN, NAN, "failed"),
]


def test_winners_are_sorted_by_what_is_shown_and_the_closest_follow():
    chosen = results_of([*ROWS, ("RPS", NAN, 0, 0.5, 0.7, 0.4, 0.75, 0.05, "done")]).winners("fpr_ratio")
    told = chosen[["intervention", "settings", "tpr", "ratio", "model", "reached"]].to_numpy().tolist()
    assert told == [
        ["UAR", "alpha 0.5", 0.99, 0.99, 0, True],
        ["none", "", 0.70, 0.70, 1, True],  # chosen on validation, where it reaches the line
        ["RW", "", 0.50, 0.80, 1, True],
        ["RPS", "", 0.40, 0.75, 0, False],
    ]


def test_where_nothing_reaches_the_line_the_closest_are_told():
    results = results_of(MISSED)
    told = results.winners("fpr_ratio")[["intervention", "settings", "tpr", "ratio", "reached"]]
    assert told.to_numpy().tolist() == [
        ["none", "", 0.70, 0.60, False],
        ["UAR", "alpha 1", 0.60, 0.50, False],
    ]
    assert list(results.closest("fpr_ratio", 0.79)["intervention"]) == []
    assert list(results.closest("fpr_ratio", 0.8).index) == [3, 1]


def test_every_setting_of_a_winner_is_told(undisturbed):
    winners = undisturbed[1].winners("fpr_ratio").set_index("intervention")
    assert re.fullmatch(r"utility [a-z-]+, alpha [01], strength 1", winners.loc["UAPS", "settings"])
    assert re.fullmatch(r"utility [a-z-]+, alpha [01], scaling (minmax|none)", winners.loc["UAR", "settings"])
    assert winners.loc["RPS", "settings"] == "strength 1"
    ends = winners[["tpr_low", "tpr", "tpr_high"]].dropna().to_numpy()
    assert len(ends)
    assert (np.diff(ends, axis=1) >= 0).all()
    frame = undisturbed[1].frame.assign(algorithm=["oob", "inbag"] * 15)
    assert describe_settings(frame)[0] == "algorithm oob"


def test_a_frame_of_nothing_to_choose_from_has_no_winners():
    assert len(results_of(MISSED[-1:]).winners("fpr_ratio")) == 0


def test_the_page_tells_settings_and_intervals(undisturbed):
    content = report_content(undisturbed[1])
    points = content["points"]
    told = {setting["intervention"] for setting in points["settings"]}
    assert told == set(undisturbed[1].interventions)
    assert "utility linear, alpha 0, strength 1" in {setting["setting"] for setting in points["settings"]}
    rates = points["metrics"]["validation_tpr"]
    assert rates == sorted(rates, reverse=True)
    done = undisturbed[1].frame.query("status == 'done'").sort_values("validation_tpr", ascending=False)
    assert len(rates) == len(done)
    for end in ("", "_low", "_high"):
        shown = points["metrics"][f"test_tpr{end}"]
        known = done[f"test_tpr{end}"].dropna()
        assert sorted(value for value in shown if value is not None) == pytest.approx(
            sorted(1e6 * known), abs=1.01
        )
    assert content["attributes"] == ["all attributes (the lowest ratio)"]
    assert content["groups"][0]["train"]["rows"].isdigit()
    assert content["left_out"] == []


def test_few_members_are_not_counted_on_a_page(undisturbed):
    counts = [("train", 40, 4), ("test", 9, 3)]
    summary = [
        {"part": part, "group": "g", "rows": rows, "positives": n, "attribute": None, "left_out": True}
        for part, rows, n in counts
    ]
    results = Results(undisturbed[1].frame, undisturbed[1].config, summary)
    assert results.left_out == [{"group": "g", "attribute": None, "train": 40, "test": 9}]
    assert report_content(results)["left_out"] == [
        {
            "group": "g",
            "train": {"rows": "40", "rate": "0.1000"},
            "test": {"rows": "fewer than 10", "rate": ""},
        }
    ]


def test_a_notebook_shows_the_frontier_on_the_rows_that_models_are_chosen_by():
    shown = results_of(ROWS)._repr_html_()
    assert "Results of 7 models (6 done, 1 failed)" in shown
    assert "fpr_ratio on validation rows" in shown
    rows = re.findall(r"<tr>\s*<td>(.*?)</td>\s*<td>(.*?)</td>\s*<td>(.*?)</td>\s*<td>(.*?)</td>", shown)
    assert rows == [("UAR", "alpha 0.5", "0", "0.99")]  # beyond the budget on test rows alone


def test_a_notebook_shows_the_first_models_of_many_and_says_so_if_there_are_none():
    rows = [("none", NAN, 0, 0.9 - n / 100, 0.1 + n / 100, 0.5, 0.5, 0.05, "done") for n in range(25)]
    shown = results_of(rows)._repr_html_()
    assert "The first 20 of 25; `pareto` returns all." in shown
    assert shown.count("<td>none</td>") == 20
    nothing = results_of([("<i>none", NAN, 0, NAN, NAN, NAN, NAN, NAN, "failed")])._repr_html_()
    assert nothing.endswith("<p>No model can be compared by fpr_ratio yet.</p></div>")
