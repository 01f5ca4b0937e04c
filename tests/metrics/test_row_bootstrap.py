import itertools
from collections import Counter

import numpy as np
import pytest

from fado.metrics._bootstrap import resample
from fado.metrics._row_bootstrap import resample_rows
from fado.metrics._threshold import lowest_threshold

# Cells of 3, 2, 2 and 1 rows: few enough to list every resample; scores are tied within and across cells.
POSITIVE = np.array([False, True, False, False, False, True, True, False])
SCORES = np.array([0.1, 0.6, 0.4, 0.6, 0.4, 0.4, 0.7, 0.8])
CODES = np.array([0, 1, 0, 0, 1, 0, 0, 1])
WEIGHTS = np.array([1.0, 2.0, 4.0, 0.5, 3.0, 1.0, 5.0, 1.0])  # whose sums are exact


def law_by_listing(max_fpr, threshold):
    """Return the probability of every outcome, from all resamples of all cells."""
    kinds = list(itertools.product((0, 1), (False, True)))
    cells = [np.flatnonzero((group == CODES) & (label == POSITIVE)).tolist() for group, label in kinds]
    law = Counter()
    for draws in itertools.product(*(itertools.product(cell, repeat=len(cell)) for cell in cells)):
        rows = np.array([*itertools.chain(*draws)])
        chosen = threshold
        if threshold is None:
            over = lowest_threshold(POSITIVE[rows], SCORES[rows], max_fpr, WEIGHTS[rows])
            # Of the thresholds with these predictions, the lowest among all scores.
            refused = SCORES[rows][SCORES[rows] < over].max()
            chosen = min(score for score in [*SCORES, np.nextafter(SCORES.max(), 1)] if score > refused)
        members, events = [], []
        for group, label in kinds:
            own = rows[(CODES[rows] == group) & (POSITIVE[rows] == label)]
            members.append(WEIGHTS[own].sum())
            events.append(WEIGHTS[own][SCORES[own] >= chosen].sum())
        law[(float(chosen), *members, *events)] += 1
    return {outcome: count / law.total() for outcome, count in law.items()}


@pytest.mark.parametrize(
    ("max_fpr", "threshold"), [(0.2, None), (0.4, None), (0.7, None), (0.4, 0.6), (0.4, 0.5)]
)
def test_law_is_that_of_drawing_rows_with_their_weights(max_fpr, threshold):
    n_boot = 40_000
    thresholds, counts = resample_rows(
        POSITIVE,
        SCORES,
        CODES,
        2,
        weights=WEIGHTS,
        max_fpr=max_fpr,
        threshold=threshold,
        n_boot=n_boot,
        rng=np.random.default_rng(0),
    )
    members = np.stack([counts.negatives, counts.positives], axis=-1).reshape(n_boot, 4)
    events = np.stack([counts.false_positives, counts.true_positives], axis=-1).reshape(n_boot, 4)
    drawn = Counter(map(tuple, np.column_stack([thresholds, members, events]).tolist()))
    law = law_by_listing(max_fpr, threshold)
    assert set(drawn) <= set(law)
    for outcome, probability in law.items():
        noise = np.sqrt(probability * (1 - probability) / n_boot)
        assert drawn[outcome] / n_boot == pytest.approx(probability, abs=5 * noise)


def test_equal_weights_have_the_law_of_counts():
    rng = np.random.default_rng(0)
    positive, codes = rng.random(300) < 0.4, rng.integers(0, 3, 300)
    scores = np.round(rng.normal(size=300) + positive, 1).astype(np.float32)
    options = {"max_fpr": 0.2, "threshold": None, "n_boot": 4_000}
    by_law = resample(positive, scores, codes, 3, **options, rng=np.random.default_rng(1))
    by_rows = resample_rows(
        positive, scores, codes, 3, **options, weights=np.ones(300), rng=np.random.default_rng(2)
    )
    assert (by_rows[1].negatives == by_law[1].negatives).all()
    assert (by_rows[1].positives == by_law[1].positives).all()
    assert by_rows[0].dtype == by_law[0].dtype == np.float32
    for own, peer in [
        (by_rows[0], by_law[0]),
        (by_rows[1].false_positives, by_law[1].false_positives),
        (by_rows[1].true_positives, by_law[1].true_positives),
    ]:
        own, peer = own.astype(np.float64), peer.astype(np.float64)
        noise = np.sqrt(own.var(axis=0) / 2_000)  # of a difference of two means over 4,000
        assert (np.abs(own.mean(axis=0) - peer.mean(axis=0)) < 5 * noise).all()
        np.testing.assert_allclose(own.std(axis=0), peer.std(axis=0), rtol=0.1)


def test_no_resample_exceeds_the_budget():
    rng = np.random.default_rng(1)
    positive, codes = rng.random(500) < 0.3, rng.integers(0, 4, 500)
    scores, weights = rng.integers(0, 12, 500).astype(np.float32), rng.gamma(1.0, size=500)
    thresholds, counts = resample_rows(
        positive,
        scores,
        codes,
        4,
        weights=weights,
        max_fpr=0.1,
        threshold=None,
        n_boot=500,
        rng=np.random.default_rng(0),
    )
    rates = counts.false_positives.sum(axis=1) / counts.negatives.sum(axis=1)
    assert (rates <= 0.1 * (1 + 1e-12)).all()  # up to the rounding of sums
    assert set(thresholds.tolist()) <= {*scores.tolist(), float(np.nextafter(np.float32(11), np.float32(12)))}


def test_groups_and_cells_without_rows_have_no_weight():
    positive, codes = np.array([False, False, True]), np.array([0, 2, 2])
    _, counts = resample_rows(
        positive,
        np.array([0.1, 0.2, 0.3]),
        codes,
        4,
        weights=np.array([1.0, 2.0, 4.0]),
        max_fpr=0.4,
        threshold=0.15,
        n_boot=2,
        rng=np.random.default_rng(0),
    )
    assert counts.negatives.tolist() == [[1, 0, 2, 0]] * 2
    assert counts.positives.tolist() == [[0, 0, 4, 0]] * 2
    assert counts.false_positives.tolist() == [[0, 0, 2, 0]] * 2
    assert counts.true_positives.tolist() == [[0, 0, 4, 0]] * 2


def test_blocks_of_resamples_change_nothing(monkeypatch):
    def draw():
        return resample_rows(
            POSITIVE,
            SCORES,
            CODES,
            2,
            weights=WEIGHTS,
            max_fpr=0.4,
            threshold=None,
            n_boot=50,
            rng=np.random.default_rng(0),
        )

    thresholds, counts = draw()
    monkeypatch.setattr("fado.metrics._row_bootstrap._ROWS_AT_ONCE", 20)
    in_blocks, block_counts = draw()
    assert in_blocks.tolist() == thresholds.tolist()
    assert all((own == other).all() for own, other in zip(counts, block_counts, strict=True))
