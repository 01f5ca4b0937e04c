"""The generic engine gives what the estimators themselves would give."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as resampling
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fado.engine import SklearnEngine, Task
from fado.tabular import Table, Variable, column_from, variable_from

N = 200
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + RNG.normal(size=N) > 0).astype(int)
COLOUR = RNG.choice(["red", "green", "blue"], N)
OUT = np.arange(0, N, 4, dtype=np.int32)
IN = np.setdiff1d(np.arange(N), OUT).astype(np.int32)


def learn(labels, name="y", **about):
    found = variable_from(column_from(name, labels))
    return Variable(name, found.kind, found.labels, found.classes, **about)


def fit(estimator, features, labels=Y, target=None, **about):
    sees_target = target is not None
    engine = SklearnEngine(Table.from_input(features), learn(target) if sees_target else None)
    return engine.fit(Task(estimator, learn(labels, "z", sees_target=sees_target), IN, 0, OUT, **about))


def peer_scores(estimator, features, labels=Y, **fitting):
    take = (lambda rows: features.iloc[rows]) if hasattr(features, "iloc") else (lambda rows: features[rows])
    return estimator.fit(take(IN), labels[IN], **fitting).predict_proba(take(OUT))


def assert_near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_regressors_predict_numbers_and_see_the_target():
    number = X[:, 1] * 2 + RNG.normal(size=N)
    seen = np.column_stack([X, Y])
    expected = LinearRegression().fit(seen[IN], number[IN]).predict(seen[OUT])
    assert_near(fit(LinearRegression(), X, number, target=Y).scores, expected)


def pipeline():
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        (StandardScaler(), ["x"]),
        remainder="passthrough",
    )
    return make_pipeline(encode, LogisticRegression())


def test_pipelines_see_the_columns_of_the_user_and_the_target():
    frame = pd.DataFrame({"colour": COLOUR, "x": X[:, 0]}, index=RNG.permutation(N))
    z = np.where(RNG.random(N) < 0.5, Y, 1 - Y)
    model = fit(pipeline(), frame, z, target=Y)
    expected = peer_scores(pipeline(), frame.assign(y=Y), z)
    assert_near(model.scores, expected)
    other = Table.from_input(frame[["x", "colour"]].iloc[OUT])
    assert_near(model.score(other, Y[OUT]), expected)


def test_pipelines_may_use_columns_that_are_neither_numbers_nor_text():
    dates = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=N), "x": X[:, 0]})
    chosen = make_pipeline(make_column_transformer(("passthrough", ["x"])), LogisticRegression())
    assert_near(fit(chosen, dates).scores, peer_scores(chosen, dates))


THREE = RNG.integers(0, 3, N)
DUMMIES = pd.get_dummies(COLOUR).to_numpy(dtype=float)


@pytest.mark.parametrize(
    ("features", "target", "seen"),
    [
        (X, None, X),
        (pd.DataFrame({"colour": COLOUR, "x": X[:, 0]}), None, np.column_stack([DUMMIES, X[:, 0]])),
        (X, THREE, np.column_stack([X, *(code == THREE for code in range(3))])),
    ],
    ids=["numbers", "strings", "a target of three classes"],
)
def test_what_a_linear_model_sees(features, target, seen):
    z = np.where(RNG.random(N) < 0.3, THREE != 1, Y).astype(int)
    expected = peer_scores(LogisticRegression(), seen, z)
    assert_near(fit(LogisticRegression(), features, z, target=target).scores, expected)


def test_of_many_levels_the_most_frequent_of_the_first_table_have_indicators():
    levels = np.array([f"level {j:02}" for j in range(35)])
    codes = np.concatenate([np.repeat(np.arange(35), 5), RNG.integers(0, 32, N - 175)])
    model = fit(LogisticRegression(), pd.DataFrame({"code": levels[codes]}))
    seen = (codes[:, None] == np.arange(32)).astype(float)
    assert_near(model.scores, peer_scores(LogisticRegression(), seen))
    rare = Table.from_input(pd.DataFrame({"code": levels[[33, 33, 33, 2]]}))
    indicators = np.vstack([np.zeros((3, 32)), np.eye(32)[2]])
    assert_near(model.score(rare), LogisticRegression().fit(seen[IN], Y[IN]).predict_proba(indicators))


@pytest.mark.parametrize("form", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_matrix])
def test_sparse_matrices_equal_dense_ones(form):
    z = RNG.integers(0, 2, N)
    dense, sparse = (fit(LogisticRegression(), rows, z, target=Y) for rows in (X, form(X)))
    np.testing.assert_allclose(sparse.scores, dense.scores, atol=1e-6)
    assert_near(sparse.score(Table.from_input(form(X[OUT])), Y[OUT]), sparse.scores)
    with pytest.raises(ValueError, match="sparse"):
        sparse.score(Table.from_input(X), Y)


def test_sparse_matrices_work_with_lightgbm():
    model = fit(LGBMClassifier(n_estimators=10), scipy.sparse.csr_matrix(X))
    assert (model.scores.argmax(axis=1) == Y[OUT]).mean() > 0.6


def test_class_weights_of_lightgbm_are_honoured():
    estimator = LGBMClassifier(n_estimators=10, class_weight="balanced", random_state=0)
    assert_near(fit(estimator, X).scores, peer_scores(clone(estimator).set_params(verbosity=-1), X))


@pytest.mark.parametrize("last", [LogisticRegression(), make_pipeline(LogisticRegression())], ids=str)
def test_weights_reach_the_last_step(last):
    weights = RNG.random(len(IN))
    scaled = peer_scores(
        LogisticRegression(), StandardScaler().fit(X[IN]).transform(X), sample_weight=weights
    )
    assert_near(fit(make_pipeline(StandardScaler(), last), X, weights=weights).scores, scaled)
    plain = peer_scores(LogisticRegression(), X, sample_weight=weights)
    assert_near(fit(LogisticRegression(), X, weights=weights).scores, plain)


RESAMPLED = resampling(RandomOverSampler(random_state=0), LogisticRegression())


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (KNeighborsClassifier(), "`KNeighborsClassifier` takes no `sample_weight`: use an estimator"),
        (
            make_pipeline(StandardScaler(), KNeighborsClassifier()),
            "`KNeighborsClassifier` takes no `sample_w",
        ),
        (make_pipeline(StandardScaler(), RESAMPLED), "with `RandomOverSampler`, which changes the rows"),
    ],
    ids=["neighbours", "last step", "resamples rows"],
)
def test_estimators_that_take_no_weights_say_so(estimator, sentence):
    assert len(fit(estimator, X).scores) == len(OUT)
    with pytest.raises(ValueError, match=sentence):
        fit(estimator, X, weights=np.ones(len(IN)))


def test_unseeded_parts_are_seeded():
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    np.testing.assert_array_equal(fit(forest, X).scores, fit(forest, X).scores)
    assert forest[-1].random_state is None


class FailsOnSomeRows(DummyClassifier):
    """Predicts NaN for rows whose first feature is large."""

    def predict_proba(self, X):
        p = super().predict_proba(X)
        p[np.asarray(X)[:, 0] > 1] = np.nan
        return p


def test_scores_that_an_estimator_does_not_know_are_nan():
    lost = X[OUT, 0] > 1
    scores = fit(FailsOnSomeRows(), X).scores
    assert lost.any()
    assert np.isnan(scores[lost]).all()
    assert np.isfinite(scores[~lost]).all()


class Fails(LogisticRegression):
    def fit(self, X, y):
        raise FloatingPointError("it diverged")


def test_errors_are_raised_as_they_are():
    with pytest.raises(FloatingPointError, match=r"^it diverged$"):
        fit(Fails(), X)


WITH_GAPS = pd.DataFrame({"colour": COLOUR, "size": X[:, 0], "age": X[:, 1], "debt": X[:, 2]})
WITH_GAPS.loc[[1, 2], "debt"] = np.nan
WITH_GAPS.loc[5, "colour"] = None  # whose indicators are all 0


@pytest.mark.parametrize(
    ("estimator", "features", "sentence"),
    [
        (
            LogisticRegression(),
            WITH_GAPS,
            r"^LogisticRegression takes no missing values \(NaN\), and column 'debt' has some: use "
            r"HistGradientBoostingClassifier or LGBMClassifier, which take them, or put an imputer before it,"
            r" as in `make_pipeline\(SimpleImputer\(\), LogisticRegression\(\)\)`\.$",
        ),
        (
            make_pipeline(StandardScaler(), LogisticRegression()),
            WITH_GAPS[["size", "debt"]].assign(size=lambda rows: rows["size"].where(rows["size"] < 1)),
            "^LogisticRegression takes no .* columns 'size', 'debt' have some: .* add a SimpleImputer to the",
        ),
        (LogisticRegression(), WITH_GAPS[["age", "debt"]].to_numpy(), "column 'x1' has some"),
        (LogisticRegression(), scipy.sparse.csr_matrix(WITH_GAPS[["age", "debt"]]), "column 'x1' has some"),
    ],
    ids=["numbers", "frame", "array", "sparse"],
)
def test_missing_values_that_an_estimator_does_not_take_are_said_with_their_column(
    estimator, features, sentence
):
    with pytest.raises(ValueError, match=sentence):
        fit(estimator, features)


def test_so_are_those_of_rows_that_are_scored():
    engine = SklearnEngine(Table.from_input(WITH_GAPS))
    model = engine.fit(Task(LogisticRegression(), learn(Y), np.arange(10, N, dtype=np.int32), 0))
    for scorer in (model, model.detach()):
        with pytest.raises(ValueError, match=r"^LogisticRegression takes no missing .* column 'debt' has"):
            scorer.score(Table.from_input(WITH_GAPS))


def test_an_engine_from_another_process_knows_what_was_prepared():
    engine = SklearnEngine(Table.from_input(X))
    task = Task(LogisticRegression(), learn(Y), IN, 0, OUT)
    engine.prepare([task])
    sent = pickle.loads(pickle.dumps(engine))
    np.testing.assert_array_equal(sent.fit(task).scores, engine.fit(task).scores)
    other = Task(LogisticRegression(), learn(Y, excluded=frozenset({0})), IN, 0, OUT)
    with pytest.raises(ValueError, match="without what LogisticRegression takes: call `prepare`"):
        sent.fit(other)
