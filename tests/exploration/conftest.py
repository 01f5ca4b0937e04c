from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier

from fado import OutOfBagEntropy, Valuation, explore


class Case(NamedTuple):
    """A table with its values, to be explored without retraining."""

    X: Any
    y: Any
    z: Any
    valuation: Any = None

    def seen(self, **settings):
        given = {"sensitive_features": self.z, "valuation": self.valuation, "retrain": 0}
        return explore(self.X, self.y, **given | settings)

    def part(self, attribute=0, **settings):
        return self.seen(**settings).to_dict()["attributes"][attribute]


def made_up(n_rows, names, seed=0):
    """Values with many ties, standard errors and agreement, that no model made."""
    rng = np.random.default_rng(seed)
    variables = ["y", *names]

    def draw(scale=1.0):
        return {name: np.round(scale * rng.random(n_rows), 2) for name in variables}

    counts = {name: np.full(n_rows, 2) for name in variables}
    return Valuation(draw(), draw(0.1), counts, draw())


@pytest.fixture(scope="session")
def small():
    """600 rows with two attributes, one of them with a small group, and made-up values."""
    rng = np.random.default_rng(1)
    n_rows = 600
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows),
            "job": rng.choice(["clerk", "nurse", "driver", None], n_rows),
            "kids": rng.integers(0, 4, n_rows),
        }
    )
    sex = pd.Series(rng.choice(["f", "m"], n_rows, p=[0.3, 0.7]), name="sex")
    origin = pd.Series(rng.choice(["a", "b", "c"], n_rows, p=[0.6, 0.39, 0.01]), name="origin")
    origin.iloc[:5] = "c"
    y = pd.Series(np.where(rng.random(n_rows) < np.where(sex == "f", 0.2, 0.45), "yes", "no"), name="loan")
    protected = {"sex": sex, "origin": origin}
    return Case(X, y, protected, made_up(n_rows, protected))


@pytest.fixture(scope="session")
def planted():
    """A proxy, a slice of one group with flipped labels, and a prevalence gap, all known."""
    rng = np.random.default_rng(0)
    n_rows = 4000
    sex = rng.choice(["f", "m"], n_rows)
    proxy = np.where(rng.random(n_rows) < 0.7, sex == "f", rng.random(n_rows) < 0.5)
    X = pd.DataFrame(
        {
            "score": rng.normal(size=n_rows),
            "club": np.where(proxy, "choir", "rowing"),
            "region": rng.choice(["north", "south", "east", "west"], n_rows),
            "noise": rng.normal(size=n_rows),
            "sex": sex,
        }
    )
    y = X["score"].to_numpy() + np.where(sex == "f", -0.7, 0.0) + 0.3 * rng.normal(size=n_rows) > 0
    flipped = (X["region"] == "north").to_numpy() & (sex == "f") & (rng.random(n_rows) < 0.4)
    y = np.where(flipped, ~y, y)
    models = LGBMClassifier(n_estimators=35, learning_rate=0.25, reg_lambda=2.0, colsample_bytree=0.65)
    valuator = OutOfBagEntropy(models, n_bags=5, random_state=0).fit(X, y, sensitive_features="sex")
    return Case(X, y, "sex", valuator.valuation_)


@pytest.fixture(scope="session")
def seen_small(small):
    return small.seen()


@pytest.fixture(scope="session")
def seen_planted(planted):
    return planted.seen()
