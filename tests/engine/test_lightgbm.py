"""The LightGBM engine gives what the estimators themselves would give, fit by fit."""

import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.stats import spearmanr
from sklearn.base import clone

from fado.engine import LightGBMEngine, Task, default_estimators
from fado.tabular import Table, Variable, column_from, variable_from

N = 3000
RNG = np.random.default_rng(0)
COARSE = RNG.integers(0, 40, size=(N, 6)).astype(float)  # few distinct values: every bag has the same bins
FINE = RNG.normal(size=(N, 6))
COARSE[RNG.random(COARSE.shape) < 0.1] = np.nan
OUT = np.sort(RNG.permutation(N)[:600]).astype(np.int32)
IN = np.setdiff1d(np.arange(N), OUT).astype(np.int32)


def labels_of(X, n_classes=2):
    signal = np.nansum(X[:, :3], axis=1) + 0.1 * np.nan_to_num(X[:, 3] * X[:, 4])
    signal = signal + RNG.normal(scale=signal.std(), size=N)
    return np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


AMOUNT = np.nansum(COARSE[:, :3], axis=1) + RNG.random(N)
COLOURS = pd.DataFrame({"colour": RNG.choice(["red", "green", "blue", "grey"], N), "x": COARSE[:, 0]})
GREEN = (COLOURS["colour"].isin(["green", "grey"]) ^ (RNG.random(N) < 0.2)).to_numpy(dtype=int)


def learn(y, **about):
    found = variable_from(column_from("y", y))
    return Variable("y", found.kind, found.labels, found.classes, **about)


def fit(estimator, X, y, rows=IN, scored=OUT, **about):
    return LightGBMEngine(Table.from_input(X)).fit(Task(estimator, learn(y), rows, 0, scored, **about))


def assert_equals_the_estimator(estimator, X, y, rows=IN, scored=OUT, weights=None):
    model = fit(estimator, X, y, rows, scored, weights=weights)
    expected = peer_scores(estimator, X, y, rows, rows if scored is None else scored, weights)
    np.testing.assert_allclose(model.scores, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        model.score(rows if scored is None else scored), expected, rtol=1e-9, atol=1e-9
    )
    assert model.n_trees == estimator.n_estimators


def peer_scores(estimator, X, y, rows=IN, scored=OUT, weights=None):
    """The scores through `fit` and `predict` of the estimator."""
    model = clone(estimator).set_params(verbosity=-1, n_jobs=1)
    take = X.astype({"colour": "category"}).iloc if X is COLOURS else X
    model.fit(take[rows], y[rows], sample_weight=weights)
    return (model.predict if isinstance(model, LGBMRegressor) else model.predict_proba)(take[scored])


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"n_classes": 4},
        {"num_leaves": 7, "learning_rate": 0.3, "min_child_samples": 5},
        {"subsample": 0.7, "subsample_freq": 1},
        {"colsample_bytree": 0.5},
        {"reg_alpha": 1.0, "reg_lambda": 2.0, "max_depth": 3, "min_split_gain": 0.1},
        {"boosting_type": "goss"},
        {"scale_pos_weight": 5.0},
    ],
)
def test_equals_the_estimator_where_bins_coincide(parameters):
    y = labels_of(COARSE, parameters.pop("n_classes", 2))
    assert_equals_the_estimator(LGBMClassifier(n_estimators=20, random_state=4, **parameters), COARSE, y)


@pytest.mark.parametrize("least_rows", [1, 20, 60])
def test_columns_that_cannot_be_split_are_not_drawn(least_rows):
    rare = (np.arange(N) % 60 == 0).astype(float)  # 50 rows, some 40 in a bag
    X = np.column_stack([COARSE, np.ones(N), np.full(N, np.nan), rare])
    drawn = LGBMClassifier(
        n_estimators=20, colsample_bytree=0.5, min_child_samples=least_rows, random_state=4
    )
    assert_equals_the_estimator(drawn, X, labels_of(COARSE))


def test_equals_the_estimator_with_weights_and_repeated_rows():
    y, estimator = labels_of(COARSE), LGBMClassifier(n_estimators=20, random_state=0)
    assert_equals_the_estimator(estimator, COARSE, y, weights=RNG.random(len(IN)))
    assert_equals_the_estimator(estimator, COARSE, y, np.sort(RNG.choice(IN, 4000)).astype(np.int32))


def test_differs_by_binning_alone_on_fine_numbers():
    y = labels_of(FINE)
    estimator = LGBMClassifier(n_estimators=30, random_state=0)
    found, expected = fit(estimator, FINE, y).scores, peer_scores(estimator, FINE, y)
    assert np.abs(found - expected).mean() < 0.05
    assert spearmanr(found[:, 1], expected[:, 1])[0] > 0.95


@pytest.mark.parametrize("colsample", [1.0, 0.6])
def test_models_see_the_target_and_not_what_is_excluded(colsample):
    """Masked columns of shared bins are as good as absent; where columns are drawn, they are absent."""
    y = labels_of(COARSE)
    z = (np.nan_to_num(COARSE[:, 5]) + 10 * y + RNG.normal(scale=9, size=N) > 20).astype(int)
    estimator = LGBMClassifier(n_estimators=20, colsample_bytree=colsample, random_state=0)
    engine = LightGBMEngine(Table.from_input(COARSE), learn(y))
    for sees_target in (True, False):
        model = engine.fit(
            Task(estimator, learn(z, excluded=frozenset({1}), sees_target=sees_target), IN, 0, OUT)
        )
        seen = np.delete(COARSE, 1, axis=1)
        seen = np.column_stack([seen, y]) if sees_target else seen
        np.testing.assert_allclose(model.scores, peer_scores(estimator, seen, z), rtol=0, atol=1e-9)
        assert model.gains.shape == (7,)
        assert model.gains[1] == 0
        assert (model.gains[6] > 0) is np.bool_(sees_target)


