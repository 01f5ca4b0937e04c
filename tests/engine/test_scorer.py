"""What is left of a model scores rows as the model does, bit for bit, also once it was written and read."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from fado.engine import LightGBMEngine, SklearnEngine, Task, detach, scorer_from
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


TABLES = {
    "numbers": NUMBERS,
    "single": NUMBERS.astype(np.float32),
    "frame": FRAME,
    "gaps": GAPPY,
    "arrow": pa.Table.from_pandas(GAPPY),
    "sparse": SPARSE,
}


def class_one(scores):
    return scores if scores.ndim == 1 else scores[:, 1]


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("about", [{}, {"by_content": True}, {"target": TARGET}], ids=str)
def test_a_booster_without_its_rows_scores_alike(X, about):
    model, table = fit(X, trees(), **about)
    scorer = detach(model)
    expected = model.score(table)
    assert len(np.unique(expected)) > 20
    for own in (scorer, pickle.loads(pickle.dumps(scorer)), through_json(scorer)):
        np.testing.assert_array_equal(own.score(table), expected)


def test_what_is_kept_is_small_and_has_no_rows():
    wide = np.repeat(NUMBERS, 50, axis=0)
    table = Table.from_input(wide)
    variable = replace(TARGET, labels=np.repeat(TARGET.labels, 50))
    model = LightGBMEngine(table).fit(Task(trees(), variable, np.arange(len(wide), dtype=np.int32), seed=0))
    scorer = detach(model)
    scorer.score(table)
    assert len(pickle.dumps(scorer)) < 30_000 < wide.nbytes


def test_columns_that_a_model_must_not_see_may_be_missing():
    model, _ = fit(FRAME, trees(), variable=replace(TARGET, excluded=frozenset({1, 4})))
    scorer = through_json(detach(model))
    fewer = Table.from_input(FRAME.drop(columns=["a_b", "town"]))
    np.testing.assert_array_equal(scorer.score(fewer), model.score(fewer))
    other = Table.from_input(FRAME.assign(town=1.0))  # another kind, in a column that is not looked at
    np.testing.assert_array_equal(scorer.score(other), model.score(fewer))


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
    "arctan": (make_pipeline(FunctionTransformer(np.arctan), LogisticRegression()), NUMBERS),
    "lightgbm, within": (make_pipeline(StandardScaler(), trees(verbosity=-1, n_jobs=1)), NUMBERS),
    "lightgbm, categories": (trees(), GAPPY),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("estimator", "X"), ESTIMATORS.values(), ids=ESTIMATORS)
def test_an_estimator_without_its_rows_scores_alike(estimator, X):
    model, table = fit(X, estimator, SklearnEngine)
    scorer = detach(model)
    expected = class_one(model.score(table))
    assert len(np.unique(expected)) > 2
    for own in (scorer, pickle.loads(pickle.dumps(scorer)), through_json(scorer)):
        np.testing.assert_array_equal(own.score(table), expected)


@pytest.mark.parametrize(
    ("library", "name", "settings"),
    [
        ("xgboost", "XGBClassifier", {"n_estimators": 3}),
        ("catboost", "CatBoostClassifier", {"iterations": 3}),
    ],
)
def test_other_boosters_are_read_again(library, name, settings):
    estimator = getattr(pytest.importorskip(library), name)(**settings)
    if library == "catboost":
        estimator.set_params(verbose=False, allow_writing_files=False)
    model, table = fit(NUMBERS, estimator, SklearnEngine)
    expected = class_one(model.score(table))
    np.testing.assert_array_equal(through_json(detach(model)).score(table), expected)


@pytest.mark.parametrize("engine", [LightGBMEngine, SklearnEngine])
def test_columns_are_found_by_name_and_unseen_levels_are_missing(engine):
    model, table = fit(FRAME, trees(), engine)
    scorer = through_json(detach(model))
    np.testing.assert_array_equal(
        scorer.score(Table.from_input(FRAME[FRAME.columns[::-1]])), class_one(model.score(table))
    )
    strange, missing = (Table.from_input(FRAME.assign(town=town)) for town in ("Rome", None))
    np.testing.assert_array_equal(scorer.score(strange), scorer.score(missing))
    with pytest.raises(ValueError, match="has no column 'town', which the model learnt from"):
        scorer.score(Table.from_input(FRAME.drop(columns="town")))
    with pytest.raises(ValueError, match="'town' holds numbers, but the model learnt from text"):
        scorer.score(Table.from_input(FRAME.assign(town=1.5)))


def test_a_dense_table_is_scored_by_a_booster_of_a_sparse_one():
    model, _ = fit(SPARSE, trees())
    scorer = detach(model)
    dense = Table.from_input(SPARSE.toarray())
    np.testing.assert_array_equal(scorer.score(dense), scorer.score(Table.from_input(SPARSE)))
    with pytest.raises(ValueError, match="must have the 6 columns"):
        scorer.score(Table.from_input(SPARSE[:, :4]))


@pytest.mark.parametrize("engine", [LightGBMEngine, SklearnEngine])
@pytest.mark.parametrize("label", [0, 1])
def test_rows_of_one_label_leave_a_scorer_that_is_certain(engine, label):
    one = replace(TARGET, labels=np.full(N, label, dtype=np.int32))
    model, table = fit(NUMBERS, trees(), engine, variable=one)
    scorer = through_json(detach(model))
    np.testing.assert_array_equal(scorer.score(table), np.full(N, float(label)))
    assert scorer.schema is None


def test_an_estimators_own_error_is_a_sentence():
    scorer = detach(fit(NUMBERS, LogisticRegression(), SklearnEngine)[0])
    with pytest.raises(ValueError, match="LogisticRegression cannot score these rows: Input X contains NaN"):
        scorer.score(Table.from_input(np.full((1, 4), np.nan)))


@pytest.mark.parametrize("engine", [LightGBMEngine, SklearnEngine])
def test_models_of_anything_but_two_classes_are_refused(engine):
    three = Variable("y", "classes", (np.arange(N) % 3).astype(np.int32), ("a", "b", "c"))
    with pytest.raises(ValueError, match="Only a model of two classes"):
        detach(fit(NUMBERS, trees(), engine, variable=three)[0])
    only = replace(three, labels=np.zeros(N, dtype=np.int32))
    with pytest.raises(ValueError, match="Only a model of two classes can be detached, and this one has 3"):
        detach(fit(NUMBERS, trees(), engine, variable=only)[0])


def test_the_same_estimator_gives_the_same_bytes():
    first, second = (detach(fit(FRAME, PIPELINE, SklearnEngine)[0]).parts() for _ in range(2))
    assert first == second


def shift(X):
    return X + 1


def test_an_estimator_with_code_of_the_users_own_is_not_saved():
    estimator = make_pipeline(FunctionTransformer(shift), LogisticRegression())
    scorer = detach(fit(NUMBERS, estimator, SklearnEngine)[0])
    with pytest.raises(ValueError, match=r"Pipeline cannot be saved: it holds .*shift"):
        scorer.parts()


class Strange(LogisticRegression):
    pass


def test_types_must_be_both_told_and_known():
    skops = pytest.importorskip("skops.io")
    plain, content = detach(fit(NUMBERS, trees(), SklearnEngine)[0]).parts()
    assert "lightgbm.basic.Booster" in plain["types"]
    fewer = [own for own in plain["types"] if own != "lightgbm.basic.Booster"]
    with pytest.raises(ValueError, match=r"holds lightgbm\.basic\.Booster, which is not to be trusted"):
        scorer_from(plain | {"types": fewer}, content)
    strange = skops.dumps(Strange())
    types = skops.get_untrusted_types(data=strange)
    with pytest.raises(ValueError, match=r"holds .*Strange, which is not to be trusted"):
        scorer_from(plain | {"types": types}, strange)
    function = skops.dumps(FunctionTransformer(np.savetxt))  # of a known library, and no class
    with pytest.raises(ValueError, match=r"holds numpy.*savetxt, which is not to be trusted"):
        scorer_from(plain | {"types": skops.get_untrusted_types(data=function)}, function)


def test_a_pickle_is_not_read():
    plain, _ = detach(fit(NUMBERS, LogisticRegression(), SklearnEngine)[0]).parts()
    with pytest.raises(ValueError, match="is of no estimator that skops wrote"):
        scorer_from(plain, pickle.dumps(LogisticRegression()))


def test_names_that_json_cannot_hold_are_refused_when_saved():
    X = FRAME.set_axis([("a", j) for j in range(FRAME.shape[1])], axis=1)
    numbers = make_pipeline(FunctionTransformer(), LogisticRegression())
    with pytest.raises(ValueError, match="names are neither text nor whole numbers"):
        detach(fit(X.iloc[:, :4], numbers, SklearnEngine)[0]).parts()


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "pickle"},
        {"layout": [0, 1, 2, 9]},
        {"layout": [0, 1]},
        {"layout": "0123"},
        {"seen": [True]},
        {"sparse": 1},
        {"schema": {"names": ["a"], "levels": [], "named": True}},
        {"schema": {"names": "abcd", "levels": [None] * 4, "named": True}},
        {"schema": {"names": list("abcd"), "levels": [[1], None, None, None], "named": True}},
    ],
    ids=str,
)
def test_parts_of_a_booster_that_do_not_fit_are_refused(changes):
    plain, content = detach(fit(NUMBERS, trees())[0]).parts()
    with pytest.raises(ValueError, match=r"not told as they should be|no model of kind|does not take"):
        scorer_from(plain | changes, content)


def test_text_that_is_no_booster_of_two_classes_is_refused():
    plain, content = detach(fit(NUMBERS, trees())[0]).parts()
    for text in (b"", b"tree\nobjective=regression\n\n", content.replace(b"tree", b"bush", 1)):
        with pytest.raises(ValueError, match="no LightGBM model of two classes"):
            scorer_from(plain, text)


@pytest.mark.parametrize(
    "changes",
    [{"form": "table"}, {"kept": [7]}, {"kept": None}, {"names": ["a"]}, {"types": None}, {"schema": {}}],
    ids=str,
)
def test_parts_of_an_estimator_that_do_not_fit_are_refused(changes):
    plain, content = detach(fit(NUMBERS, LogisticRegression(), SklearnEngine)[0]).parts()
    with pytest.raises(ValueError, match="not told as they should be"):
        scorer_from(plain | changes, content)


def test_a_scorer_that_says_the_same_of_every_row_says_0_or_1():
    with pytest.raises(ValueError, match="must be certain"):
        scorer_from({"kind": "constant", "probability": 2.0}, b"")
