import itertools
from collections import Counter

import numpy as np
import pytest

from fado.metrics._bootstrap import resample
from fado.metrics._threshold import lowest_threshold

# Cells of 3, 2, 2 and 1 rows: few enough to list every resample; scores are tied within and across cells.
POSITIVE = np.array([False, False, False, False, False, True, True, True])
SCORES = np.array([0.1, 0.4, 0.6, 0.4, 0.8, 0.4, 0.7, 0.6])
CODES = np.array([0, 0, 0, 1, 1, 0, 0, 1])


class CountingGenerator:
    """A generator that counts the numbers it draws."""

    def __init__(self):
        self.rng, self.n_drawn = np.random.default_rng(0), 0

    def binomial(self, n, p):
        draws = self.rng.binomial(n, p)
        self.n_drawn += draws.size
        return draws


def law_by_listing(max_fpr, threshold):
    """Return the probability of every outcome, from all resamples of all cells."""
    cells = [
        [row for row in range(8) if CODES[row] == group and POSITIVE[row] == label]
        for group, label in itertools.product((0, 1), (False, True))
    ]
    law = Counter()
    for draws in itertools.product(*(itertools.product(cell, repeat=len(cell)) for cell in cells)):
        rows = np.array([*itertools.chain(*draws)])
        if threshold is None:
            over = lowest_threshold(POSITIVE[rows], SCORES[rows], max_fpr)
            # Of the thresholds with these predictions, the lowest among all scores.
            refused = SCORES[rows][SCORES[rows] < over].max()
            candidates = [*SCORES, np.nextafter(SCORES.max(), 1)]
            chosen = min(score for score in candidates if score > refused)
        else:
            chosen = threshold
        predicted = rows[SCORES[rows] >= chosen]
        counts = Counter(zip(POSITIVE[predicted].tolist(), CODES[predicted].tolist(), strict=True))
        law[(chosen, *(counts[cell] for cell in itertools.product((False, True), (0, 1))))] += 1
    return {outcome: count / law.total() for outcome, count in law.items()}


@pytest.mark.parametrize(
    ("max_fpr", "threshold"), [(0.2, None), (0.4, None), (0.7, None), (0.4, 0.6), (0.4, 0.5)]
)
def test_law_is_that_of_drawing_rows(max_fpr, threshold):
    n_boot = 40_000
    rng = np.random.default_rng(0)
    thresholds, counts = resample(
        POSITIVE, SCORES, CODES, 2, max_fpr=max_fpr, threshold=threshold, n_boot=n_boot, rng=rng
    )
    outcomes = zip(
        thresholds.tolist(),
        *counts.false_positives.T.tolist(),
        *counts.true_positives.T.tolist(),
        strict=True,
    )
    drawn = Counter(outcomes)
    law = law_by_listing(max_fpr, threshold)
    assert set(drawn) <= set(law)
    for outcome, probability in law.items():
        noise = np.sqrt(probability * (1 - probability) / n_boot)
        assert drawn[outcome] / n_boot == pytest.approx(probability, abs=5 * noise)


def test_sizes_of_cells_are_kept():
    rng = np.random.default_rng(0)
    _, counts = resample(POSITIVE, SCORES, CODES, 3, max_fpr=0.4, threshold=None, n_boot=10, rng=rng)
    assert counts.negatives.tolist() == [3, 2, 0]
    assert counts.positives.tolist() == [2, 1, 0]
    assert counts.false_positives.shape == counts.true_positives.shape == (10, 3)
    assert not counts.false_positives[:, 2].any()


def test_no_resample_exceeds_the_budget():
    rng = np.random.default_rng(1)
    positive = rng.random(500) < 0.3
    scores = rng.integers(0, 12, 500).astype(np.float32)
    codes = rng.integers(0, 4, 500)
    thresholds, counts = resample(
        positive, scores, codes, 4, max_fpr=0.1, threshold=None, n_boot=2000, rng=np.random.default_rng(0)
    )
    assert (counts.false_positives.sum(axis=1) / counts.negatives.sum() <= 0.1).all()
    assert set(thresholds.tolist()) <= {*scores.tolist(), float(np.nextafter(np.float32(11), np.float32(12)))}


@pytest.mark.parametrize("n_rows", [1_000, 100_000])
def test_draws_grow_with_the_logarithm_of_the_rows(n_rows):
    rng = np.random.default_rng(0)
    positive, scores, codes = rng.random(n_rows) < 0.1, rng.random(n_rows), rng.integers(0, 3, n_rows)
    counting = CountingGenerator()
    resample(positive, scores, codes, 3, max_fpr=0.05, threshold=None, n_boot=50, rng=counting)
    assert counting.n_drawn <= 50 * 3 * (np.ceil(np.log2(n_rows)) + 1)


def test_resamples_in_several_batches(monkeypatch):
    monkeypatch.setattr("fado.metrics._bootstrap._COUNTS_AT_ONCE", 7)
    rng = np.random.default_rng(0)
    thresholds, counts = resample(
        POSITIVE, SCORES, CODES, 2, max_fpr=0.4, threshold=None, n_boot=4_000, rng=rng
    )
    assert thresholds.shape == (4_000,)
    law = law_by_listing(0.4, None)
    expected = sum(probability * outcome[1] for outcome, probability in law.items())
    assert counts.false_positives[:, 0].mean() == pytest.approx(expected, abs=0.06)
