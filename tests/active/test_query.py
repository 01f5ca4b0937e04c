"""`UtilityQuery`: which rows of a pool are chosen, worked by hand on values that are given."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from fado import DifferenceUtility, LinearUtility, OutOfBagEntropy, TreeInfluence, Valuation
from fado.active import UtilityQuery
from fado.valuation import load_models


class Told:
    """A valuator that says what it is told, and models that know the groups' labels."""

    def __init__(self, v_y, v_z=None, epistemic=None, labels=None):
        values = {"y": np.asarray(v_y, dtype=float)}
        if v_z is not None:
            values["sex"] = np.asarray(v_z, dtype=float)
        self.valuation = Valuation(values, epistemic=epistemic)
        if labels is not None:
            self.models_ = Models({"sex": labels})

    def value(self, X):
        return self.valuation


class Models:
    def __init__(self, labels):
        self._labels = labels
        self.variables = ["y", *labels]

    def classes(self, name):
        return self._labels[name]


def pool(n):
    return np.arange(n, dtype=float)[:, None]


@pytest.mark.parametrize(
    ("values", "utility", "rows"),
    [
        (([0.2, 0.9, 0.9, 0.1, 1.0],), None, [4, 1, 2, 0]),  # ties go by position
        (([np.nan, 0.1, 0.2],), None, [2, 1, 0]),  # rows without a utility come last
        (([1.0, 0.9], [1.0, 0.0]), DifferenceUtility(0.5), [1]),
        (([0.1, 0.9],), lambda valuation: -valuation["y"], [0]),
    ],
)
def test_the_rows_of_most_utility_come_first(values, utility, rows):
    X = pool(len(values[0]))
    assert UtilityQuery(Told(*values), utility).query(X, n=len(rows)).tolist() == rows


def test_the_default_is_three_quarters_performance():
    query = UtilityQuery(Told([1.0, 0.0, 0.5], [0.0, 1.0, 1.0]))
    assert query.query(pool(3), n=2).tolist() == [0, 2]
    assert query.utilities_.tolist() == [0.75, 0.25, 0.625]
    assert query.valuation_.protected == ["sex"]
    alone = UtilityQuery(Told([0.3, 0.4]))  # without protected attributes performance is all
    alone.query(pool(2), n=1)
    assert alone.utilities_.tolist() == [0.3, 0.4]


def test_by_the_epistemic_part():
    valuator = Told([1.0, 0.5], epistemic={"y": np.array([0.0, 0.1])})
    assert UtilityQuery(valuator).query(pool(2), n=1).tolist() == [0]
    assert UtilityQuery(valuator, epistemic=True).query(pool(2), n=1).tolist() == [1]
    with pytest.raises(ValueError, match="and the valuator keeps one: use"):
        UtilityQuery(Told([1.0, 0.5], epistemic={"y": np.zeros(2)}), epistemic=True).query(pool(2), n=1)


SEX = np.array(["f", "f", "f", "m", "m", "m"])
DOWN = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]


@pytest.mark.parametrize(
    ("shares", "n", "rows"),
    [
        (None, 4, [0, 1, 2, 3]),
        ({"m": 0.5}, 4, [0, 1, 3, 4]),
        ({"m": 0.5, "f": 0.5}, 4, [0, 1, 3, 4]),
        ({"m": 3}, 4, [0, 3, 4, 5]),
        ({"m": 3, "f": 0.25}, 4, [0, 3, 4, 5]),
        ({"m": 0.0}, 3, [0, 1, 2]),
        ({"m": 1}, 4, [0, 1, 2, 3]),  # one row, not all
        ({"m": 1.0}, 3, [3, 4, 5]),
        ({"m": 1, "f": 1}, 4, [0, 1, 2, 3]),  # what they leave goes to all
        ("equal", 4, [0, 1, 3, 4]),
        ("equal", 3, [0, 1, 3]),  # of equal remainders the first group's is rounded up
        ("pool", 2, [0, 3]),
    ],
)
def test_shares_and_quotas_of_known_groups(shares, n, rows):
    query = UtilityQuery(Told(DOWN), group_shares=shares)
    assert query.query(pool(6), n, sensitive_features={"sex": SEX}).tolist() == rows
    counts = {label: int((SEX[rows] == label).sum()) for label in ("f", "m") if (SEX[rows] == label).any()}
    assert query.group_counts_ == counts


def test_groups_that_are_not_named_share_the_rest_by_utility():
    query = UtilityQuery(Told(DOWN), group_shares={"c": 0.5})
    race = {"race": ["a", "b", "c", "a", "b", "c"]}
    assert query.query(pool(6), 4, sensitive_features=race).tolist() == [0, 1, 2, 5]


