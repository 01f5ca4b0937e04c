from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.special import beta as beta_function

from fado.valuation.shapley._semivalues import (
    LeaveOneOut,
    Moments,
    Subsets,
    Walks,
    estimate,
    generator_of,
    position_weights,
    precision_of,
    walk_ends,
)


def majority(members):
    """Five voters of weights 3, 2, 1, 1, 0, four of seven votes win."""
    return np.array([float(np.array([3, 2, 1, 1, 0])[members].sum() >= 4)])


def shoes(members):
    """Two left shoes, 0 and 1, and one right shoe, 2: a pair is worth 1."""
    return np.array([float(2 in members and len(members) > 1)])


def airport(members):
    """Landing strips of lengths 1, 2, 2, 5: a set costs what its longest one does."""
    return np.array([float(np.array([1, 2, 2, 5])[members].max(initial=0))])


class RandomGame:
    """Every set of players has a worth of its own, and a second one."""

    def __init__(self, n_players, seed=0):
        self.n_players = n_players
        self.worths = np.random.default_rng(seed).normal(size=(2**n_players, 2))

    def __call__(self, members):
        return self.worths[int((1 << np.asarray(members, dtype=np.int64)).sum())]


def brute_force(game, n_players, weight):
    """Sum over all sets without a player of a size's weight times what the player adds."""
    values = []
    for player in range(n_players):
        others = [own for own in range(n_players) if own != player]
        total = 0.0
        for size in range(n_players):
            for members in combinations(others, size):
                added = game(np.array([*members, player])) - game(np.array(members, dtype=int))
                total = total + weight(size) * added
        values.append(total)
    return np.array(values)


def shapley_weight(n_players):
    return lambda size: 1 / n_players / comb(n_players - 1, size)


def beta_weight(n_players, a, b):
    return lambda size: beta_function(size + b, n_players - 1 - size + a) / beta_function(a, b)


def assert_within_errors(moments, exact, most=4.5):
    assert (np.abs(moments.mean - exact) <= most * moments.standard_error + 1e-12).all()


# A voter of one or two votes is pivotal after the first voter alone, and after two others: 4 of 24 orders.
@pytest.mark.parametrize(
    ("game", "values"),
    [
        (majority, [1 / 2, 1 / 6, 1 / 6, 1 / 6, 0]),
        (shoes, [1 / 6, 1 / 6, 4 / 6]),
        (airport, [1 / 4, 7 / 12, 7 / 12, 7 / 12 + 3]),
    ],
)
def test_walks_find_the_shapley_values_of_games_with_closed_forms(game, values):
    exact = np.array(values)[:, None]
    np.testing.assert_allclose(brute_force(game, len(values), shapley_weight(len(values))), exact, atol=1e-12)
    moments = estimate(game, Walks(len(values)), len(values), 2000, seed=1)
    assert_within_errors(moments, exact)
    assert moments.standard_error.max() < 0.05


def test_walks_are_efficient_symmetric_and_fair_to_null_players():
    game, n_players = RandomGame(5), 6

    def with_null(members):
        return game(members[members < 5])

    moments = estimate(with_null, Walks(n_players), n_players, 50, seed=0)
    np.testing.assert_allclose(moments.mean.sum(axis=0), game(np.arange(5)) - game(np.arange(0)))
    assert (moments.mean[5] == 0).all()
    assert (moments.standard_error[5] == 0).all()


@pytest.mark.parametrize("beta", [(1, 1), (16, 1), (1, 4), (2.5, 0.5)])
def test_walks_find_shapley_and_beta_values_of_any_game(beta):
    game = RandomGame(6)
    exact = brute_force(game, 6, beta_weight(6, *beta))
    assert_within_errors(estimate(game, Walks(6, beta=beta), 6, 1500, seed=2), exact)


def test_subsets_find_banzhaf_values():
    game = RandomGame(7)
    exact = brute_force(game, 7, lambda size: 0.5**6)
    moments = estimate(game, Subsets(7), 7, 2000, seed=3)
    assert_within_errors(moments, exact)
    assert (moments.count == 2000).all()


def test_leave_one_out_is_exact():
    game = RandomGame(5)
    moments = estimate(game, LeaveOneOut(5), 5, 5, seed=0)
    everyone = np.arange(5)
    expected = [game(everyone) - game(np.delete(everyone, player)) for player in everyone]
    np.testing.assert_array_equal(moments.mean, expected)
    assert (moments.count == 1).all()
    assert np.isnan(moments.standard_error).all()


def test_position_weights_are_those_of_the_beta_semivalue():
    sizes = np.arange(8)
    weights = [8 * comb(7, size) * beta_weight(8, 16, 1)(size) for size in sizes]
    np.testing.assert_allclose(position_weights(8, 16, 1), weights)
    assert position_weights(2000, 16, 1).mean() == pytest.approx(1)
    np.testing.assert_allclose(position_weights(2000, 1, 1), 1)


