"""The oracle is the definition: what a row adds to every set of others, counted out."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.valuation.same import assert_same
from tests.valuation.shapley.oracles import counted_out

from fado import Valuation
from fado.tabular import read_problem
from fado.valuation.shapley._knn import KNNShapley, nearest_first, rank_weights, shares

RATIOS = ["fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"]
NEIGHBORS = [1, 2, 5, 12]
RNG = np.random.default_rng(35)  # with it, no two groups have the same rates
N, M = 9, 30
X, VALIDATION_X = RNG.normal(size=(N, 3)), RNG.normal(size=(M, 3))
NUMBERS = RNG.normal(size=N)
Y, VALIDATION_Y = np.array([0, 1, 0, 1, 1, 0, 1, 0, 0]), np.arange(M) % 2
Z2, VALIDATION_Z2 = np.arange(N) % 2, RNG.integers(0, 2, size=M)
Z3, VALIDATION_Z3 = np.arange(N) % 3, RNG.choice(["a", "b", "c"], size=M)


def order_of(X, validated_x):
    """The valued rows from the nearest to the farthest."""
    return np.argsort((((X - validated_x) / X.std(axis=0)) ** 2).sum(axis=1), kind="stable")


def vote(order, members, payoffs, n_neighbors):
    """The payoffs of those members that are nearest, over K."""
    nearest = [row for row in order if row in members][:n_neighbors]
    return sum(payoffs[row] for row in nearest) / n_neighbors


def rates(degrees, y, z, fairness, weights):
    """The rate of every group, of predictions by degree."""
    events = 1 - degrees if fairness == "fnr_ratio" else degrees
    members = {"fpr_ratio": y == 0, "selection_rate_ratio": y >= 0}.get(fairness, y == 1)
    parts = [members & (z == group) for group in np.unique(z)]
    return np.array([np.average(events[own], weights=weights[own]) for own in parts])


def slopes(degrees, *rest):
    """How the lowest over the highest rate changes with the degree of every row."""
    found = rates(degrees, *rest)
    low = np.argmin(found)
    high = np.argmax(np.where(np.arange(len(found)) == low, -1, found))
    steps = 1e-6 * np.eye(len(degrees))
    up, down = (np.array([rates(degrees + sign * step, *rest) for step in steps]) for sign in (1, -1))
    return (up[:, low] / up[:, high] - down[:, low] / down[:, high]) / 2e-6


def fit(n_neighbors=2, validation=None, sensitive_features=None, y=Y, **settings):
    given = {key: settings.pop(key) for key in ("sample_weight", "groups") if key in settings}
    valuator = KNNShapley(n_neighbors, random_state=0, **settings)
    return valuator.fit(X, y, sensitive_features=sensitive_features, validation=validation, **given)


@pytest.mark.parametrize("n_neighbors", NEIGHBORS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_are_valued_by_the_right_labels_among_the_nearest(n_neighbors, n_classes):
    y, validated_y = (Y, VALIDATION_Y) if n_classes == 2 else (Z3, np.arange(M) % 3)
    orders = [order_of(X, row) for row in VALIDATION_X]

    def accuracy(members):
        return np.mean(
            [vote(o, members, y == label, n_neighbors) for o, label in zip(orders, validated_y, strict=True)]
        )

    found = fit(n_neighbors, (VALIDATION_X, validated_y, None), y=y).valuation_
    np.testing.assert_allclose(found["y"], counted_out(accuracy, range(N)), atol=1e-12)


@pytest.mark.parametrize("n_neighbors", NEIGHBORS)
def test_numbers_are_valued_by_how_near_they_come(n_neighbors):
    validated_y = np.random.default_rng(4).normal(size=M)
    both = np.concatenate([NUMBERS, validated_y])
    orders = [order_of(X, row) for row in VALIDATION_X]
    paid = [1 - np.abs(NUMBERS - number) / np.ptp(both) for number in validated_y]

    def closeness(members):
        return np.mean([vote(o, members, own, n_neighbors) for o, own in zip(orders, paid, strict=True)])

    problem = read_problem(X, NUMBERS).with_kinds({"y": "continuous"})  # so few would be classes
    found = KNNShapley(n_neighbors).fit_problem(problem, read_problem(VALIDATION_X, validated_y)).valuation_
    np.testing.assert_allclose(found["y"], counted_out(closeness, range(N)), atol=1e-12)


@pytest.mark.parametrize("n_neighbors", NEIGHBORS)
def test_the_recursion_counts_out_any_payoffs(n_neighbors):
    order = np.arange(N)
    found = shares(NUMBERS, rank_weights(N, n_neighbors))
    worth = counted_out(lambda members: vote(order, members, NUMBERS, n_neighbors), range(N))
    np.testing.assert_allclose(found, worth, atol=1e-12)


@pytest.mark.parametrize("n_neighbors", NEIGHBORS)
@pytest.mark.parametrize("fairness", RATIOS)
def test_attributes_are_valued_by_the_linear_change_of_a_ratio(n_neighbors, fairness):
    orders = [order_of(X, row) for row in VALIDATION_X]

    @cache
    def degrees(members):
        return np.array([vote(order, members, Y, n_neighbors) for order in orders])

    validation = VALIDATION_X, VALIDATION_Y, {"two": VALIDATION_Z2, "three": VALIDATION_Z3}
    found = fit(n_neighbors, validation, {"two": Z2, "three": Z3}, fairness=fairness).valuation_
    full = degrees(frozenset(range(N)))
    for name, z in (("two", VALIDATION_Z2), ("three", VALIDATION_Z3)):
        slope = slopes(full, VALIDATION_Y, z, fairness, np.ones(M))
        by_sets = counted_out(
            lambda members, slope=slope: slope @ degrees(frozenset(members.tolist())), range(N)
        )
        np.testing.assert_allclose(found[name], by_sets, atol=1e-8)
        if n_neighbors < N:  # or all rows vote alike
            assert np.diff(np.sort(rates(full, VALIDATION_Y, z, fairness, np.ones(M)))).min() > 1e-3
            assert np.abs(by_sets).max() > 0.01


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 0.5, 3.0, 0.0, 1.0, 2.0, 1.0, 1.0])])
def test_without_validation_every_row_is_validated_once_by_the_rows_of_other_bags(weights):
    fitted = fit(2, None, {"z": Z2}, n_bags=3, fairness="selection_rate_ratio", sample_weight=weights)
    assert sorted(np.concatenate(fitted.bags_)) == list(range(N))
    counted = np.ones(N) if weights is None else weights
    orders = {}
    for bag in fitted.bags_:
        for row in bag:
            orders[int(row)] = [other for other in order_of(X, X[row]) if other not in bag]
    full = np.array([vote(orders[row], range(N), Y == 1, 2) for row in range(N)])
    slope = slopes(full, Y, Z2, "selection_rate_ratio", counted)
    by_sets = {"y": np.zeros(N), "z": np.zeros(N)}
    for bag in fitted.bags_:
        rest = [row for row in range(N) if row not in bag]

        def accuracy(members, bag=bag):
            right = [counted[j] * vote(orders[j], members, Y[j] == Y, 2) for j in bag.tolist()]
            return sum(right) / counted.sum()

        def change(members, bag=bag):
            return sum(slope[j] * vote(orders[j], members, Y == 1, 2) for j in bag.tolist())

        by_sets["y"][rest] += counted_out(accuracy, rest)
        by_sets["z"][rest] += counted_out(change, rest)
    for name, values in by_sets.items():
        np.testing.assert_allclose(fitted.valuation_[name], values, atol=1e-8)
    assert (fitted.valuation_.counts == 2).all(axis=None)


LARGE = np.random.default_rng(1)
LARGE_X = LARGE.normal(size=(700, 4))
LARGE_Y = (LARGE_X[:, 0] + LARGE.normal(size=700) > 0.5).astype(int)
LARGE_Z = np.where(LARGE_X[:, 1] + LARGE.normal(size=700) > 0, "m", "f")
LARGE_VALIDATION = (LARGE_X[400:], LARGE_Y[400:], LARGE_Z[400:])


def large(X=LARGE_X, rows=slice(400), validation=LARGE_VALIDATION, **settings):
    valuator = KNNShapley(random_state=0, **settings)
    return valuator.fit(
        X[rows], LARGE_Y[rows], sensitive_features=LARGE_Z[rows], validation=validation
    ).valuation_


def table_and_validation(X):
    return X, slice(400), (X[400:], LARGE_Y[400:], LARGE_Z[400:])


@pytest.mark.parametrize("n_neighbors", [3, 1000])
def test_values_add_up_to_the_metric(n_neighbors):
    valuator = KNNShapley(n_neighbors, random_state=0)
    found = valuator.fit(LARGE_X, LARGE_Y, sensitive_features=LARGE_Z)
    accuracy = np.empty(700)
    for bag in found.bags_:
        rest = np.setdiff1d(np.arange(700), bag)
        for row in bag:
            nearest = rest[
                np.argsort((((LARGE_X[rest] - LARGE_X[row]) / LARGE_X.std(axis=0)) ** 2).sum(axis=1))
            ]
            accuracy[row] = (LARGE_Y[nearest[:n_neighbors]] == LARGE_Y[row]).sum() / n_neighbors
    assert found.valuation_["y"].sum() == pytest.approx(accuracy.mean(), abs=1e-12)
    # a ratio is the same if all rates are half of what they were: its linear change from none to all is none
    assert found.valuation_["z"].sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("validation", [None, LARGE_VALIDATION], ids=["bags", "validated"])
def test_the_number_of_threads_changes_no_bit(validation):
    assert_same(*(large(validation=validation, n_jobs=n_jobs) for n_jobs in (1, 2)))


def test_rows_in_another_order_have_the_same_values():
    order = np.random.default_rng(2).permutation(400)
    assert_same(large(rows=order), large()[order])


def test_a_row_that_stands_twice_has_the_same_value_twice():
    twice = np.concatenate([np.arange(N), [3]])
    valuator = KNNShapley(2).fit(X[twice], Y[twice], validation=(VALIDATION_X, VALIDATION_Y, None))
    found = valuator.valuation_["y"]
    assert found[3] == pytest.approx(found[9], abs=1e-15)
    assert found[3] != pytest.approx(found[4], abs=1e-3)


def test_a_row_without_effect_is_worth_nothing():
    # negatives behind the last positive decide no vote for the positive label
    rows, y = np.arange(6.0)[:, None], [1, 0, 1, 1, 0, 0]
    validation = np.array([[-1.0], [-2.0], [-1.5], [0.1]]), [1, 0, 1, 0], list("ffmm")
    found = KNNShapley(1, fairness="selection_rate_ratio").fit(
        rows, y, sensitive_features=list("fmfmfm"), validation=validation
    )
    assert found.valuation_["z"][4:].tolist() == [0.0, 0.0]


def test_rows_at_one_place_come_by_position():
    found = (
        KNNShapley(1)
        .fit(np.zeros((4, 1)), [1, 0, 1, 0], validation=([[0.0], [0.0]], [1, 0], None))
        .valuation_
    )
    paid = [shares(np.array(own), rank_weights(4, 1)) for own in ([1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0])]
    np.testing.assert_allclose(found["y"], np.mean(paid, axis=0), atol=1e-15)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 1000])
def test_positions_are_ordered_by_distance_then_by_position(n_rows):
    distances = np.random.default_rng(0).integers(0, 50, size=(5, n_rows)) / 7
    by_peer = np.argsort(distances, axis=1, kind="stable")
    np.testing.assert_array_equal(nearest_first(distances.copy()), by_peer)


def test_blocks_stay_together():
    blocks = np.arange(700) // 5
    fitted = KNNShapley(random_state=0).fit(LARGE_X, LARGE_Y, groups=blocks)
    assert all(
        np.bincount(blocks[bag])[np.unique(blocks[bag])].tolist() == [5] * (len(bag) // 5)
        for bag in fitted.bags_
    )
    assert sorted(np.concatenate(fitted.bags_)) == list(range(700))


def test_a_sparse_table_has_the_values_of_a_dense_one():
    dense = np.where(np.random.default_rng(3).random(LARGE_X.shape) < 0.5, LARGE_X, 0.0)
    dense[:, 3] = LARGE_X[:, 3]  # or zeros would tie
    by_dense, by_sparse = (
        large(*table_and_validation(make(dense))) for make in (np.asarray, sparse.csr_matrix)
    )
    np.testing.assert_allclose(by_sparse["y"], by_dense["y"], atol=1e-12)


@pytest.mark.filterwarnings("ignore:Models will learn little")
def test_a_level_of_its_own_for_every_row_changes_nothing():
    frame = pd.DataFrame(LARGE_X, columns=list("abcd"))
    named = frame.assign(name=[f"row {row}" for row in range(700)])
    plain, with_names = (large(*table_and_validation(own)) for own in (frame, named))
    np.testing.assert_allclose(with_names["y"], plain["y"], atol=1e-12)
    assert with_names.values.index.equals(named[:400].index)


def test_a_validated_class_that_no_valued_row_has_is_never_right():
    y = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    alone = fit(2, (VALIDATION_X[:2], [0, 1], None), y=y).valuation_["y"]
    beside = fit(2, (VALIDATION_X[:3], [0, 1, 7], None), y=y).valuation_["y"]
    np.testing.assert_allclose(beside, alone * 2 / 3, atol=1e-15)


def test_what_the_values_say_of_themselves(tmp_path):
    valuation = fit(2, (VALIDATION_X, VALIDATION_Y, VALIDATION_Z2), Z2).valuation_
    assert valuation.scales["y"].meaning == "effect of the row's weight on accuracy"
    assert valuation.scales["z"].meaning == "effect of the row's weight on fpr_ratio"
    said = valuation.metadata
    assert said["algorithm"] == "knn-shapley"
    assert (said["n_neighbors"], said["performance"], said["fairness"]) == (2, "accuracy", "fpr_ratio")
    assert "n_bags" not in said
    assert fit(2, n_bags=4).valuation_.metadata["n_bags"] == 4
    assert (valuation.counts == 1).all(axis=None)
    valuation.save(tmp_path / "values.parquet")
    np.testing.assert_array_equal(Valuation.load(tmp_path / "values.parquet")["z"], valuation["z"])


def test_the_seed_decides_the_bags():
    first, again, other = (KNNShapley(random_state=seed).fit(LARGE_X, LARGE_Y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.valuation_["y"], again.valuation_["y"])
    assert (first.valuation_["y"] != other.valuation_["y"]).any()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_neighbors": 0}, ValueError, r"`n_neighbors` must be at least 1, got 0"),
        ({"n_neighbors": 2.0}, TypeError, r"`n_neighbors` must be a whole number"),
        ({"performance": "log_loss"}, ValueError, r"got 'log_loss': use TreeInfluence or DataShapley"),
        ({"performance": "tpr_at_fpr"}, ValueError, r"got 'tpr_at_fpr': use TreeInfluence or DataShapley"),
        ({"performance": "speed"}, ValueError, r"`performance` must be"),
        ({"fairness": "equality"}, ValueError, r"`fairness` must be"),
        ({"n_bags": 1}, ValueError, r"`n_bags` must be at least 2"),
        ({"n_bags": 10}, ValueError, r"at most the number of rows, 9 .* use fewer bags or more rows"),
        ({"n_bags": 5, "groups": Z3}, ValueError, r"number of groups of rows, 3"),
        ({"n_jobs": 0}, ValueError, r"`n_jobs` must not be 0"),
        ({"n_jobs": 1.5}, TypeError, r"`n_jobs` must be a whole number"),
        ({"y": np.zeros(N)}, ValueError, r"only one class"),
        (
            {"y": Z3, "sensitive_features": Z2},
            ValueError,
            r"two classes, and `y` has 3 classes: compare it first",
        ),
        (
            {"validation": (VALIDATION_X, np.full(M, 5), None), "y": Z3},
            ValueError,
            r"label 5, .* give both the same labels",
        ),
        (
            {"validation": (VALIDATION_X[:, :2], VALIDATION_Y, None)},
            ValueError,
            r"2 columns, and the valued rows have 3",
        ),
        (
            {"validation": (VALIDATION_X, VALIDATION_Y, np.zeros(M)), "sensitive_features": Z2},
            ValueError,
            r"nothing to compare",
        ),
    ],
)
def test_bad_input_is_answered_by_a_sentence(settings, error, message):
    with pytest.raises(error, match=message):
        fit(**settings)


def test_a_ratio_needs_two_classes_and_not_numbers():
    with pytest.raises(ValueError, match=r"two classes, and `y` is continuous: compare it first"):
        KNNShapley().fit(LARGE_X, LARGE_X[:, 0], sensitive_features=LARGE_Z)
    with pytest.raises(ValueError, match=r"`y` holds text among the validation rows"):
        KNNShapley().fit(LARGE_X, LARGE_X[:, 0], validation=(LARGE_X[:2], ["a", "b"], None))


@parametrize_with_checks([KNNShapley(n_jobs=1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
