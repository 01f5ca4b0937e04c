"""What is left of a model scores rows as the model does, bit for bit, also once it was written and read."""

import json
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from fado.engine import LightGBMEngine, SklearnEngine, Task, scorer_from
from fado.engine._skops import write_estimator
from fado.tabular import Table, Variable

N = 400
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(N, 4))
FRAME = pd.DataFrame(NUMBERS, columns=["a b", "a_b", "ä", "1"])
FRAME["town"] = RNG.choice(["Ulm", "Bonn", "Köln"], N)
FRAME["home"] = pd.Categorical(RNG.choice(["own", "rent"], N))
FRAME["flag"] = RNG.random(N) < 0.4
Y = (NUMBERS[:, 0] + (FRAME["town"] == "Ulm") + FRAME["flag"] + RNG.normal(size=N) > 1).to_numpy()
GAPPY = FRAME.copy()
GAPPY.loc[::5, "a b"] = np.nan
GAPPY.loc[::7, "town"] = None
GAPPY.loc[::9, "home"] = np.nan
ROWS = np.arange(0, N, 2, dtype=np.int32)
TARGET = Variable("y", "classes", Y.astype(np.int32), ("no", "yes"))
SPARSE = scipy.sparse.csr_matrix(np.where(RNG.random((N, 6)) < 0.7, 0.0, RNG.normal(size=(N, 6))))


def trees(**settings):
    return LGBMClassifier(n_estimators=10, num_leaves=7, min_child_samples=5, **settings)


def fit(X, estimator, engine=LightGBMEngine, variable=TARGET, **about):
    table = Table.from_input(X)
    return engine(table, **about).fit(Task(estimator, variable, ROWS, seed=0)), table


def through_json(scorer):
    plain, content = scorer.parts()
    return scorer_from(json.loads(json.dumps(plain)), content)


def assert_scores_alike(model, table, labels=None):
    """What is left of a model, pickled or in parts, scores as the model does; give its scores."""
    scorer, expected = model.detach(), model.score(table, labels)
    for copy in (scorer, pickle.loads(pickle.dumps(scorer)), through_json(scorer)):
        np.testing.assert_array_equal(copy.score(table, labels), expected)
    return expected


TABLES = {
    "numbers": NUMBERS,
    "single": NUMBERS.astype(np.float32),
    "frame": FRAME,
    "gaps": GAPPY,
    "arrow": pa.Table.from_pandas(GAPPY),
    "sparse": SPARSE,
}


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("about", [{}, {"by_content": True}, {"target": TARGET}], ids=str)
def test_a_booster_without_its_rows_scores_alike(X, about):
    assert len(np.unique(assert_scores_alike(*fit(X, trees(), **about)))) > 20


def test_what_is_kept_is_small_and_has_no_rows():
    wide = np.repeat(NUMBERS, 50, axis=0)
    table = Table.from_input(wide)
    variable = replace(TARGET, labels=np.repeat(TARGET.labels, 50))
    model = LightGBMEngine(table).fit(Task(trees(), variable, np.arange(len(wide), dtype=np.int32), seed=0))
    scorer = model.detach()
    scorer.score(table)
    assert len(pickle.dumps(scorer)) < 30_000 < wide.nbytes


PIPELINE = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["town", "home"]), (StandardScaler(), ["a b", "ä"])
    ),
    LogisticRegression(),
)
ESTIMATORS = {
    "logistic": (LogisticRegression(), NUMBERS),
    "logistic, text": (LogisticRegression(), FRAME),
    "logistic, sparse": (LogisticRegression(), SPARSE),
    "pipeline": (PIPELINE, FRAME),
    "pipeline, arrow": (PIPELINE, pa.Table.from_pandas(FRAME)),
    "forest": (RandomForestClassifier(n_estimators=4, random_state=0), NUMBERS),
    "histograms": (HistGradientBoostingClassifier(max_iter=4), GAPPY),
    "network": (make_pipeline(StandardScaler(), MLPClassifier((3,), max_iter=3, tol=10.0)), NUMBERS),
    "identity": (make_pipeline(FunctionTransformer(), LogisticRegression()), NUMBERS),
    "lightgbm, within": (make_pipeline(StandardScaler(), trees(verbosity=-1, n_jobs=1)), NUMBERS),
    "lightgbm, categories": (trees(), GAPPY),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("estimator", "X"), ESTIMATORS.values(), ids=ESTIMATORS)
