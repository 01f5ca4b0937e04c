import math

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from fado.exploration import _biases as _intervals


def test_wilson_interval_of_a_share():
    # Newcombe (1998), Statistics in Medicine 17: 81 of 263.
    assert _intervals.share(81, 263) == pytest.approx((0.3080, 0.2553, 0.3662), abs=5e-5)
    assert _intervals.share(0, 20).low == 0.0
    assert _intervals.share(20, 20).high == 1.0
    assert all(map(math.isnan, _intervals.share(0, 0)))


def test_newcombe_interval_of_a_difference_of_shares():
    # Newcombe (1998), method 10: 56 of 70 against 48 of 80.
    gap = _intervals.share_gap(_intervals.share(56, 70), _intervals.share(48, 80))
    assert gap == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)


def test_ratio_of_counts_has_a_symmetric_interval_of_logarithms():
    ratio = _intervals.count_ratio(400, 100)
    assert ratio.number == 4
    assert math.log(ratio.high / 4) == pytest.approx(1.96 * math.sqrt(1 / 400 + 1 / 100), rel=1e-4)
    assert ratio.low * ratio.high == pytest.approx(16)


def test_auc_and_its_delong_interval():
    rng = np.random.default_rng(0)
    positive = rng.random(200) < 0.3
    scores = np.round(rng.normal(size=200) + positive, 1)  # with ties
    area = _intervals.auc(scores, positive)
    wins = (scores[positive][:, None] > scores[~positive]) + 0.5 * (
        scores[positive][:, None] == scores[~positive]
    )
    error = math.sqrt(
        wins.mean(axis=1).var(ddof=1) / positive.sum() + wins.mean(axis=0).var(ddof=1) / (~positive).sum()
    )
    assert area.number == pytest.approx(roc_auc_score(positive, scores))
    assert area.high - area.number == pytest.approx(1.959964 * error, rel=1e-6)
    assert math.isnan(_intervals.auc(scores[:3], np.array([True, False, False])).number)


def test_rank_correlation_is_spearmans():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 20, 300)
    second = first + rng.normal(scale=10, size=300)
    found = _intervals.rank_correlation(first, second)
    assert found.number == pytest.approx(spearmanr(first, second).statistic)
    assert found.low < found.number < found.high
    assert math.isnan(_intervals.rank_correlation(np.ones(10), second[:10]).number)


def test_mean_difference_and_skill():
    first, second = _intervals.mean(np.array([1.0, 2.0, 3.0])), _intervals.mean(np.array([0.0, 1.0]))
    assert first.number == 2
    assert first.high - 2 == pytest.approx(1.959964 / math.sqrt(3))
    gap = _intervals.difference(first, second)
    assert gap.number == 1.5
    assert gap.high - 1.5 == pytest.approx(1.959964 * math.hypot(1 / math.sqrt(3), 0.5))
    skill = _intervals.skill(np.array([1.0, 1.0, 2.0, 0.0]), np.array([2.0, 2.0, 3.0, 1.0]))
    assert skill.number == pytest.approx(0.5)
    # of the four differences 1 - 0.5 * 2, 1 - 0.5 * 2, 2 - 0.5 * 3, 0 - 0.5 * 1
    assert skill.high - 0.5 == pytest.approx(1.959964 * np.std([0, 0, 0.5, -0.5], ddof=1) / 2 / 2)


def test_skill_of_perfect_models_is_one():
    assert _intervals.skill(np.zeros(5), np.arange(1.0, 6.0)).number == 1
