"""What is said about columns before any fit."""

import time

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

import fado
from fado.columns import check_columns

N = 4_000
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N)
SEX = RNG.choice(["f", "m"], N)


def noisy(labels, share):
    """Labels of which a share is turned around."""
    return np.where(np.random.default_rng(1).random(len(labels)) < share, 1 - labels, labels)


def findings(X, y=None, sensitive_features=None):
    report = check_columns(X, y, sensitive_features)
    return list(zip(report["column"], report["finding"], strict=True))


def entropy(share):
    return -share * np.log2(share) - (1 - share) * np.log2(1 - share)


def test_what_a_column_reveals_is_the_share_of_the_uncertainty_that_it_removes():
    sex = (SEX == "f").astype(int)
    X = pd.DataFrame({"paid": noisy(Y, 0.01), "claimed": noisy(Y, 0.1), "name": noisy(sex, 0.05)})
    report = check_columns(X, Y, {"sex": SEX})
    assert report["column"].tolist() == ["paid", "name"]
    assert report["finding"].tolist() == ["reveals target", "reveals group"]
    expected = [1 - entropy(np.mean(X["paid"] != Y)), 1 - entropy(np.mean(X["name"] != sex))]
    np.testing.assert_allclose(report["measured"], expected, atol=0.01)
    assert "must not depend on 'sex'" in report["what to do"][1]


def test_constants_and_rare_levels_are_counted():
    X = pd.DataFrame({"one": 1, "none": np.nan, "text": "a", "half": [1.0, np.nan] * 50})
    X["town"] = ["Ulm"] * 93 + ["Bonn"] * 4 + ["Kiel"] * 3
    X["band"] = pd.Categorical(["x", "y"] * 50)
    report = check_columns(X).set_index("column")
    constant = dict.fromkeys(["one", "none", "text"], "constant")
    assert report["finding"].to_dict() == constant | {"town": "rare levels"}
    assert report.loc["town", "measured"] == 0.07
    assert report["kind"].to_dict() == {"one": "numbers", "none": "numbers", "text": "text", "town": "text"}


def test_what_is_learnt_by_heart_or_is_the_attribute_reveals_nothing():
    days = np.array([f"{day.year}-{day.month}-{day.day}" for day in pd.date_range("2021-01-01", periods=700)])
    X = pd.DataFrame({"day": RNG.choice(days, 2_000), "name": [f"n{j}" for j in range(2_000)]})
    assert findings(X, Y[:2_000], SEX[:2_000]) == [("day", "date as text"), ("name", "id")]
    X = pd.DataFrame({"sex": SEX, "title": np.where(SEX == "f", "Ms", "Mr")})
    assert findings(X, Y, "sex") == [("title", "reveals group")]


def test_numbers_are_judged_by_their_ranks_in_frames_arrays_and_sparse_matrices():
    y = RNG.lognormal(0, 3, N)
    report = check_columns(pd.DataFrame({"copy": np.log(y), "other": RNG.normal(size=N)}), y)
    assert (report["column"].tolist(), report["finding"].tolist()) == (["copy"], ["reveals target"])
    assert report["measured"][0] > 0.99
    X = np.column_stack([RNG.normal(size=N), Y, np.zeros(N)])
    expected = [("x1", "reveals target"), ("x2", "constant")]
    assert findings(X, Y) == findings(csr_matrix(X), Y) == expected
    assert list(check_columns(np.zeros((3, 0)))) == ["column", "kind", "finding", "measured", "what to do"]


def test_the_time_grows_with_the_number_of_columns_and_no_faster():
    X, y = RNG.normal(size=(2_000, 1_000)), Y[:2_000]

    def seconds(n_columns):
        start = time.process_time()
        check_columns(X[:, :n_columns], y)
        return time.process_time() - start

    seconds(10)
    assert seconds(1_000) < 3 * 10 * min(seconds(100) for _ in range(3))


TABLE = pd.DataFrame({"a": RNG.normal(size=300), "b": RNG.normal(size=300)})
ODD = TABLE.assign(id=[f"c{j}" for j in range(300)], paid=[f"{j % 9} %" for j in range(300)])
ROWS = {"y": Y[:300], "sensitive_features": {"sex": SEX[:300]}}


@pytest.mark.parametrize(
    "fit",
    [
        lambda X: fado.OutOfBagEntropy(n_bags=5, random_state=0).fit(X, **ROWS),
        lambda X: fado.OnlineEntropy(n_bags=5, random_state=0).learn(X, **ROWS),
        lambda X: fado.AimedEstimator(
            LGBMClassifier(n_estimators=3, verbosity=-1), at_least=0.01, cv=2, max_fpr=0.5, random_state=0
        ).fit(X, **ROWS),
        lambda X: fado.explore(X, **ROWS, retrain=0, random_state=0),
    ],
    ids=["valuator", "online", "aim", "explore"],
)
def test_a_fit_names_them_once(fit):
    fit(TABLE)  # and says nothing where there is nothing to say: warnings are errors
    with pytest.warns(UserWarning, match="learn little") as caught:
        fit(ODD)
    (sentence,) = (text for text in (str(one.message) for one in caught) if "learn little" in text)
    assert "(id: 'id'; number as text: 'paid')" in sentence
    assert all(one.filename == __file__ for one in caught)


@pytest.mark.parametrize("by", ["scores", "student", "logistic"])
def test_a_saved_model_holds_no_id_and_no_rare_level(tmp_path, by):
    n = 1_500
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.normal(size=n), "town": rng.choice(["Ulm", "Bonn"], n)})
    X["code"] = [f"secret{j:05d}" for j in range(n)]
    X.loc[:3, "town"] = "Kiel-of-four"
    sex = rng.choice(["f", "m"], n)
    y = (X["a"] + (X["town"] == "Ulm") + (sex == "m") + rng.normal(size=n) > 1).astype(int)
    estimator = LogisticRegression() if by == "logistic" else LGBMClassifier(n_estimators=10, verbosity=-1)
    way = "scores" if by == "logistic" else by
    aim = fado.AimedEstimator(estimator, at_least=0.2, max_fpr=0.2, cv=3, by=way, random_state=0, n_jobs=1)
    with pytest.warns(UserWarning, match="id: 'code'"):
        aim.fit(X, y, sensitive_features={"sex": sex})
    valuator = fado.OutOfBagEntropy(n_bags=5, keep_models=True, random_state=0)
    with pytest.warns(UserWarning, match="id: 'code'"):
        valuator.fit(X, y, sensitive_features={"sex": sex})
    aim.to_model().save(tmp_path / "model")
    valuator.models_.save(tmp_path / "models")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    for path in files:
        content = path.read_bytes()
        assert b"secret" not in content, path
        assert b"Kiel" not in content, path
    assert b"Bonn" in (tmp_path / "model" / "model.json").read_bytes()
    loaded = fado.load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), aim.predict_proba(X))
    again = fado.valuation.load_models(tmp_path / "models")
    pd.testing.assert_frame_equal(again.value(X).values, valuator.models_.value(X).values)
