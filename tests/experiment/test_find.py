"""The search: its budget, its order, and that nothing but its input changes it."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from scipy.sparse import csr_matrix
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from tests.aim.conftest import draw_applicants
from tests.experiment.conftest import APPLICANTS, N, model_of, search

from fado import load_model
from fado.engine import LightGBMEngine, SklearnEngine
from fado.experiment import Results
from fado.experiment._find import FrontierProposer, n_models
from fado.experiment._store import Store
from fado.experiment._trial import Trial

NUMBERS = APPLICANTS.X[["skill", "height"]].to_numpy()
FRESH = draw_applicants(900, seed=1)


WHOLE = {"X": NUMBERS, "estimator": GaussianNB(), "space": None}  # one model, trained once
SMALL = {"n_estimators": 10}


def same(one, other):
    pd.testing.assert_frame_equal(one.frame, other.frame, check_exact=True)


def rows_of(frontier, part):
    return frontier._data.parts[part]


def closest_known(frontier, X=APPLICANTS.X, *validation):
    """The closest model, whose scores of validation rows are those that were kept."""
    model, frame = frontier.closest(), frontier.frame
    row = np.flatnonzero(
        (frame["validation_tpr"] == model.metrics_["tpr"])
        & (frame["validation_threshold"] == model.metrics_["threshold"])
    )[0]
    rows = rows_of(frontier, "validation")
    X = validation[0] if validation else X[rows] if isinstance(X, np.ndarray) else X.iloc[rows]
    np.testing.assert_array_equal(model.score_rows(X), frontier.results.scores(row, "validation"))
    return model


@pytest.fixture(scope="module")
def plain():
    """A search of two fits."""
    return search(max_fits=2)


def test_workers_and_a_store_change_nothing_and_another_seed_is_another_search(frontier, tmp_path):
    same(search(max_fits=12, n_jobs=2), frontier)
    kept = search(max_fits=12, n_jobs=2, store=tmp_path / "store")
    same(kept, frontier)
    same(search(max_fits=12, store=tmp_path / "store"), frontier)
    loaded = Results.load(tmp_path / "store")
    assert loaded.config == kept.results.config
    pd.testing.assert_frame_equal(loaded.frame, kept.frame.drop(columns="cost"), check_exact=True)
    other = search(max_fits=5, random_state=1).frame
    assert other["n_estimators"][:2].tolist() != frontier.frame["n_estimators"][:2].tolist()


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_search_that_was_ended_goes_on_as_if_it_had_not(frontier, tmp_path, monkeypatch, rounds):
    left, ask = iter(range(rounds)), FrontierProposer.ask

    def ending(self, outcomes):
        if next(left, None) is None:
            raise StoppedError
        return ask(self, outcomes)

    with monkeypatch.context() as patched:
        patched.setattr(FrontierProposer, "ask", ending)
        with pytest.raises(StoppedError):
            search(max_fits=12, store=tmp_path)
    with Store.reading(tmp_path) as store:
        assert 0 < sum(trial.status == "done" for trial in store.trials) < len(frontier.frame)
    same(search(max_fits=12, store=tmp_path), frontier)


@pytest.mark.parametrize(
    "other",
    [{"ratio": "tpr_ratio"}, {"ratio": {"fpr_ratio": 0.9}}, {"max_fpr": 0.2}, {"random_state": 1}],
    ids=str,
)
def test_a_store_of_another_search_is_refused(tmp_path_factory, other):
    place = tmp_path_factory.getbasetemp() / "three fits"
    search(max_fits=3, store=place, **WHOLE)
    with pytest.raises(ValueError, match="The store was made with"):
        search(**({"max_fits": 3} | WHOLE | other), store=place)


@pytest.mark.parametrize("max_fits", [2, 3, 5])
def test_fits_are_no_more_than_allowed(max_fits):
    found = search(max_fits=max_fits)
    cost = found.frame["cost"]
    assert max_fits - 2 < cost.sum() + 1 <= max_fits + 1e-9  # one is the model of the groups
    assert (found.frame["status"] == "done").all()
    assert found.frame["intervention"][0] == "none"
    fits = math.ceil(cost.sum() + 1 - 1e-9)
    assert repr(found).endswith(f"in {fits} fits, for fpr_ratio")


def test_models_are_fitted_as_often_as_is_told(monkeypatch):
    fits = []
    for kind in (LightGBMEngine, SklearnEngine):
        fit = kind.fit

        def counted(self, task, *more, fit=fit, **named):
            fits.append(task)
            return fit(self, task, *more, **named)

        monkeypatch.setattr(kind, "fit", counted)
    found = search(**WHOLE, max_fits=9)
    assert len(fits) == 2 == found.frame["cost"].sum() + 1
    found = search(**WHOLE, max_fits=14, students=True, lines=(0.8, 0.9))
    assert len(fits) - 2 == 14 == found.frame["cost"].sum() + 1


def test_few_trees_first_and_the_best_wholly_and_then_their_curves(frontier):
    frame = frontier.frame
    n = frame["model"].max() + 1
    assert n <= n_models(11, 0.25)
    first, rest = frame[:n], frame[n:]
    assert (first["intervention"] == "none").all()
    assert first["model"].tolist() == list(range(n))
    assert first["cost"].between(0.15, 0.35).all()
    whole = rest[rest["intervention"] == "none"]
    best = first.sort_values(["validation_tpr", "model"], ascending=[False, True])["model"]
    assert whole["model"].tolist() == best.tolist()[: math.ceil(n / 3)]
    assert (whole["cost"] == 1).all()
    curve = rest[rest["intervention"] == "aimed"]
    assert curve.index[0] == n + len(whole)
    assert set(curve["model"]) == set(whole["model"])
    assert (curve["ratio"] == "fpr_ratio").all()
    assert (curve["cost"] == 0).all()
    assert frame["cost"].sum() + 1 <= 12
    for _, own in curve.groupby("model"):
        assert own["demand"].is_monotonic_increasing
        assert own["demand"].iloc[-1] == 1


def test_points_are_those_of_the_curve_on_validation_rows(frontier):
    """Every row of a survivor is one point of the curve, counted on validation rows by hand."""
    frame, rows = frontier.frame, rows_of(frontier, "validation")
    y, sex = APPLICANTS.y[rows], APPLICANTS.sex[rows]
    for row in frame.index[frame["intervention"] == "aimed"][::5]:
        selected = frontier.results.scores(row, "validation") >= frame["validation_threshold"][row]
        rates = [selected[(y == 0) & (sex == group)].mean() for group in "fm"]
        assert frame["validation_fpr_ratio"][row] == pytest.approx(min(rates) / max(rates))
        assert frame["validation_tpr"][row] == pytest.approx(selected[y == 1].mean())


def done(trial, tpr, **ratios):
    metrics = {"validation_tpr": tpr} | {f"validation_{name}": own for name, own in ratios.items()}
    return replace(trial, status="done", metrics=metrics)


def test_what_is_proposed_by_hand():
    models = tuple({"num_leaves": leaves} for leaves in range(2, 6))
    lines = {"fpr_ratio": 0.8}
    proposer = FrontierProposer(models, (100, 40, 100, 2), 0.25, lines, 10)
    first = proposer.ask([])
    assert [trial.parameters["n_estimators"] for trial in first] == [25, 10, 25, 1]
    assert proposer.costs(first) == [0.25, 0.25, 0.25, 0.5]
    outcomes = list(map(done, first, [0.5, 0.6, float("nan"), 0.6]))
    whole = proposer.ask(outcomes)
    assert [(trial.model, trial.parameters["n_estimators"]) for trial in whole] == [(1, 40), (3, 2)]
    outcomes += [replace(whole[0], status="failed"), done(whole[1], 0.7, fpr_ratio=0.95)]
    curve = proposer.ask(outcomes)
    assert [trial.settings["demand"] for trial in curve] == [0.8, 0.9, 1.0]
    assert {(trial.intervention, trial.model) for trial in curve} == {("aimed", 3)}
    outcomes += [done(trial, 0.6, fpr_ratio=0.9) for trial in curve]
    assert proposer.ask(outcomes) == []
    rich = FrontierProposer(models, (100, 40, 100, 2), 0.25, lines, 20, ({"fpr_ratio": 0.9},))
    (student,) = rich.ask(outcomes)
    assert (student.intervention, student.model) == ("student", 3)
    assert student.settings == {"ratio": "fpr_ratio", "at_least": 0.9}
    other = Trial("student", {"ratio": "fpr_ratio", "at_least": 0.7}, 3, student.parameters)
    assert rich.costs([student, other]) == [11, 1]
    assert rich.ask([*outcomes, done(student, 0.5)]) == []
    none = [replace(trial, status="failed") for trial in first]
    assert proposer.ask(none) == []
    poor = FrontierProposer(models, (100, 40, 100, 2), 0.25, lines, 2)
    assert poor.ask(list(map(done, first, [0.5, 0.6, 0.1, 0.2]))) == []
    assert first[0] == Trial("none", {}, 0, {"num_leaves": 2, "n_estimators": 25})


def test_equal_draws_are_one_model():
    frame = search(max_fits=5, space=SMALL | {"num_leaves": [4, 6]}).frame
    parameters = ["n_estimators", "num_leaves"]
    assert len(frame[["model", *parameters]].drop_duplicates()) == len(frame[parameters].drop_duplicates())
    assert search(max_fits=5, space=SMALL).frame["model"].eq(0).all()


def test_validation_rows_that_are_given_are_that_part(frontier):
    found = search(validation=tuple(FRESH), max_fits=4)
    entries = [entry for entry in found.results.summary if entry["part"] == "validation"]
    assert sum(entry["rows"] for entry in entries) == 900 > len(rows_of(frontier, "validation"))
    assert sum(entry["positives"] for entry in entries) == FRESH.y.sum()
    assert len(rows_of(found, "test")) == pytest.approx(N / 5, abs=4)
    closest_known(found, None, FRESH.X)
    same(search(validation=(FRESH.X[["hobby", "height", "skill"]], FRESH.y, FRESH.sex), max_fits=4), found)


@pytest.mark.parametrize(
    ("validation", "match"),
    [
        ((FRESH.X[["skill", "height"]], FRESH.y, FRESH.sex), "`validation` has no column 'hobby'"),
        ((FRESH.X, np.where(FRESH.y, "a", "b"), FRESH.sex), "holds numbers, and that of `validation` text"),
        ((FRESH.X, 0 * FRESH.y, FRESH.sex), "holds only negatives"),
        ((FRESH.X, FRESH.y, {"a": FRESH.sex, "b": FRESH.sex}), "`validation` has 2 protected attributes"),
        ((FRESH.X, FRESH.y), "must be a tuple of"),
    ],
)
def test_rows_that_cannot_validate_are_refused(validation, match):
    with pytest.raises(ValueError, match=match):
        search(validation=validation)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"ratio": "ratio"}, "`ratio` must be 'fpr_ratio'"),
        ({"ratio": {"fpr_ratio": 0.8, "tpr": 0.8}}, "`ratio` must be 'fpr_ratio' .* got 'tpr'"),
        ({"ratio": {"fpr_ratio": 80}}, r"`ratio\['fpr_ratio'\]` must be in \(0, 1\]"),
        ({"ratio": {}}, "`ratio` is empty"),
        ({"ratio": 3}, "`ratio` must be a name or a mapping"),
        ({"max_fits": 1}, "`max_fits` must be at least 2"),
        ({"max_fits": 2.5}, "`max_fits` must be a whole number"),
        ({"max_fits": 15, "students": True}, "`max_fits` must be at least 16 with students, got 15"),
        ({"test": 0.9}, r"`test` must be a share in \(0, 0.7\]"),
        ({"test": (1, 2)}, "`test` must be a tuple of"),
        ({"lines": 0.8}, "`lines` must be a list of numbers"),
        ({"lines": ()}, "`lines` is empty"),
        ({"lines": (0.8, 1.5)}, r"`lines` must be in \(0, 1\]"),
        ({"budget": ("tops", 3)}, "`budget` must be of kind"),
        ({"budget": 0.1}, "`budget` must be None, a Budget or a pair"),
        ({"max_fpr": 2}, "`max_fpr` must be in"),
        ({"space": {"trees": 3}}, "`models.space.trees` is not a parameter"),
        (
            {"estimator": LogisticRegression},
            r"got the class LogisticRegression: write `LogisticRegression\(\)`",
        ),
        (
            {"estimator": LinearSVC(), "space": {}},
            "^`estimator` must give probabilities, and LinearSVC has no",
        ),
        ({"sex": None}, "`sensitive_features` is missing"),
        ({"sex": np.zeros(N)}, "fewer than two groups"),
        ({"X": csr_matrix(NUMBERS)}, "A sparse matrix cannot be split"),
        ({"y": np.arange(N) % 3}, "must hold two labels, got 3"),
        ({"y": np.arange(N) / 7}, "`y` is continuous"),
        ({"pos_label": 7}, "`pos_label` must be one of the labels 0 and 1"),
    ],
    ids=str,
)
def test_bad_input_gets_a_sentence_and_leaves_nothing(asked, match, tmp_path):
    with pytest.raises((ValueError, TypeError), match=match):
        search(**asked, store=tmp_path / "store")
    assert list(tmp_path.iterdir()) == []


def test_a_search_in_which_no_model_can_be_trained_says_why():
    gaps = np.where(np.arange(N)[:, None] % 7 == 0, np.nan, NUMBERS)
    with pytest.raises(ValueError, match=r"^No model could be trained: GaussianNB takes no missing values"):
        search(X=gaps, estimator=GaussianNB(), space={}, max_fits=2)


def test_a_search_without_a_store_writes_nothing_and_goes_along_as_a_whole(plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = pickle.loads(pickle.dumps(search(max_fits=2)))
    same(found, plain)
    assert len(found.results.scores(0, "validation")) == pytest.approx(N / 5, abs=4)
    again = found.results.remeasure(data=found._data)
    pd.testing.assert_frame_equal(again, found.frame.drop(columns="cost"), check_exact=True)
    closest_known(found)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("y", "pos_label", "labels"),
    [
        (np.where(APPLICANTS.y, "yes", "no"), None, ["no", "yes"]),
        (np.where(APPLICANTS.y, "a", "b"), "a", ["b", "a"]),
        (APPLICANTS.y == 1, None, [False, True]),
        (2 * APPLICANTS.y - 1, None, [-1, 1]),
    ],
    ids=["text", "the smaller", "booleans", "numbers"],
)
def test_labels_come_back(plain, y, pos_label, labels):
    found = search(y=y, pos_label=pos_label, max_fits=2)
    columns = [name for name in plain.frame if name.startswith(("validation_", "test_"))]
    pd.testing.assert_frame_equal(found.frame[columns], plain.frame[columns], check_exact=True)
    model = found.closest()
    assert list(model.labels) == labels
    assert model.classes_.tolist() == sorted(labels)
    assert type(model.classes_.tolist()[1]) is type(labels[1])
    decided = model.predict(APPLICANTS.X)
    assert set(decided) == set(labels)
    np.testing.assert_array_equal(decided == labels[1], plain.closest().predict(APPLICANTS.X) == 1)


def test_arrays_without_names_are_known_by_position():
    model = closest_known(search(X=NUMBERS, max_fits=3), NUMBERS)
    assert not hasattr(model, "feature_names_in_")
    assert "2 columns without names" in model.card()


WORDS = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["hobby", "level", "flag"]), remainder="passthrough"
)


@pytest.mark.parametrize(
    "estimator", [None, make_pipeline(WORDS, LogisticRegression())], ids=["trees", "pipe"]
)
def test_missing_entries_and_categories_are_scored_as_they_were(tmp_path, estimator):
    rng = np.random.default_rng(3)
    X = APPLICANTS.X.assign(level=pd.Categorical(rng.integers(8, 12, N)), flag=rng.random(N) < 0.5)
    X["hobby"] = X["hobby"].astype(object)
    X.loc[::7, "hobby"] = np.nan
    if estimator is None:
        X.loc[::5, "skill"] = np.nan
    space = SMALL if estimator is None else None
    model = closest_known(search(X=X, estimator=estimator, space=space, max_fits=4), X)
    shuffled = X[["flag", "level", "height", "hobby", "skill"]]
    np.testing.assert_array_equal(model.score_rows(shuffled), model.score_rows(X))
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.score_rows(shuffled), model.score_rows(X))
    with pytest.raises(ValueError, match="'level' holds numbers, but the model learnt from text"):
        loaded.score_rows(X.astype({"level": int}))


def test_weights_count(plain):
    heavy = search(sample_weight=np.where(APPLICANTS.sex == "f", 3.0, 1.0), max_fits=2).frame
    ones = search(sample_weight=np.ones(N), max_fits=2).frame
    assert not heavy["validation_tpr"].equals(plain.frame["validation_tpr"])
    measured = ["validation_tpr", "validation_fpr_ratio", "test_tpr"]
    np.testing.assert_array_equal(ones[measured], plain.frame[measured])


def test_rows_that_belong_together_stay_in_one_part():
    people = np.random.default_rng(0).integers(0, 700, N)
    found = search(groups=people, max_fits=3)
    train, *others = owners = [set(people[rows_of(found, part)]) for part in ("train", "validation", "test")]
    assert sum(map(len, owners)) == len(set(people)) == len(train.union(*others))
    blocks = found._data.part("train").blocks.tolist()
    assert len(set(zip(blocks, people[rows_of(found, "train")].tolist(), strict=True))) == len(train)


@pytest.mark.parametrize(
    ("budget", "column"),
    [
        (("selection_rate", 0.2), "validation_selection_rate"),
        (("top_k", 100), "validation_selected"),
        (("threshold", 0.4), "validation_threshold"),
    ],
    ids=str,
)
def test_other_budgets_of_decisions(budget, column):
    found = search(budget=budget, max_fits=2)
    assert (found.frame[column] <= budget[1]).all()
    assert budget[0] != "threshold" or (found.frame[column] == budget[1]).all()
    model, validation = found.closest(), rows_of(found, "validation")
    decided = model.predict(APPLICANTS.X.iloc[validation]) == 1
    assert model.metrics_["tpr"] == pytest.approx(decided[APPLICANTS.y[validation] == 1].mean())


def shifts_of(frontier):
    """By group, how the last point of a curve moves scores."""
    model = model_of(frontier, frontier.frame.index[-1])
    (negative,) = model.scorer.negative
    return model, negative


def test_several_groups_and_crossed_attributes():
    town = np.random.default_rng(1).choice(["a", "b", "c"], N)
    X = APPLICANTS.X.assign(height=APPLICANTS.X["height"] + 2 * (town == "c"))
    assert len(shifts_of(search(X=X, sex={"town": town}, max_fits=5))[1]) == 3
    crossed = search(X=X, sex={"sex": APPLICANTS.sex, "town": town}, max_fits=5)
    assert len(shifts_of(crossed)[1]) == len({entry["group"] for entry in crossed.results.summary}) == 6
    assert "'sex' and 'town'" in crossed.closest().card()


def test_a_group_too_small_to_compare_is_left_alone():
    sex = np.where(np.arange(N) < 9, "x", APPLICANTS.sex)
    with pytest.warns(UserWarning, match="1 group has fewer than 30 rows"):
        found = search(sex=sex, max_fits=4)
    model, shifts = shifts_of(found)
    assert (len(shifts), shifts[2]) == (3, 0)
    assert model.facts_.left_out == ("x",)


def test_other_estimators_with_and_without_a_space():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    space = {"logisticregression__C": {"log_uniform": [0.001, 10.0]}}
    found = search(X=NUMBERS, estimator=pipeline, space=space, max_fits=6)
    assert found.frame["cost"].sum() <= 6
    assert found.frame["logisticregression__C"].nunique() > 1
    assert closest_known(found, NUMBERS).facts_.estimator == "Pipeline"
    trees = LGBMClassifier(n_estimators=12, num_leaves=5)
    frame = search(estimator=trees, space={"min_child_samples": {"log_uniform": [5, 100]}}, max_fits=6).frame
    assert set(frame["n_estimators"]) == {3, 12}
    assert frame.loc[frame["n_estimators"] == 3, "cost"].eq(0.25).all()
    found = search(X=NUMBERS, estimator=LogisticRegression(C=0.5), space=None, max_fits=4)
    assert found.frame["cost"].tolist() == [1, *[0] * (len(found.frame) - 1)]
    assert set(found.frame["intervention"][1:]) == {"aimed"}
    assert model_of(found, 0).scorer.estimator.C == model_of(found, 5).scorer.label.estimator.C == 0.5