@pytest.mark.parametrize(
    ("shares", "n", "missing", "rows"),
    [
        ({"m": 5}, 5, r"'m' \(3 of 5\)", [0, 1, 3, 4, 5]),
        ({"x": 2}, 4, r"'x' \(0 of 2\)", [0, 1, 2, 3]),  # a group that only the models know
    ],
)
def test_a_quota_that_the_pool_cannot_meet_is_told_and_filled_up(shares, n, missing, rows):
    query = UtilityQuery(Told(DOWN, labels=("f", "m", "x")), group_shares=shares)
    with pytest.warns(UserWarning, match=rf"less than `group_shares` ask for of {missing}: the rest"):
        assert query.query(pool(6), n, sensitive_features={"sex": SEX}).tolist() == rows


def test_several_attributes_by_one_of_them_or_by_combination():
    told = {"sex": SEX, "old": [True, False, True, False, True, False]}
    by_one = UtilityQuery(Told(DOWN), group_shares={"m": 2})
    assert by_one.query(pool(6), 2, sensitive_features=told).tolist() == [3, 4]
    by_pair = UtilityQuery(Told(DOWN), group_shares={("m", False): 2, ("f", True): 0.5})
    assert by_pair.query(pool(6), 4, sensitive_features=told).tolist() == [0, 2, 3, 5]
    assert by_pair.group_counts_ == {("f", True): 2, ("m", False): 2}
    with pytest.raises(ValueError, match="names groups of several protected attributes"):
        UtilityQuery(Told(DOWN), group_shares={"m": 1, True: 1}).query(pool(6), 4, sensitive_features=told)
    twins = {"a": [0, 1, 0, 1, 0, 1], "b": [1, 0, 1, 0, 0, 1]}
    with pytest.raises(ValueError, match="which more than one protected attribute has"):
        UtilityQuery(Told(DOWN), group_shares={1: 1}).query(pool(6), 4, sensitive_features=twins)


@pytest.mark.parametrize("shares", ["equal", "pool"])
def test_words_for_shares_need_attributes_of_classes(shares):
    query, z = UtilityQuery(Told(np.zeros(50)), group_shares=shares), {"age": np.linspace(0.5, 9, 50)}
    with pytest.raises(ValueError, match="'age' has 50 different numbers, too many for groups"):
        query.query(pool(50), 4, sensitive_features=z)


