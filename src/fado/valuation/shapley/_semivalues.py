"""Semivalues of games: what each player adds to the worth of a set of players, averaged over sets.

A game is a function from the positions of some players to one worth, or several in parallel. A sampler draws
sets or orders of the players (`draw`), evaluates their worths with a game (`evaluate`, which also counts the
sets), and turns the worths into contributions, one per player and draw, whose mean over the draws is the
semivalue (`contributions`). Draws come in batches, and a batch's contributions depend on that batch only;
`most_fits` is the maximum number of sets per draw, apart from the empty and the full one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fado._typing import Floats, Integers

Game = Callable[[Integers], Floats]
Contributions = Iterator[tuple[Integers, Floats]]

ALIKE_IN_A_ROW = 5  # evaluations within the margin that end a walk
_EXACT_BATCH, _STEPS_BATCH, _SUBSETS_BATCH, _LEFT_OUT_BATCH = 10, 20, 100, 100


class Walks:
    """Shapley, distributional Shapley and Beta values: players join one after the other, in a random order.

    Walks of some of the players give distributional Shapley values. A draw is then an order of all players,
    cut into walks; if the last walk lacks players, they are drawn from the others, so that a walk may
    contribute to them a second time.

    If the worth is not evaluated after every player but after steps of several, a player of a step of `m`
    gets the step's whole change, less what `m - 1` others add on average in the batch's other walks. Of `n`
    players, a step's others are drawn from the ``n - 1`` that are left, so with the step's
    change `c`, and its mean in the other walks `o`, a player contributes
    ``(c * (n - 1) - o * n * (m - 1) / m) / (n - m)``. If worths add up, this is right on average; the sum
    over all players is right in any game. A change shared equally would make values `m` times too similar.

    Parameters
    ----------
    n_players : int
        How many there are.
    n_steps : int, optional
        How many steps a walk has; None is one per player.
    beta : tuple of two numbers
        The Beta distribution that weights positions; (1, 1) weights all equally, which gives Shapley values.
    truncation : float
        A walk ends early when five worths in a row are as close to that of all players as this share of the
        difference between the worths of all and of none; what comes after contributes 0.
    length : int, optional
        How many players a walk has; None is all.
    """

    def __init__(
        self,
        n_players: int,
        n_steps: int | None = None,
        beta: tuple[float, float] = (1, 1),
        truncation: float = 0.0,
        length: int | None = None,
    ) -> None:
        self._length = n_players if length is None else length
        self.ends = walk_ends(self._length, self._length if n_steps is None else n_steps)
        self._sizes = np.diff(self.ends, prepend=0)
        starts = self.ends - self._sizes
        weights = np.add.reduceat(position_weights(self._length, *beta), starts) / self._sizes
        left = n_players - self._sizes
        with np.errstate(divide="ignore", invalid="ignore"):
            # A step of all players does not distinguish them: the change is shared equally.
            of_change = np.where(left > 0, (n_players - 1) / left, 1 / n_players)
            of_others = np.where(left > 0, n_players * (1 - 1 / self._sizes) / left, 0.0)
        self._of_change, self._of_others = ((weights * factor)[:, None] for factor in (of_change, of_others))
        self._truncation = truncation
        self._n_players = n_players
        n_walks = -(-n_players // self._length)
        self.most_fits = n_walks * (len(self.ends) - (self._length == n_players))
        self.batch = _EXACT_BATCH if len(self.ends) == self._length else _STEPS_BATCH

    def draw(self, number: int, generator: np.random.Generator) -> Integers:
        """Draw an order of the players, and more players if its last walk lacks some."""
        order = generator.permutation(self._n_players)
        left = self._n_players % self._length
        if not left:
            return order
        whole, rest = order[:-left], order[-left:]
        again = generator.choice(whole, self._length - left, replace=False)
        return np.concatenate([whole, generator.permutation(np.concatenate([rest, again]))])

    def evaluate(self, game: Game, drawn: Integers) -> tuple[Floats, int]:
        """Return per walk the worths of none and after each step; the last one's after a walk ended."""
        empty, full = game(drawn[:0]), game(np.arange(self._n_players))
        margin = self._truncation * np.abs(full - empty)
        worths = np.empty((len(drawn) // self._length, len(self.ends) + 1, len(empty)))
        n_fits = 0
        for walk, order in zip(worths, drawn.reshape(-1, self._length), strict=True):
            walk[0] = empty
            alike = 0
            for step, end in enumerate(self.ends, 1):
                walk[step] = game(order[:end])
                n_fits += int(end < self._n_players)
                near = self._truncation > 0 and bool((np.abs(walk[step] - full) <= margin).all())
                alike = alike + 1 if near else 0
                if alike == ALIKE_IN_A_ROW:
                    walk[step:] = walk[step]
                    break
        return worths, n_fits

    def contributions(self, drawn: Sequence[Integers], worths: Sequence[Floats]) -> Contributions:
        """Yield every player's part of the change at its step, weighted by the position."""
        changes = np.diff(np.stack(worths), axis=2)
        others = _means_of_others(changes.mean(axis=1))[:, None]  # walks of one draw are not independent
        parts = self._of_change * changes - self._of_others * others
        for orders, walks in zip(drawn, parts, strict=True):
            for order, walk in zip(orders.reshape(-1, self._length), walks, strict=True):
                yield order, np.repeat(walk, self._sizes, axis=0)


class Subsets:
    """Banzhaf values: each player is in a random set or not, and every set contributes to all players.

    A player contributes twice the set's worth, less the mean worth of the batch's other sets, with a positive
    sign if the player is in: on average the worth with the player less the worth without.
    """

    batch = _SUBSETS_BATCH
    most_fits = 1

    def __init__(self, n_players: int) -> None:
        self._n_players = n_players

    def draw(self, number: int, generator: np.random.Generator) -> Integers:
        """Draw a set."""
        return np.flatnonzero(generator.random(self._n_players) < 0.5)

    def evaluate(self, game: Game, drawn: Integers) -> tuple[Floats, int]:
        """Return the set's worth."""
        return game(drawn)[None], 1

    def contributions(self, drawn: Sequence[Integers], worths: Sequence[Floats]) -> Contributions:
        """Yield for every player twice the centred worth, negative for those not in the set."""
        stacked = np.concatenate(worths)
        players = np.arange(self._n_players)
        for members, centred in zip(drawn, stacked - _means_of_others(stacked), strict=True):
            signs = np.full((self._n_players, 1), -2.0)
            signs[members] = 2.0
            yield players, signs * centred


class LeaveOneOut:
    """Leave-one-out values: the worth of all players less that of all but one, the draw's number."""

    batch = _LEFT_OUT_BATCH
    most_fits = 1

    def __init__(self, n_players: int) -> None:
        self._players = np.arange(n_players)

    def draw(self, number: int, generator: np.random.Generator) -> Integers:
        """Return the player to leave out."""
        return self._players[number : number + 1]

    def evaluate(self, game: Game, drawn: Integers) -> tuple[Floats, int]:
        """Return the worths of all and of all but one."""
        return np.stack([game(self._players), game(np.delete(self._players, drawn))]), 1

    def contributions(self, drawn: Sequence[Integers], worths: Sequence[Floats]) -> Contributions:
        """Yield the difference for the player left out."""
        for player, (full, without) in zip(drawn, worths, strict=True):
            yield player, (full - without)[None]


Sampler = Walks | Subsets | LeaveOneOut


def _means_of_others(figures: Floats) -> Floats:
    """Return for every draw the mean of all others; of a single draw, its figures."""
    n_draws = len(figures)
    return figures if n_draws == 1 else (figures.sum(axis=0) - figures) / (n_draws - 1)


def walk_ends(n_players: int, n_steps: int) -> Integers:
    """Return how many players have joined after each step of a walk: the steps grow evenly.

    Examples
    --------
    >>> walk_ends(5, 5)
    array([1, 2, 3, 4, 5])
    >>> walk_ends(100, 6)
    array([  3,  11,  25,  44,  69, 100])
    """
    steps = np.arange(1, min(n_steps, n_players) + 1)
    return np.maximum(steps, np.rint(n_players * (steps / steps[-1]) ** 2).astype(np.int64))


def position_weights(n_players: int, alpha: float, beta: float) -> Floats:
    """Return the weight of a marginal contribution by the number of players before it; the mean is 1.

    Beta(1, 1) weights all equally; a larger `alpha` weights small sets more, a larger `beta` large ones
    (Kwon and Zou, 2022).

    Examples
    --------
    >>> position_weights(4, 1, 1).round(6)
    array([1., 1., 1., 1.])
    >>> position_weights(4, 2, 1).round(6)
    array([1.6, 1.2, 0.8, 0.4])
    """
    from scipy.special import betaln, gammaln

    before = np.arange(n_players)
    log_choices = gammaln(n_players) - gammaln(before + 1) - gammaln(n_players - before)
    log_chances = betaln(before + beta, n_players - 1 - before + alpha) - betaln(alpha, beta)
    return n_players * np.exp(log_choices + log_chances)


class RunningMeans:
    """Mean and spread of the contributions of each row to each worth.

    Parameters
    ----------
    n_rows, n_worths : int
        How many there are.
    """

    def __init__(self, n_rows: int, n_worths: int) -> None:
        self.mean = np.zeros((n_rows, n_worths))
        self.count = np.zeros(n_rows, dtype=np.int64)
        self._squares = np.zeros((n_rows, n_worths))

    def add(self, rows: Integers, contributions: Floats) -> None:
        """Add one contribution of each of some rows, none of them twice."""
        self.count[rows] += 1
        distance = contributions - self.mean[rows]
        self.mean[rows] += distance / self.count[rows][:, None]
        self._squares[rows] += distance * (contributions - self.mean[rows])

    @property
    def standard_error(self) -> Floats:
        """The standard error of each mean; NaN below two contributions."""
        pairs = (self.count * (self.count - 1.0))[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(pairs > 0, np.sqrt(self._squares / pairs), np.nan)


def precision_of(moments: RunningMeans) -> float:
    """Return the mean standard error over the distance between the 5 % and 95 % quantiles of the values.

    It is that of the worth for which it is largest. If the values of a worth are all equal, no draw has
    distinguished rows so far, and it is infinite: the next draw may be the first that does.
    """
    error = moments.standard_error.mean(axis=0)
    low, high = np.quantile(moments.mean, [0.05, 0.95], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where((error == 0) & (low == high), np.inf, error / (high - low))
    return float(shares.max())


def generator_of(seed: int, number: int) -> np.random.Generator:
    """Return the generator of one draw, which depends only on the seed and the draw's number."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
