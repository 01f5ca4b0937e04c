"""Rows without labels beside the labelled ones."""

import json
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from fado import LinearUtility, OutOfBagEntropy, TreeInfluence, Valuation, explore
from fado.exploration._pool import shift_of, shifts_part
from fado.tabular import column_from
from fado.valuation import Scale

HOSTILE = "</script><script>alert(1)</script>"


def pool_of(small, n_rows=200, seed=7):
    """Rows like the labelled ones, but older; their columns in another order, and one more."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "row": np.arange(n_rows),
            "kids": rng.integers(0, 4, n_rows),
            "age": rng.integers(50, 80, n_rows),
            "job": rng.choice(["clerk", "nurse", "driver", "cook", None], n_rows),
        }
    )


@pytest.fixture(scope="module")
def case(small, made_up):
    """The labelled rows, a pool, and what explore shows of both."""
    table, values = pool_of(small), made_up(200, small.z, seed=3)

    def explored(table=table, values=values, **more):
        return explore(
            small.X,
            small.y,
            sensitive_features=small.z,
            valuation=small.valuation,
            pool=(table, values),
            **more,
            retrain=0,
        )

    return table, values, explored


@pytest.fixture(scope="module")
def part(case):
    return case[2]().to_dict()["pool"]


def test_without_a_pool_nothing_changes(seen_small, case):
    beside = case[2]()
    assert "pool" not in seen_small.to_dict()
    shown = beside.to_dict()
    del shown["pool"]
    assert shown == seen_small.to_dict()
    assert "Unlabelled rows" not in seen_small.html()
    assert "Unlabelled rows" in beside.html()
    assert repr(seen_small) == repr(beside).replace(", next to a pool of 200", "")


def test_the_summary_is_plain_data(case):
    data = case[2]().to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["pool"]["rows"], data["pool"]["rows_without_value"]) == (200, 0)
    assert [one["name"] for one in data["pool"]["attributes"]] == ["sex", "origin"]


def test_shares_are_of_the_same_bins(small, case, part):
    for shown, z in zip(part["attributes"], small.z, strict=True):
        for key, name in (("v_y", "y"), ("v_z", z)):
            for which, own in (("labelled", small.valuation[name]), ("pool", case[1][name])):
                hundredths = np.round(100 * own).astype(int)  # the values have two digits
                counts = np.bincount(np.minimum(hundredths // 5, 19), minlength=20)
                told = shown[key][which]
                assert np.multiply(told["shares"], len(own)) == pytest.approx(counts)
                assert told["rows"] == len(own)
                assert told["mean"] == pytest.approx(own.mean())
                assert told["quartiles"] == pytest.approx(np.quantile(own, [0.25, 0.5, 0.75]))
                assert told["epistemic"] is None


def test_the_plane_is_cut_where_that_of_the_labelled_rows_is(small, case, part):
    plane = case[2]().to_dict()["attributes"][0]["plane"]
    shown = part["attributes"][0]["plane"]
    assert np.sum(shown["counts"]) == 200
    v_y, v_z = case[1]["y"], case[1]["sex"]
    assert np.sum(shown["counts"], axis=0) == pytest.approx(
        np.multiply(part["attributes"][0]["v_y"]["pool"]["shares"], 200)
    )
    cuts = [plane["scales"][key]["cut"] for key in ("v_y", "v_z")]
    for corner, labelled in zip(shown["corners"], plane["corners"], strict=True):
        rows = ((v_y >= cuts[0]) == corner["unsure_of_target"]) & (
            (v_z >= cuts[1]) == corner["unsure_of_attribute"]
        )
        assert corner["share"] == pytest.approx(rows.mean())
        assert (corner["name"], corner["labelled_share"]) == (labelled["name"], labelled["share"])
    first = shown["corners"][0]
    assert part["attributes"][0]["sentence"] == (
        f"{100 * first['share']:.3g} % of the pool are in the corner “uncertain about both”, compared with "
        f"{100 * first['labelled_share']:.3g} % of the labelled rows."
    )


def test_columns_are_found_by_name_and_those_that_differ_are_named(part):
    shifts = part["shifts"]
    assert [column["column"] for column in shifts["columns"]] == ["age", "job", "kids"]
    assert [column["is_clear"] for column in shifts["columns"]] == [True, True, False]
    assert re.match(
        r"2 of 3 columns have .* most of all “age”: “age ≤ 49” is true for 0 % of the pool",
        shifts["sentence"],
    )
    assert shifts["columns"][1]["where"] == "job = cook"  # which no labelled row has


def test_slices_worth_most_are_described_over_the_pool(small, made_up):
    table, values = pool_of(small, 1000), made_up(1000, small.z, seed=3)
    raised = {"y": np.where(table["job"] == "cook", 0.9 + 0.1 * values["y"], 0.5 * values["y"])}
    values = Valuation(raised | {name: values[name] for name in small.z})
    seen = explore(
        small.X,
        small.y,
        sensitive_features=small.z,
        valuation=small.valuation,
        pool=(table, values),
        retrain=0,
    ).to_dict()
    utilities = LinearUtility(0.5, betas={"sex": 0.5})(values)
    found = seen["pool"]["attributes"][0]["utility"]
    assert found["mean"] == pytest.approx(utilities.mean())
    first, rows = found["slices"][0], (table["job"] == "cook").to_numpy()
    assert first["conditions"] == ["job = cook"]
    assert first["rows"] == rows.sum()
    assert first["share"] == pytest.approx(rows.mean())
    assert first["mean_utility"] == pytest.approx(utilities[rows].mean())
    assert first["mean_v_y"] == pytest.approx(values["y"][rows].mean())
    assert first["mean_v_z"] == pytest.approx(values["sex"][rows].mean())
    assert first["p_value"] < 0.05


def test_slices_are_searched_in_a_sample(case):
    assert case[2](max_rows=150).to_dict()["pool"]["rows_searched"] == 150


def test_the_epistemic_part_is_told_where_it_is_known(small, case):
    table, values, explored = case
    epistemic = {name: np.linspace(0.0, 0.2, 200) for name in values.variables}
    epistemic["origin"] = np.full(200, np.nan)
    fields = {
        field: {name: values.field(field, name) for name in values.variables}
        for field in ("values", "standard_error", "counts", "agreement")
    }
    shown = explored(table, Valuation(**fields, epistemic=epistemic)).to_dict()["pool"]["attributes"]
    assert shown[0]["v_y"]["pool"]["epistemic"] == pytest.approx(0.1)
    assert shown[0]["v_y"]["labelled"]["epistemic"] is None
    assert shown[1]["v_z"]["pool"]["epistemic"] is None


def test_rows_of_the_pool_without_a_value_are_left_out(small, case):
    table, values, explored = case
    given = {name: values[name].copy() for name in values.variables}
    given["sex"][:40] = np.nan
    shown = explored(table, Valuation(given)).to_dict()["pool"]
    assert (shown["rows"], shown["rows_without_value"]) == (160, 40)
    rest = explored(table.iloc[40:], Valuation({name: own[40:] for name, own in given.items()})).to_dict()[
        "pool"
    ]
    assert shown["attributes"] == rest["attributes"]
    assert shown["shifts"] == rest["shifts"]


def test_a_pool_may_be_of_any_library(case):
    table, _, explored = case
    assert explored(pl.from_pandas(table)).to_dict() == explored().to_dict()


def test_effects_are_drawn_between_the_ends_of_the_labelled_rows(small):
    rng = np.random.default_rng(0)
    labelled = Valuation.from_values({name: rng.normal(size=600) for name in ("y", *small.z)})
    pool = Valuation.from_values({name: 50 * rng.normal(size=200) for name in ("y", *small.z)})
    seen = explore(
        small.X,
        small.y,
        sensitive_features=small.z,
        valuation=labelled,
        pool=(pool_of(small), pool),
        retrain=0,
    ).to_dict()
    shares = seen["pool"]["attributes"][0]["v_y"]["pool"]["shares"]
    high = seen["attributes"][0]["plane"]["scales"]["v_y"]["high"]
    assert shares[-1] == pytest.approx((pool["y"] >= 0.9 * high).mean())
    assert sum(shares) == pytest.approx(1.0)
    assert seen["pool"]["attributes"][0]["plane"]["corners"][0]["name"] == "high for both"


def test_effects_of_rows_without_labels_are_said_to_be_expected_ones(small):
    table, y = small.X.assign(sex=small.z["sex"]), small.y == "yes"
    valuator = TreeInfluence(random_state=0, keep_models=True).fit(table, y, sensitive_features="sex")
    rows = {"X": table, "y": y, "sensitive_features": "sex", "valuation": valuator.valuation_}
    shown = explore(**rows, pool=(table[:90], valuator.value(table[:90]))).to_dict()["pool"]
    assert shown["caution"].startswith("Without “loan”, effects are averaged over its possible labels")
    labelled = valuator.value(table[:90], y=y[:90])
    assert explore(**rows, pool=(table[:90], labelled)).to_dict()["pool"]["caution"] is None


def test_a_matrix_without_names_is_taken_by_position(small, made_up):
    X = np.random.default_rng(0).normal(size=(600, 3))
    values = made_up(50, small.z)
    for form, compared in ((np.asarray, 3), (scipy.sparse.csr_matrix, 0)):
        seen = explore(
            form(X),
            small.y,
            sensitive_features=small.z,
            valuation=small.valuation,
            pool=(form(X[:50]), values),
            retrain=0,
        ).to_dict()["pool"]
        assert (seen["shifts"]["compared"], seen["rows"]) == (compared, 50)


def test_a_pool_is_valued_by_the_models_that_value_the_labelled_rows(planted):
    X, y, new = planted.X[:1500], planted.y[:1500], planted.X[1500:2000]
    seen = explore(X, y, sensitive_features="sex", pool=new.assign(more=1), retrain=0).to_dict()
    valuator = OutOfBagEntropy(random_state=0, keep_models=True, keep_probabilities=True)
    valuator.fit(X, y, sensitive_features="sex")
    given = explore(
        X,
        y,
        sensitive_features="sex",
        valuation=valuator.valuation_,
        pool=(new, valuator.value(new)),
        retrain=0,
    )
    assert seen == given.to_dict()
    told = seen["pool"]["attributes"][0]
    assert told["v_y"]["pool"]["epistemic"] > 0
    assert told["v_y"]["pool"]["mean"] == pytest.approx(told["v_y"]["labelled"]["mean"], abs=0.03)
    assert seen["pool"]["shifts"]["clear"] == 0
    assert 0 < told["v_z"]["pool"]["mean"] - told["v_z"]["labelled"]["mean"] < 0.08  # y is not known
    assert seen["pool"]["caution"].startswith("The attribute's models use “y” if it is known")
    blind = OutOfBagEntropy(random_state=0, keep_models=True, z_sees_target=False)
    blind.fit(X, y, sensitive_features="sex")
    given = explore(
        X, y, sensitive_features="sex", valuation=blind.valuation_, pool=(new, blind.value(new)), retrain=0
    )
    assert given.to_dict()["pool"]["caution"] is None


def test_hostile_names_and_levels_are_data_alone(small, made_up):
    X = small.X.rename(columns={"job": HOSTILE})
    table = pool_of(small).rename(columns={"job": HOSTILE}).assign(**{HOSTILE: HOSTILE})
    page = explore(
        X,
        small.y,
        sensitive_features=small.z,
        valuation=small.valuation,
        pool=(table, made_up(200, small.z)),
        retrain=0,
    ).html()
    assert "<script>alert" not in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert data["pool"]["shifts"]["columns"][0]["column"] == HOSTILE
    assert data["pool"]["shifts"]["columns"][0]["where"] == f"{HOSTILE} = {HOSTILE}"


def test_bad_pools_are_refused_in_a_sentence(small, case, made_up):
    table, values, explored = case
    closeness = dict.fromkeys(values.variables, Scale("closeness", 0.0, 1.0, None))
    given = {name: values[name] for name in values.variables}
    cases = [
        (table.iloc[:0], values.take(slice(0, 0)), "`pool` has no rows"),
        (table.drop(columns="age"), values, "`pool`: The table has no column 'age'"),
        (table.rename(columns={"job": "jobs"}), values, "no column 'job'.*did you mean 'jobs'"),
        (table.assign(age="old"), values, "`pool`: Column 'age' holds text"),
        (table.iloc[:9], values, "The valuation of `pool` has 200 rows and its table has 9"),
        (table, made_up(200, ["sex"]), "`pool` has no values for 'origin'; it has \\['y', 'sex'\\]"),
        (
            table,
            Valuation.from_values(given),
            "'y' mean one thing in `pool` \\(effect of the row.*both with one",
        ),
        (
            table,
            Valuation.from_values(given, scales=closeness),
            "\\(closeness\\) and another in the labelled",
        ),
        (table, Valuation({name: own * np.nan for name, own in given.items()}), "no value for any row"),
        (np.arange(200), values, "`pool`: .*must be a table with rows and columns"),
    ]
    for own, its_values, message in cases:
        with pytest.raises(ValueError, match=message):
            explored(own, its_values)
    rows = {"X": small.X, "y": small.y, "sensitive_features": small.z, "valuation": small.valuation}
    for pool in ((table, [1, 2]), (values, values), (table, values, values), (table,), (), values):
        with pytest.raises(TypeError, match="`pool` must be a table, or a tuple of a table and the Val"):
            explore(**rows, pool=pool)


def test_values_of_another_target_are_refused(planted):
    X, new = planted.X[:300], planted.X[300:400]
    fitted = [
        OutOfBagEntropy(n_bags=5, random_state=0, keep_models=True).fit(X, y, sensitive_features="sex")
        for y in (planted.y[:300], np.where(planted.y[:300], "yes", "no"))
    ]
    message = r"'y' have other classes in `pool` \(no, yes\) than in the labelled rows \(False, True\)"
    with pytest.raises(ValueError, match=message):
        explore(
            X,
            planted.y[:300],
            sensitive_features="sex",
            valuation=fitted[0].valuation_,
            pool=(new, fitted[1].value(new)),
            retrain=0,
        )


def test_values_are_given_for_both_or_for_none(small, case):
    table, values, _ = case
    rows = {"X": small.X, "y": small.y, "sensitive_features": small.z}
    with pytest.raises(ValueError, match=r"pass `\(table, valuator.value\(table\)\)`"):
        explore(**rows, valuation=small.valuation, pool=table)
    with pytest.raises(ValueError, match="`pool` has values, and the labelled rows have none"):
        explore(**rows, pool=(table, values))


def shift(labelled, pool, n_columns=1):
    return shift_of(column_from("x", pd.Series(labelled)), column_from("x", pd.Series(pool)), n_columns)


def test_numbers_are_compared_by_the_widest_gap_of_shares():
    found = shift([1, 1, 2, 3], [2, 3, 3, 5, 5])  # up to 1: 2/4 against 0; up to 2: 3/4 against 1/5
    assert found.distance == pytest.approx(0.55)
    assert (found.where, found.labelled_share, found.pool_share) == ("x ≤ 2", 0.75, pytest.approx(0.2))


def test_levels_are_compared_by_the_rows_that_would_have_to_change():
    found = shift(["a"] * 12 + ["b"] * 4 + ["c"] * 4, ["a"] * 10 + ["b"] * 6 + ["d"] * 4)
    assert found.distance == pytest.approx((0.1 + 0.1 + 0.2 + 0.2) / 2)
    assert found.where == ""  # c, of four rows, is not named
    found = shift(["a"] * 15 + ["b"] * 5, ["a"] * 5 + ["b"] * 15)
    assert (found.distance, found.where, found.labelled_share, found.pool_share) == (0.5, "x = a", 0.75, 0.25)


def test_a_missing_entry_is_a_level():
    for entries, missing in (([1.0, 2.0, 3.0], np.nan), (["a", "b", "c"], None)):
        found = shift(entries * 10, [missing] * 5 + entries * 5)
        assert found.distance == pytest.approx(0.25)
        assert (found.labelled_share, found.pool_share) == (0.0, pytest.approx(0.25))
        assert found.where == "x is missing"


def test_booleans_are_levels():
    found = shift([True] * 30 + [False] * 10, [True] * 10 + [False] * 30)
    assert (found.distance, found.where, found.labelled_share) == (0.5, "x = False", 0.25)
    missing = shift([True] * 20, pd.array([True] * 10 + [None] * 10, dtype="boolean"))
    assert (missing.distance, missing.where) == (0.5, "x = True")


def test_what_chance_alone_gives_by_hand():
    numbers = shift(np.arange(50), np.arange(50), n_columns=5)
    assert numbers.chance == pytest.approx(math.sqrt(0.04 * math.log(2 / 0.01) / 2))
    levels = shift(["a", "b"] * 25, ["a", "b"] * 25, n_columns=5)
    expected = 2 * math.sqrt(0.25 * 0.04) / 2
    assert levels.chance == pytest.approx(expected + math.sqrt(0.04 * math.log(1 / 0.01) / 2))


@pytest.mark.parametrize("entries", [[np.nan], [None], [3.0]])
def test_a_column_of_one_entry_does_not_differ(entries):
    found = shift(entries * 20, entries * 7)
    assert (found.distance, found.where, found.is_clear) == (0.0, "", False)


def test_a_column_whose_every_entry_is_another_is_not_told_from_chance():
    ids = [f"id {row}" for row in range(400)]
    found = shift(ids[:300], ids[300:])
    assert found.distance == pytest.approx(1.0)
    assert not found.is_clear


numbers = st.lists(
    st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.just(np.nan)), min_size=1, max_size=40
)


@settings(deadline=None, max_examples=100)
@given(numbers, numbers)
@pytest.mark.filterwarnings("ignore::RuntimeWarning:scipy")  # of the p-value for very few rows
def test_scipy_gives_the_same_distance(labelled, pool):
    found = shift(np.array(labelled), np.array(pool))
    above = [np.where(np.isnan(own), 1e9, own) for own in (labelled, pool)]  # missing: above all numbers
    assert found.distance == pytest.approx(ks_2samp(*above, method="asymp").statistic, abs=1e-12)
    assert shift(np.array(pool), np.array(labelled)).distance == pytest.approx(found.distance, abs=1e-12)
    if found.where:
        assert abs(found.labelled_share - found.pool_share) == pytest.approx(found.distance, abs=1e-12)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.sampled_from(["a", "b", "c", None]), max_size=40).map(lambda own: [*own, "b"]),
    st.lists(st.sampled_from(["b", "c", "d", None]), max_size=40).map(lambda own: [*own, "b"]),
)
def test_the_total_variation_is_half_the_sum_of_gaps(labelled, pool):
    gaps = [labelled.count(one) / len(labelled) - pool.count(one) / len(pool) for one in [*"abcd", None]]
    found = shift(np.array(labelled, dtype=object), np.array(pool, dtype=object))
    assert found.distance == pytest.approx(sum(map(abs, gaps)) / 2)


def test_rows_dealt_at_random_seldom_differ():
    rng = np.random.default_rng(0)
    n_trials, alarms = 200, 0
    for _ in range(n_trials):
        n_rows, n_pool = rng.integers(30, 300, 2)
        columns = [
            [column_from("x", rng.normal(size=n)) for n in (n_rows, n_pool)],
            [column_from("x", rng.poisson(1, n)) for n in (n_rows, n_pool)],
            [column_from("x", rng.choice(list("abcdef"), n)) for n in (n_rows, n_pool)],
            [column_from("x", rng.integers(0, 100, n).astype(str)) for n in (n_rows, n_pool)],
        ]
        alarms += shifts_part(*zip(*columns, strict=True))["clear"] > 0
    assert alarms <= 0.05 * n_trials + 3 * math.sqrt(0.05 * 0.95 * n_trials)


def test_columns_stand_in_the_order_of_what_chance_leaves_unexplained():
    rng = np.random.default_rng(0)
    labelled = {"near": rng.normal(size=2000), "ids": np.arange(2000).astype(str), "far": np.zeros(2000)}
    pool = {"near": 0.3 + rng.normal(size=500), "ids": np.arange(500).astype(str), "far": np.ones(500)}
    own, other = ([column_from(name, given[name]) for name in given] for given in (labelled, pool))
    part = shifts_part(own, other)
    assert [column["column"] for column in part["columns"]] == ["far", "near", "ids"]
    assert [column["is_clear"] for column in part["columns"]] == [True, True, False]
    assert (part["compared"], part["clear"]) == (3, 2)
    assert part["sentence"] == (
        "2 of 3 columns have a distribution that differs from the labelled rows beyond chance, most of all "
        "“far”: “far ≤ 0” is true for 0 % of the pool and 100 % of the labelled rows."
    )


def test_sentences_for_nothing_to_tell():
    same = [column_from("x", [1.0, 2.0])]
    assert shifts_part(same, same)["sentence"].startswith("No column has a distribution that differs")
    assert shifts_part([], [])["sentence"] == "The features are a matrix without column names."
