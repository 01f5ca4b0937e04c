from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import beta as beta_function
from tests.valuation.shapley.oracles import counted_out, distributional_weight, shapley_weight

from fado.valuation.shapley._semivalues import (
    LeaveOneOut,
    RunningMeans,
    Subsets,
    Walks,
    generator_of,
    position_weights,
    precision_of,
    walk_ends,
)


def estimate(game, sampler, n_players, n_draws, seed):
    """Estimate the semivalues of a game by some draws, one after the other."""
    means = RunningMeans(n_players, len(game(np.arange(0))))
    for first in range(0, n_draws, sampler.batch):
        numbers = range(first, min(first + sampler.batch, n_draws))
        drawn = [sampler.draw(number, generator_of(seed, number)) for number in numbers]
        worths = [sampler.evaluate(game, own)[0] for own in drawn]
        for players, contributions in sampler.contributions(drawn, worths):
            means.add(players, contributions)
    return means


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
    exact, n_players = np.array(values)[:, None], len(values)
    np.testing.assert_allclose(counted_out(game, range(n_players)), exact, atol=1e-12)
    moments = estimate(game, Walks(n_players), n_players, 2000, seed=1)
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


@pytest.mark.parametrize(
    ("sampler", "n_players", "per_draw", "weight"),
    [
        *(
            (Walks(6, beta=beta), 6, 6, beta_weight(6, *beta))
            for beta in [(1, 1), (16, 1), (1, 4), (2.5, 0.5)]
        ),
        *(
            (
                Walks(n_players, length=m),
                n_players,
                -(-n_players // m) * m,
                distributional_weight(n_players, m),
            )
            for n_players, m in [(6, 2), (6, 3), (6, 4), (6, 5), (6, 6), (7, 3)]
        ),
        (Subsets(7), 7, 7, lambda size: 0.5**6),  # Banzhaf
    ],
)
def test_draws_find_the_semivalues_of_any_game(sampler, n_players, per_draw, weight):
    game = RandomGame(n_players)
    moments = estimate(game, sampler, n_players, 2000, seed=2)
    assert_within_errors(moments, counted_out(game, range(n_players), weight))
    assert (moments.count >= 2000).all()
    assert moments.count.sum() == 2000 * per_draw


def test_walks_of_one_player_find_what_it_is_worth_alone():
    game = RandomGame(5)
    moments = estimate(game, Walks(5, length=1), 5, 10, seed=0)
    np.testing.assert_allclose(moments.mean, counted_out(game, range(5), lambda size: size == 0), rtol=1e-12)
    np.testing.assert_allclose(moments.standard_error, 0, atol=1e-12)


@pytest.mark.parametrize("m", [1, 4, 5, 7, 10])
def test_distributional_values_of_games_with_closed_forms(m):
    worths = np.linspace(-1, 2, 10)

    def additive(members):
        return worths[members].sum(keepdims=True)

    def squared_size(members):
        return np.array([len(members) ** 2.0])

    np.testing.assert_allclose(
        estimate(additive, Walks(10, length=m), 10, 20, seed=0).mean, worths[:, None], atol=1e-12
    )
    moments = estimate(squared_size, Walks(10, length=m), 10, 400, seed=0)
    assert_within_errors(moments, m)  # the mean of 2k + 1 over k from 0 to m - 1
    if 10 % m == 0:
        np.testing.assert_allclose(moments.mean.mean(), m)


def test_equal_players_have_equal_distributional_values():
    moments = estimate(airport, Walks(4, length=3), 4, 3000, seed=0)
    values, errors = moments.mean.ravel(), moments.standard_error.ravel()
    assert abs(values[1] - values[2]) < 4 * np.hypot(errors[1], errors[2])
    # The first strip adds 1 to none. The last adds 5, or 3 or 4 to one other, and 3 to any two.
    assert_within_errors(moments, counted_out(airport, range(4), distributional_weight(4, 3)))
    assert values[0] == pytest.approx(1 / 3, abs=4 * errors[0])
    assert values[3] == pytest.approx((5 + (4 + 3 + 3) / 3 + 3) / 3, abs=4 * errors[3])


@pytest.mark.parametrize(("n_players", "length"), [(10, 10), (10, 5), (10, 4), (10, 9), (3, 1)])
def test_walks_tell_of_every_player_and_of_none_twice(n_players, length):
    sampler = Walks(n_players, length=length)
    for seed in range(20):
        walks = sampler.draw(0, generator_of(seed, 0)).reshape(-1, length)
        assert len(walks) == -(-n_players // length)
        assert set(walks.ravel()) == set(range(n_players))
        assert all(len(set(walk)) == length for walk in walks)
        worths, n_fits = sampler.evaluate(lambda members: np.array([len(members)]), walks.ravel())
        assert n_fits == sampler.most_fits == len(walks) * (length - (length == n_players))
        np.testing.assert_array_equal(worths[:, :, 0], np.tile(np.arange(length + 1), (len(walks), 1)))


def test_leave_one_out_is_exact():
    game = RandomGame(5)
    moments = estimate(game, LeaveOneOut(5), 5, 5, seed=0)
    np.testing.assert_array_equal(moments.mean, counted_out(game, range(5), lambda size: size == 4))
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

    for length in (30, 20):  # walks of all players, and two of some
        moments = estimate(additive, Walks(30, n_steps=6, length=length), 30, 2000, seed=4)
        assert_within_errors(moments, worths[:, None])
        assert np.polyfit(worths, moments.mean.ravel(), 1)[0] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("n_steps", [1, 4, 8])
def test_steps_of_several_players_are_efficient_in_any_game(n_steps):
    game = RandomGame(9)
    moments = estimate(game, Walks(9, n_steps=n_steps), 9, 40, seed=0)
    np.testing.assert_allclose(moments.mean.sum(axis=0), game(np.arange(9)) - game(np.arange(0)))


@pytest.mark.parametrize(
    ("truncation", "still_moves", "expected"), [(0.01, False, 14), (0.01, True, 49), (0.0, False, 49)]
)
def test_a_walk_ends_once_all_worths_stay_close_to_the_full_ones(truncation, still_moves, expected):
    def saturated(members):
        return np.array([min(len(members), 10) / 10, len(members) / 50 if still_moves else 1.0])

    worths, n_fits = Walks(50, truncation=truncation).evaluate(saturated, np.arange(50))
    assert n_fits == expected  # the tenth to fourteenth are alike
    np.testing.assert_array_equal(worths[0, 10:, 0], np.ones(41))


@pytest.mark.parametrize(
    ("sampler", "weight"),
    [
        (Walks(6), shapley_weight(6)),
        (Walks(6, n_steps=3), shapley_weight(6)),
        (Walks(6, length=4), distributional_weight(6, 4)),
        (Subsets(6), lambda size: 0.5**5),
    ],
)
def test_standard_errors_cover_the_exact_values(sampler, weight):
    game = RandomGame(6)
    exact = counted_out(game, range(6), weight)
    if sampler.batch == 20:  # steps change the target a little: take the mean of a long run
        exact = estimate(game, sampler, 6, 6000, seed=99).mean
    runs = [estimate(game, sampler, 6, 100, seed=seed) for seed in range(40)]
    covered = np.mean([np.abs(run.mean - exact) <= 2 * run.standard_error for run in runs])
    assert 0.91 < covered < 0.99


def test_moments_are_those_of_numpy():
    figures = np.random.default_rng(0).normal(size=(12, 3, 2))
    moments = RunningMeans(4, 2)
    for own in figures:
        moments.add(np.array([2, 0, 1]), own)
    np.testing.assert_allclose(moments.mean[[2, 0, 1]], figures.mean(axis=0))
    np.testing.assert_allclose(moments.standard_error[[2, 0, 1]], figures.std(axis=0, ddof=1) / np.sqrt(12))
    assert moments.count.tolist() == [12, 12, 12, 0]
    assert np.isnan(moments.standard_error[3]).all()


def test_precision_is_that_of_the_worst_worth():
    mean = np.column_stack([np.linspace(0, 1, 101), np.linspace(0, 2, 101), np.linspace(0, 3, 101)])
    error = np.column_stack([np.full(101, 0.09), np.full(101, 0.09), np.zeros(101)])  # the last is exact
    assert precision_of(SimpleNamespace(mean=mean, standard_error=error)) == pytest.approx(0.1)
    mean[:, 1] = error[:, 1] = 0.0  # contributions of nothing tell nothing
    assert precision_of(SimpleNamespace(mean=mean, standard_error=error)) == np.inf


def test_a_draw_depends_on_seed_and_number_alone():
    first, again = generator_of(3, 7).random(4), generator_of(3, 7).random(4)
    np.testing.assert_array_equal(first, again)
    assert (first != generator_of(3, 8).random(4)).any()
    assert (first != generator_of(4, 7).random(4)).any()
