import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import (
    MetricFrame,
    count,
    false_negative_rate,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.exceptions import UndefinedMetricWarning

from fado.metrics import by_group, evaluate, threshold_at_fpr

PEERS = {
    "selection_rate": selection_rate,
    "tpr": true_positive_rate,
    "fpr": false_positive_rate,
    "fnr": false_negative_rate,
}
COLUMNS = ["rows", "positives", "negatives"]
COLUMNS += [f"{name}{end}" for name in PEERS for end in ("", "_low", "_high")] + ["compared"]


def random_rows(seed, size=300, n_groups=3):
    rng = np.random.default_rng(seed)
    groups = np.array(["b", "a", "c", "d", "e"], dtype=object)[rng.integers(0, n_groups, size)]
    y_true = rng.random(size) < 0.4
    return y_true, np.round(rng.normal(size=size) + y_true, 1), groups, rng


def test_by_hand():
    # At 0.5: of the negatives of a 1 of 4 and of b 2 of 4, of the positives 2 and 1 of 3.
    table = by_group(
        [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1],
        [0.1, 0.2, 0.3, 0.8, 0.2, 0.5, 0.9, 0.1, 0.2, 0.7, 0.8, 0.1, 0.3, 0.9],
        sensitive_features={"sex": list("aaaaaaabbbbbbb")},
        max_fpr=0.4,
    )
    assert list(table.columns) == COLUMNS
    assert table.index.name == "group"
    assert table.index.tolist() == ["a", "b"]
    assert table[["rows", "positives", "negatives"]].to_numpy().tolist() == [[7, 3, 4], [7, 3, 4]]
    assert table["fpr"].tolist() == [0.25, 0.5]
    assert table["tpr"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert table["fnr"].tolist() == pytest.approx([1 / 3, 2 / 3])
    assert table["selection_rate"].tolist() == pytest.approx([3 / 7, 3 / 7])
    assert table["compared"].tolist() == [True, True]
    peer = binomtest(1, 4).proportion_ci(0.95)
    assert table.loc["a", ["fpr_low", "fpr_high"]].tolist() == pytest.approx([peer.low, peer.high])


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32), n_groups=st.integers(2, 5), weighted=st.booleans())
def test_rates_are_those_of_fairlearn(seed, n_groups, weighted):
    y_true, scores, groups, rng = random_rows(seed, 200, n_groups)
    weights = rng.gamma(1.0, size=200) if weighted else None
    table = by_group(y_true, scores, sensitive_features=groups, max_fpr=0.2, sample_weight=weights)
    predicted = scores >= threshold_at_fpr(y_true, scores, 0.2, sample_weight=weights)
    frame = MetricFrame(
        metrics=PEERS,
        y_true=y_true,
        y_pred=predicted,
        sensitive_features=groups,
        sample_params={name: {"sample_weight": weights} for name in PEERS} if weighted else None,
    ).by_group.loc[table.index]
    for name, members in {"selection_rate": "rows", "tpr": "positives", "fpr": "negatives"}.items():
        defined = table[members] > 0  # fairlearn gives 0 without members
        np.testing.assert_allclose(table.loc[defined, name], frame.loc[defined, name], atol=1e-12)
        assert table.loc[~defined, name].isna().all()
    np.testing.assert_allclose(table["fnr"], 1 - table["tpr"], atol=1e-12)
    counts = MetricFrame(metrics=count, y_true=y_true, y_pred=predicted, sensitive_features=groups).by_group
    assert table["rows"].tolist() == counts.loc[table.index].tolist()
    assert (table["rows"] == table["positives"] + table["negatives"]).all()


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32), weighted=st.booleans(), threshold=st.sampled_from([None, 0.7]))
def test_ratios_of_evaluate_are_those_of_the_compared_rows(seed, weighted, threshold):
    y_true, scores, groups, rng = random_rows(seed, 3000, 3)
    groups[:12] = "tiny"
    options = {
        "sensitive_features": groups,
        "max_fpr": 0.2,
        "threshold": threshold,
        "sample_weight": rng.gamma(1.0, size=3000) if weighted else None,
    }
    with pytest.warns(UserWarning, match=r"Group 'tiny' \(12 rows\)"):
        metrics = evaluate(y_true, scores, **options)
    table = by_group(y_true, scores, **options)  # says it in a column, and does not warn
    assert table.index[~table["compared"]].tolist() == ["tiny"]
    compared = table[table["compared"]]
    for name in PEERS:
        expected = compared[name].min() / compared[name].max()
        assert metrics[f"{name}_ratio"] == pytest.approx(expected, rel=1e-12)
    everyone = by_group(y_true, scores, **options, min_group_size=0)
    assert everyone["compared"].all()
    pd.testing.assert_frame_equal(everyone.drop(columns="compared"), table.drop(columns="compared"))


