import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from fado.metrics._limits import _Moving, effective_sizes, ratio_limits, share_limits


@pytest.mark.parametrize("error", [0.025, 0.05, 0.0005])
@pytest.mark.parametrize(("events", "members"), [(0, 11), (11, 11), (1, 50), (7, 20), (250, 5000)])
def test_limits_of_a_share_are_those_of_scipy(events, members, error):
    low, high = share_limits(np.array([events / members]), np.array([members]), error)
    peer = binomtest(events, members).proportion_ci(1 - 2 * error, method="exact")
    assert low[0] == pytest.approx(peer.low, abs=1e-12)
    assert high[0] == pytest.approx(peer.high, abs=1e-12)


def test_a_share_without_members_has_no_limits():
    low, high = share_limits(np.array([np.nan, 0.5]), np.array([0, 4]), 0.025)
    assert np.isnan([low[0], high[0]]).all()
    assert 0 < low[1] < 0.5 < high[1] < 1


def test_effective_sizes_by_hand():
    def size(weights, events):
        weights, events = np.array(weights, dtype=float), np.array(events)
        return float(
            effective_sizes(
                weights[events].sum(), weights.sum(), (weights[events] ** 2).sum(), (weights**2).sum()
            )
        )

    assert size([1, 1, 1, 1], [True, False, False, False]) == pytest.approx(4)
    assert size([2.5] * 6, [True] * 6) == pytest.approx(6)
    # Without events the weights alone tell: 6 squared over 12.
    assert size([3, 1, 1, 1], [False] * 4) == pytest.approx(3)
    # The share is half; its variance (9 + 3) / 4 / 36 is that of three rows.
    assert size([3, 1, 1, 1], [True, False, False, False]) == pytest.approx(3)
    # An event that weighs 4 of 8: a variance of (16 + 4) / 4 / 64 is that of 3.2 rows.
    assert size([4, 1, 1, 1, 1], [True, False, False, False, False]) == pytest.approx(0.25 * 64 / 5)
    assert effective_sizes(*(np.array(0.0),) * 4) == 0.0


def test_a_ratio_to_a_known_share_has_the_limits_of_the_other_share():
    shares, sizes = (
        np.array([0.02, 0.1]),
        np.array([200.0, 1e10]),
    )  # NaN of many more, before scipy 1.17
    low, high = ratio_limits(shares, sizes, 0.025)
    own = share_limits(shares[:1], sizes[:1], 0.025)
    assert low == pytest.approx(own[0][0] / 0.1, rel=1e-4)
    assert high == pytest.approx(own[1][0] / 0.1, rel=1e-4)


def test_two_shares_by_hand():
    # Donner and Zou (2012), with Clopper and Pearson's limits of 20 and of 40 of 200.
    (l1, l2), (u1, u2) = share_limits(np.array([0.1, 0.2]), np.array([200.0, 200.0]), 0.025)
    root = np.sqrt(0.02**2 - l1 * (0.2 - l1) * u2 * (0.4 - u2))
    expected_low = (0.02 - root) / (u2 * (0.4 - u2))
    root = np.sqrt(0.02**2 - u1 * (0.2 - u1) * l2 * (0.4 - l2))
    expected_high = (0.02 + root) / (l2 * (0.4 - l2))
    low, high = ratio_limits(np.array([0.1, 0.2]), np.array([200.0, 200.0]), 0.025)
    assert (low, high) == pytest.approx((expected_low, expected_high))


def test_no_events_are_no_certainty():
    # None of 100 beside 100 of 1,000: the lower group may have up to 3.6 %.
    low, high = ratio_limits(np.array([0.0, 0.1]), np.array([100.0, 1000.0]), 0.025)
    assert low == 0.0
    assert 0.36 < high < 0.42
    assert ratio_limits(np.array([0.0, 0.0]), np.array([100.0, 1000.0]), 0.025) == (0.0, 1.0)


