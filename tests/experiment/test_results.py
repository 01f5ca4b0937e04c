"""Results: frontier, choice and areas of a landscape small enough to work out by hand."""

import re

import numpy as np
import pandas as pd
import pytest

from fado.experiment import Results
from fado.experiment._config import config_from
from fado.experiment._results_page import describe_settings, looks_of, report_content, setting_columns

NAN = float("nan")
NAMES = [
    "intervention", "alpha", "model", "validation_tpr", "validation_fpr_ratio", "test_tpr", "test_fpr_ratio",
    "test_fpr", "status",
]  # fmt: skip
ROWS = [
    ("none", NAN, 0, 0.90, 0.30, 0.80, 0.40, 0.05, "done"),
    ("none", NAN, 1, 0.70, 0.85, 0.70, 0.70, 0.05, "done"),
    ("RW", NAN, 0, 0.60, 0.90, 0.60, 0.90, 0.05, "done"),
    ("RW", NAN, 1, 0.65, 0.95, 0.50, 0.80, 0.05, "done"),
    ("UAR", 0.5, 0, 0.99, 0.99, 0.99, 0.99, 0.06, "done"),  # beyond the budget on test
    ("UAR", 0.5, 1, NAN, NAN, 0.90, NAN, 0.05, "done"),  # undefined
    ("UAR", 1.0, 0, 0.80, 0.80, NAN, NAN, NAN, "failed"),
]
MISSED = [
    ("none", NAN, 0, 0.90, 0.30, 0.80, 0.45, 0.05, "done"),
    ("none", NAN, 1, 0.70, 0.79, 0.70, 0.60, 0.05, "done"),
    ("UAR", 0.5, 0, 0.70, 0.79, 0.65, 0.90, 0.05, "done"),
    ("UAR", 1.0, 1, 0.75, 0.79, 0.60, 0.50, 0.05, "done"),  # as close, and finds more
    ("RPS", NAN, 0, NAN, NAN, NAN, NAN, NAN, "failed"),
]


def results_of(rows, *, validation=True):
    split = {"method": "random", "train": 0.5, "test": 0.25, "validation": 0.25}
    if not validation:
        split = {"method": "random", "train": 0.5, "test": 0.5}
    config = config_from(
        {
            "data": {"generator": "account_fraud", "target": "fraud_bool", "protected": "customer_age>=50"},
            "split": split,
            "interventions": {},
            "models": {"count": 2, "space": {"n_estimators": 5}},
        }
    )
    settings = dict.fromkeys(("algorithm", "utility", "scaling"))
    settings |= dict.fromkeys(("strength", "floor", "prevalence_correction"), NAN)
    common = {"n_estimators": 5, "training_rows": 10, "validation_fpr": 0.05, "error": None}
    frame = pd.DataFrame(rows, columns=NAMES).assign(**settings, **common)
    order = ["intervention", "algorithm", "utility", "alpha", "scaling", "strength", "floor"]
    order += ["prevalence_correction", "model", "n_estimators", "training_rows"]
    return Results(frame[order + [name for name in frame if name not in order]], config, [])


def equal_models(*looks):
    return results_of([(name, alpha, 0, 0.5, 0.5, 0.5, 0.5, 0.05, "done") for name, alpha in looks])


def test_what_cannot_be_compared_is_left_out_and_the_choice_is_told_with_test_metrics():
    frontier = results_of(ROWS).pareto("fpr_ratio")
    assert frontier[["intervention", "model"]].to_numpy().tolist() == [["none", 0], ["none", 1], ["RW", 0]]
    chosen = results_of(ROWS).select("fpr_ratio", at_least=0.8)
    assert chosen[["intervention", "model", "test_tpr"]].to_numpy().tolist() == [
        ["UAR", 0, 0.99],
        ["none", 1, 0.70],
        ["RW", 1, 0.50],
    ]
    with pytest.warns(UserWarning, match="There is no validation part"):
        chosen = results_of(ROWS, validation=False).select("fpr_ratio", at_least=0.8)
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


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda own: report_content(own, "accuracy"), "`metric` must be 'fpr_ratio' or .*, got 'accuracy'"),
        (lambda own: report_content(own, "fpr_ratio", 80), r"`at_least` must be in \[0, 1\], got 80"),
        (lambda own: own.pareto("accuracy"), "`metric` must be 'fpr_ratio' or"),
        (lambda own: own.pareto("fpr_ratio", part="validation"), "`part` must be 'test', got 'validation'"),
        (lambda own: own.report("r.pdf"), r"must end in \.html"),
    ],
)
def test_unknown_metrics_parts_and_lines_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call(results_of(ROWS, validation=False))


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
    encoding = results_of(ROWS).plot("fpr_ratio", zoom=True).to_dict()["layer"][1]["encoding"]
    x, y = (encoding[axis]["scale"]["domain"] for axis in "xy")
    assert x == [0.59, 0.808]  # from RW's (0.6, 0.9) on
    assert y == [0.35, 1.0]  # down to none's (0.8, 0.4)


