"""The leaves of rows, and the trees that are read from text: together they give the model's scores."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from lightgbm import LGBMClassifier

from fado.engine import LightGBMEngine, Task
from fado.tabular import read_problem

N = 2000


def mixed(n_rows, seed, *, strange=False):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n_rows),
            "whole": rng.integers(-3, 4, size=n_rows),
            "missing": np.where(rng.random(n_rows) < 0.3, np.nan, rng.normal(size=n_rows)),
            "two": pd.Categorical(rng.choice(["p", "q"], n_rows), categories=["p", "q"]),
            "many": pd.Categorical(rng.choice(list("abcdefghijklmnop"), n_rows)),
            "huge": rng.normal(size=n_rows) * 1e30,
            "constant": 1.0,
        }
    )
    if strange:  # what the rows learnt from did not hold
        frame.loc[::5, "number"] = np.nan
        frame["many"] = frame["many"].astype(object)
        frame.loc[::7, "many"] = "new"
        frame.loc[::11, "many"] = None
    return frame


def fitted(X, **settings):
    noise = np.random.default_rng(1).normal(size=len(X))
    y = X["number"].fillna(0) + X["missing"].fillna(1) + X["many"].isin(list("aceg")) + noise > 1
    problem = read_problem(X, y.to_numpy())
    engine = LightGBMEngine(problem.table)
    estimator = LGBMClassifier(n_estimators=20, min_data_per_group=10, **settings)
    return engine, engine.fit(Task(estimator, problem.target, np.arange(len(X), dtype=np.int32), 0))


@pytest.mark.parametrize(
    "settings", [{}, {"num_leaves": 200, "min_child_samples": 2}, {"max_bin": 511}, {"colsample_bytree": 0.5}]
)
def test_the_values_of_the_leaves_add_up_to_the_scores(settings):
    X, other = mixed(N, 0), mixed(500, 5, strange=True)
    engine, model = fitted(X, **settings)
    forest = model.forest
    for table in (None, read_problem(other, np.zeros(500)).table):
        leaves = engine.read_leaves(forest, table).read()
        scores = sum(tree.values[leaf] for tree, leaf in zip(forest.trees, leaves, strict=True))
        expected = model.score(np.arange(N, dtype=np.int32) if table is None else table)
        np.testing.assert_allclose(1 / (1 + np.exp(-scores)), expected[:, 1], rtol=1e-12)


def test_some_rows_in_any_order_are_read_in_blocks(monkeypatch):
    engine, model = fitted(mixed(N, 0))
    reader = engine.read_leaves(model.forest)
    whole = reader.read()
    monkeypatch.setattr("fado.engine._trees._BLOCK", 64)
    rows = np.random.default_rng(2).permutation(N)[:700].astype(np.int32)
    np.testing.assert_array_equal(reader.read(rows), whole[:, rows])
    assert whole.dtype.itemsize == 1


def test_sparse_rows():
    rng = np.random.default_rng(0)
    X = scipy.sparse.csr_array(rng.random((N, 30)) * (rng.random((N, 30)) < 0.1))
    y = np.asarray(X[:, [0]].todense()).ravel() + 0.2 * rng.normal(size=N) > 0.1
    problem = read_problem(X, y)
    engine = LightGBMEngine(problem.table)
    model = engine.fit(Task(LGBMClassifier(n_estimators=5), problem.target, np.arange(N, dtype=np.int32), 0))
    expected = model._booster.predict(X.toarray(), pred_leaf=True)
    np.testing.assert_array_equal(engine.read_leaves(model.forest).read().T, expected)
