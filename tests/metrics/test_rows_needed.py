"""How many rows decide: closed forms, and the same intervals as one check has."""

import numpy as np
import pytest
from scipy.stats import norm

from fado.metrics import GroupCounts, least_times, ratio_interval, rows_needed
from fado.metrics._rows_needed import _many_ratio_intervals


def test_many_intervals_at_once_are_those_of_one_after_another():
    rng = np.random.default_rng(0)
    for n_groups in (2, 3, 7):
        sizes = rng.integers(1, 5_000, (60, n_groups)).astype(float)
        events = rng.binomial(sizes.astype(int), rng.uniform(0, 0.2, (60, 1))).astype(float)
        low, high = _many_ratio_intervals(events, sizes, 0.025)
        expected = [ratio_interval(*counts, 0.025) for counts in zip(events, sizes, strict=True)]
        # from 300 events on they come from the normal distribution
        np.testing.assert_allclose(np.column_stack([low, high]), expected, rtol=5e-3)


def counts_of(a, b, n):
    return GroupCounts(*np.array([[n, n], [n, n], [a, b], [n // 2, n // 2]]))


def test_rows_that_decide_in_four_of_five_tries():
    """With a log ratio that is d +- s above its minimum, n times the rows show N(d, s^2 (1 + 1 / n)).

    They decide if that is more than 1.96 s / sqrt(n) from 0. At d = 0 in four of five: (1.96 / 0.253)^2 - 1.
    """
    line = {"fpr_ratio": 0.8}
    assert rows_needed(counts_of(100, 30, 1_000), line, 0.025) == 1  # are enough
    at_the_line = rows_needed(counts_of(50_000, 40_000, 500_000), line, 0.025)
    assert at_the_line == pytest.approx((norm.ppf(0.975) / norm.ppf(0.6)) ** 2 - 1, rel=0.2)
    error = np.sqrt(0.9 / 50_000 + 0.92 / 39_700)  # of the log ratio of 0.1 and 0.079
    times = np.arange(1, 50, 0.1)
    spread, needed = error * np.sqrt(1 + 1 / times), norm.ppf(0.975) * error / np.sqrt(times)
    far = np.log(0.8 / 0.794)
    decided = norm.sf((needed - far) / spread) + norm.cdf((-needed - far) / spread)
    expected = times[np.argmax(decided >= 0.8)]
    assert 10 < expected < 40
    assert rows_needed(counts_of(50_000, 39_700, 500_000), line, 0.025) == pytest.approx(expected, rel=0.2)
    both = line | {"tpr_ratio": 0.99}  # 0.99 is hard to hold
    equal = counts_of(1_000, 1_000, 10_000)
    assert rows_needed(equal, both, 0.025) > rows_needed(equal, line, 0.025)
    assert rows_needed(counts_of(1, 1, 1_000), line, 0.025) == np.inf


def test_the_least_number_is_found_by_halving():
    assert least_times(lambda times: 0.9, 100) == 1
    assert least_times(lambda times: 0.7, 100) == np.inf
    assert least_times(lambda times: times / 100, 100) == pytest.approx(80, rel=0.05)
