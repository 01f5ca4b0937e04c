"""Groups that are shown, compared, pooled and left out."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.exploration.conftest import Case, made_up
from typer.testing import CliRunner

from fado.cli._app import build_app
from fado.exploration._groups import (
    MOST_GROUPS,
    ListedGroup,
    ShownGroups,
    listed_groups,
    show_groups,
    tell_left_out,
)
from fado.tabular import Groups


def shown(codes, names, min_group_size=30):
    return show_groups(Groups(codes, tuple(names), tuple(names)), min_group_size)


def test_many_groups_are_pooled_smallest_first():
    sizes = np.arange(20, 40)
    groups = shown(np.repeat(np.arange(20), sizes), tuple(map(str, range(20))))
    assert len(groups) == MOST_GROUPS
    assert groups.names[-1] == "(9 other groups)"
    assert groups.n_compared == MOST_GROUPS - 1
    assert groups.sizes[-1] == sizes[:9].sum()
    assert groups.sizes.sum() == sizes.sum()
    for n_groups in (MOST_GROUPS, MOST_GROUPS - 1):
        dozen = shown(np.repeat(np.arange(n_groups), 10), tuple(map(str, range(n_groups))))
        assert dozen.names == tuple(map(str, range(n_groups)))


def test_small_groups_are_listed_by_name():
    sizes = [3000, 2900, 29, 12, 9, 3]
    groups = shown(np.repeat(np.arange(6), sizes), tuple("abcdef"))
    assert groups.names == ("a", "b")
    assert groups.sizes.tolist() == sizes[:2]
    assert (groups.codes == -1).sum() == sum(sizes[2:])
    note = "too small to compare or to name"
    assert groups.listed[-1] == ListedGroup("(2 groups of fewer than 10 rows)", 12, note, (4, 5))
    assert listed_groups(groups) == [
        {"name": "a", "rows": 3000, "compared": True, "note": None},
        {"name": "b", "rows": 2900, "compared": True, "note": None},
        {"name": "c", "rows": 29, "compared": False, "note": "too small to compare"},
        {"name": "d", "rows": 12, "compared": False, "note": "too small to compare"},
        {"name": "(2 groups of fewer than 10 rows)", "rows": 12, "compared": False,
         "note": "too small to compare or to name"},
    ]  # fmt: skip
    assert tell_left_out(groups, repr, 30) == (
        "Groups 'c' (29 rows), 'd' (12 rows), with fewer than 30 rows and less than 1 % of the table, are "
        "not compared. 2 groups of fewer than 10 rows (12 rows in all) are not compared and not named."
    )


def test_a_group_of_one_percent_is_compared_and_every_other_if_the_user_says_so():
    groups = shown(np.repeat(np.arange(2), [1980, 20]), "ab")
    assert groups.n_compared == 2
    assert tell_left_out(groups, repr, 30) is None
    assert shown(np.repeat(np.arange(3), [3000, 12, 9]), "abc", 0).names == ("a", "b")


def test_groups_beyond_a_dozen_are_told_apart_from_small_ones():
    sizes = [*range(1000, 1014), 25, 20]
    groups = shown(np.repeat(np.arange(16), sizes), tuple(map(str, range(16))))
    assert groups.names[-1] == "(3 other groups)"
    assert tell_left_out(groups, repr, 30).endswith(
        "Only the 11 largest groups are shown one by one and compared; the 3 others with enough rows (3,003 "
        "rows in all) are shown together as one."
    )


def test_counts_and_totals_leave_hidden_rows_out():
    groups = ShownGroups(np.array([0, 1, -1, 1]), ("a", "b"), 2)
    assert groups.count(np.array([True, True, True, False])).tolist() == [1, 1]
    assert groups.total(np.array([1.0, 2.0, 4.0, 8.0])).tolist() == [1, 10]


@pytest.mark.parametrize(
    ("name", "entries", "names"),
    [
        ("older", [False, True], ["older = False", "older = True"]),
        ("age >= 50", [False, True], ["not age >= 50", "age >= 50"]),
        ("code", [1, 3], ["code = 1", "code = 3"]),
        ("sex", ["f", "m"], ["f", "m"]),
        ("code", [1.0, np.nan], ["code = 1", "unknown"]),
    ],
)
@pytest.mark.filterwarnings("ignore:Protected attribute .* is unknown")
def test_every_name_of_a_group_can_stand_alone(name, entries, names):
    entry = np.arange(100) % 2
    X, y = np.arange(100.0).reshape(-1, 1), entry == (np.arange(100) % 3 > 0)
    z = {name: np.array(entries)[entry]}
    seen = Case(X, y, z, made_up(100, z)).part()
    assert seen["shown"] == names
    assert [group["name"] for group in seen["groups"]] == names
    for bias in seen["biases"]:
        assert [bar["group"] for bar in bias["bars"]] == names
    assert seen["values"]["groups"] == seen["alpha"]["groups"] == names
    told = f"“{names[0]}” has about as many rows as “{names[1]}”"
    told = "Only one group is large enough to be compared." if "unknown" in names else told
    assert seen["biases"][0]["sentence"].startswith(told)


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
    return Case(X, y, {"origin": origin}, made_up(N, ["origin"]))


@pytest.fixture(scope="module")
def seen(table):
    return table.seen()


TOO_SMALL = "Group “tiny” (20 rows), with fewer than 30 rows and less than 1 % of the table, is not compared"


def test_small_groups_are_listed_and_told(seen):
    part = seen.to_dict()["attributes"][0]
    assert part["groups"][-2:] == [
        {"name": "tiny", "rows": 20, "compared": False, "note": "too small to compare"},
        {"name": "(1 group of fewer than 10 rows)", "rows": 5, "compared": False,
         "note": "too small to compare or to name"},
    ]  # fmt: skip
    assert part["left_out"].startswith(TOO_SMALL)
    assert repr(seen).startswith(f"Exploration of 4,000 rows by origin\norigin: {TOO_SMALL}")
    assert seen.html().count(TOO_SMALL) == 1
    assert "secret" not in json.dumps(seen.to_dict())


def test_small_groups_are_in_no_comparison(table, seen):
    part, origin = seen.to_dict()["attributes"][0], table.z["origin"]
    rates = (table.y == "yes").groupby(origin).mean()
    biases = {bias["id"]: bias for bias in part["biases"]}
    assert biases["prevalence"]["number"] == pytest.approx(rates["b"] - rates["a"])
    for bias in biases.values():
        assert [bar["group"] for bar in bias["bars"]] == ["a", "b"]
        assert "tiny" not in bias["sentence"]
    assert part["values"]["groups"] == ["a", "b"]
    assert {cell["group"] for cell in part["values"]["v_y"]} == {"a", "b"}
    assert [group["group"] for group in part["suspicious"]["groups"]] == ["a", "b"]
    assert {cell["group"] for cell in part["suspicious"]["labels"]} == {"a", "b"}
    assert part["alpha"]["groups"] == part["plane"]["groups"] == ["a", "b"]

    sampling = part["alpha"]["sampling"]
    assert sampling["target_rate"] == pytest.approx(rates["b"])
    assert sampling["rate_after"][0] == pytest.approx(rates["b"], abs=1e-3)

    shares = pd.Series(origin).map(pd.Series(origin).value_counts(normalize=True))[25:]
    left = (1 - table.valuation.label_probability["origin"][25:]).mean() / (1 - shares).mean()
    assert biases["base"]["number"] == pytest.approx(1 - left)


def test_0_compares_every_group_that_can_be_named(table):
    part = table.part(min_group_size=0)
    assert part["biases"][1]["sentence"].startswith("The rate of “yes” is 100 % in “tiny”")
    assert [group["compared"] for group in part["groups"]] == [True, True, True, False]
    assert part["left_out"] == ("1 group of fewer than 10 rows (5 rows) is not compared and not named.")


def test_crossed_attributes_tell_their_own_small_groups(table):
    z = table.z | {"job": table.X["job"].to_numpy()}
    together = table._replace(z=z, valuation=made_up(N, z)).seen().to_dict()["together"]
    assert "“origin = tiny, job = " in together["left_out"]
    assert sum(group["rows"] for group in together["listed"]) == N


def test_one_large_group_leaves_nothing_to_compare(table):
    z = {"sex": np.where(np.arange(N) < 20, "f", "m")}
    part = table._replace(z=z, valuation=made_up(N, z)).part()
    assert all(bias["number"] is None for bias in part["biases"])
    assert all(bias["sentence"].startswith("Only one group is large enough") for bias in part["biases"])
    assert part["alpha"]["sampling"] is None


@pytest.mark.parametrize(("size", "told"), [((), True), (("--min-group-size", "10"), False)])
def test_the_command_says_which_groups_are_left_out(table, tmp_path, size, told):
    data, values = tmp_path / "data.csv", tmp_path / "values.parquet"
    table.X.assign(**table.z, loan=table.y).to_csv(data, index=False)
    table.valuation.save(values)
    options = ["--values", values, "--target", "loan", "--protected", "origin", "--retrain", "0"]
    arguments = ["explore", data, *options, "--out", tmp_path / "page.html", *size]
    result = CliRunner().invoke(build_app(), [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr
    assert (TOO_SMALL in result.stdout) == told