def test_intervals_hold_the_rate_and_are_never_a_point():
    y_true, scores, groups, rng = random_rows(0, 500, 5)
    scores[(groups == "a") & ~y_true] = -5.0  # no false positives
    scores[(groups == "b") & y_true] = 5.0  # all positives found
    for weights in (None, rng.gamma(1.0, size=500)):
        table = by_group(y_true, scores, sensitive_features=groups, max_fpr=0.2, sample_weight=weights)
        wider = by_group(
            y_true, scores, sensitive_features=groups, max_fpr=0.2, sample_weight=weights, confidence=0.99
        )
        for name in PEERS:
            assert (table[f"{name}_low"] <= table[name]).all()
            assert (table[name] <= table[f"{name}_high"]).all()
            assert (table[f"{name}_high"] - table[f"{name}_low"] > 0.01).all()
            assert (
                (wider[f"{name}_high"] - wider[f"{name}_low"])
                .gt(table[f"{name}_high"] - table[f"{name}_low"])
                .all()
            )
        assert table.loc["a", "fpr"] == table.loc["a", "fpr_low"] == 0.0
        assert table.loc["b", "tpr"] == table.loc["b", "tpr_high"] == 1.0


def test_a_rate_without_members_is_nan():
    table = by_group(
        [0, 0, 1, 1, 1], [0.1, 0.6, 0.7, 0.2, 0.4], sensitive_features=list("aaaab"), max_fpr=0.5
    )
    assert table.loc["b", ["fpr", "fpr_low", "fpr_high"]].isna().all()
    assert table.loc["b", ["tpr", "negatives", "rows"]].tolist() == [1.0, 0, 1]


def test_rows_that_weigh_nothing_are_counted_and_have_no_rates():
    table = by_group(
        [0, 1, 0, 1, 0, 1],
        [0.1, 0.9, 0.6, 0.4, 0.5, 0.5],
        sensitive_features=list("aaaabb"),
        max_fpr=0.5,
        sample_weight=[1, 2, 1, 1, 0, 0],
    )
    assert table["rows"].tolist() == [4, 2]
    assert table.loc["b", list(PEERS)].isna().all()


def test_groups_are_called_as_people_call_them():
    with pytest.warns(UserWarning, match="missing in 1 of 6 rows"):
        table = by_group(
            [0, 1, 0, 1, 0, 1],
            [0.1, 0.9, 0.6, 0.4, 0.5, 0.5],
            sensitive_features={"sex": ["f", "f", "m", "m", None, "f"], "old": [1, 1, 0, 0, 1, 1]},
            max_fpr=0.5,
        )
    assert table.index.tolist() == ["sex = f, old = 1", "sex = m, old = 0", "sex = (missing), old = 1"]


def test_equal_scores_have_no_rates():
    with pytest.warns(
        UndefinedMetricWarning, match="All rates are undefined and set to NaN: all scores are 0.5"
    ):
        table = by_group([0, 1, 0, 1], [0.5] * 4, sensitive_features=list("aabb"))
    assert table[[f"{name}{end}" for name in PEERS for end in ("", "_low", "_high")]].isna().all(axis=None)
    assert table["rows"].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_fpr": 1.5}, r"`max_fpr` must be in \(0, 1\), got 1.5"),
        ({"threshold": float("nan")}, "`threshold` must be a number, got nan"),
        ({"confidence": 1.0}, r"`confidence` must be in \(0, 1\), got 1.0"),
        ({"min_group_size": -5}, "`min_group_size` must be at least 0, got -5"),
        ({"scores": [0.1]}, r"`scores` must have as many rows as `y_true` \(4\), got 1"),
    ],
)
def test_bad_input(changes, message):
    arguments = {
        "y_true": [0, 1, 0, 1],
        "scores": [0.1, 0.2, 0.3, 0.4],
        "sensitive_features": list("aabb"),
        **changes,
    }
    with pytest.raises(ValueError, match=message):
        by_group(**arguments)
