"""`UtilitySampling` by scikit-activeml's rules, on its own and in the loop of others."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

pytest.importorskip("skactiveml")

from skactiveml.base import SingleAnnotatorPoolQueryStrategy

from fado import LinearUtility, OutOfBagEntropy
from fado.active import UtilitySampling

RNG = np.random.default_rng(0)
N, LABELLED = 300, 150
X = RNG.normal(size=(N, 3))
TRUTH = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(float)
Y = np.where(np.arange(N) < LABELLED, TRUTH, np.nan)
SEX = np.where(X[:, 1] + RNG.normal(size=N) > 0, "f", "m")
POOL = np.arange(LABELLED, N)


def test_it_is_a_strategy_with_the_parameters_of_one():
    strategy = UtilitySampling(LinearUtility(0.5), missing_label=None, random_state=3)
    assert isinstance(strategy, SingleAnnotatorPoolQueryStrategy)
    assert strategy.get_params(deep=False).keys() == {"utility", "missing_label", "random_state"}
    assert clone(strategy).get_params()["utility"] == LinearUtility(0.5)


def test_utilities_are_those_of_the_valuator():
    strategy = UtilitySampling(LinearUtility(0.5), random_state=0)
    rows, utilities = strategy.query(
        X, Y, batch_size=3, return_utilities=True, sensitive_features={"sex": SEX}
    )
    assert utilities.shape == (3, N)
    assert np.isnan(utilities[0, :LABELLED]).all()
    assert rows.tolist() == np.argsort(-np.nan_to_num(utilities[0]), kind="stable")[:3].tolist()
    for turn in range(3):
        chosen_before = np.isnan(utilities[turn, LABELLED:])
        assert POOL[chosen_before].tolist() == sorted(rows[:turn].tolist())
    seed = int(np.random.RandomState(_drawn(0)).randint(2**31 - 1))
    valuator = OutOfBagEntropy(keep_models=True, random_state=seed)
    valuator.fit(X[:LABELLED], TRUTH[:LABELLED], sensitive_features={"sex": SEX[:LABELLED]})
    assert utilities[0, LABELLED:] == pytest.approx(LinearUtility(0.5)(valuator.value(X[LABELLED:])))


def _drawn(random_state):
    """Give the seed that scikit-activeml draws for a pool of so many rows."""
    drawn = np.random.RandomState(random_state).randint(1, 2**31)
    return (drawn * (N - LABELLED + 1)) % 2**31


def test_without_protected_attributes_performance_is_all():
    one = UtilitySampling(random_state=0).query(X, Y, batch_size=20)
    other = UtilitySampling(LinearUtility(1), random_state=0).query(X, Y, batch_size=20)
    assert one.tolist() == other.tolist()
    assert np.abs(X[one, 0]).mean() < 0.5 * np.abs(X[:, 0]).mean()
    with pytest.raises(ValueError, match=r"no protected attribute, and alpha=0\.75"):
        UtilitySampling(LinearUtility(0.75), random_state=0).query(X, Y)


def test_candidates_as_rows_of_x_or_as_rows_of_their_own():
    strategy = UtilitySampling(random_state=0)
    rows, utilities = strategy.query(X, Y, return_utilities=True)
    same, by_row = strategy.query(X, Y, candidates=POOL, return_utilities=True)
    assert same.tolist() == rows.tolist()
    np.testing.assert_array_equal(by_row, utilities)
    places, by_place = strategy.query(X, Y, candidates=X[LABELLED:], return_utilities=True)
    assert (places + LABELLED).tolist() == rows.tolist()
    np.testing.assert_allclose(by_place, utilities[:, LABELLED:])
    few, of_few = strategy.query(X, Y, candidates=[200, 170, 200], batch_size=2, return_utilities=True)
    assert sorted(few) == [170, 200]
    assert np.flatnonzero(~np.isnan(of_few[0])).tolist() == [170, 200]
    mask = np.isin(np.arange(N), [170, 200])
    assert strategy.query(X, Y, candidates=mask, batch_size=2).tolist() == few.tolist()
    assert strategy.query(X, Y, candidates=[3]).tolist() == [3]  # labelled rows may be asked for again


@pytest.mark.parametrize("n_labels", [0, 19])
def test_with_no_or_few_labels_it_draws_at_random(n_labels):
    y = np.where(np.arange(N) < n_labels, TRUTH, np.nan)
    drawn = [UtilitySampling(random_state=seed).query(X, y, batch_size=5).tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert np.isnan(y[drawn[0]]).all()


def test_while_all_labels_are_of_one_class_or_group_it_draws_at_random():
    alike = np.where(np.arange(N) < LABELLED, 1.0, np.nan)
    men_first = {"sex": np.where(np.arange(N) < LABELLED, "m", SEX)}
    for strategy, y, z in (
        (UtilitySampling(), alike, None),
        (UtilitySampling(LinearUtility(0.5)), Y, men_first),
    ):
        strategy.set_params(random_state=0)
        _, utilities = strategy.query(X, y, return_utilities=True, sensitive_features=z)
        assert (utilities[0, LABELLED:] == 0).all()
    with pytest.raises(ValueError, match="'sex' has only one class"):
        UtilitySampling(random_state=0).query(X, Y, sensitive_features={"sex": np.full(N, "m")})


@pytest.fixture(scope="module")
def plain_rows():
    return UtilitySampling(random_state=0).query(X, Y, batch_size=10).tolist()


@pytest.mark.parametrize(
    ("missing_label", "labels", "kind"),
    [(np.nan, [1.0, 2.0], float), (0, [1, 2], int), (None, ["A", "B"], object), ("", ["A", "B"], str)],
)
def test_any_missing_label(plain_rows, missing_label, labels, kind):
    y = np.full(N, missing_label, dtype=kind)
    y[:LABELLED] = np.array(labels, dtype=kind)[TRUTH[:LABELLED].astype(int)]
    strategy = UtilitySampling(missing_label=missing_label, random_state=0)
    assert strategy.query(X, y, batch_size=10).tolist() == plain_rows


@pytest.mark.parametrize("missing_label", [np.nan, None])
@pytest.mark.parametrize("kind", ["str", "object", "category", "boolean"])
def test_missing_labels_of_pandas_are_missing_whatever_stands_for_them(plain_rows, kind, missing_label):
    labels = [False, True] if kind == "boolean" else ["A", "B"]
    known = [labels[int(label)] for label in TRUTH[:LABELLED]]
    y = pd.Series([*known, *[None] * (N - LABELLED)], dtype=kind)
    strategy = UtilitySampling(missing_label=missing_label, random_state=0)
    assert strategy.query(X, y, batch_size=10).tolist() == plain_rows


def test_candidates_of_a_lazy_table():
    frame = pl.DataFrame(X)
    strategy = UtilitySampling(random_state=0)
    rows = strategy.query(frame, Y, candidates=frame[LABELLED:].lazy(), batch_size=5)
    assert rows.tolist() == strategy.query(frame, Y, candidates=frame[LABELLED:], batch_size=5).tolist()


def test_a_query_repeats_and_leaves_the_parameters_alone():
    generator = np.random.RandomState(5)
    strategy = UtilitySampling(random_state=generator)
    before = generator.get_state()[1].copy()
    first = strategy.query(X, Y, batch_size=4)
    assert first.tolist() == strategy.query(X, Y, batch_size=4).tolist()
    assert strategy.random_state is generator
    np.testing.assert_array_equal(generator.get_state()[1], before)
    assert strategy.n_features_in_ == 3


def test_mixed_tables_with_missing_values():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "job": RNG.choice(["x", "y", None], N), "sex": SEX})
    frame.loc[RNG.random(N) < 0.2, "b"] = np.nan
    strategy = UtilitySampling(random_state=0)
    rows = strategy.query(frame, Y, batch_size=10, sensitive_features="sex")
    places = strategy.query(frame, Y, frame[LABELLED:], batch_size=10, sensitive_features="sex")
    assert (places + LABELLED).tolist() == rows.tolist()
    assert strategy.feature_names_in_.tolist() == ["a", "b", "job", "sex"]


def test_a_batch_larger_than_the_pool_is_the_pool():
    with pytest.warns(UserWarning, match="`batch_size=500` is more than the 150 candidates"):
        rows = UtilitySampling(random_state=0).query(X, Y, batch_size=500)
    assert sorted(rows) == POOL.tolist()


@pytest.mark.parametrize(
    ("settings", "arguments", "error", "says"),
    [
        ({}, {"batch_size": 0}, ValueError, "`batch_size` must be at least 1"),
        ({}, {"batch_size": 1.2}, TypeError, "`batch_size` must be a whole number"),
        ({}, {"return_utilities": "yes"}, TypeError, "`return_utilities` must be True or False"),
        ({}, {"candidates": np.nan}, ValueError, "`candidates` must be rows of X"),
        ({}, {"candidates": UtilitySampling}, TypeError, "`candidates` must be rows of X"),
        ({}, {"candidates": [N]}, ValueError, "`candidates`: there is no row 300; rows are 0 to 299"),
        ({}, {"candidates": [-1]}, ValueError, "there is no row -1"),
        (
            {},
            {"candidates": [True, False]},
            ValueError,
            "a mask must have one entry for each of the 300 rows",
        ),
        ({}, {"candidates": [0.5]}, TypeError, "`candidates`: must be positions of rows"),
        ({}, {"candidates": []}, ValueError, "There is no candidate"),
        ({}, {"y": TRUTH}, ValueError, "There is no candidate: every row has a label"),
        ({}, {"y": TRUTH[1:]}, ValueError, "`y` has 299 entries and X has 300 rows"),
        ({}, {"y": np.nan}, TypeError, "`y` must hold one label per row"),
        ({}, {"y": np.vstack([Y, Y])}, ValueError, "1d array"),
        ({}, {"X": "table"}, ValueError, "`X` must be a table"),
        ({}, {"X": X[:0], "y": []}, ValueError, "`X` has no rows"),
        ({}, {"sensitive_features": "sex"}, ValueError, "'sex', which is not a column of X"),
        ({"random_state": "state"}, {}, ValueError, "state"),
        ({"missing_label": object}, {}, TypeError, "missing_label"),
        ({"utility": "linear"}, {}, TypeError, "`utility` must be a utility"),
    ],
)
def test_bad_input_is_told_and_leaves_no_trace(settings, arguments, error, says):
    strategy = UtilitySampling(**settings)
    with pytest.raises(error, match=says):
        strategy.query(**{"X": X, "y": Y} | arguments)
    assert not [name for name in vars(strategy) if name.endswith("_")]


def test_a_loop_finds_the_rows_that_random_ones_miss():
    """Of rare positives, batches hold several times as many as the pool does."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2000, 2))
    truth = (table[:, 0] > 1.5).astype(float)
    y = np.where(np.arange(2000) < 200, truth, np.nan)
    for turn in range(3):
        rows = UtilitySampling(random_state=turn).query(table, y, batch_size=20)
        assert np.isnan(y[rows]).all()
        y[rows] = truth[rows]
    asked = ~np.isnan(y[200:])
    assert asked.sum() == 60
    assert truth[200:][asked].mean() > 3 * truth.mean()
