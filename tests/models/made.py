"""Models for the tests of this folder, made by hand."""

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from fado.engine import Task, engine_class
from fado.metrics import Budget, measure
from fado.models import ChosenModel, Facts, GroupRates
from fado.tabular import Table, Variable, column_from, group_rows, variable_from

N = 600
RNG = np.random.default_rng(0)
X = pd.DataFrame({"debts": RNG.normal(size=N), "town": RNG.choice(["Ulm", "Bonn"], N)})
X["home"] = pd.Categorical(RNG.choice(["own", "rent"], N))
X["flag"] = RNG.random(N) < 0.4
X.loc[::9, "debts"] = np.nan
X.loc[::11, "town"] = None
SEX = pd.Series(RNG.choice(["f", "m"], N), name="sex")
LATE = (X["debts"].fillna(0) + X["flag"] + 0.5 * (SEX == "f") + RNG.normal(size=N) > 1).to_numpy()
ROWS = np.arange(N, dtype=np.int32)


def fitted(features=X, estimator=None, late=LATE):
    """A fitted model of the engine that serves the estimator, and its table."""
    table = Table.from_input(features)
    estimator = LGBMClassifier(n_estimators=15, num_leaves=7) if estimator is None else estimator
    target = Variable("y", "classes", late.astype(np.int32), ("no", "yes"))
    engine = engine_class(estimator, table)(table)
    return engine.fit(Task(estimator, target, ROWS, seed=0)), table


def facts_of(**changes):
    """What the card tells, of made-up figures unless they are given."""
    groups = group_rows([variable_from(column_from("sex", SEX))])
    told = {
        "target": "late",
        "protected": ["sex"],
        "ratio": "fpr_ratio",
        "at_least": 0.8,
        "budget": Budget("fpr", 0.1),
        "reached": True,
        "estimator": "LGBMClassifier",
        "parameters": {"n_estimators": 15, "num_leaves": 7},
        "intervention": "aimed",
        "settings": {"strength": 0.25},
        "fits": 12,
        "models": 7,
        "chosen": "The highest true-positive rate of those above the line.",
        "groups": GroupRates.of("training", LATE, groups),
        "measured": {"validation": {"tpr": 0.5, "tpr_low": 0.4, "tpr_high": 0.6, "fpr_ratio": float("nan")}},
        "seed": 3,
    }
    return Facts(**(told | changes))


def chosen(model=None, *, classes=("no", "yes"), weights=True, **changes):
    """A model at the threshold that keeps a false-positive rate of 10 %."""
    model = fitted()[0] if model is None else model
    scorer = model.detach()
    scores = model.scores if model.scores.ndim == 1 else model.scores[:, 1]
    groups = group_rows([variable_from(column_from("sex", SEX))])
    metrics, _ = measure(LATE, scores, groups.codes, groups.names, max_fpr=0.1)
    return ChosenModel(
        scorer,
        classes=classes,
        threshold=metrics["threshold"],
        metrics=metrics,
        facts=facts_of(**changes),
        sample_weight=np.linspace(0.5, 1.5, N) if weights else None,
    )


def remade(model, **changes):
    """The model with other settings, facts or columns."""
    settings = {"classes": model.labels, "threshold": model.threshold_, "metrics": model.metrics_}
    return ChosenModel(model.scorer, **settings | {"facts": model.facts_} | changes)


class Stub:
    """Scores that a test writes down: those of the first column."""

    kind = "stub"
    schema = None
    n_classes = 2
    sees_target = False

    def score(self, table, target=None):
        scores = table.column(0).numbers()
        return np.column_stack([1 - scores, scores])


def stub(threshold=0.5, classes=(0, 1), **changes):
    return ChosenModel(Stub(), classes=classes, threshold=threshold, metrics={}, facts=facts_of(**changes))


# Two groups of 200 negatives each; 20 of "a" and `other` of "b" score above the threshold.
def rows_with(other, n=200):
    scores = np.r_[np.arange(n) < 20, np.arange(n) < other, np.arange(2 * n) % 4 > 0].astype(float)
    groups = np.r_[np.repeat(["a", "b"], n), np.tile(["a", "b"], n)]
    return scores[:, None], np.repeat([0, 1], [2 * n, 2 * n]), groups
