"""Semivalues by their definition: what a player adds to every set of the others."""

from itertools import combinations
from math import comb

import numpy as np


def counted_out(worth, players, weight=None):
    """Sum what each player adds over all sets of the others, by a weight of their size; Shapley's if none."""
    players = list(players)
    n = len(players)
    weight = shapley_weight(n) if weight is None else weight
    sets = [np.array(own, dtype=int) for size in range(n + 1) for own in combinations(players, size)]
    known = {frozenset(own.tolist()): worth(own) for own in sets}
    return np.array(
        [
            sum(weight(len(own)) * (known[own | {player}] - known[own]) for own in known if player not in own)
            for player in players
        ]
    )


def shapley_weight(n_players):
    return lambda size: 1 / n_players / comb(n_players - 1, size)


def distributional_weight(n_players, m):
    return lambda size: 1 / m / comb(n_players - 1, size) if size < m else 0.0
