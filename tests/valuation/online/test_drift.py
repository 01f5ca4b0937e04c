"""Drift is told where rows have changed, and hardly ever where they have not."""

import math

import numpy as np
import pytest
from tests.valuation.same import messages_of

from fado import OnlineEntropy
from fado.valuation.online._drift import FALSE_ALARMS, Pool, Reference, check_drift


def test_a_reference_sums_doubts_up():
    reference = Reference.of(np.array([0.0, 0.0, 0.0, 1.0, np.nan]))
    assert (reference.n_rows, reference.mean) == (4, 0.25)
    assert reference.deviation == pytest.approx(math.sqrt(3) / 4)
    assert reference.skewness == pytest.approx(2 / math.sqrt(3))  # (1 - 2p) / sqrt(p (1 - p))
    assert reference.rows_needed == 100
    assert Reference(10, 0.01, 0.1, skewness=10.0).rows_needed == 2_500


def test_batches_are_put_together_until_they_are_enough():
    reference = Reference(10_000, 0.2, 0.3, 1.0)
    pools, checks = check_drift({"y": np.full(60, 0.2)}, {"y": reference}, {}, 1)
    assert (checks, pools["y"].n_rows) == ([], 60)
    pools, (check,) = check_drift({"y": np.full(60, 0.3)}, {"y": reference}, pools, 2)
    assert (pools, check.batch, check.rows, check.drift) == ({}, 2, 120, False)
    assert check.loss == pytest.approx(0.25)
    assert check.expected == pytest.approx(0.2)
    assert check.statistic == pytest.approx(0.05 / (0.3 * math.sqrt(1 / 120 + 2 / 10_000)))


def test_each_batch_is_held_against_the_models_of_its_time():
    pool = Pool().add(np.array([0.5, np.nan]), Reference(9, 0.25, 0.1, 0.0))
    pool = pool.add(np.array([0.5]), Reference(9, 0.75, 0.1, 0.0))
    assert (pool.n_rows, pool.doubt, pool.expected) == (2, 1.0, 1.0)


def test_doubts_that_never_vary_and_doubts_that_nobody_knows():
    sure = Reference(1_000, 0.0, 0.0, 0.0)
    _, (same,) = check_drift({"y": np.zeros(200)}, {"y": sure}, {}, 1)
    _, (other,) = check_drift({"y": np.full(200, 0.1)}, {"y": sure}, {}, 1)
    assert (same.drift, other.drift, other.statistic) == (False, True, math.inf)
    unknown = np.full(200, np.nan)
    assert check_drift({"y": unknown}, {"y": Reference.of(unknown)}, {}, 1)[1] == []


@pytest.mark.parametrize("shape", [(2.0, 5.0), (0.03, 3.0)], ids=["plain", "rare"])
def test_false_alarms_are_as_rare_as_is_said(shape):
    rng = np.random.default_rng(0)
    reference = Reference.of(rng.beta(*shape, size=100_000))
    looks, n_rows = 3_000, reference.rows_needed
    doubts = np.sort(rng.beta(*shape, size=100_000))
    drawn = (doubts[rng.integers(len(doubts), size=n_rows)] for _ in range(looks))
    told = [check_drift({"y": own}, {"y": reference}, {}, 1)[1][0].drift for own in drawn]
    assert sum(told) <= 4 * FALSE_ALARMS * looks  # 3 are expected of 3,000


def follow(turned_from, n_batches=6, target=True):
    """Follow a stream whose target, or attribute, turns round at some batch."""
    rng, online = np.random.default_rng(1), OnlineEntropy(n_bags=5, random_state=0)
    for number in range(1, n_batches + 1):
        X = rng.normal(size=(300, 3))
        sign = -1 if number >= turned_from else 1
        y = (sign if target else 1) * X[:, 0] + rng.normal(size=300) > 0
        z = (1 if target else sign) * X[:, 1] + rng.normal(size=300) > 0
        online.learn(X, y, sensitive_features={"z": z})
    return online


def test_rows_that_stay_alike_raise_no_alarm():
    told = follow(turned_from=99).drift_
    assert not told["drift"].any()
    assert set(told["batch"]) == set(range(2, 7))
    assert told.columns.tolist() == ["batch", "variable", "rows", "loss", "expected", "statistic", "drift"]
    assert abs(told["loss"] - told["expected"]).mean() < 0.03


@pytest.mark.parametrize("target", [True, False])
def test_drift_is_told_as_long_as_it_lasts_and_for_the_variable_that_has_changed(target):
    with pytest.warns(UserWarning, match="Drift") as caught:
        online = follow(turned_from=4, n_batches=5, target=target)
    name = "y" if target else "z"
    for batch, warning in zip((4, 5), caught, strict=True):
        message = str(warning.message)
        assert message.startswith(f"Drift in batch {batch}: the uncertainty about labels of '{name}' is ")
        assert "forget" in message
    drift = online.drift_.query("drift")
    assert (drift["variable"] == name).all()
    assert drift["batch"].tolist() == [4, 5]


def test_models_are_rebuilt_at_once_and_forgetting_helps():
    with pytest.warns(UserWarning, match="Drift in batch 4"):
        online = follow(turned_from=4, n_batches=4)
    assert online.models_.n_rows == online.n_rows_ == 4 * 300
    X = np.random.default_rng(2).normal(size=(500, 3))
    surest = X[:, 0].argmax(), X[:, 0].argmin()
    believed = online.models_.probabilities(X, "y")[surest, 1]
    assert believed[0] > 0.5 > believed[1]  # most rows are from before
    forgot = online.forget(300).models_.probabilities(X, "y")[surest, 1]
    assert forgot[0] < 0.5 < forgot[1]


def test_an_alarm_that_is_an_error_loses_nothing():
    online = follow(turned_from=99, n_batches=2)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    with pytest.raises(UserWarning, match="Drift in batch 3"):
        online.learn(X, X[:, 0] < 0, sensitive_features={"z": X[:, 1] > 0})
    assert online.n_rows_ == 3 * 300


def test_what_is_wrong_with_all_batches_is_told_once():
    rng, online = np.random.default_rng(1), OnlineEntropy(n_bags=5, refresh=0.0, random_state=0)
    warned = []
    for _ in range(3):
        X = rng.normal(size=(100, 3))
        batch = np.column_stack([X, X[:, 0] > 0])  # the label is among the features
        warned += messages_of(online.learn, batch, X[:, 0] > 0)
    assert online.models_.n_rows == 300
    (message,) = warned
    assert "target" in message