def test_shapes_are_the_papers_and_colours_those_that_all_can_read():
    papers = equal_models(("none", NAN), ("RPS", NAN), ("UAPS", 0.0), ("UAR", 1.0))
    line, points, *_ = papers.plot("fpr_ratio").to_dict()["layer"]
    shape = points["encoding"]["shape"]["scale"]
    assert list(zip(shape["domain"], shape["range"], strict=True)) == [
        ("none", "circle"), ("RPS", "circle"), ("UAPS", "triangle-up"), ("UAR", "square")
    ]  # fmt: skip
    dark, *_, light = points["encoding"]["color"]["scale"]["range"]
    assert (dark, light) == ("#440154", "#22a784")  # viridis
    assert line["data"]["values"] == [{"line": 0.8}]
    # what is not registered comes last
    results = equal_models(("theirs", 0.5), ("plain", NAN), ("UAR", 0.5), ("none", NAN))
    assert results.interventions == ["none", "UAR", "theirs", "plain"]
    assert [
        tuple(look[name] for name in ("name", "shape", "colour")) for look in looks_of(results.frame)
    ] == [
        ("none", "circle", "#111111"),
        ("UAR", "square", None),
        ("theirs", "circle", None),
        ("plain", "circle", "#777777"),
    ]
    assert list(results.hypervolume("fpr_ratio").index) == results.interventions


def test_a_report_of_a_pending_store_can_be_written(undisturbed, tmp_path):
    results = undisturbed[1]
    frame = results.frame.assign(status="pending")
    frame.loc[:, [name for name in frame.columns if name.startswith(("test_", "validation_"))]] = np.nan
    Results(frame, results.config, results.summary).report(tmp_path / "r.html")
    assert "30 pending" in (tmp_path / "r.html").read_text()


def test_settings_of_one_value_per_experiment_are_not_told_of_every_point(undisturbed):
    told = setting_columns(undisturbed[1].frame)
    assert told[:7] == [
        "algorithm", "utility", "alpha", "strength", "scaling", "floor", "prevalence_correction"
    ]  # fmt: skip
    assert "negative" in undisturbed[1].frame
    assert "negative" not in told


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [*ROWS, ("RPS", NAN, 0, 0.5, 0.7, 0.4, 0.75, 0.05, "done")],
            [
                ["UAR", "alpha 0.5", 0.99, 0.99, 0, True],
                ["none", "", 0.70, 0.70, 1, True],  # chosen on validation, where it reaches the line
                ["RW", "", 0.50, 0.80, 1, True],
                ["RPS", "", 0.40, 0.75, 0, False],
            ],
        ),
        (MISSED, [["none", "", 0.70, 0.60, 1, False], ["UAR", "alpha 1", 0.60, 0.50, 1, False]]),
        (MISSED[-1:], []),
    ],
    ids=["reached", "missed", "none"],
)
def test_winners_are_sorted_by_what_is_shown_and_the_closest_follow(rows, expected):
    chosen = results_of(rows).winners("fpr_ratio")
    told = chosen.reindex(columns=["intervention", "settings", "tpr", "ratio", "model", "reached"])
    assert told.to_numpy().tolist() == expected


def test_where_nothing_reaches_the_line_there_is_a_closest():
    assert list(results_of(MISSED).closest("fpr_ratio", 0.79)["intervention"]) == []
    assert list(results_of(MISSED).closest("fpr_ratio", 0.8).index) == [3, 1]


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


def test_the_page_tells_settings_and_intervals(undisturbed):
    content = report_content(undisturbed[1])
    points = content["points"]
    assert {setting["intervention"] for setting in points["settings"]} == set(undisturbed[1].interventions)
    assert "utility linear, alpha 0, strength 1" in {setting["setting"] for setting in points["settings"]}
    rates = points["metrics"]["validation_tpr"]
    assert rates == sorted(rates, reverse=True)
    done = undisturbed[1].frame.query("status == 'done'")
    assert len(rates) == len(done)
    for name in ("test_tpr", "test_tpr_low", "test_tpr_high"):
        shown = sorted(value for value in points["metrics"][name] if value is not None)
        assert shown == pytest.approx(sorted(1e6 * done[name].dropna()), abs=1.01)
    assert content["attributes"] == ["all attributes (the lowest ratio)"]
    assert content["groups"][0]["train"]["rows"].isdigit()
    assert content["left_out"] == []


def test_few_members_are_not_counted_on_a_page(undisturbed):
    small = {"group": "g", "attribute": None, "left_out": True}
    summary = [small | {"part": "train", "rows": 40, "positives": 4}]
    summary += [small | {"part": "test", "rows": 9, "positives": 3}]
    results = Results(undisturbed[1].frame, undisturbed[1].config, summary)
    assert results.left_out == [{"group": "g", "attribute": None, "train": 40, "test": 9}]
    train, test = {"rows": "40", "rate": "0.1000"}, {"rows": "fewer than 10", "rate": ""}
    assert report_content(results)["left_out"] == [{"group": "g", "train": train, "test": test}]


def test_a_notebook_shows_the_frontier_on_the_rows_that_models_are_chosen_by():
    shown = results_of(ROWS)._repr_html_()
    assert "Results of 7 models (6 done, 1 failed)" in shown
    assert "fpr_ratio on validation rows" in shown
    rows = re.findall(r"<tr>\s*<td>(.*?)</td>\s*<td>(.*?)</td>\s*<td>(.*?)</td>\s*<td>(.*?)</td>", shown)
    assert rows == [("UAR", "alpha 0.5", "0", "0.99")]  # beyond the budget on test rows alone
    many = [("none", NAN, 0, 0.9 - n / 100, 0.1 + n / 100, 0.5, 0.5, 0.05, "done") for n in range(25)]
    shown = results_of(many)._repr_html_()
    assert "The first 20 of 25; `pareto` returns all." in shown
    assert shown.count("<td>none</td>") == 20
    nothing = results_of([("<i>none", NAN, 0, NAN, NAN, NAN, NAN, NAN, "failed")])._repr_html_()
    assert nothing.endswith("<p>No model can be compared by fpr_ratio yet.</p></div>")
