"""`UtilityStream`: rows as they come, within a budget."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

pytest.importorskip("skactiveml")

from skactiveml.base import SingleAnnotatorStreamQueryStrategy
from skactiveml.stream.budgetmanager import BalancedIncrementalQuantileFilter, FixedUncertaintyBudgetManager

from fado import LinearUtility, OnlineEntropy, Valuation
from fado.active import UtilityStream


class FirstColumn:
    """A valuator whose value for the target is the first column; it counts how often it is asked."""

    asked = 0

    def value(self, X):
        self.asked += 1
        return Valuation({"y": np.asarray(X, dtype=float)[:, 0]})


class Blank:
    """A valuator that has not learnt anything yet."""

    def value(self, X):
        return Valuation({"y": np.full(len(X), np.nan)})


def run(stream, X, size):
    asked = []
    for start in range(0, len(X), size):
        batch = X[start : start + size]
        rows = stream.query(batch)
        stream.update(batch, rows)
        asked.extend(start + rows)
    return np.array(asked)


def test_it_is_a_strategy_with_the_parameters_of_one():
    stream = UtilityStream(FirstColumn(), LinearUtility(1.0), budget=0.2, random_state=1)
    assert isinstance(stream, SingleAnnotatorStreamQueryStrategy)
    names = {"valuator", "utility", "budget_manager", "budget", "random_state"}
    assert stream.get_params(deep=False).keys() == names
    assert clone(stream).budget == 0.2


@pytest.mark.parametrize(("size", "budget"), [(1, 0.1), (50, 0.1), (50, 0.3)])
def test_the_budget_is_kept_and_spent_on_rows_of_high_utility(size, budget):
    X = np.random.default_rng(0).random((500, 2))
    asked = run(UtilityStream(FirstColumn(), budget=budget), X, size)
    assert abs(len(asked) - 500 * budget) < 15
    assert X[asked, 0].mean() > X[:, 0].mean() + 0.25


def test_it_decides_as_the_filter_does():
    X = np.random.default_rng(0).random((120, 1))
    manager, expected = BalancedIncrementalQuantileFilter(budget=0.1), []
    for start in range(0, 120, 30):
        rows = manager.query_by_utility(X[start : start + 30, 0])
        manager.update(X[start : start + 30], rows, X[start : start + 30, 0])
        expected.extend(start + row for row in rows)
    assert run(UtilityStream(FirstColumn()), X, 30).tolist() == expected


def test_a_query_alone_changes_nothing():
    X = np.random.default_rng(0).random((40, 1))
    stream = UtilityStream(FirstColumn(), random_state=0)
    first, utilities = stream.query(X, return_utilities=True)
    assert utilities.tolist() == X[:, 0].tolist()
    for _ in range(3):
        assert stream.query(X).tolist() == first.tolist()
    assert not hasattr(stream, "n_seen_")
    stream.update(X, first)
    assert stream.n_seen_ == 40
    assert stream.budget_manager_.observed_samples_ == 40


def test_utilities_that_are_told_are_not_computed_again():
    valuator = FirstColumn()
    stream = UtilityStream(valuator)
    X = np.random.default_rng(0).random((10, 1))
    rows, utilities = stream.query(X, return_utilities=True)
    stream.update(X, rows, {"utilities": utilities})
    assert valuator.asked == 1
    stream.update(X, rows)
    assert valuator.asked == 2


def test_before_anything_is_learnt_rows_are_drawn_at_random():
    X = np.zeros((500, 1))
    asked = run(UtilityStream(Blank(), LinearUtility(0.75), budget=0.1, random_state=0), X, 10)
    assert 35 < len(asked) < 65
    assert (
        asked.tolist()
        == run(UtilityStream(Blank(), LinearUtility(0.75), budget=0.1, random_state=0), X, 10).tolist()
    )


def test_without_a_seed_update_records_the_utilities_that_query_drew():
    stream = UtilityStream(Blank(), LinearUtility(0.75))
    X = np.zeros((20, 1))
    rows, utilities = stream.query(X, return_utilities=True)
    stream.update(X, rows)
    assert list(stream.budget_manager_.history_sorted_) == utilities.tolist()


@pytest.mark.filterwarnings("ignore:Drift in batch")
def test_with_a_valuator_that_learns_on_the_way():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=1500) > 0
    sex = np.where(rng.random(1500) < 0.5, "f", "m")
    online = OnlineEntropy(random_state=0)
    stream = UtilityStream(online, LinearUtility(0.9), budget=0.2, random_state=0)
    asked = []
    for start in range(0, 1500, 300):
        batch = X[start : start + 300]
        rows = start + stream.query(batch)
        stream.update(batch, rows - start)
        online.learn(X[rows], y[rows], sensitive_features={"sex": sex[rows]})
        asked.append(rows)
    first, later = asked[0], np.concatenate(asked[2:])
    assert abs(len(np.concatenate(asked)) - 300) < 30
    assert np.abs(X[later, 0]).mean() < 0.6 * np.abs(X[first, 0]).mean()


def test_a_budget_manager_of_choice():
    manager = FixedUncertaintyBudgetManager(classes=[0, 1], budget=0.2)
    stream = UtilityStream(FirstColumn(), budget_manager=manager)
    X = np.random.default_rng(0).random((50, 1))
    rows = stream.query(X)
    stream.update(X, rows, {})
    assert stream.budget_manager is manager
    assert not hasattr(manager, "observed_samples_")


def test_tables_with_names():
    frame = pd.DataFrame({"v": np.random.default_rng(0).random(60), "w": 1.0})
    stream = UtilityStream(FirstColumn())
    assert stream.query(frame).tolist() == UtilityStream(FirstColumn()).query(frame.to_numpy()).tolist()
    assert stream.feature_names_in_.tolist() == ["v", "w"]


def test_lazy_tables():
    frame = pl.DataFrame({"v": np.random.default_rng(0).random(60), "w": 1.0})
    stream = UtilityStream(FirstColumn())
    rows = stream.query(frame.lazy())
    assert rows.tolist() == UtilityStream(FirstColumn()).query(frame).tolist()
    assert stream.update(frame.lazy(), rows).n_seen_ == 60


@pytest.mark.parametrize(
    ("settings", "arguments", "error", "says"),
    [
        (
            {"budget": 2},
            {},
            ValueError,
            r"^`budget` must be the share of rows .* in \(0, 1\], got 2\.$",
        ),
        ({"budget": 0}, {}, ValueError, "^`budget` must be the share .*, got 0"),
        ({"budget": np.nan}, {}, ValueError, "^`budget` must be the share .*, got nan"),
        ({"budget": True}, {}, TypeError, "^`budget` must be the share .*, got True"),
        ({"budget": "0.1"}, {}, TypeError, "^`budget` must be the share .*, got '0.1'"),
        ({"budget_manager": 0.5}, {}, TypeError, "^`budget_manager` must be a budget manager of .*, got 0.5"),
        (
            {"budget_manager": BalancedIncrementalQuantileFilter},
            {},
            TypeError,
            "^`budget_manager` must be a budget manager of scikit-activeml or None, got <class",
        ),
        (
            {"budget_manager": BalancedIncrementalQuantileFilter(budget=7)},
            {},
            ValueError,
            r"^`budget_manager\.budget` must be the share of rows to label, in \(0, 1\], got 7",
        ),
        ({"random_state": "state"}, {}, ValueError, "state"),
        ({"valuator": None}, {}, TypeError, "`valuator` must have a method `value`"),
        ({"utility": "linear"}, {}, TypeError, "`utility` must be a utility"),
        ({}, {"candidates": np.ones(3)}, ValueError, "must be a table with rows and columns"),
        ({}, {"candidates": np.ones((0, 2))}, ValueError, "`candidates` has no rows"),
        ({}, {"return_utilities": 1}, TypeError, "`return_utilities` must be True or False"),
    ],
)
def test_bad_input_is_told_in_a_sentence(settings, arguments, error, says):
    stream = UtilityStream(**{"valuator": FirstColumn()} | settings)
    with pytest.raises(error, match=says):
        stream.query(**{"candidates": np.ones((3, 1))} | arguments)


def test_a_budget_of_all_rows_may_be_a_whole_number():
    rows = UtilityStream(FirstColumn(), budget=1).query(np.arange(5.0)[:, None])
    np.testing.assert_array_equal(rows, range(5))


@pytest.mark.parametrize(
    ("candidates", "indices", "error", "says"),
    [
        (FirstColumn, [], TypeError, "`candidates` must be a table of rows"),
        (np.ones((3, 1)), "all", IndexError, "`queried_indices`: must be positions"),
        (np.ones((3, 1)), [True], IndexError, "a mask must have one entry for each of the 3 rows, got 1"),
        (np.ones((3, 1)), [-1], IndexError, "`queried_indices`: there is no row -1"),
        (np.ones((3, 1)), [3], IndexError, "`queried_indices`: there is no row 3; rows are 0 to 2"),
    ],
)
def test_bad_updates_are_told_in_a_sentence(candidates, indices, error, says):
    stream = UtilityStream(FirstColumn())
    with pytest.raises(error, match=says):
        stream.update(candidates, indices)
    assert not hasattr(stream, "n_seen_")