def test_an_estimator_without_its_rows_scores_alike(estimator, X):
    assert len(np.unique(assert_scores_alike(*fit(X, estimator, SklearnEngine)))) > 2


@pytest.mark.parametrize(
    ("library", "name", "settings"),
    [
        ("xgboost", "XGBClassifier", {"n_estimators": 3}),
        ("catboost", "CatBoostClassifier", {"iterations": 3, "verbose": False, "allow_writing_files": False}),
    ],
)
def test_other_boosters_score_alike(library, name, settings):
    estimator = getattr(pytest.importorskip(library), name)(**settings)
    assert_scores_alike(*fit(NUMBERS, estimator, SklearnEngine))


def test_a_dense_table_is_scored_by_a_booster_of_a_sparse_one():
    model, _ = fit(SPARSE, trees())
    scorer = model.detach()
    dense = Table.from_input(SPARSE.toarray())
    np.testing.assert_array_equal(scorer.score(dense), scorer.score(Table.from_input(SPARSE)))
    with pytest.raises(ValueError, match=", and the model learnt from 6"):
        scorer.score(Table.from_input(SPARSE[:, :4]))


def test_an_estimators_own_error_is_a_sentence():
    scorer = fit(NUMBERS, LogisticRegression(), SklearnEngine)[0].detach()
    with pytest.raises(ValueError, match="LogisticRegression cannot score these rows: Input X contains inf"):
        scorer.score(Table.from_input(np.full((1, 4), np.inf)))


CODES = ((NUMBERS[:, 0] > 0.5).astype(np.int32) + FRAME["flag"]).to_numpy(dtype=np.int32)
THREE = Variable("three", "classes", CODES, ("a", "b", "c"))
AMOUNT = Variable("amount", "continuous", NUMBERS[:, 1] + NUMBERS[:, 0])
VARIABLES = {
    "two, seeing the target": replace(TARGET, name="z", labels=THREE.labels % 2, sees_target=True),
    "three": THREE,
    "three, seeing the target": replace(THREE, sees_target=True, excluded=frozenset({0})),
    "numbers": AMOUNT,
    "numbers, seeing the target": replace(AMOUNT, sees_target=True),
}
TARGETS = {"two": TARGET, "three": replace(THREE, name="y"), "numbers": replace(AMOUNT, name="y")}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("variable", VARIABLES.values(), ids=VARIABLES)
def test_models_of_any_variable_score_alike(target, variable):
    continuous = variable.kind == "continuous"
    boosted = (LGBMRegressor if continuous else LGBMClassifier)(n_estimators=5, min_child_samples=5)
    linear = LinearRegression() if continuous else LogisticRegression()
    labels = target.labels if variable.sees_target else None
    by_content = partial(LightGBMEngine, by_content=True)
    for X, estimator, engine in (
        *((X, boosted, by_content) for X in (NUMBERS, FRAME, SPARSE)),
        (FRAME, boosted, SklearnEngine),
        (NUMBERS, linear, SklearnEngine),
        (NUMBERS, make_pipeline(StandardScaler(), linear), SklearnEngine),
        (SPARSE, linear, SklearnEngine),
    ):
        model, table = fit(X, estimator, engine, variable=variable, target=target)
        expected = assert_scores_alike(model, table, labels)
        assert expected.shape == (N, len(variable.classes))[: 1 + bool(variable.classes)]
        assert model.detach().n_classes == len(variable.classes)
        assert model.detach().sees_target is variable.sees_target


def test_a_booster_must_be_what_it_is_said_to_be():
    parts = {
        "two classes": fit(NUMBERS, trees())[0].detach().parts(),
        "3 classes": fit(NUMBERS, trees(), variable=THREE)[0].detach().parts(),
        "numbers": fit(NUMBERS, LGBMRegressor(n_estimators=3), variable=AMOUNT)[0].detach().parts(),
    }
    for name, (plain, _) in parts.items():
        for other, (_, content) in parts.items():
            if other != name:
                with pytest.raises(ValueError, match=f"not a LightGBM model of {name}"):
                    scorer_from(plain, content)
    plain, content = parts["two classes"]
    for text in (b"", b"tree\nobjective=regression\n\n", content.replace(b"tree", b"bush", 1)):
        with pytest.raises(ValueError, match="not a LightGBM model"):
            scorer_from(plain, text)


