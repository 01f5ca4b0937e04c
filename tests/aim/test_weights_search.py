"""The search on groups whose rates answer in a known way."""

import numpy as np
import pytest

from fado.aim._weights import Search, Step

PLAIN = Search(0.8, by_bound=False, max_fits=12)


def answer(log_factors, base, slope, *, noise=None, width=0.0):
    """Rates fall by a power of the factors; performance by the square of what was moved."""
    factors = np.asarray(log_factors)
    log_rates = np.asarray(base) - slope * (factors - factors.mean())
    if noise is not None:
        log_rates = log_rates + noise.normal(scale=0.03, size=len(base))
    ratio = float(np.exp(log_rates.min() - log_rates.max()))
    tpr = 0.6 - 0.01 * float(np.ptp(factors)) ** 2
    errors = tuple([0.05] * len(base))
    return Step(tuple(factors.tolist()), tuple(log_rates.tolist()), errors, tpr, ratio, ratio * (1 - width))


def run(search, base, slope, **kwargs):
    steps, factors = [], np.zeros(len(base))
    while factors is not None:
        steps.append(answer(factors, base, slope, **kwargs))
        factors = search.next(steps)
    return steps


@pytest.mark.parametrize("slope", [0.15, 0.3, 0.6, 1.0, 1.5, 2.4])
@pytest.mark.parametrize("start", [0.1, 0.3, 0.6, 0.79])
@pytest.mark.parametrize("at_least", [0.8, 0.9, 1.0])
def test_two_groups_come_to_the_line_and_hardly_beyond(slope, start, at_least):
    search = Search(at_least, by_bound=False, max_fits=20)
    steps = run(search, [np.log(start * 0.05), np.log(0.05)], slope)
    best = steps[search.best(steps)]
    reachable = start * np.exp(7 * slope) >= at_least
    if reachable and at_least < 1:
        assert at_least <= best.ratio <= at_least + 0.05
        assert len(steps) <= 8
    assert len(steps) <= 20


@pytest.mark.parametrize(
    ("search", "rates", "slope", "noise", "most_fits", "ratios"),
    [
        (PLAIN, [0.045, 0.05], 0.5, None, 1, (0.8, 1)),  # above the line: left alone
        (Search(0.8, by_bound=False, max_fits=15), [0.02, 0.05, 0.11, 0.03, 0.06], 0.7, None, 10, (0.8, 1)),
        (Search(0.99, by_bound=False, max_fits=3), [0.001, 0.05], 0.2, None, 3, (0, 0.99)),
        *((PLAIN, [0.02, 0.05], 0.5, np.random.default_rng(seed), 12, (0.8, 0.95)) for seed in range(10)),
    ],
)
def test_searches_end_in_time(search, rates, slope, noise, most_fits, ratios):
    steps = run(search, np.log(rates), slope, noise=noise)
    assert len(steps) <= most_fits
    assert ratios[0] <= steps[search.best(steps)].ratio <= ratios[1]


def test_groups_inside_the_band_are_left_alone():
    steps = run(Search(0.5, by_bound=False, max_fits=3), np.log([0.01, 0.05, 0.055, 0.06]), 0.8)
    assert steps[1].log_factors[1] == steps[1].log_factors[2] == steps[1].log_factors[3]


def test_a_bound_asks_for_more_than_an_estimate():
    by_bound = Search(0.8, by_bound=True, max_fits=12)
    steps = run(by_bound, np.log([0.02, 0.05]), 0.5, width=0.1)
    best = steps[by_bound.best(steps)]
    assert best.low >= 0.8
    assert best.ratio > 0.85
    steps = run(by_bound, np.log([0.02, 0.05]), 0.5, width=0.4)  # out of reach: it ends at equal rates
    best = steps[by_bound.best(steps)]
    assert best.ratio > 0.95
    assert not by_bound.reached(best)


def test_rates_that_do_not_answer_end_the_search_within_the_largest_factors():
    steps = run(Search(0.8, by_bound=False, max_fits=100), np.log([0.02, 0.05]), 0.0)
    assert len(steps) < 100
    assert max(np.abs(step.log_factors).max() for step in steps) == 3.5


def test_the_line_is_found_between_two_steps_below_it():
    """Only a narrow range of strengths is above the line, and rates tell nothing of it."""
    steps, factors = [], np.zeros(2)
    while factors is not None:
        ratio = 0.85 if 1.0 < np.ptp(factors) < 2.0 else 0.3
        steps.append(Step(tuple(factors.tolist()), (-4.0, -2.8), (0.1, 0.1), 0.5, ratio, 0.2))
        factors = PLAIN.next(steps)
    assert PLAIN.reached(steps[PLAIN.best(steps)])


def test_a_ratio_just_below_the_line_is_moved_though_smoothed_rates_are_above_it():
    """Half an event more than there are makes rates of few rows more alike than they are."""
    first = Step((0.0, 0.0), (np.log(0.081), np.log(0.1)), (0.3, 0.3), 0.5, 0.791, 0.4)
    proposed = PLAIN.next([first])
    assert proposed[1] - proposed[0] >= 0.1


def test_performance_decides_among_those_above_the_line():
    steps = [
        Step((0.0, 0.0), (0.0, 0.0), (1.0, 1.0), 0.6, 0.5, 0.4),
        Step((-1.0, 1.0), (0.0, 0.0), (1.0, 1.0), 0.50, 0.95, 0.9),
        Step((-0.5, 0.5), (0.0, 0.0), (1.0, 1.0), 0.55, 0.82, 0.7),
        Step((-0.6, 0.6), (0.0, 0.0), (1.0, 1.0), 0.58, float("nan"), float("nan")),
    ]
    assert PLAIN.best(steps) == 2
    assert PLAIN.best([steps[0], steps[3]]) == 0


def test_too_far_is_not_taken_for_not_far_enough():
    """The second step overshot: the other group is now the lower one."""
    steps = [
        Step((0.0, 0.0), (-4.0, -3.0), (0.1, 0.1), 0.6, 0.37, 0.3),
        Step((-1.5, 1.5), (-3.2, -3.8), (0.1, 0.1), 0.55, 0.55, 0.5),
        Step((-1.0, 1.0), (-3.5, -3.6), (0.1, 0.1), 0.57, 0.90, 0.8),
    ]
    proposed = PLAIN.next(steps)
    assert 0 < proposed[1] < 1.0