@pytest.mark.parametrize(
    ("settings", "arguments", "error", "says"),
    [
        ({}, {"n": 0}, ValueError, "`n` must be at least 1, got 0"),
        ({}, {"n": 10**12}, ValueError, "`n` must be at most 1,000,000,000, got 1000000000000"),
        ({}, {"n": 1.5}, TypeError, "`n` must be a whole number, got 1.5"),
        ({"diversity": 2}, {}, ValueError, r"`diversity` must be in \[0, 1\], got 2"),
        ({"utility": 0.5}, {}, TypeError, "`utility` must be a utility like LinearUtility"),
        ({"utility": LinearUtility}, {}, TypeError, "got the class LinearUtility: write"),
        ({"utility": lambda valuation: np.ones(3)}, {}, ValueError, r"shape \(3,\) for 6 rows"),
        ({"group_shares": {"m": 0.5}}, {"sensitive_features": None}, ValueError, "groups of the pool: pass"),
        ({"group_shares": "half"}, {}, TypeError, "or be 'equal' or 'pool', got 'half'"),
        ({"group_shares": {}}, {}, ValueError, "`group_shares` names no group"),
        ({"group_shares": {"m": "0.5"}}, {}, TypeError, r"`group_shares\['m'\]` must be a number"),
        ({"group_shares": {"m": 1.5}}, {}, ValueError, r"must be in \[0, 1\], or a whole number"),
        ({"group_shares": {"m": -1}}, {}, ValueError, "must be at least 0 rows, got -1"),
        ({"group_shares": {"M": 0.5}}, {}, ValueError, r"'M', which is not a group; did you mean 'm'\?"),
        ({"group_shares": {"male": 0.5}}, {}, ValueError, "'male', which is not a group; there are 'f', 'm'"),
        ({"group_shares": {"f": 0.6, "m": 0.6}}, {}, ValueError, "sum to 1.2: they must sum to 1 at most."),
        ({"group_shares": {"f": 3, "m": 0.5}}, {}, ValueError, "ask for 5 and the batch has 4"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_a_sentence(settings, arguments, error, says):
    with pytest.raises(error, match=says):
        UtilityQuery(Told(DOWN), **settings).query(
            pool(6), **{"n": 4, "sensitive_features": {"sex": SEX}} | arguments
        )


def test_what_is_no_pool_or_no_valuator():
    with pytest.raises(ValueError, match="`X_pool` has no rows: there is nothing to select from"):
        UtilityQuery(Told([])).query(np.empty((0, 2)), n=1)
    with pytest.raises(TypeError, match="`valuator` must have a method `value`"):
        UtilityQuery(LinearUtility()).query(pool(2), n=1)
    with pytest.raises(TypeError, match="`valuator` must have a method `value`"):
        UtilityQuery(OutOfBagEntropy).query(pool(2), n=1)
    with pytest.raises(ValueError, match="No row of the pool has a utility: fit the valuator on labelled"):
        UtilityQuery(Told([np.nan, np.nan]), LinearUtility(0.75)).query(pool(2), n=1)


def test_more_rows_than_the_pool_has_are_all_of_them():
    with pytest.warns(UserWarning, match="`n=9` is more than the 6 rows of the pool: all of them are"):
        assert UtilityQuery(Told(DOWN)).query(pool(6), n=9).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_failed_query_leaves_what_was_there():
    query = UtilityQuery(Told(DOWN))
    query.query(pool(6), n=1)
    with pytest.raises(ValueError, match="`n` must be"):
        query.query(pool(6), n=0)
    assert query.utilities_.tolist() == DOWN


def test_parameters_are_kept_as_scikit_learn_does():
    query = UtilityQuery(OutOfBagEntropy(), LinearUtility(0.5), group_shares={"m": 0.5}, diversity=0.5)
    assert clone(query).get_params(deep=False)["group_shares"] == {"m": 0.5}
    names = ["diversity", "epistemic", "group_shares", "utility", "valuator"]
    assert sorted(query.get_params(deep=False)) == names


RNG = np.random.default_rng(0)
N = 1200
FRAME = pd.DataFrame(
    {
        "income": RNG.normal(size=N),
        "debt": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "job": pd.Categorical(RNG.choice(["a", "b", "c"], N)),
    }
)
Y = (FRAME["income"] + 0.5 * RNG.normal(size=N) > 0).to_numpy()
GROUP = np.where(FRAME["debt"].fillna(0) + RNG.normal(size=N) > 0.5, "f", "m")


@pytest.fixture(scope="module")
def fitted():
    valuator = OutOfBagEntropy(n_bags=5, keep_models=True, random_state=0)
    return valuator.fit(FRAME[:600], Y[:600], sensitive_features={"sex": GROUP[:600]})


def test_with_a_valuator_its_values_decide_also_if_it_was_saved(fitted, tmp_path):
    fitted.models_.save(tmp_path / "models")
    expected = np.argsort(-LinearUtility(0.75)(fitted.value(FRAME[600:])), kind="stable")[:30]
    for valuator in (fitted, load_models(tmp_path / "models")):
        rows = UtilityQuery(valuator, LinearUtility(0.75)).query(FRAME[600:], n=30)
        assert rows.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "kind",
    [pl.from_pandas, pa.Table.from_pandas, lambda frame: frame.iloc[:, ::-1]],
    ids=["polars", "arrow", "other order"],
)
def test_any_kind_of_table(fitted, kind):
    rest = FRAME[600:].reset_index(drop=True)
    asked = {"n": 20, "sensitive_features": {"sex": GROUP[600:]}}
    query = UtilityQuery(fitted, group_shares={"f": 0.5}, diversity=0.3)
    expected = query.query(rest, **asked)
    assert sorted(query.query(kind(rest), **asked)) == sorted(expected)
    assert query.group_counts_ == {"f": 10, "m": 10}


@pytest.mark.filterwarnings("ignore:.*too close to say which is lower")
def test_expected_effects_of_trees():
    valuator = TreeInfluence(random_state=0, keep_models=True)
    validation = FRAME[300:600], Y[300:600], {"sex": GROUP[300:600]}
    valuator.fit(FRAME[:300], Y[:300], sensitive_features={"sex": GROUP[:300]}, validation=validation)
    query = UtilityQuery(valuator, LinearUtility(0.0), group_shares={"f": 0.5})
    rows = query.query(FRAME[600:], n=20, sensitive_features={"sex": GROUP[600:]})
    expected = LinearUtility(0.0)(valuator.value(FRAME[600:]))
    for label in ("f", "m"):
        members = np.flatnonzero(GROUP[600:] == label)
        best = members[np.argsort(-expected[members], kind="stable")[:10]]
        assert sorted(best) == sorted(row for row in rows if GROUP[600 + row] == label)