def booster(variable=TARGET):
    return fit(NUMBERS, trees(), variable=variable)[0].detach().parts()


def estimator():
    return fit(NUMBERS, LogisticRegression(), SklearnEngine)[0].detach().parts()


def constant():
    return {"kind": "constant", "code": 0, "n_classes": 2}, b""


NAMES = list("abcd")
BROKEN = {
    partial(booster, THREE): [
        *({"n_classes": number} for number in (1, 0, "3")),
        *({"present": codes} for codes in ([0, 0, 1], [2], [])),
        {"sees_target": 1},
        {"sees_target": True},  # and there is no place for it
    ],
    booster: [
        {"kind": "pickle"},
        *({"layout": layout} for layout in ([0, 1, 2, 9], [0, 1], "0123")),
        {"seen": [True]},
        {"sparse": 1},
        {"schema": {"names": ["a"], "levels": [], "named": True}},
        {"schema": {"names": "abcd", "levels": [None] * 4, "named": True}},
        {"schema": {"names": NAMES, "levels": [[1], None, None, None], "named": True}},
    ],
    estimator: [
        {"form": "table"},
        *({"kept": columns} for columns in ([7], None)),
        {"names": ["a"]},
        {"estimator": None},
        {"schema": {}},
        {"n_classes": -1},
        *({"target": target} for target in ([], {"name": "y", "classes": 2})),
    ],
    constant: [{"code": 3}, {"code": 0.5}, {"code": "a"}, {"n_classes": None}],
}


@pytest.mark.parametrize("made", BROKEN, ids=["three classes", "booster", "estimator", "constant"])
def test_parts_that_do_not_fit_are_refused(made):
    plain, content = made()
    sentence = (
        r"is broken|is missing|no model of kind|does not take|must be a mapping|"
        r"must predict one|of a constant model is"
    )
    for changes in BROKEN[made]:
        with pytest.raises(ValueError, match=sentence):
            scorer_from(plain | changes, content)


def test_the_same_estimator_gives_the_same_bytes():
    first, second = (fit(FRAME, PIPELINE, SklearnEngine)[0].detach().parts() for _ in range(2))
    assert first == second


def shift(X):
    return X + 1


def test_an_estimator_with_code_of_the_users_own_is_not_saved():
    estimator = make_pipeline(FunctionTransformer(shift), LogisticRegression())
    scorer = fit(NUMBERS, estimator, SklearnEngine)[0].detach()
    with pytest.raises(ValueError, match=r"Pipeline cannot be saved: it holds .*shift"):
        scorer.parts()


@pytest.mark.parametrize("estimator", [StandardScaler(), RidgeClassifier(), LinearRegression()], ids=str)
def test_an_estimator_must_predict_what_it_is_said_to_predict(estimator):
    plain, _ = fit(NUMBERS, LogisticRegression(), SklearnEngine)[0].detach().parts()
    content, name = write_estimator(estimator.fit(NUMBERS, Y.astype(int)))
    match = f"{type(estimator).__name__}, which gives no probabilities for 2 classes"
    with pytest.raises(ValueError, match=match):
        scorer_from(plain | {"estimator": name}, content)
    with pytest.raises(ValueError, match=r"and '\S*LogisticRegression' was said to be there"):
        scorer_from(plain, content)


def test_an_estimator_must_predict_codes():
    plain, _ = fit(NUMBERS, LogisticRegression(), SklearnEngine)[0].detach().parts()
    for labels in (Y.astype(int) + 1, np.where(Y, "yes", "no")):
        content, _ = write_estimator(LogisticRegression().fit(NUMBERS, labels))
        with pytest.raises(ValueError, match="LogisticRegression, which gives no probabilities for 2 cl"):
            scorer_from(plain, content)


def test_names_that_json_cannot_hold_are_refused_when_saved():
    X = FRAME.set_axis([("a", j) for j in range(FRAME.shape[1])], axis=1)
    numbers = make_pipeline(FunctionTransformer(), LogisticRegression())
    with pytest.raises(ValueError, match="names are neither text nor whole numbers"):
        fit(X.iloc[:, :4], numbers, SklearnEngine)[0].detach().parts()
