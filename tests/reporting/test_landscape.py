"""The landscape's points and charts, of interventions that nobody knows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fado.reporting import landscape_chart, select_points, tabulate_points

NAN = float("nan")
EVIL = "</script><script>alert(1)</script><!--\u2028\u202e$data ${title} {{7*7}}&'\""
LOOKS = [
    {"name": "as it is", "shape": "cross", "colour": "#123456"},
    {"name": EVIL, "shape": "square", "colour": None},
    {"name": "absent", "shape": "circle", "colour": "#000000"},
]
FRAME = pd.DataFrame(
    {
        "intervention": ["as it is", EVIL, EVIL, EVIL],
        "alpha": [NAN, 0.5, 0.5, 1.0],
        "way": [None, "slow", "slow", EVIL],
        "dose": [NAN, 0.123456, 0.123456, 2.0],
        "model": [0, 0, 1, 1],
        "trees": np.array([5, 5, 7, 7]),
        "training_rows": pd.array([10, 11, None, 13], dtype="Int64"),
        "test_tpr": [0.7, 0.6, 0.123456789, 0.9],
        "test_a": [0.5, 0.9, 0.1, 0.3],
        "test_b": [NAN, 0.2, NAN, 0.4],
        "test_b_high": [NAN, np.inf, NAN, 12.0],
    }
)


@pytest.fixture
def table():
    return tabulate_points(
        FRAME,
        [
            {"ratio": "a", "frontiers": {"test": [[True, True, False, False], [False] * 4]}},
            {"ratio": "b", "frontiers": {"test": [[False] * 4, [False, True, False, False]]}},
        ],
        setting_columns=["way", "alpha", "dose"],
        model_columns=["trees"],
        metrics=["test_tpr", "test_a", "test_b", "test_b_high"],
        counts=["training_rows"],
        barred={"test": [False, False, False, True]},
    )


def test_every_setting_and_model_is_told_once_and_metrics_in_millionths_rounded_down(table):
    assert table == {
        "settings": [
            {"intervention": "as it is", "alpha": None, "setting": ""},
            {"intervention": EVIL, "alpha": 0.5, "setting": "slow, alpha 0.5, dose 0.1235"},
            {"intervention": EVIL, "alpha": 1.0, "setting": f"{EVIL}, alpha 1, dose 2"},
        ],
        "models": ["0: trees 5", "1: trees 7"],
        "setting": [0, 1, 1, 2],
        "model": [0, 0, 1, 1],
        "metrics": {
            "test_tpr": [700_000, 600_000, 123_456, 900_000],
            "test_a": [500_000, 900_000, 100_000, 300_000],
            "test_b": [None, 200_000, None, 400_000],
            "test_b_high": [None, None, None, 12_000_000],
        },
        "counts": {"training_rows": [10, 11, None, 13]},
        "barred": {"test": [3]},
        "views": [
            {"ratio": "a", "frontiers": {"test": [[0, 1], []]}},
            {"ratio": "b", "frontiers": {"test": [[], [1]]}},
        ],
    }


@given(thousandths=st.integers(0, 1000), steps=st.integers(-3, 3), other=st.floats(0, 1))
def test_whether_a_metric_reaches_a_line_survives_the_rounding(thousandths, steps, other):
    line = thousandths / 1000
    near = line
    for _ in range(abs(steps)):
        near = np.nextafter(near, np.inf * np.sign(steps))
    told = tabulate_points(
        FRAME.head(2).assign(test_a=[near, other]),
        [], setting_columns=[], model_columns=[], metrics=["test_a"], barred={},
    )["metrics"]["test_a"]  # fmt: skip
    assert [one >= 1000 * thousandths for one in told] == [near >= line, other >= line]


def test_the_frontier_is_drawn_on_top(table):
    points = select_points(table, 0)
    assert [(point["tpr"], point["ratio"], point["frontier"]) for point in points] == [
        (0.123456, 0.1, False),
        (0.7, 0.5, True),
        (0.6, 0.9, True),
    ]  # the last row of the frame may not be compared
    assert points[2] == table["settings"][1] | (
        {"model": "0: trees 5", "tpr": 0.6, "ratio": 0.9, "frontier": True}
    )
    assert len(select_points(table, 1)) == 1


def test_order_shape_and_colour_are_those_of_the_looks(table):
    points = select_points(table, 0)
    chart = landscape_chart(points, title="A ratio", rule=0.75, looks=LOOKS, zoom=False).to_dict()
    line, steered, baselines = chart["layer"]
    assert chart["title"] == "A ratio"
    assert line["data"]["values"] == [{"line": 0.75}]
    shape = steered["encoding"]["shape"]["scale"]
    assert shape == {"domain": ["as it is", EVIL], "range": ["cross", "square"]}
    assert steered["encoding"]["color"]["field"] == "alpha"
    assert steered["transform"] == [{"filter": {"field": "intervention", "oneOf": [EVIL]}}]
    assert baselines["encoding"]["color"]["scale"] == {"domain": ["as it is"], "range": ["#123456"]}
    assert baselines["transform"] == [{"filter": {"field": "intervention", "oneOf": ["as it is"]}}]


def test_a_chart_without_alpha_has_no_legend_of_it_and_one_without_looks_is_refused(table):
    points = [point for point in select_points(table, 0) if point["alpha"] is None]
    chart = landscape_chart(points, title="", rule=0.8, looks=LOOKS, zoom=True).to_dict()
    _, steered, baselines = chart["layer"]
    assert steered["encoding"]["color"]["legend"] is None
    assert baselines["encoding"]["color"]["legend"] == {"title": "baseline"}
    with pytest.raises(ValueError, match=r"`looks` must name every intervention .* lacks \['as it is'\]"):
        landscape_chart(points, title="", rule=0.8, looks=LOOKS[1:], zoom=True)