@pytest.mark.parametrize(("n_players", "n_steps"), [(1, 1), (7, 7), (7, 3), (101, 50), (5000, 50), (51, 50)])
def test_steps_grow_and_end_with_all_players(n_players, n_steps):
    ends = walk_ends(n_players, n_steps)
    sizes = np.diff(ends, prepend=0)
    assert len(ends) == n_steps
    assert ends[-1] == n_players
    assert (sizes >= 1).all()
    assert sizes[0] <= sizes[-1]


def test_steps_of_several_players_value_additive_games_rightly():
    worths = np.linspace(-1, 2, 30)

    def additive(members):
        return worths[members].sum(keepdims=True)

    moments = estimate(additive, Walks(30, n_steps=6), 30, 2000, seed=4)
    assert_within_errors(moments, worths[:, None])
    assert np.polyfit(worths, moments.mean.ravel(), 1)[0] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("n_steps", [1, 4, 8])
def test_steps_of_several_players_are_efficient_in_any_game(n_steps):
    game = RandomGame(9)
    moments = estimate(game, Walks(9, n_steps=n_steps), 9, 40, seed=0)
    np.testing.assert_allclose(moments.mean.sum(axis=0), game(np.arange(9)) - game(np.arange(0)))


def test_a_walk_ends_once_worths_stay_close_to_the_full_one():
    def saturated(members):
        return np.array([min(len(members), 10) / 10])

    worths, n_fits = Walks(50, truncation=0.01).evaluate(saturated, np.arange(50))
    assert n_fits == 14  # the tenth to fourteenth are alike
    np.testing.assert_array_equal(worths[10:], np.ones((41, 1)))
    _, all_fits = Walks(50).evaluate(saturated, np.arange(50))
    assert all_fits == 49


def test_a_walk_goes_on_while_one_of_several_worths_moves():
    def half_saturated(members):
        return np.array([min(len(members), 10) / 10, len(members) / 50])

    _, n_fits = Walks(50, truncation=0.01).evaluate(half_saturated, np.arange(50))
    assert n_fits == 49


@pytest.mark.parametrize("sampler", [Walks(6), Walks(6, n_steps=3), Subsets(6)])
def test_standard_errors_cover_the_exact_values(sampler):
    game = RandomGame(6)
    weight = (lambda size: 0.5**5) if isinstance(sampler, Subsets) else shapley_weight(6)
    exact = brute_force(game, 6, weight)
    if sampler.batch == 20:  # steps change the target a little: take the mean of a long run
        exact = estimate(game, sampler, 6, 6000, seed=99).mean
    runs = [estimate(game, sampler, 6, 100, seed=seed) for seed in range(40)]
    covered = np.mean([np.abs(run.mean - exact) <= 2 * run.standard_error for run in runs])
    assert 0.91 < covered < 0.99


def test_moments_are_those_of_numpy():
    figures = np.random.default_rng(0).normal(size=(12, 3, 2))
    moments = Moments(4, 2)
    for own in figures:
        moments.add(np.array([2, 0, 1]), own)
    np.testing.assert_allclose(moments.mean[[2, 0, 1]], figures.mean(axis=0))
    np.testing.assert_allclose(moments.standard_error[[2, 0, 1]], figures.std(axis=0, ddof=1) / np.sqrt(12))
    assert moments.count.tolist() == [12, 12, 12, 0]
    assert np.isnan(moments.standard_error[3]).all()


def test_moments_go_on_where_they_ended():
    figures = np.random.default_rng(0).normal(size=(12, 3, 2))
    rows = np.arange(3)
    whole, half = Moments(3, 2), Moments(3, 2)
    for own in figures:
        whole.add(rows, own)
    for own in figures[:5]:
        half.add(rows, own)
    resumed = Moments.resume(half.mean, half.standard_error, half.count)
    for own in figures[5:]:
        resumed.add(rows, own)
    np.testing.assert_allclose(resumed.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(resumed.standard_error, whole.standard_error, rtol=1e-12)


def test_precision_is_that_of_the_worst_worth():
    mean = np.column_stack([np.linspace(0, 1, 101), np.linspace(0, 2, 101), np.linspace(0, 3, 101)])
    error = np.column_stack([np.full(101, 0.09), np.full(101, 0.09), np.zeros(101)])  # the last is exact
    moments = Moments.resume(mean, error, np.full(101, 5))
    assert precision_of(moments) == pytest.approx(0.1)


def test_contributions_of_nothing_tell_nothing_of_the_precision():
    mean, error = np.zeros((101, 2)), np.zeros((101, 2))
    mean[:, 0], error[:, 0] = np.linspace(0, 1, 101), 0.09
    assert precision_of(Moments.resume(mean, error, np.full(101, 5))) == np.inf


def test_a_draw_depends_on_seed_and_number_alone():
    first, again = generator_of(3, 7).random(4), generator_of(3, 7).random(4)
    np.testing.assert_array_equal(first, again)
    assert (first != generator_of(3, 8).random(4)).any()
    assert (first != generator_of(4, 7).random(4)).any()
