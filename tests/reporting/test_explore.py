"""The page, and single charts of a summary small enough to work out by hand, on scales of all kinds."""

import copy
import re

import pytest

from fado.reporting import explore_chart, explore_page

CELLS = [
    {"group": "f", "label": "yes", "rows": 4, "histogram": [1, 3]},
    {"group": "m", "label": "no", "rows": 10, "histogram": [10, 0]},
]
SUMMARY = {
    "about": {"target": {"name": "loan"}},
    "attributes": [
        {
            "name": "sex",
            "values": {"labels": ["yes", "no"], "groups": ["f", "m"], "v_y": CELLS, "v_z": CELLS},
            "plane": {"counts": [[5, 1], [2, 6]], "titles": ["unsure of", "unsure of"]},
            "alpha": {
                "alphas": [0.0, 0.35, 1.0],
                "groups": ["f"],
                "rows": [4],
                "utilities": {
                    "linear": {"settings": [{"histogram": [bins]} for bins in ([0, 4], [3, 1], [4, 0])]}
                },
            },
        }
    ],
}  # fmt: skip


@pytest.fixture
def summary():
    return copy.deepcopy(SUMMARY)


def draw(summary, name, utility="linear", alpha=0.35):
    return explore_chart(summary, name, None, utility, alpha).to_dict()


def values_of(chart, variable):
    (part,) = (
        part for part in chart["hconcat"] if part["spec"]["layer"][0]["encoding"]["x"]["field"] == variable
    )
    return part, chart["datasets"][part["data"]["name"]]


def rules(layers):
    return [layer for layer in layers if layer["mark"]["type"] == "rule"]


