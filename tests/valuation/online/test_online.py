"""A stream that is valued batch by batch: what it learns is what is learnt offline, and what it refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

from fado import OnlineEntropy, OutOfBagEntropy
from fado.tabular import column_from, read_problem
from fado.valuation.online._online import has_new_label, what_is_lacking

NAMES = ["values", "standard_error", "counts", "label_probability", "epistemic"]


def make_rows(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    X["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], n_rows))
    y = np.where(X["a"] + rng.normal(size=n_rows) > 0, "yes", "no")
    z = np.where(X["b"] + rng.normal(size=n_rows) > 0.5, "old", "young")
    return X, y, z


def make_online(**settings):
    return OnlineEntropy(**({"n_bags": 5, "random_state": 0} | settings))


def learn(online, rows, **settings):
    X, y, z = rows
    return online.learn(X, y, sensitive_features={"age": z}, **settings)


def same(one, other):
    return one.variables == other.variables and all(
        np.array_equal(one.field(field, name), other.field(field, name), equal_nan=True)
        for field in NAMES
        for name in one.variables
    )


def offline_models(X, y, z, **settings):
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, keep_models=True)
    return valuator.fit(X, y, sensitive_features={"age": z}, **settings)


def part(rows, start, stop):
    X, y, z = rows
    return X.iloc[start:stop], y[start:stop], z[start:stop]


def test_nothing_is_known_before_the_first_batch():
    X, y, z = make_rows(7)
    X.index = list("abcdefg")
    online = make_online()
    valuation = online.value(X)
    assert valuation.variables == ["y"]
    assert online.value(X, y, {"age": z}).variables == ["y", "age"]
    assert np.isnan(valuation["y"]).all()
    assert (valuation.counts["y"] == 0).all()
    assert list(valuation.values.index) == list("abcdefg")
    assert valuation.metadata["model_version"] == 0
    assert online.models_ is None
    assert online.waits_for_ == "a first batch"
    assert online.drift_.empty


def test_one_batch_is_what_is_learnt_offline():
    rows, (X_new, y_new, z_new) = make_rows(300), make_rows(50, seed=1)
    online, offline = learn(make_online(), rows), offline_models(*rows)
    assert same(online.value(X_new), offline.value(X_new))
    labels = y_new, {"age": z_new}
    assert same(online.value(X_new, *labels), offline.value(X_new, *labels))


def test_batches_are_what_is_learnt_offline_from_all_rows_and_workers_change_nothing():
    rows, (X_new, *_) = make_rows(400), make_rows(50, seed=1)
    online, alone = make_online(refresh=0.0), make_online(refresh=0.0, n_jobs=1)
    for start, stop in ((0, 150), (150, 151), (151, 400)):
        learn(online, part(rows, start, stop))
        learn(alone, part(rows, start, stop))
    assert same(online.value(X_new), offline_models(*rows).value(X_new))
    assert same(online.value(X_new), alone.value(X_new))


def test_weights_go_with_their_rows():
    rows, (X_new, *_) = make_rows(300), make_rows(50, seed=1)
    weights = np.random.default_rng(2).uniform(0.5, 5.0, 300)
    online = learn(make_online(refresh=0.0), part(rows, 0, 200), sample_weight=weights[:200])
    learn(online, part(rows, 200, 300), sample_weight=weights[200:])
    assert same(online.value(X_new), offline_models(*rows, sample_weight=weights).value(X_new))
    assert same(online.value(X_new), offline_models(*rows, sample_weight=weights / 2**40).value(X_new))


def test_the_window_holds_the_last_rows():
    rows, (X_new, *_) = make_rows(300), make_rows(50, seed=1)
    online = make_online(window=220, refresh=0.0)
    for start in range(0, 300, 100):
        learn(online, part(rows, start, start + 100))
        assert online.n_rows_ <= 220
    assert same(online.value(X_new), offline_models(*part(rows, 80, 300)).value(X_new))
    assert online.value(X_new).metadata["rows_seen"] == 300
    assert online.value(X_new).metadata["rows_learnt"] == 220


def test_models_are_built_when_enough_is_new():
    rows = make_rows(210)
    online = make_online(refresh=0.5)
    versions = []
    for stop in range(30, 211, 30):
        learn(online, part(rows, stop - 30, stop))
        versions.append(online.value(rows[0][:1]).metadata["model_version"])
    assert versions == [1, 2, 3, 3, 4, 4, 4]  # after 30, 60, 90 and 150 rows


@pytest.mark.parametrize(
    "kind",
    [pl.from_pandas, pa.Table.from_pandas, lambda X: pl.from_pandas(X).lazy()],
    ids=["pl", "pa", "lazy"],
)
def test_batches_may_be_tables_of_any_kind_with_columns_in_any_order(kind):
    rows, (X_new, *_) = make_rows(300), make_rows(50, seed=1)
    plain, mixed = make_online(refresh=0.0), make_online(refresh=0.0)
    for start in (0, 150):
        X, y, z = part(rows, start, start + 150)
        learn(plain, (X, y, z))
        learn(mixed, (kind(X[["colour", "c", "b", "a"]].assign(more=1)) if start else X, y, z))
    assert same(plain.value(X_new), mixed.value(kind(X_new[["c", "colour", "a", "b"]])))


def test_columns_without_names_are_found_by_position_and_sparse_matrices_made_dense():
    X, y, z = make_rows(300)
    numbers = X[["a", "b", "c"]].round().to_numpy()
    plain, mixed = make_online(refresh=0.0), make_online(refresh=0.0)
    for start in (0, 150):
        some = slice(start, start + 150)
        learn(plain, (numbers[some], y[some], z[some]))
        learn(mixed, ((scipy.sparse.csr_array if start else list)(numbers[some]), y[some], z[some]))
    assert same(plain.value(numbers), mixed.value(scipy.sparse.csc_matrix(numbers)))


def test_attributes_are_found_by_name():
    X, y, z = make_rows(330)
    sex = np.random.default_rng(5).choice(["f", "m"], 330)
    online = make_online(refresh=1.0).learn(
        X[:200], y[:200], sensitive_features={"age": z[:200], "sex": sex[:200]}
    )
    swapped = {"sex": sex[200:], "age": z[200:]}
    online.learn(X[200:], y[200:], sensitive_features=swapped)
    assert online.models_.n_rows == 200  # no label is new
    assert online.drift_["variable"].tolist() == ["y", "age", "sex"]


def test_what_the_user_does_to_a_batch_later_changes_nothing():
    rows = make_rows(300)
    numbers, (X_new, *_) = rows[0][["a", "b", "c"]].to_numpy(), make_rows(300)
    kept, changed = make_online(refresh=0.0), make_online(refresh=0.0)
    for online in (kept, changed):
        own, labels = numbers[:150].copy(), rows[1][:150].copy()
        learn(online, (own, labels, rows[2][:150]))
        if online is changed:
            own[:] = 0.0
            labels[:] = "no"
        learn(online, (numbers[150:], rows[1][150:], rows[2][150:]))
    X_new = X_new[["a", "b", "c"]].to_numpy()
    assert same(kept.value(X_new), changed.value(X_new))


def test_new_categories_and_labels_may_come_later():
    X, y, z = make_rows(600)
    online = learn(make_online(refresh=1.0), part((X, y, z), 0, 400))
    assert online.models_.classes("y") == ("no", "yes")
    later = X[400:].assign(colour="violet"), np.where(X["a"][400:] > 0, "maybe", "no"), z[400:]
    learn(online, later)
    assert online.models_.classes("y") == ("maybe", "no", "yes")  # at once, though few rows are new
    assert online.models_.n_rows == 600
    assert online.value(later[0])["y"].max() <= 1.0


@pytest.mark.parametrize("named", [True, False])
def test_a_column_without_entries_may_become_text(named, tmp_path):
    (X, y, z), (X_new, y_new, z_new) = make_rows(200), make_rows(60, seed=1)
    X, X_new = (own[["a", "b"]].astype(object) for own in (X, X_new))
    X_new.index = X_new.index + 7
    empty, text = X.assign(note=None), X_new.assign(note="seen")
    if not named:
        empty, text = empty.to_numpy(), text.to_numpy()
    online = learn(make_online(refresh=1.0), (empty, y, z))
    before = online.value(text)
    assert (before["y"] == online.value(X_new.assign(note=None))["y"]).all()
    if named:
        assert before.values.index.equals(X_new.index)
    learn(online, (text, y_new, z_new))
    assert (online.n_rows_, online.models_.n_rows) == (260, 200)
    online.save(tmp_path / "state")
    again = OnlineEntropy.load(tmp_path / "state")
    assert (again.value(text)["y"] == before["y"]).all()
    for both in (online, again):
        learn(both, (text, y_new, z_new))
        learn(both, (text, y_new, z_new))
        learn(both, (text, y_new, z_new))
    assert online.models_.n_rows == 440
    assert (again.value(text)["y"] == online.value(text)["y"]).all()
    with pytest.raises(ValueError, match="learnt from"):
        online.value(X_new.assign(note=1.0))


def test_a_batch_of_one_label_one_row_or_none_waits_for_more():
    X, y, z = make_rows(300)
    online = make_online()
    assert online.learn(X[:0], y[:0], sensitive_features={"age": z[:0]}) is online
    assert online.n_rows_ == 0
    learn(online, part((X, y, z), 0, 1))
    assert (online.n_rows_, online.waits_for_) == (1, "5 rows")
    ones = np.flatnonzero(y == "yes")[:60]
    learn(online, (X.iloc[ones], y[ones], z[ones]))
    assert online.waits_for_ == ("" if y[0] == "no" else "a second label of 'y'")
    online = learn(make_online(), (X.iloc[ones], y[ones], z[ones]))
    assert online.waits_for_ == "a second label of 'y'"
    assert online.value(X[:3]).variables == ["y", "age"]
    assert np.isnan(online.value(X[:3]).values).to_numpy().all()
    learn(online, part((X, y, z), 60, 300))
    assert online.waits_for_ == ""
    assert not np.isnan(online.value(X).values).to_numpy().any()
    before = online.value(X)
    learn(online, (X.iloc[ones[:2]], y[ones[:2]], z[ones[:2]]))
    assert same(before, online.value(X))
    assert online.n_rows_ == 302
    assert len(online.value(X[:0])) == 0


def test_models_stay_when_a_label_has_left_the_window():
    X, y, z = make_rows(300)
    online = learn(make_online(window=50), part((X, y, z), 0, 100))
    ones = np.flatnonzero(y == "yes")[:60]
    before = online.value(X)
    learn(online, (X.iloc[ones], y[ones], z[ones]))
    assert online.waits_for_ == "a second label of 'y'"
    assert same(before, online.value(X))


def bad_batches():
    X, y, z = make_rows(60, seed=3)
    age = {"age": z}
    return {
        "a column is missing": (X.drop(columns="b"), y, age, "Batch 2 has no column 'b'"),
        "text for numbers": (X.assign(a="x"), y, age, "Column 'a' holds numbers, and that of Batch 2 text"),
        "numbers for text": (X.assign(colour=1.0), y, age, "Column 'colour' holds text, and that of Batch 2"),
        "another attribute": (X, y, {"sex": z}, "Batch 2 has no protected attribute 'age'"),
        "no attribute": (X, y, None, "Batch 2 has 0 protected attributes"),
        "numbers for labels": (
            X,
            np.arange(60) % 2,
            age,
            "Column 'y' holds text, and that of Batch 2 numbers",
        ),
        "missing labels": (X, [None, *y[1:]], age, "`y` has 1 missing"),
        "too few labels": (X, y[:-1], age, "`y` has 59 entries and X has 60 rows"),
        "no table": (X["a"], y, age, "must be a table"),
    }


@pytest.fixture(scope="module")
def learnt():
    return learn(make_online(refresh=0.0), make_rows(200))


@pytest.mark.parametrize("what", list(bad_batches()))
def test_a_batch_that_cannot_be_learnt_changes_nothing(learnt, what):
    X, y, age, sentence = bad_batches()[what]
    X_new, known = make_rows(50, seed=1)[0], dict(vars(learnt))
    before = learnt.value(X_new)
    with pytest.raises(ValueError, match=sentence):
        learnt.learn(X, y, sensitive_features=age)
    assert all(vars(learnt)[name] is own for name, own in known.items())
    assert same(learnt.value(X_new), before)
    assert learnt.n_rows_ == 200


def test_a_build_that_fails_changes_nothing():
    class Fussy(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if len(X) > 160:
                raise ValueError("too many rows for me")
            return super().fit(X, y, sample_weight)

    rows = make_rows(300)
    rows = rows[0][["a", "b", "c"]], *rows[1:]
    online = learn(make_online(estimators=Fussy(), n_jobs=1), part(rows, 0, 100))
    before = online.value(rows[0])
    with pytest.raises(RuntimeError, match="too many rows for me"):
        learn(online, part(rows, 100, 300))
    assert same(before, online.value(rows[0]))
    assert online.n_rows_ == 100


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"window": 3}, "`window` must be at least 5, got 3"),
        ({"refresh": 2.0}, r"`refresh` must be in \[0, 1\], got 2.0"),
        ({"n_bags": 2}, "`n_bags \\* unseen_fraction` must be at least 1"),
        ({"kinds": {"sex": "classes"}}, "`kinds` names 'sex'"),
        ({"z_exclude": ["d"]}, "`z_exclude` names 'd', which is not a column"),
        ({"random_state": -1}, "`random_state` must not be negative"),
    ],
)
def test_bad_settings_are_told_with_the_first_batch(settings, sentence):
    online = make_online(**settings)
    with pytest.raises(ValueError, match=sentence):
        learn(online, make_rows(100))
    assert online.n_rows_ == 0


def test_bad_rows_to_value_are_told(learnt):
    X, *_ = make_rows(5)
    with pytest.raises(ValueError, match="no column 'b'"):
        learnt.value(X.drop(columns="b"))
    with pytest.raises(ValueError, match="`y` holds the label 'maybe'"):
        learnt.value(X[:2], ["yes", "maybe"])


def test_numbers_are_valued_too_and_a_change_of_kind_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.rint(4 * X[:, 0])
    online = make_online(refresh=0.0)
    few = np.abs(y) < 3
    online.learn(X[few], y[few])
    assert online.models_.classes("y") == (-2, -1, 0, 1, 2)
    with pytest.warns(UserWarning, match="'y' was valued as classes and is now valued as continuous"):
        online.learn(X[~few], y[~few] + rng.normal(size=(~few).sum()))
    assert online.models_.classes("y") == ()
    assert online.learn(X[:0], y[:0]).value(X).counts["y"].tolist() == [5] * 300


def test_forgetting_leaves_the_last_rows():
    rows, (X_new, *_) = make_rows(300), make_rows(50, seed=1)
    online = learn(make_online(), rows)
    assert online.forget(120) is online
    assert online.n_rows_ == 120
    assert same(online.value(X_new), offline_models(*part(rows, 180, 300)).value(X_new))
    with pytest.raises(ValueError, match="`keep` must be at least 1, got 0"):
        online.forget(0)
    assert make_online().forget(10).n_rows_ == 0


def test_rows_too_few_to_learn_are_learnt_with_the_next_batch_after_forgetting():
    rows, (X_new, *_) = make_rows(300), make_rows(50, seed=1)
    online = learn(make_online(), part(rows, 0, 250))
    before = online.value(X_new)
    assert online.forget(2).waits_for_ == "5 rows"
    assert same(online.value(X_new), before)
    learn(online, part(rows, 250, 270))  # less than a tenth of what the old models learnt from
    assert online.models_.n_rows == 22


def test_the_seed_is_drawn_once():
    rows = make_rows(200)
    online = learn(make_online(random_state=None), part(rows, 0, 100))
    seed = online.seed_
    learn(online, part(rows, 100, 200))
    assert online.seed_ == seed
    again = learn(learn(make_online(random_state=seed), part(rows, 0, 100)), part(rows, 100, 200))
    assert same(online.value(rows[0]), again.value(rows[0]))


@pytest.mark.parametrize(
    ("y", "kinds", "lacking"),
    [
        ([0, 1], None, "5 rows"),
        ([0] * 6, None, "a second label of 'y'"),
        ([0, 1] * 3, None, ""),
        (list("abcdef"), None, "more rows for each of the 6 labels of 'y'"),
        (list("abc") * 2, None, ""),
        ([0.5] * 6, None, "a second label of 'y'"),
        ([0.5] * 6, {"y": "continuous"}, "a second label of 'y'"),
    ],
)
def test_what_rows_lack_to_be_learnt(y, kinds, lacking):
    assert what_is_lacking(read_problem(np.zeros((len(y), 1)), y), kinds) == lacking


@pytest.mark.parametrize(
    ("labels", "classes", "new"),
    [
        (["a", "b"], ("a", "b"), False),
        (["a", "c", None], ("a", "b"), True),
        ([0.5], (), False),
        ([True], (0, 1), False),
    ],
)
def test_labels_that_models_do_not_know(labels, classes, new):
    assert has_new_label(column_from("y", labels), classes) is new