IN_BAG = {
    "classes": (LGBMClassifier(), FINE, labels_of(FINE, 3)),
    "few bins": (LGBMClassifier(max_bin=7), FINE, labels_of(FINE)),
    "bins of some rows": (LGBMClassifier(subsample_for_bin=100), FINE, labels_of(FINE)),
    "numbers": (LGBMRegressor(), COARSE, AMOUNT),
    "huber": (LGBMRegressor(objective="huber"), COARSE, AMOUNT),
    "poisson": (LGBMRegressor(objective="poisson"), COARSE, AMOUNT),
    "categories": (LGBMClassifier(), COLOURS, GREEN),
}


@pytest.mark.parametrize(("estimator", "X", "y"), IN_BAG.values(), ids=IN_BAG)
def test_equals_the_estimator_in_bag(estimator, X, y):
    """Both bin the same rows: even bins of fine numbers coincide."""
    estimator = clone(estimator).set_params(n_estimators=20, random_state=3)
    assert_equals_the_estimator(estimator, X, y, np.arange(N, dtype=np.int32), None)


def test_by_content_neither_places_nor_names_of_columns_matter():
    y = labels_of(COARSE)
    order = [3, 0, 5, 1, 4, 2]
    estimator = LGBMClassifier(n_estimators=20, colsample_bytree=0.5)
    one, other = (
        LightGBMEngine(Table.from_input(X), by_content=True).fit(Task(estimator, learn(y), IN, 5, OUT))
        for X in (COARSE, pd.DataFrame(COARSE[:, order], columns=list("fedcba")))
    )
    np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_array_equal(one.gains[order], other.gains[:6])


def test_one_binned_table_serves_all_models_that_agree_on_the_bins():
    y = learn(labels_of(COARSE))
    engine = LightGBMEngine(Table.from_input(COARSE), prefilter=False)
    validated = Table.from_input(COARSE[OUT])
    tasks = [
        Task(LGBMClassifier(n_estimators=5, min_child_samples=least, colsample_bytree=share), y, IN, 0, OUT)
        for least in (5, 20)
        for share in (0.5, 1.0)
    ]
    elsewhere = [replace(task, scored=validated) for task in tasks]
    engine.prepare(elsewhere)
    assert len(engine._binned) == len(engine._others[validated]) == 1
    for task, other in zip(tasks, elsewhere, strict=True):
        np.testing.assert_array_equal(engine.fit(other).scores, engine.fit(task).scores)
    assert len(engine._binned) == 1
    del validated, elsewhere, other
    assert len(engine._others) == 0


class Watcher:
    """Notes the scores it is shown, and has seen enough after a while."""

    every = 5

    def __init__(self, enough):
        self.enough = enough
        self.seen = []

    def __call__(self, scores):
        self.seen.append(scores)
        return len(self.seen) >= self.enough


@pytest.mark.parametrize("scored", [OUT, None])
def test_a_watch_sees_the_scores_grow_and_may_end_it(scored):
    y, watch = labels_of(COARSE, 3), Watcher(3)
    engine, estimator = LightGBMEngine(Table.from_input(COARSE)), LGBMClassifier(n_estimators=40)
    model = engine.fit(Task(estimator, learn(y), IN, 0, scored), watch=watch)
    assert model.n_trees == 15
    for trees, scores in zip((5, 10, 15), watch.seen, strict=True):
        fewer = Task(LGBMClassifier(n_estimators=trees), learn(y), IN, 0, scored)
        np.testing.assert_array_equal(engine.fit(fewer).scores, scores)
    np.testing.assert_array_equal(model.scores, watch.seen[-1])


def test_a_fit_that_is_told_to_stop_ends_early():
    stop = threading.Event()
    stop.set()
    engine = LightGBMEngine(Table.from_input(COARSE))
    assert engine.fit(Task(LGBMClassifier(), learn(labels_of(COARSE)), IN, 0, OUT), stop).n_trees == 0


class Inherits(LGBMClassifier):
    pass


@pytest.mark.parametrize(
    "estimator",
    [
        *(
            LGBMClassifier(**parameters)
            for parameters in (
                {"class_weight": "balanced"},
                {"objective": lambda y, p: (p - y, np.ones_like(p))},
                {"early_stopping_round": 3},
                {"boosting_type": "dart"},
                {"boosting_type": "rf"},
                {"monotone_constraints": [1, 0, 0]},
                {"random_state": np.random.RandomState(0)},
                {"objective": "multiclassova"},
                {"extra_trees": True},
                {"linear_tree": True},
            )
        ),
        LGBMRegressor(objective="quantile"),
        Inherits(),
    ],
)
def test_what_cannot_be_honoured(estimator):
    assert not LightGBMEngine.supports(estimator, Table.from_input(COARSE))


def test_what_is_honoured():
    classifier = LGBMClassifier(n_estimators=5, reg_alpha=1.0, max_bin=63, n_jobs=4, verbosity=-1)
    for estimator in (classifier, LGBMRegressor(objective="huber"), *default_estimators(5)):
        assert LightGBMEngine.supports(estimator, Table.from_input(COARSE))


def test_column_names_never_reach_lightgbm():
    names = ["a b", "a_b", '{"x":[1]}', "a,b", "", "é\n"]
    y, estimator = labels_of(COARSE), LGBMClassifier(n_estimators=5)
    named = fit(estimator, pd.DataFrame(COARSE, columns=names), y)
    np.testing.assert_array_equal(named.scores, fit(estimator, COARSE, y).scores)
