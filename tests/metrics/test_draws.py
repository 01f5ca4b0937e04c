from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom, norm

from fado.metrics._draws import count_at, draw_thresholds
from fado.metrics._rates import count_by_group

# Ten negatives, with ties at 0.4 and 0.8; positives score between and above them.
NEGATIVES = np.array([0.1, 0.2, 0.3, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.8])
POSITIVES = np.array([0.45, 0.75, 0.9])
SCORES = np.concatenate([NEGATIVES, POSITIVES])
POSITIVE = np.arange(13) >= 10
# What the threshold is if so many negatives score above the population's.
AT_COUNT = {0: 0.9, 1: 0.9, 2: 0.75, 3: 0.7, 4: 0.6, 5: 0.45, 6: 0.45, 7: 0.4, 8: 0.3, 9: 0.2, 10: 0.2}


def test_law_is_that_of_a_binomial_number_of_negatives_above():
    n_draws = 40_000
    drawn = draw_thresholds(~POSITIVE, SCORES, share=0.3, n_draws=n_draws, rng=np.random.default_rng(0))
    law = Counter()
    for count, threshold in AT_COUNT.items():
        law[threshold] += binom.pmf(count, 10, 0.3)
    found = Counter(drawn.tolist())
    assert set(found) <= set(law)
    for threshold, probability in law.items():
        noise = np.sqrt(probability * (1 - probability) / n_draws)
        assert found[threshold] / n_draws == pytest.approx(probability, abs=5 * noise)


def test_above_all_scores_there_is_the_next_float():
    scores = np.array([0.5, 0.5, 0.2], dtype=np.float32)
    drawn = draw_thresholds(
        np.array([True, True, False]), scores, share=0.4, n_draws=50, rng=np.random.default_rng(0)
    )
    assert drawn.dtype == np.float32
    assert set(drawn.tolist()) == {float(np.nextafter(np.float32(0.5), np.float32(1)))}


def test_weights_count_by_their_share():
    # The negative at 0.8 weighs half: shares below a half refuse it, shares from there on let it pass.
    scores, weights = np.array([0.8, 0.6, 0.4, 0.9]), np.array([2.0, 1.0, 1.0, 1.0])
    drawn = draw_thresholds(
        np.array([True, True, True, False]),
        scores,
        share=0.3,
        n_draws=20_000,
        rng=np.random.default_rng(0),
        weights=weights,
        n_effective=8 / 3,
    )
    shares = Counter(drawn.tolist())
    # Three effective rows: a share of 0 or 1/3 makes the threshold 0.9, 2/3 makes it 0.8, and 1 makes it 0.6.
    for threshold, probability in {0.9: 0.784, 0.8: 0.189, 0.6: 0.027}.items():
        assert shares[threshold] / 20_000 == pytest.approx(probability, abs=0.015)


@pytest.mark.parametrize("weighted", [False, True])
def test_draws_hold_the_populations_threshold_as_often_as_they_say(weighted):
    rng, held = np.random.default_rng(0), 0
    positive = np.arange(400) >= 300
    for _ in range(400):
        scores = rng.normal(size=400)
        weights = rng.uniform(0.5, 1.5, 400) if weighted else None
        drawn = draw_thresholds(
            ~positive,
            scores,
            share=0.1,
            n_draws=200,
            rng=rng,
            weights=weights,
            n_effective=277,  # 300 / (1 + 1 / 12)
        )
        low, high = np.quantile(drawn, [0.025, 0.975])
        held += low <= norm.isf(0.1) <= high
    assert 0.92 <= held / 400 <= 0.985  # 95 % and three standard errors


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_at_many_thresholds_are_those_at_each(dtype, weighted):
    rng = np.random.default_rng(0)
    positive, codes = rng.random(300) < 0.4, rng.integers(0, 3, 300)
    scores = np.round(rng.normal(size=300), 1).astype(dtype)
    weights = rng.integers(1, 5, 300).astype(float) if weighted else None
    thresholds = np.append(rng.choice(scores, 20), np.nextafter(scores.max(), np.inf, dtype=dtype))
    found = count_at(thresholds, positive, scores, codes, 4, weights)
    for at, threshold in enumerate(thresholds):
        peer = count_by_group(positive, scores >= threshold, codes, 4, weights)
        assert (found.negatives == peer.negatives).all()
        assert (found.positives == peer.positives).all()
        assert found.false_positives[at].tolist() == peer.false_positives.tolist()
        assert found.true_positives[at].tolist() == peer.true_positives.tolist()
