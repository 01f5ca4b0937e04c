import pytest

from fado import explore

NAMES = [
    "group_size", "prevalence", "separability", "base", "values", "plane", "utility", "columns", "suspicious",
]  # fmt: skip


@pytest.fixture(scope="module")
def seen(small):
    return explore(small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0)


def rows_of(chart):
    (rows,) = chart.to_dict()["datasets"].values()
    return rows


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("attribute", [None, "origin"])
def test_every_chart_is_valid_vega_lite(seen, name, attribute):
    assert "$schema" in seen.chart(name, attribute).to_dict()


def test_a_chart_shows_the_summary_s_numbers(seen):
    summary = seen.to_dict()["attributes"][0]
    bars = rows_of(seen.chart("prevalence", "sex"))
    assert [bar["number"] for bar in bars] == [bar["number"] for bar in summary["biases"][1]["bars"]]
    chart = seen.chart("plane", "sex").to_dict()
    plane, *cuts = (chart["datasets"][layer["data"]["name"]] for layer in chart["layer"])
    assert sum(cell["rows"] for cell in plane) == 600
    scales = summary["plane"]["scales"]
    assert cuts == [[{"v_y": scales["v_y"]["cut"]}], [{"v_z": scales["v_z"]["cut"]}]]
    utility = rows_of(seen.chart("utility", "sex", utility="cobb-douglas", alpha=0.35))
    histogram = summary["alpha"]["utilities"]["cobb-douglas"]["settings"][7]["histogram"][0]
    shares = [bar["share"] * summary["alpha"]["rows"][0] for bar in utility if bar["group"] == "f"]
    assert shares == pytest.approx(histogram)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "pie"}, "`name` must be one of .*'plane'.*, got 'pie'"),
        (
            {"name": "plane", "attribute": "age"},
            "`attribute` must be one of \\['sex', 'origin'\\], got 'age'",
        ),
        ({"name": "utility", "utility": "cubic"}, "`utility` must be one of .*, got 'cubic'"),
        ({"name": "utility", "alpha": 0.33}, "multiple of 0.05 in \\[0, 1\\], got 0.33"),
    ],
)
def test_unknown_charts_are_refused(seen, arguments, message):
    with pytest.raises(ValueError, match=message):
        seen.chart(**arguments)
