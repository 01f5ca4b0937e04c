"""A stream that is valued batch by batch: what it learns is what is learnt offline, and what it refuses."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from tests.valuation.online.stream import learn, learn_on, make_online, make_rows, numbers_of, part, stream
from tests.valuation.same import assert_same

from fado import OnlineEntropy, OutOfBagEntropy
from fado.tabular import column_from, read_problem
from fado.valuation.online._online import has_new_label, what_is_lacking

ROWS, (X_NEW, Y_NEW, Z_NEW) = make_rows(400), make_rows(50, seed=1)
WEIGHTS = np.random.default_rng(2).uniform(0.5, 5.0, 400)
YES = tuple(each[ROWS[1] == "yes"][:60] for each in ROWS)


def offline_models(X, y, z, weights=None):
    valuator = OutOfBagEntropy(n_bags=5, random_state=0, keep_models=True)
    return valuator.fit(X, y, sensitive_features={"age": z}, sample_weight=weights)


def test_nothing_is_known_before_the_first_batch():
    X, online = X_NEW.set_axis([f"row {row}" for row in X_NEW.index]), make_online()
    valuation = online.value(X)
    assert valuation.variables == ["y"]
    assert online.value(X, Y_NEW, {"age": Z_NEW}).variables == ["y", "age"]
    assert np.isnan(valuation["y"]).all()
    assert (valuation.counts["y"] == 0).all()
    assert valuation.values.index.equals(X.index)
    assert valuation.metadata["model_version"] == 0
    assert online.models_ is None
    assert online.waits_for_ == "a first batch"
    assert online.drift_.empty


@pytest.mark.parametrize("weights", [(), (WEIGHTS,)], ids=["", "weighted"])
@pytest.mark.parametrize(
    ("ends", "settings", "first"),
    [
        ((400,), {}, 0),
        ((150, 151, 400), {"refresh": 0.0}, 0),
        ((150, 151, 400), {"refresh": 0.0, "n_jobs": 1}, 0),
        ((100, 200, 300, 400), {"refresh": 0.0, "window": 220}, 180),
    ],
    ids=["one batch", "batches", "one worker", "window"],
)
def test_batches_are_what_is_learnt_offline_from_the_rows_in_the_window(ends, settings, first, weights):
    rows = (*ROWS, *weights)
    online, offline = stream(rows, *ends, **settings), offline_models(*part(rows, first, 400))
    assert_same(online.value(X_NEW), offline.value(X_NEW))
    labels = Y_NEW, {"age": Z_NEW}
    assert_same(online.value(X_NEW, *labels), offline.value(X_NEW, *labels))
    metadata = online.value(X_NEW).metadata
    assert (metadata["rows_seen"], metadata["rows_learnt"], online.n_rows_) == (400, 400 - first, 400 - first)


def test_the_scale_of_weights_changes_nothing():
    online = stream((*ROWS, WEIGHTS), 250, 400, refresh=0.0)
    assert_same(online.value(X_NEW), offline_models(*ROWS, WEIGHTS / 2**40).value(X_NEW))


def test_models_are_built_when_enough_is_new():
    online, versions = make_online(refresh=0.5), []
    for stop in range(30, 211, 30):
        learn(online, part(ROWS, stop - 30, stop))
        versions.append(online.value(X_NEW[:1]).metadata["model_version"])
    assert versions == [1, 2, 3, 3, 4, 4, 4]  # after 30, 60, 90 and 150 rows


@pytest.mark.parametrize(
    "kind",
    [pl.from_pandas, pa.Table.from_pandas, lambda X: pl.from_pandas(X).lazy()],
    ids=["pl", "pa", "lazy"],
)
def test_batches_may_be_tables_of_any_kind_with_columns_in_any_order(kind):
    plain, mixed = stream(ROWS, 150, 400, refresh=0.0), stream(ROWS, 150, refresh=0.0)
    X, y, z = part(ROWS, 150, 400)
    learn(mixed, (kind(X[["colour", "c", "b", "a"]].assign(more=1)), y, z))
    assert_same(plain.value(X_NEW), mixed.value(kind(X_NEW[["c", "colour", "a", "b"]])))


def test_columns_without_names_go_by_position_and_sparse_matrices_are_made_dense():
    X, y, z = numbers_of(ROWS)
    X = X.round()
    plain, mixed = (stream((X, y, z), *ends, refresh=0.0) for ends in ((150, 400), ()))
    learn(mixed, (list(X[:150]), y[:150], z[:150]))
    learn(mixed, (scipy.sparse.csr_array(X[150:]), y[150:], z[150:]))
    assert_same(plain.value(X), mixed.value(scipy.sparse.csc_matrix(X)))


def test_attributes_go_by_name():
    (X, y, z), sex = ROWS, np.random.default_rng(5).choice(["f", "m"], 400)
    online = make_online(refresh=1.0)
    online.learn(X[:250], y[:250], sensitive_features={"age": z[:250], "sex": sex[:250]})
    online.learn(X[250:], y[250:], sensitive_features={"sex": sex[250:], "age": z[250:]})
    assert online.models_.n_rows == 250  # no label is new
    assert online.drift_["variable"].tolist() == ["y", "age", "sex"]


def test_what_the_user_does_to_a_batch_later_changes_nothing():
    rows = numbers_of(ROWS)
    first = tuple(each[:150].copy() for each in rows)
    changed = learn(make_online(refresh=0.0), first)
    first[0][:], first[1][:] = 0.0, "no"
    learn_on(changed, rows, 150, 400)
    assert_same(stream(rows, 150, 400, refresh=0.0).value(rows[0]), changed.value(rows[0]))


def test_new_categories_and_labels_may_come_later():
    X, y, z = make_rows(600)
    online = stream((X, y, z), 400, refresh=1.0)
    assert online.models_.classes("y") == ("no", "yes")
    later = X[400:].assign(colour="violet"), np.where(X["a"][400:] > 0, "maybe", "no"), z[400:]
    learn(online, later)
    assert online.models_.classes("y") == ("maybe", "no", "yes")  # at once, though few rows are new
    assert online.models_.n_rows == 600
    assert online.value(later[0])["y"].max() <= 1.0


@pytest.mark.parametrize("named", [True, False])
def test_a_column_without_entries_may_become_text(named, tmp_path):
    X, X_new = (each[["a", "b"]].astype(object) for each in (ROWS[0][:200], X_NEW.set_index(X_NEW.index + 7)))
    empty, text = X.assign(note=None), X_new.assign(note="seen")
    if not named:
        empty, text = empty.to_numpy(), text.to_numpy()
    online = learn(make_online(refresh=1.0), (empty, ROWS[1][:200], ROWS[2][:200]))
    before = online.value(text)
    assert (before["y"] == online.value(X_new.assign(note=None))["y"]).all()
    if named:
        assert before.values.index.equals(X_new.index)
    more = text, Y_NEW, Z_NEW
    learn(online, more)
    assert (online.n_rows_, online.models_.n_rows) == (250, 200)
    online.save(tmp_path / "state")
    again = OnlineEntropy.load(tmp_path / "state")
    assert (again.value(text)["y"] == before["y"]).all()
    for both in (online, again):
        for _ in range(3):
            learn(both, more)
    assert online.models_.n_rows == 400
    assert (again.value(text)["y"] == online.value(text)["y"]).all()
    with pytest.raises(ValueError, match="learnt from"):
        online.value(X_new.assign(note=1.0))


def test_a_batch_of_one_label_one_row_or_none_waits_for_more():
    online = make_online()
    assert learn(online, part(ROWS, 0, 0)) is online
    assert online.n_rows_ == 0
    learn(online, part(YES, 0, 1))
    assert (online.n_rows_, online.waits_for_) == (1, "5 rows")
    learn(online, part(YES, 1, 60))
    assert online.waits_for_ == "a second label of 'y'"
    assert online.value(X_NEW).variables == ["y", "age"]
    assert online.value(X_NEW).values.isna().all(axis=None)
    learn(online, part(ROWS, 0, 240))
    assert online.waits_for_ == ""
    before = online.value(X_NEW)
    assert before.values.notna().all(axis=None)
    learn(online, part(YES, 0, 2))
    assert_same(before, online.value(X_NEW))
    assert online.n_rows_ == 302
    assert len(online.value(X_NEW[:0])) == 0


def test_models_stay_when_a_label_has_left_the_window():
    online = stream(ROWS, 100, window=50)
    before = online.value(X_NEW)
    learn(online, YES)
    assert online.waits_for_ == "a second label of 'y'"
    assert_same(before, online.value(X_NEW))


@pytest.fixture(scope="module")
def learnt():
    return stream(ROWS, 200, refresh=0.0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"X": X_NEW.drop(columns="b")}, "Batch 2 has no column 'b'"),
        ({"X": X_NEW.assign(a="x")}, "Column 'a' holds numbers, and that of Batch 2 text"),
        ({"X": X_NEW.assign(colour=1.0)}, "Column 'colour' holds text, and that of Batch 2"),
        ({"X": X_NEW["a"]}, "must be a table"),
        ({"sensitive_features": {"sex": Z_NEW}}, "Batch 2 has no protected attribute 'age'"),
        ({"sensitive_features": None}, "Batch 2 has 0 protected attributes"),
        ({"y": np.arange(50) % 2}, "Column 'y' holds text, and that of Batch 2 numbers"),
        ({"y": [None, *Y_NEW[1:]]}, "`y` has 1 missing"),
        ({"y": Y_NEW[:-1]}, "`y` has 49 entries and X has 50 rows"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_batch_that_cannot_be_learnt_changes_nothing(learnt, changes, sentence):
    known, before = dict(vars(learnt)), learnt.value(X_NEW)
    with pytest.raises(ValueError, match=sentence):
        learnt.learn(**({"X": X_NEW, "y": Y_NEW, "sensitive_features": {"age": Z_NEW}} | changes))
    assert all(vars(learnt)[name] is value for name, value in known.items())
    assert_same(learnt.value(X_NEW), before)
    assert learnt.n_rows_ == 200


def test_a_build_that_fails_changes_nothing():
    class Fussy(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if len(X) > 160:
                raise ValueError("too many rows for me")
            return super().fit(X, y, sample_weight)

    rows = numbers_of(ROWS, "a", "b", "c")
    online = stream(rows, 100, estimators=Fussy(), n_jobs=1)
    before = online.value(rows[0])
    with pytest.raises(RuntimeError, match="too many rows for me"):
        learn_on(online, rows, 100, 300)
    assert_same(before, online.value(rows[0]))
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
        learn(online, ROWS)
    assert online.n_rows_ == 0


def test_bad_rows_to_value_are_told(learnt):
    with pytest.raises(ValueError, match="no column 'b'"):
        learnt.value(X_NEW.drop(columns="b"))
    with pytest.raises(ValueError, match="`y` holds the label 'maybe'"):
        learnt.value(X_NEW[:2], ["yes", "maybe"])


def test_numbers_are_valued_too_and_a_change_of_kind_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.rint(4 * X[:, 0])
    online, few = make_online(refresh=0.0), np.abs(y) < 3
    online.learn(X[few], y[few])
    assert online.models_.classes("y") == (-2, -1, 0, 1, 2)
    with pytest.warns(UserWarning, match="'y' was valued as classes and is now valued as continuous"):
        online.learn(X[~few], y[~few] + rng.normal(size=(~few).sum()))
    assert online.models_.classes("y") == ()
    assert online.learn(X[:0], y[:0]).value(X).counts["y"].tolist() == [5] * 300


def test_forgetting_leaves_the_last_rows():
    online = stream(ROWS, 300)
    assert online.forget(120) is online
    assert online.n_rows_ == 120
    before = online.value(X_NEW)
    assert_same(before, offline_models(*part(ROWS, 180, 300)).value(X_NEW))
    with pytest.raises(ValueError, match="`keep` must be at least 1, got 0"):
        online.forget(0)
    assert make_online().forget(10).n_rows_ == 0
    assert online.forget(2).waits_for_ == "5 rows"  # which are learnt with the next batch
    assert_same(online.value(X_NEW), before)
    learn_on(online, ROWS, 300, 310)  # less than a tenth of what the old models learnt from
    assert online.models_.n_rows == 12


def test_the_seed_is_drawn_once():
    online = stream(ROWS, 100, random_state=None)
    seed = online.seed_
    learn_on(online, ROWS, 100, 200)
    assert online.seed_ == seed
    assert_same(online.value(X_NEW), stream(ROWS, 100, 200, random_state=seed).value(X_NEW))


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