def test_a_summary_without_scales_is_drawn_from_0_to_1(summary):
    part, rows = values_of(draw(summary, "values"), "v_y")
    assert [(row["group"], row["v_y"], row["share"]) for row in rows] == [
        ("f", 0.25, 0.25), ("f", 0.75, 0.75), ("m", 0.25, 1.0), ("m", 0.75, 0.0),
    ]  # fmt: skip
    assert part["spec"]["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 1]
    assert rules(part["spec"]["layer"]) == []


def test_values_are_drawn_on_the_summary_s_scale_with_a_line_at_the_neutral_value(summary):
    summary["attributes"][0]["values"] |= {"low": -2.0, "high": 6.0, "neutral": 0.0}
    for variable in ("v_y", "v_z"):
        part, rows = values_of(draw(summary, "values"), variable)
        assert [row[variable] for row in rows] == [0.0, 4.0, 0.0, 4.0]
        assert part["spec"]["layer"][0]["encoding"]["x"]["scale"]["domain"] == [-2, 6]
        (rule,) = rules(part["spec"]["layer"])
        assert rule["encoding"]["x"]["field"] == "neutral"
        assert {row["neutral"] for row in rows} == {0.0}


@pytest.mark.parametrize("neutral", [-2.0, 6.0, 7.0, None])
def test_a_neutral_value_that_is_not_inside_is_not_drawn(summary, neutral):
    summary["attributes"][0]["values"] |= {"low": -2.0, "high": 6.0, "neutral": neutral}
    part, _ = values_of(draw(summary, "values"), "v_y")
    assert rules(part["spec"]["layer"]) == []


def test_each_variable_may_have_a_scale_of_its_own(summary):
    summary["attributes"][0]["values"]["scales"] = {"v_z": {"low": 10.0, "high": 30.0, "neutral": 20.0}}
    chart = draw(summary, "values")
    part, rows = values_of(chart, "v_y")
    assert [row["v_y"] for row in rows[:2]] == [0.25, 0.75]
    assert rules(part["spec"]["layer"]) == []
    part, rows = values_of(chart, "v_z")
    assert [row["v_z"] for row in rows[:2]] == [15.0, 25.0]
    assert len(rules(part["spec"]["layer"])) == 1


def test_the_plane_is_drawn_on_the_summary_s_scales(summary):
    (rows,) = draw(summary, "plane")["datasets"].values()
    assert rows[1] == {"v_y": 0.5, "v_y_end": 1.0, "v_z": 0.0, "v_z_end": 0.5, "rows": 1}
    scales = {"v_y": {"low": -1.0, "high": 1.0, "neutral": 0.0}, "v_z": {"low": 0.0, "high": 8.0}}
    summary["attributes"][0]["plane"]["scales"] = scales
    chart = draw(summary, "plane")
    density, line = chart["layer"]
    assert chart["datasets"][density["data"]["name"]][2] == (
        {"v_y": -1.0, "v_y_end": 0.0, "v_z": 4.0, "v_z_end": 8.0, "rows": 2}
    )
    assert [density["encoding"][axis]["scale"]["domain"] for axis in "xy"] == [[-1, 1], [0, 8]]
    assert chart["datasets"][line["data"]["name"]] == [{"v_y": 0.0}]


def test_the_plane_is_parted_at_its_cuts(summary):
    scales = {
        "v_y": {"low": 0.0, "high": 1.0, "cut": 0.04},
        "v_z": {"low": -1.0, "high": 1.0, "neutral": 0.0},
    }
    summary["attributes"][0]["plane"]["scales"] = scales
    chart = draw(summary, "plane")
    lines = [chart["datasets"][layer["data"]["name"]] for layer in chart["layer"][1:]]
    assert lines == [[{"v_y": 0.04}], [{"v_z": 0.0}]]


EFFECTS = {
    "ratio": "FPR ratio",
    "performance": "accuracy",
    "cells": [
        {"group": "f", "label": "yes", "rows": 20, "ratio_effect": 0.5, "performance_effect": -0.1},
        {"group": "m", "label": "no", "rows": 30, "ratio_effect": -0.25, "performance_effect": 0.0},
    ],
    "curve": [
        {"share": 0.02, "measured": None},
        {"share": 0.05, "measured": {"ratio_change": 0.3, "ratio_error": 0.1, "performance_change": -0.1,
                                     "performance_error": 0.1}},
        {"share": 0.1, "measured": {"ratio_change": 0.5, "ratio_error": 0.3, "performance_change": None,
                                    "performance_error": None}},
    ],
    "measured": {"fits": 12},
}  # fmt: skip


def test_effects_are_bars_per_group_and_label(summary):
    summary["attributes"][0]["effects"] = EFFECTS
    chart = draw(summary, "effects")
    ratio, performance = (chart["datasets"][part["data"]["name"]] for part in chart["hconcat"])
    assert ratio == [
        {"cell": "f, yes", "rows": 20, "effect": 0.5},
        {"cell": "m, no", "rows": 30, "effect": -0.25},
    ]
    assert [bar["effect"] for bar in performance] == [-0.1, 0.0]
    titles = [part["encoding"]["x"]["title"] for part in chart["hconcat"]]
    assert titles == ["sum of effects on FPR ratio", "sum of effects on accuracy"]


def test_a_performance_without_effects_is_not_drawn(summary):
    summary["attributes"][0]["effects"] = EFFECTS | {"performance": None}
    assert len(draw(summary, "effects")["hconcat"]) == 1
    assert len(draw(summary, "removal")["hconcat"]) == 1


def test_removal_is_points_with_intervals_of_what_was_measured(summary):
    summary["attributes"][0]["effects"] = EFFECTS
    chart = draw(summary, "removal")
    ratio, performance = (chart["datasets"][panel["data"]["name"]] for panel in chart["hconcat"])
    assert [[point[key] for key in ("share", "change", "result")] for point in ratio] == [
        [0.05, 0.3, "measurable"],
        [0.1, 0.5, "no measurable change"],  # 1.96 times 0.3 is more
    ]
    assert [(point["low"], point["high"]) for point in ratio] == [
        pytest.approx((0.104, 0.496)),
        pytest.approx((-0.088, 1.088)),
    ]
    assert [point["share"] for point in performance] == [0.05]
    assert [layer["mark"]["type"] for layer in chart["hconcat"][0]["layer"]] == ["rule", "point"]


def test_what_was_not_measured_is_not_drawn(summary):
    summary["attributes"][0] |= {
        "not_measured": "There are too few rows.",
        "effects": EFFECTS | {"curve": EFFECTS["curve"][:1], "measured": None},
    }
    with pytest.raises(ValueError, match=r"There is nothing to draw\. There are too few rows\."):
        draw(summary, "removal")


COLUMNS = [
    {"name": "club", "gain_z": 0.5, "gain_y": 0.1, "alone_z": 0.4, "alone_y": 0.0},
    {"name": "noise", "gain_z": 0.01, "gain_y": 0.01, "alone_z": 0.0, "alone_y": 0.0},
    {"name": "loan", "gain_z": 0.0, "gain_y": None, "alone_z": 0.0, "alone_y": None},
]


@pytest.mark.parametrize(
    ("basis", "shares"), [("gains", [0.5, 0.1, 0.0, None]), ("alone", [0.4, 0.0, 0.0, None])]
)
def test_columns_are_two_bars_each_of_those_that_matter_most(summary, basis, shares):
    summary["attributes"][0]["columns"] = {
        "basis": basis, "columns": COLUMNS, "drawn": [0, 2], "sentence": "club gives it away",
    }  # fmt: skip
    chart = draw(summary, "columns")
    (rows,) = chart["datasets"].values()
    assert [(row["column"], row["which"]) for row in rows] == [
        (column, which) for column in ("club", "loan") for which in ("reveals sex", "matters for loan")
    ]
    assert [row["share"] for row in rows] == shares
    assert chart["encoding"]["y"]["sort"] == ["club", "loan"]


def test_a_pool_is_drawn_below_the_labelled_rows(summary):
    shares = {"labelled": {"shares": [0.25, 0.75]}, "pool": {"shares": [1.0, 0.0]}}
    summary["pool"] = {"attributes": [{"name": "other"}, {"name": "sex", "v_y": shares, "v_z": shares}]}
    summary["attributes"][0]["values"]["scales"] = {"v_z": {"low": -2.0, "high": 6.0, "neutral": 0.0}}
    chart = draw(summary, "pool")
    part, rows = values_of(chart, "v_y")
    assert [(row["group"], row["v_y"], row["share"]) for row in rows] == [
        ("labelled", 0.25, 0.25), ("labelled", 0.75, 0.75), ("pool", 0.25, 1.0), ("pool", 0.75, 0.0),
    ]  # fmt: skip
    assert rules(part["spec"]["layer"]) == []
    part, rows = values_of(chart, "v_z")
    assert [row["v_z"] for row in rows] == [0.0, 4.0, 0.0, 4.0]
    assert len(rules(part["spec"]["layer"])) == 1


def test_without_a_pool_there_is_no_such_chart(summary):
    with pytest.raises(ValueError, match="no unlabelled rows to draw: pass them to `explore` as `pool`"):
        draw(summary, "pool")


@pytest.mark.parametrize("part", [None, EFFECTS | {"cells": []}])
def test_values_that_are_no_effects_have_no_such_chart(summary, part):
    summary["attributes"][0]["effects"] = part
    with pytest.raises(ValueError, match="The values of 'sex' are not effects: nothing to draw"):
        draw(summary, "effects")


def test_small_groups_have_no_histogram_of_utilities(summary):
    scene = summary["attributes"][0]["alpha"]
    scene |= {"groups": ["f", "(2 small groups)"], "rows": [4, 3], "small": 1}
    for setting in scene["utilities"]["linear"]["settings"]:
        setting["histogram"].append([1, 2])
    (rows,) = draw(summary, "utility")["datasets"].values()
    assert {row["group"] for row in rows} == {"f"}


def test_utilities_are_drawn_on_their_scale(summary):
    (rows,) = draw(summary, "utility")["datasets"].values()
    assert [(row["utility"], row["share"]) for row in rows] == [(0.25, 0.75), (0.75, 0.25)]
    kind = summary["attributes"][0]["alpha"]["utilities"]["linear"]
    kind |= {"low": -1.0, "high": 3.0, "neutral": 0.0}
    chart = draw(summary, "utility", alpha=0)
    (rows,) = chart["datasets"].values()
    assert [(row["utility"], row["share"]) for row in rows] == [(0.0, 0.0), (2.0, 1.0)]
    assert len(rules(chart["spec"]["layer"])) == 1
    assert chart["title"] == "linear utility, alpha = 0.00"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "pie"}, "`name` must be one of .*'plane'.*, got 'pie'"),
        ({"name": "utility", "utility": "cubic"}, "`utility` must be one of \\['linear'\\], got 'cubic'"),
        ({"name": "utility", "alpha": 0.33}, "multiple of 0.05 in \\[0, 1\\], got 0.33"),
    ],
)
def test_unknown_charts_are_refused(summary, arguments, message):
    with pytest.raises(ValueError, match=message):
        draw(summary, **arguments)
    with pytest.raises(ValueError, match="`attribute` must be one of \\['sex'\\], got 'age'"):
        explore_chart(summary, "plane", "age", "linear", 0.5)