@pytest.mark.parametrize("sizes", [(20, 30), (8, 60)])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("ratio", [1.0, 0.7, 0.3])
def test_exact_coverage_for_two_small_groups(sizes, share, ratio):
    # Over all possible tables of the two binomials, with their probabilities.
    true = np.array([share * ratio, share])
    missed = 0.0
    for events in itertools.product(range(sizes[0] + 1), range(sizes[1] + 1)):
        probability = binom.pmf(events, sizes, true).prod()
        if probability > 1e-9:
            low, high = ratio_limits(np.array(events) / sizes, np.array(sizes, dtype=float), 0.025)
            missed += probability * (not low - 1e-12 <= ratio <= high + 1e-12)
    assert missed <= 0.055


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_limits_hold_the_estimate_and_widen_with_confidence(data):
    n_groups = data.draw(st.integers(2, 6))
    sizes = np.array(data.draw(st.lists(st.integers(1, 500), min_size=n_groups, max_size=n_groups)))
    events = np.array([data.draw(st.integers(0, int(size))) for size in sizes])
    shares = events / sizes
    low, high = ratio_limits(shares, sizes.astype(float), 0.025)
    assert 0 <= low <= high <= 1
    if shares.max() > 0:
        assert low <= shares.min() / shares.max() <= high
    wider = ratio_limits(shares, sizes.astype(float), 0.005)
    assert wider[0] <= low + 1e-12
    assert high <= wider[1] + 1e-12
    drawn = np.tile(shares, (50, 1))  # a threshold that is sure widens nothing
    assert ratio_limits(shares, sizes.astype(float), 0.025, drawn) == pytest.approx((low, high))


def test_what_varies_with_the_threshold_widens_the_limits():
    shares, sizes = np.array([0.05, 0.1]), np.array([1000.0, 1000.0])
    low, high = ratio_limits(shares, sizes, 0.025)
    factors = np.exp(np.linspace(-1, 1, 201))
    together = shares * factors[:, np.newaxis]  # both alike: the ratio stays
    assert ratio_limits(shares, sizes, 0.025, together) == pytest.approx((low, high), abs=0.002)
    apart = np.column_stack([shares[0] * factors, np.full(201, shares[1])])
    wider = ratio_limits(shares, sizes, 0.025, apart)
    # Squares of the distances on the scale of logarithms add up; that of the draws ends at 0.95.
    assert np.log(0.5 / wider[0]) == pytest.approx(np.hypot(np.log(0.5 / low), 0.95), abs=0.03)
    assert wider[1] == 1.0


def test_blocks_of_pairs_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = rng.integers(50, 500, 9).astype(float)
    shares = rng.binomial(sizes.astype(int), 0.2) / sizes
    drawn = shares * rng.uniform(0.8, 1.2, (40, 9))
    whole = ratio_limits(shares, sizes, 0.025), ratio_limits(shares, sizes, 0.025, drawn)
    monkeypatch.setattr("fado.metrics._limits._PAIRS_AT_ONCE", 20)
    assert (ratio_limits(shares, sizes, 0.025), ratio_limits(shares, sizes, 0.025, drawn)) == whole


@pytest.fixture
def many_groups():
    rng = np.random.default_rng(0)
    sizes = rng.integers(2000, 9000, 150)
    shares = rng.binomial(sizes, np.repeat([0.02, 0.06], [20, 130])) / sizes
    drawn = np.clip(shares + rng.normal(0, 0.0003, (50, 150)), 0, 1)
    return shares, sizes.astype(float), drawn


def test_pairs_that_are_passed_over_would_change_nothing(many_groups, monkeypatch):
    shares, sizes, drawn = many_groups
    limits = ratio_limits(shares, sizes, 0.025, drawn)
    assert 0 < limits[0] < limits[1] < 1
    monkeypatch.setattr(
        _Moving,
        "_least_of",
        lambda self, widened, floor, pairs, known: min(known, float(widened(*pairs).min())),
    )
    assert ratio_limits(shares, sizes, 0.025, drawn) == limits


def test_few_pairs_are_looked_at_draw_by_draw(many_groups, monkeypatch):
    looked_at = []
    ratios = _Moving._ratios

    def counted(self, above, below):
        looked_at.append(len(above))
        return ratios(self, above, below)

    monkeypatch.setattr(_Moving, "_ratios", counted)
    ratio_limits(*many_groups[:2], 0.025, many_groups[2])
    assert 0 < sum(looked_at) < 150 * 149 / 20
