"""Any estimator: by a name that a configuration may say, or an object that Python hands over."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from fado.experiment import Experiment, Results
from fado.experiment._config import config_from
from fado.experiment._data import read_data
from fado.experiment._models import describe_object, estimator_versions, parameter_names
from fado.experiment._training import Job, Trainer
from fado.experiment._trial import Trial

STEPS = ["sklearn.impute.SimpleImputer", "sklearn.preprocessing.StandardScaler"]
LOGISTIC = {
    "estimator": "sklearn.linear_model.LogisticRegression",
    "pipeline": STEPS,
    "count": 2,
    "space": {"logisticregression__C": {"log_uniform": [0.01, 10]}, "simpleimputer__strategy": "median"},
}


def few(table, **models):
    """The tiny experiment, with few interventions and other models."""
    table["interventions"] = {"rps": False, "rw": True}
    table["models"] = models
    table["evaluation"] = {}
    return table


def given_pipeline(C=1.0):
    words = make_column_selector(dtype_include=["category", "object", "string"])
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encoder, words), remainder="passthrough")
    return make_pipeline(
        columns, SimpleImputer(strategy="median"), StandardScaler(), LogisticRegression(C=C, max_iter=200)
    )


def test_a_logistic_regression_in_a_pipeline(table, tmp_path):
    few(table, **LOGISTIC)
    table["models"]["space"] = LOGISTIC["space"] | {"logisticregression__max_iter": 200}
    table["evaluation"] = {"max_fpr": 0.3}
    experiment = Experiment(table)
    frame = experiment.run(tmp_path / "a", n_jobs=2).frame
    assert frame["status"].tolist() == ["done"] * 4
    other = experiment.run(tmp_path / "b", n_jobs=1, isolated=True).frame
    pd.testing.assert_frame_equal(frame, other, check_exact=True)
    # the same by hand, on the same rows
    data = read_data(experiment.config)
    X, y = data.problem.table.to_pandas(), data.positive
    train, test = data.parts["train"], data.parts["test"]
    row = frame.iloc[0]
    model = given_pipeline(row["logisticregression__C"]).fit(X.iloc[train], y[train])
    decided = model.predict_proba(X.iloc[test])[:, 1] >= row["test_threshold"] - 1e-9
    assert decided[y[test]].mean() == pytest.approx(row["test_tpr"])
    assert decided[~y[test]].mean() == pytest.approx(row["test_fpr"])
    assert 0 < row["test_fpr"] <= 0.3
    # and as an object instead of a name
    del table["models"]["estimator"], table["models"]["pipeline"]
    space = table["models"].pop("space")
    given = Experiment(table, estimator=given_pipeline(), space=space).run(tmp_path / "c", n_jobs=2).frame
    assert given["logisticregression__C"].nunique() == 2
    measured = [name for name in frame if name.startswith("test_")]
    pd.testing.assert_frame_equal(given[measured], frame[measured], check_exact=True)
    pd.testing.assert_frame_equal(Results.load(tmp_path / "c").frame, given, check_exact=True)


@pytest.mark.parametrize(
    ("library", "models"),
    [
        ("sklearn", {"estimator": "sklearn.ensemble.RandomForestClassifier", "space": {"n_estimators": 5}}),
        (
            "lightgbm",
            {
                "estimator": "lightgbm.LGBMClassifier",
                "pipeline": STEPS[:1],
                "space": {"lgbmclassifier__n_estimators": 5},
            },
        ),
        ("xgboost", {"estimator": "xgboost.XGBClassifier", "space": {"n_estimators": [5, 6]}}),
        ("catboost", {"estimator": "catboost.CatBoostClassifier", "space": {"n_estimators": 5, "depth": 3}}),
    ],
)
def test_every_library(table, tmp_path, monkeypatch, capfd, library, models):
    pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    few(table, count=2, **models)
    one = Experiment(copy.deepcopy(table)).run(tmp_path / "a", n_jobs=1).frame
    two = Experiment(table).run(tmp_path / "b", n_jobs=2).frame
    assert one["error"].dropna().tolist() == []
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]  # nothing else is written
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "sklearn",
        "sklearn.utils.os.system",
        "sklearn.utils.Bunch",
        "sklearn.conftest.X",
        "sklearn.externals.X",
        "sklearn.linear_model._logistic.LogisticRegression",
        "sklearn.linear_model.LogisticRegression.fit",
        "fado.OutOfBagEntropy",
        "numpy.testing.Tester",
        "xgboost.sklearn.XGBClassifier",
        "lightgbm..LGBMClassifier",
        "sklearn.linear_model.LogisticRegression\n",
    ],
)
def test_only_public_classes_of_four_libraries_are_looked_for(table, monkeypatch, name):
    def imported(module):
        raise AssertionError(module)

    monkeypatch.setattr("fado.experiment._models.import_module", imported)
    few(table, estimator=name, space={})
    with pytest.raises(ValueError, match=r"`models.estimator` must be the place of a class"):
        config_from(table)


@pytest.mark.parametrize(
    ("models", "match"),
    [
        ({"estimator": "sklearn.nowhere.Logistic"}, "there is no such class"),
        ({"estimator": "sklearn.linear_model.Logistic"}, "there is no such class"),
        ({"estimator": "sklearn.base.BaseEstimator"}, "must be an estimator"),
        ({"estimator": "sklearn.linear_model.LinearRegression"}, "must be a classifier that gives"),
        (
            {"estimator": "sklearn.svm.LinearSVC"},
            "`models.estimator` must give probabilities, and LinearSVC has no",
        ),
        (
            {"estimator": "sklearn.linear_model.SGDClassifier", "space": {"loss": ["log_loss", "hinge"]}},
            "`models.estimator` must give probabilities, and SGDClassifier has no `predict_proba`",
        ),
        (
            {"estimator": "sklearn.svm.SVC", "pipeline": ["sklearn.preprocessing.StandardScaler"]},
            "`models.estimator` must give probabilities, and Pipeline has no",
        ),
        ({"estimator": "sklearn.ensemble.VotingClassifier"}, "which needs parameters"),
        ({"estimator": 3}, "`models.estimator` must be a text, got 3"),
        ({"pipeline": ["lightgbm.LGBMClassifier"]}, r"`models.pipeline\[0\]` must be a transformer of"),
        (
            {"pipeline": ["sklearn.linear_model.LogisticRegression"]},
            r"`models.pipeline\[0\]` must be a transformer, got",
        ),
        ({"space": {"c": 1}}, r"`models.space.c` is not a parameter of .*did you mean 'C'\?"),
        ({"space": {"C": {"log_uniform": ["a", "b"]}}}, "must rise from a number above 0"),
        ({"space": {"C": [1, [2]]}}, r"`models.space.C.choices\[1\]` must be a number, a text, true or"),
        (
            {"pipeline": STEPS, "space": {"logisticregression__c": 1}},
            r"is not a parameter of .*did you mean 'logisticregression__C'",
        ),
        ({"pipeline": STEPS, "space": {"memory": "/tmp"}}, "`models.space.memory` is not a parameter"),
        ({"pipeline": STEPS, "space": {"columntransformer__n_jobs": 2}}, "is not a parameter"),
        (
            {"estimator": "sklearn.neural_network.MLPClassifier", "space": {"alpha": 0.1}},
            "`models.space.alpha` has the name of another column .* mlpclassifier__alpha",
        ),
        ({"estimator": "object sklearn.pipeline.Pipeline 0"}, "was passed in Python: pass it again"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_a_sentence(table, models, match):
    few(table, **{"estimator": "sklearn.linear_model.LogisticRegression", "space": {}} | models)
    with pytest.raises(ValueError, match=match):
        config_from(table)


def test_a_library_that_is_not_there_is_named(table, monkeypatch):
    def lacking(module):
        raise ModuleNotFoundError(name=module)

    monkeypatch.setattr("fado.experiment._models.import_module", lacking)
    few(table, estimator="xgboost.XGBClassifier", space={})
    with pytest.raises(ValueError, match=r"is 'xgboost.XGBClassifier', and XGBoost is not installed"):
        config_from(table)


def test_an_object_that_is_changed_later_is_kept_as_it_was(table):
    estimator = LogisticRegression(C=3.0)
    experiment = Experiment(few(table, count=1), estimator=estimator)
    estimator.set_params(C=5.0)
    assert experiment._estimator.C == 3.0


def test_parameters_that_name_files_cannot_be_set():
    catboost = pytest.importorskip("catboost")
    names = parameter_names(catboost.CatBoostClassifier())
    assert {"iterations", "depth", "learning_rate"} <= set(names)
    assert not {"train_dir", "snapshot_file", "callback", "allow_writing_files", "thread_count"} & set(names)


def test_the_version_of_another_library_is_part_of_the_store():
    xgboost = pytest.importorskip("xgboost")
    assert estimator_versions(LGBMClassifier()) == {}
    for model in (xgboost.XGBClassifier(), make_pipeline(StandardScaler(), xgboost.XGBClassifier())):
        assert estimator_versions(model) == {"xgboost": xgboost.__version__}


def test_a_store_goes_on_with_its_own_object_alone(table, tmp_path):
    few(table, count=1)
    plain = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    table["data"] |= {"drop": list(worded_columns(table))}

    def run(estimator, space={"logisticregression__C": [0.1]}):  # noqa: B006 - it stays as it is
        return Experiment(copy.deepcopy(table), estimator=estimator, space=space).run(tmp_path, n_jobs=1)

    assert (run(plain).frame["status"] == "done").all()
    run(copy.deepcopy(plain))
    other = copy.deepcopy(plain).set_params(logisticregression__fit_intercept=False)
    with pytest.raises(
        ValueError, match=r"`models.estimator` = 'object .*Pipeline .*, the configuration says"
    ):
        run(other)
    table["models"]["space"] = {"n_estimators": 3}
    with pytest.raises(ValueError, match=r"`models.estimator` = 'object .*, the configuration does not name"):
        run(None, None)


def worded_columns(table):
    data = read_data(Experiment({**table, "models": {"space": {"n_estimators": 2}}}).config)
    return [column.name for column in data.problem.table.columns if column.levels is not None]


def test_an_object_of_lightgbm_keeps_the_shared_bins(table):
    """The same models as by default, though an object that cannot be shared goes another way."""
    data = read_data(Experiment(copy.deepcopy(table)).config)
    space = table["models"].pop("space")
    trial = Trial("RW", parameters={"n_estimators": 8, "num_leaves": 5})

    def trained(**settings):
        given = Experiment(table, estimator=LGBMClassifier(random_state=0, **settings), space=space)
        trainer = Trainer(data, given.config, estimator=given._estimator)
        return trainer.scores(trial), len(trainer._engines)

    default = Trainer(data, Experiment(table | {"models": {"space": space}}).config)
    expected = default.scores(replace(trial, parameters=trial.parameters | {"random_state": 0}))
    scores, n_engines = trained()
    np.testing.assert_array_equal(scores, expected)
    assert n_engines == 1
    scores, n_engines = trained(class_weight={0: 1.0, 1: 1.0})
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    assert n_engines == 2


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"estimator": LogisticRegression}, TypeError, "got the class LogisticRegression: write"),
        (
            {"estimator": SVC()},
            ValueError,
            "^`estimator` must give probabilities, and SVC has no `predict_proba`",
        ),
        ({"estimator": StandardScaler()}, TypeError, "`estimator` must be a classifier"),
        ({"estimator": LogisticRegression(), "space": {"c": [1]}}, ValueError, "did you mean 'C'"),
        ({"estimator": LogisticRegression(), "space": {"C": [object()]}}, ValueError, "must be a number"),
    ],
)
def test_objects_that_are_refused(table, given, error, match):
    with pytest.raises(error, match=match):
        Experiment(few(table, count=1), **given)


def test_a_digest_does_not_hang_on_where_things_lie_in_memory():
    def twice(X):
        return 2 * X

    def digest(function, **settings):
        return describe_object(make_pipeline(FunctionTransformer(function), LogisticRegression(**settings)))

    assert digest(twice) == digest(copy.copy(twice)) != digest(twice, C=2)


def test_a_fit_that_cannot_be_stopped_is_late_afterwards(table):
    few(table, deadline=1e-6, **LOGISTIC)
    config = Experiment(table).config
    trainer = Trainer(read_data(config), config)
    outcome, _ = trainer.run(Job(Trial("none")))
    assert outcome.error.startswith("TimeoutError: The fit took longer than `models.deadline`")


def test_an_estimator_without_weights_fails_in_a_sentence(table, tmp_path):
    space = {"kneighborsclassifier__n_neighbors": 3}
    few(table, estimator="sklearn.neighbors.KNeighborsClassifier", pipeline=STEPS, count=1, space=space)
    frame = Experiment(table).run(tmp_path, n_jobs=1).frame.set_index("intervention")
    assert frame.loc["none", "status"] == "done"
    assert "takes no `sample_weight`" in frame.loc["RW", "error"]


def test_a_store_imports_nothing_that_it_names(table, tmp_path, monkeypatch):
    Experiment(few(table, **LOGISTIC)).run(tmp_path, n_jobs=1)
    monkeypatch.setattr("fado.experiment._models.import_module", None)
    assert Results.load(tmp_path).config.models.pipeline == tuple(STEPS)


def test_the_time_of_other_estimators_is_estimated(table):
    assert 0 < Experiment(few(table, **LOGISTIC)).estimated_seconds(n_jobs=1) < 60


def test_parameters_that_give_an_estimator_its_probabilities_are_looked_at(table):
    space = {"loss": ["log_loss", "modified_huber"]}
    config = config_from(few(table, count=4, estimator="sklearn.linear_model.SGDClassifier", space=space))
    assert list(config.models.space["loss"].choices) == space["loss"]
