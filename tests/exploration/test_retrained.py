"""What retraining measured: on rows that no value has seen, the same for the same seed."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier

from fado import OutOfBagEntropy, TreeInfluence, Valuation, explore
from fado.exploration._retrained import hold_out
from fado.valuation import Provenance

MODEL = LGBMClassifier(n_estimators=15, num_leaves=7, verbosity=-1)
N = 2400


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    z = np.where(X["c"] > 0, "high", "low")
    y = np.where(X["a"] + X["c"] + rng.normal(size=N) > 0.8, "yes", "no")
    valuator = TreeInfluence(MODEL, max_fpr=0.2, n_bags=3, random_state=0)
    valuation = valuator.fit(X, y, sensitive_features={"z": z}).valuation_
    return SimpleNamespace(X=X, y=y, z={"z": z}, valuation=valuation)


def measured(case, X=None, **settings):
    seen = explore(
        case.X if X is None else X,
        case.y,
        sensitive_features=case.z,
        valuation=case.valuation,
        retrain=True,
        estimator=MODEL,
        **settings,
    )
    return seen, seen.to_dict()["attributes"][0]["effects"]["measured"]


@pytest.fixture(scope="module")
def found(case):
    return measured(case)


def test_removing_the_most_harmful_rows_raises_the_ratio(found):
    seen, trial = found
    assert (trial["train_rows"], trial["judged_rows"], trial["repeats"]) == (1800, 600, 3)
    assert [(point["share"], point["rows"]) for point in trial["points"]] == [
        (0.02, 36),
        (0.05, 90),
        (0.1, 180),
    ]
    for point in trial["points"]:
        assert point["predicted_ratio_change"] > 0
        for key in ("ratio", "performance"):
            low, mean, high = (point[f"{which}_{key}_change"] for which in ("lowest", "measured", "highest"))
            assert low <= mean <= high
    assert trial["points"][-1]["measured_ratio_change"] > 0.05
    assert 0 < trial["before"]["ratio"] < 1
    frame = seen.effects()["measured"]
    assert frame.to_dict("records") == trial["points"]
    json.dumps(trial, allow_nan=False)


def test_no_value_has_seen_the_rows_that_judge(case, found):
    codes = 2 * np.unique(case.z["z"], return_inverse=True)[1] + (case.y == "yes")
    _, judged = hold_out(codes, None, np.random.default_rng([0, 0]))
    X = case.X.copy()
    X.iloc[judged] = X.iloc[judged[::-1]].to_numpy()  # other features for the rows that judge, and only those
    _, other = measured(case, X)
    for before, after in zip(found[1]["points"], other["points"], strict=True):
        for key in ("ratio", "performance"):
            assert after[f"predicted_{key}_change"] == before[f"predicted_{key}_change"]
    assert other["before"] != found[1]["before"]


def test_the_same_seed_measures_the_same(case, found):
    assert measured(case)[1] == found[1]
    assert measured(case, random_state=1)[1] != found[1]


def test_features_of_any_library_are_measured_alike(case, found):
    import polars as pl

    assert measured(case, pl.from_pandas(case.X))[1] == found[1]


def test_the_smaller_label_may_be_the_positive_one(case, found):
    y = np.where(case.y == "yes", "aye", "nay")
    seen = explore(
        case.X, y, sensitive_features=case.z, valuation=case.valuation, retrain=True, estimator=MODEL,
        pos_label="aye",
    )  # fmt: skip
    assert seen.to_dict()["attributes"][0]["effects"]["measured"] == found[1]


@pytest.mark.filterwarnings("ignore:`fpr_ratio` of 'side' .* too close to tell:UserWarning")
def test_several_attributes_are_removed_for_one_at_a_time(case, found):
    z = case.z | {"side": np.where(np.arange(N) % 2, "left", "right")}
    valuator = TreeInfluence(MODEL, max_fpr=0.2, n_bags=3, random_state=0)
    valuation = valuator.fit(case.X, case.y, sensitive_features=z).valuation_
    seen = explore(
        case.X, case.y, sensitive_features=z, valuation=valuation, retrain=True, estimator=MODEL
    ).to_dict()
    trials = [one["effects"]["measured"] for one in seen["attributes"]]
    assert [trial["train_rows"] for trial in trials] == [1800, 1800]
    first, second = (trial["points"][-1]["predicted_ratio_change"] for trial in trials)
    assert first > 0
    assert second > 0
    assert first != second


def test_a_split_is_alike_in_every_stratum_and_keeps_blocks_whole():
    strata = np.repeat([0, 1, 2], [400, 40, 3])
    train, judged = hold_out(strata, None, np.random.default_rng(0))
    assert sorted([*train, *judged]) == list(range(443))
    assert np.abs(np.bincount(strata[judged], minlength=3) - np.array([100, 10, 0.75])).max() <= 1
    blocks = np.repeat(np.arange(40), 5)
    train, judged = hold_out(np.zeros(200, dtype=int), blocks, np.random.default_rng(0))
    assert len(judged) == 50
    assert not set(blocks[train]) & set(blocks[judged])


def test_a_model_other_than_the_values_own_is_told(case):
    with pytest.warns(
        UserWarning, match=r"`retrain` trains LGBMClassifier\(\), and the values were made with"
    ):
        explore(case.X, case.y, sensitive_features=case.z, valuation=case.valuation, retrain=True)


def influence_of(values):
    scales = Valuation.from_values(values).scales
    return Valuation(values, scales=scales, provenance=Provenance("influence"))


def test_what_cannot_be_measured_is_refused(case):
    given = {"sensitive_features": case.z, "retrain": True}
    entropy = OutOfBagEntropy(n_bags=5, random_state=0, z_exclude={"z": ["c"]})
    entropy.fit(case.X, case.y, sensitive_features=case.z)
    with pytest.raises(ValueError, match="and these were made by 'out-of-bag': value the rows with TreeInf"):
        explore(case.X, case.y, valuation=entropy.valuation_, **given)
    with pytest.raises(ValueError, match="and no values are given: value the rows with TreeInfluence"):
        explore(case.X, case.y, **given)
    effects = influence_of({"y": np.zeros(N), "z": np.linspace(-1, 1, N)})
    with pytest.raises(ValueError, match="`retrain` needs a target of two classes, and `y` has 3"):
        explore(case.X, np.arange(N) % 3, valuation=effects, **given)
    with pytest.raises(ValueError, match="`retrain` needs a target of two classes, and `y` is continuous"):
        explore(case.X, case.X["a"], valuation=effects, **given)
    one_group = given | {"sensitive_features": {"z": np.full(N, "all")}}
    with pytest.raises(
        ValueError, match="two groups that can be compared, and protected attribute 'z' has 1"
    ):
        explore(case.X, case.y, valuation=effects, **one_group)
    with pytest.raises(ValueError, match="`estimator` is what `retrain=True` trains again"):
        explore(case.X, case.y, sensitive_features=case.z, valuation=effects, estimator=MODEL)
    with pytest.raises(TypeError, match="`estimator` must be an LGBMClassifier"):
        explore(case.X, case.y, valuation=case.valuation, estimator=OutOfBagEntropy(), **given)
