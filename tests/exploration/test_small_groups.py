"""Groups that are too small to be compared: counted, listed, told, and left out of every rate."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fado import explore
from fado.cli._app import build_app

N = 4000


@pytest.fixture(scope="module")
def table():
    """Two large groups, one of 20 rows that are all positive and all contradicted, and one of 5 rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(18, 80, N), "job": rng.choice(["clerk", "nurse"], N)})
    origin = rng.choice(["a", "b"], N).astype(object)
    origin[:20], origin[20:25] = "tiny", "secret"
    y = pd.Series(np.where(rng.random(N) < np.where(origin == "a", 0.2, 0.3), "yes", "no"), name="loan")
    y[:25] = "yes"
    return X, y, {"origin": origin}


@pytest.fixture
def found(table, made_up):
    return lambda **settings: explored(table, made_up, **settings)


def explored(table, made_up, **settings):
    X, y, z = table
    seen = explore(X, y, sensitive_features=z, valuation=made_up(N, z), **settings, retrain=0)
    return seen, seen.to_dict()["attributes"][0]


def test_small_groups_are_listed_and_told(table, found):
    seen, part = found()
    assert part["groups"][-2:] == [
        {"name": "tiny", "rows": 20, "compared": False, "note": "too small to compare"},
        {"name": "(1 group of fewer than 10 rows)", "rows": 5, "compared": False,
         "note": "too small to compare or to name"},
    ]  # fmt: skip
    sentence = "Group “tiny” (20 rows), with fewer than 30 rows and less than 1 % of the table, is left out"
    assert part["left_out"].startswith(sentence)
    assert repr(seen).startswith(f"Exploration of 4,000 rows by origin\norigin: {sentence}")
    assert seen.html().count(sentence) == 1
    assert "secret" not in json.dumps(seen.to_dict())


def test_small_groups_are_in_no_comparison(table, found):
    _, part = found()
    y, origin = table[1], table[2]["origin"]
    rates = (y == "yes").groupby(origin).mean()
    biases = {bias["id"]: bias for bias in part["biases"]}
    assert biases["prevalence"]["number"] == pytest.approx(rates["b"] - rates["a"])
    for bias in biases.values():
        assert [bar["group"] for bar in bias["bars"]] == ["a", "b"]
        assert "tiny" not in bias["sentence"]
    assert part["values"]["groups"] == ["a", "b"]
    assert {cell["group"] for cell in part["values"]["v_y"]} == {"a", "b"}
    assert all(corner["share_per_group"][2] is None for corner in part["plane"]["corners"])
    assert [group["group"] for group in part["suspicious"]["groups"]] == ["a", "b"]
    assert {cell["group"] for cell in part["suspicious"]["labels"]} == {"a", "b"}
    for one in part["alpha"]["slices"]:
        assert one["outcome_per_group"][2] is None
        assert one["share_per_group"][2] is None


def test_small_groups_are_left_alone_by_the_sampler_that_is_shown(table, found):
    _, part = found()
    scene = part["alpha"]
    assert (scene["groups"][2], scene["rows"][2], scene["small"]) == ("(2 small groups)", 25, 2)
    assert (scene["sampling"]["dropped"][2], scene["sampling"]["kept"][2]) == (0, 25)
    assert scene["sampling"]["rate_after"][2] is None
    rate = (table[1] == "yes")[table[2]["origin"] == "b"].mean()
    assert scene["sampling"]["target_rate"] == pytest.approx(rate)
    assert scene["sampling"]["rate_after"][0] == pytest.approx(rate, abs=1e-3)


def test_base_bias_leaves_small_groups_out(table, made_up):
    X, y, z = table
    valuation = made_up(N, z)
    part = explore(X, y, sensitive_features=z, valuation=valuation, retrain=0).to_dict()["attributes"][0]
    rows = np.arange(N) >= 25
    shares = pd.Series(z["origin"]).map(pd.Series(z["origin"]).value_counts(normalize=True)).to_numpy()
    left = (1 - valuation.agreement["origin"].to_numpy()[rows]).mean() / (1 - shares[rows]).mean()
    assert part["biases"][3]["number"] == pytest.approx(1 - left)


def test_0_compares_every_group_that_can_be_named(found):
    _, part = found(min_group_size=0)
    assert part["biases"][1]["sentence"].startswith("The rate of “yes” is 100 % in “tiny”")
    assert [group["compared"] for group in part["groups"]] == [True, True, True, False]
    assert part["left_out"] == (
        "1 group of fewer than 10 rows (5 rows) is left out of what compares groups, and not named."
    )


def test_crossed_attributes_tell_their_own_small_groups(table, made_up):
    X, y, z = table
    z = z | {"job": X["job"].to_numpy()}
    together = explore(X, y, sensitive_features=z, valuation=made_up(N, z), retrain=0).to_dict()["together"]
    assert "“origin = tiny, job = " in together["left_out"]
    assert sum(group["rows"] for group in together["listed"]) == N


def test_one_large_group_leaves_nothing_to_compare(table, made_up):
    X, y, _ = table
    z = {"sex": np.where(np.arange(N) < 20, "f", "m")}
    part = explore(X, y, sensitive_features=z, valuation=made_up(N, z), retrain=0).to_dict()["attributes"][0]
    assert all(bias["number"] is None for bias in part["biases"])
    assert all(bias["sentence"].startswith("Only one group is large enough") for bias in part["biases"])
    assert part["alpha"]["sampling"] is None


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (-1, ValueError, "`min_group_size` must be at least 0, got -1"),
        (2.5, TypeError, "`min_group_size` must be a whole number, got 2.5"),
    ],
)
def test_what_is_no_size_is_refused(found, value, error, message):
    with pytest.raises(error, match=message):
        found(min_group_size=value)


@pytest.mark.parametrize(("size", "told"), [((), True), (("--min-group-size", "10"), False)])
def test_the_command_says_which_groups_are_left_out(table, made_up, tmp_path, size, told):
    X, y, z = table
    X.assign(**z, loan=y).to_csv(tmp_path / "data.csv", index=False)
    made_up(N, z).save(tmp_path / "values.parquet")
    arguments = [
        "explore",
        tmp_path / "data.csv",
        "--values",
        tmp_path / "values.parquet",
        "--target",
        "loan",
    ]
    arguments += ["--protected", "origin", "--out", tmp_path / "page.html", *size]
    result = CliRunner().invoke(build_app(), [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr
    assert ("Group “tiny” (20 rows), with fewer than 30 rows" in result.stdout) == told
