"""Decisions in the form that Aequitas and fairlearn take, with the real fairlearn as the oracle."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, false_negative_rate, false_positive_rate, selection_rate

from fado.metrics import Budget, by_group, fpr_ratio, predictions_frame

RATES = {"fpr": false_positive_rate, "fnr": false_negative_rate, "selection_rate": selection_rate}


def rows(n=600):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.4, "late", "in time")
    sex = pd.Series(rng.choice(["f", "m", None], size=n, p=[0.5, 0.4, 0.1]), name="sex")
    return y, rng.normal(size=n) + (y == "late"), sex


def test_the_form_is_aequitas_own():
    frame = predictions_frame(
        ["no", "yes", "no"],
        [0.2, 0.9, 0.5],
        sensitive_features={"old": [True, False, True], "band": pd.Categorical([1, 2, 2])},
        threshold=0.5,
    )
    expected = {
        "score": [0, 1, 1],
        "label_value": [0, 1, 0],
        "old": ["True", "False", "True"],
        "band": ["1", "2", "2"],
    }
    pd.testing.assert_frame_equal(frame, pd.DataFrame(expected))


def test_fairlearn_finds_the_same_rates_in_every_group():
    y, scores, sex = rows()
    with pytest.warns(UserWarning, match="'sex' is missing"):
        frame = predictions_frame(y, scores, sensitive_features=sex, pos_label="late", max_fpr=0.1)
    theirs = MetricFrame(
        metrics=RATES,
        y_true=frame["label_value"],
        y_pred=frame["score"],
        sensitive_features=frame[["sex"]],
    )
    with pytest.warns(UserWarning, match="'sex' is missing"):
        ours = by_group(y, scores, sensitive_features=sex, pos_label="late", max_fpr=0.1)
    assert sorted(theirs.by_group.index) == ["(missing)", "f", "m"]
    for name in RATES:
        assert theirs.by_group[name].to_dict() == pytest.approx(ours[name].to_dict())
    ratio = fpr_ratio(frame["label_value"], frame["score"], sensitive_features=frame["sex"])
    assert theirs.ratio(method="between_groups")["fpr"] == pytest.approx(ratio)


def test_weights_and_budgets_set_the_threshold():
    y, scores, sex = rows()
    known = sex.fillna("f")
    frame = predictions_frame(y, scores, sensitive_features=known, budget=("top_k", 25))
    assert frame["score"].sum() == 25
    assert frame["score"].equals(
        predictions_frame(y, scores, sensitive_features=known, budget=Budget("top_k", 25))["score"]
    )
    weights = np.where(scores > 0.5, 3.0, 1.0)
    weighed = predictions_frame(y, scores, sensitive_features=known, sample_weight=weights, max_fpr=0.1)
    negative = weighed["label_value"] == 0
    share = np.average(weighed["score"][negative], weights=weights[negative])
    assert 0.08 < share <= 0.1
    plain = predictions_frame(y, scores, sensitive_features=known, max_fpr=0.1)
    assert weighed["score"].sum() < plain["score"].sum()


@pytest.mark.parametrize("name", ["score", "label_value"])
def test_an_attribute_of_a_columns_name_is_refused(name):
    with pytest.raises(ValueError, match=f"attribute is called '{name}', as a column here is: rename it"):
        predictions_frame([0, 1], [0.1, 0.9], sensitive_features={name: ["a", "b"]}, threshold=0.5)
