"""The proof: effects equal finite differences of leaf values that are computed anew, in double precision."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier

from fado.engine import LightGBMEngine, Task
from fado.tabular import read_problem
from fado.valuation.influence._effects import (
    GrownTree,
    TrainingRows,
    backward_effects,
    direct_effects,
    initial_score,
)

N, M = 600, 200
STEP = 1e-4


def table(n_rows, rng):
    return pd.DataFrame(
        {
            "number": rng.normal(size=n_rows),
            "missing": np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows)),
            "few": pd.Categorical(rng.choice(list("abc"), size=n_rows), categories=list("abc")),
            "many": pd.Categorical(rng.choice(list("abcdefghijkl"), size=n_rows)),
            "whole": rng.integers(0, 5, size=n_rows),
        }
    )


class Recomputed:
    """The model's trees, with leaf values that follow from any weights in double precision."""

    def __init__(self, weighted, **settings):
        rng = np.random.default_rng(0)
        X, validated = table(N, rng), table(M, rng)
        logits = X["number"] + 0.5 * X["missing"].fillna(1) + (X["few"] == "a") + X["many"].isin(list("abc"))
        self.y = (logits + rng.normal(size=N) > 1).to_numpy()
        self.weights = rng.uniform(0.5, 2, size=N).astype(np.float32).astype(float) if weighted else None
        estimator = LGBMClassifier(
            n_estimators=6,
            num_leaves=6,
            learning_rate=0.3,
            min_child_samples=10,
            min_data_per_group=5,
            **settings,
        )
        problem = read_problem(X, self.y)
        engine = LightGBMEngine(problem.table)
        other = read_problem(validated, np.zeros(M, int)).table
        rows = np.arange(N, dtype=np.int32)
        model = engine.fit(Task(estimator, problem.target, rows, 0, other, self.weights))
        self.scores = model.scores[:, 1]
        forest = model.forest
        self.leaves = engine.read_leaves(forest).read()
        self.validated = engine.read_leaves(forest, other).read()
        self.penalties = [forest.leaf_penalties(tree) for tree in forest.trees]
        self.kinds = {
            (bool(tree.decision[node] & 1), bool(penalty))
            for tree in forest.trees
            for node, penalty in zip(tree.parents(), forest.leaf_penalties(tree), strict=True)
        }
        self.from_average = settings.get("boost_from_average", True)
        self.l1 = settings.get("reg_alpha", 0.0)
        own = np.ones(N) if self.weights is None else self.weights
        self.initial = initial_score(self.y, self.weights) if self.from_average else 0.0
        self.rows = TrainingRows(self.y, self.weights, self.initial, self.from_average, 0.3, self.l1)
        self.values, self.before = self.grow(own)
        self.model_values = [
            tree.values - (self.initial if t == 0 else 0.0) for t, tree in enumerate(forest.trees)
        ]
        self.trees = [
            GrownTree(value, penalty, self.leaves[t], self.validated[t])
            for t, (value, penalty) in enumerate(zip(self.values, self.penalties, strict=True))
        ]

    def grow(self, weights, before=None):
        """Leaf values under other weights; with `before`, from those scores before each tree."""
        start = initial_score(self.y, weights) if self.from_average else 0.0
        scores, values, seen = np.full(N, start), [], []
        for t, leaves in enumerate(self.leaves):
            at = scores if before is None else before[t]
            seen.append(at.copy())
            p = 1 / (1 + np.exp(-at))
            n_leaves = len(self.penalties[t])
            gradients = np.bincount(leaves, weights * (p - self.y), n_leaves)
            hessians = np.bincount(leaves, weights * p * (1 - p), n_leaves)
            shrunk = np.sign(gradients) * np.maximum(np.abs(gradients) - self.l1, 0)
            values.append(-0.3 * shrunk / (hessians + self.penalties[t]))
            scores = at + values[-1][leaves]
        self.start = start
        return values, seen

    def validated_scores(self, values, start):
        return start + sum(value[leaves] for value, leaves in zip(values, self.validated, strict=True))

    def difference(self, row, *, fixed):
        """How all validation rows' scores change per unit of a row's weight."""
        sides = []
        for sign in (1, -1):
            weights = np.ones(N) if self.weights is None else self.weights.copy()
            weights[row] += sign * STEP
            values, _ = self.grow(weights, self.before if fixed else None)
            sides.append(self.validated_scores(values, self.initial if fixed else self.start))
        return (sides[0] - sides[1]) / (2 * STEP)


SETTINGS = {
    "plain": {},
    "L2": {"reg_lambda": 3.0},
    "L1": {"reg_alpha": 1.5},
    "categories": {"cat_l2": 4.0, "cat_smooth": 1.0, "max_cat_to_onehot": 4},
    "no average": {"boost_from_average": False},
}


@pytest.fixture(
    scope="module", params=[(name, weighted) for name in SETTINGS for weighted in (False, True)], ids=str
)
def model(request):
    name, weighted = request.param
    return Recomputed(weighted, **SETTINGS[name])


def test_the_trees_are_read_right(model):
    for mine, theirs in zip(model.values, model.model_values, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=2e-6)
    scores = 1 / (1 + np.exp(-model.validated_scores(model.values, model.initial)))
    np.testing.assert_allclose(scores, model.scores, atol=2e-6)
    assert any(categorical for categorical, _ in model.kinds)


def test_categories_against_categories_have_a_penalty_of_their_own():
    kinds = Recomputed(False, **SETTINGS["categories"]).kinds
    assert {(True, True), (False, False)} <= kinds


@pytest.mark.parametrize("form", ["direct", "backward"])
def test_effects_are_finite_differences(model, form):
    slopes = np.random.default_rng(1).normal(size=(M, 3))
    told = {"direct": direct_effects, "backward": backward_effects}[form](model.trees, model.rows, slopes)
    effects = told.of_rows
    assert effects.shape == (N, 3)
    for row in range(0, N, 37):
        expected = model.difference(row, fixed=form == "direct") @ slopes
        np.testing.assert_allclose(effects[row], expected, rtol=1e-6, atol=1e-6)


def test_leaves_that_the_rows_do_not_explain_are_refused(model):
    wrong = [
        GrownTree(1.5 * tree.values, tree.penalties, tree.training, tree.validation) for tree in model.trees
    ]
    with pytest.raises(ValueError, match="do not follow from the rows"):
        direct_effects(wrong, model.rows, np.ones((M, 1)))