def check_that_nothing_is_loaded(page):
    assert set(re.findall(r"https?://[^\s\"'`<)]*", page)) == {"http://www.w3.org/2000/svg"}
    for word in (
        "src=",
        "href=",
        "@import",
        "url(",
        "innerHTML",
        "insertAdjacentHTML",
        "eval(",
        "document.write",
    ):
        assert word not in page


def test_the_page_names_nothing_to_load():
    check_that_nothing_is_loaded(explore_page({}))


def test_only_a_page_with_a_pool_has_the_script_that_draws_it():
    plain = {"attributes": [{"name": "sex"}]}
    assert "function drawPool" not in explore_page(plain)
    for summary in (plain, {"attributes": [{"name": "age", "effects": {}}]}):
        page = explore_page(summary | {"pool": {}})
        assert "function drawPool" in page
        assert explore_page(summary).split("script-src")[0] == page.split("script-src")[0]
        check_that_nothing_is_loaded(page)
        names = re.findall(r"^(?:function|const|let) (\w+)", page, re.MULTILINE)
        assert len(names) == len(set(names))  # the scripts share one scope


def test_only_a_page_of_effects_has_the_script_that_draws_them():
    plain = explore_page({"attributes": [{"name": "sex"}]})
    with_effects = explore_page({"attributes": [{"name": "sex"}, {"name": "age", "effects": {}}]})
    assert "function drawEffects" not in plain
    assert "function drawEffects" in with_effects
    assert plain.split("<script")[0].split("script-src")[0] == with_effects.split("script-src")[0]
    check_that_nothing_is_loaded(with_effects)
