"""Draw sets of rows for some games in turn, batch after batch, until values are precise."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fado._checks import check_count
from fado.valuation.shapley._semivalues import (
    FloatArray,
    LeaveOneOut,
    Moments,
    Players,
    Sampler,
    Subsets,
    Walks,
    generator_of,
    precision_of,
)
from fado.valuation.shapley._training_game import TrainingGame, executor_for

__all__ = ["Run", "read_semivalue", "sampler_for"]

_NAMES = ("shapley", "banzhaf", "loo")
_ROW_BY_ROW = 100  # rows; beyond, a walk has `_STEPS` growing steps
_STEPS = 50
_TRUNCATION = 0.01
_MOST_ROWS = 10**9


class Run:
    """Draws, dealt over some games in turn and counted from the first one ever made."""

    def __init__(
        self, games: Sequence[TrainingGame], samplers: Sequence[Sampler], moments: Moments, n_draws: int
    ) -> None:
        self.games, self.samplers, self.moments, self.n_draws = games, samplers, moments, n_draws
        self.n_fits = len(games)  # the models of all rows
        self._exact = isinstance(samplers[0], LeaveOneOut)
        self._batch = len(games) * max(game.n_players for game in games) if self._exact else samplers[0].batch

    @property
    def least_fits(self) -> int:
        """How many fits one batch may take."""
        if self._exact:
            return sum(game.n_players + 1 for game in self.games)
        return len(self.games) + self._batch * max(sampler.most_fits for sampler in self.samplers)

    def draws_for(self, most_fits: int) -> int:
        """Count the draws that some fits suffice for, if no walk ends early."""
        n_games, least = len(self.games), self.least_fits
        return self._batch * (1 if self._exact else (most_fits - n_games) // (least - n_games))

    def go_on(self, seed: int, workers: int, most_fits: int, tolerance: float) -> Iterator[None]:
        """Draw batch after batch until values are precise or no fits are left, giving word of every draw."""
        executor = executor_for(self.games[0].engine, workers)
        shared = self.games, self.samplers
        first = True
        while first or (
            not self._exact
            and precision_of(self.moments) > tolerance
            and self.n_fits + self.least_fits - len(self.games) <= most_fits
        ):
            first = False
            tasks = self._tasks(seed)
            results = []
            for result in executor.run(_play, tasks, shared):
                results.append(result)
                yield
            self._add(tasks, results)
            self.n_draws += self._batch

    def _tasks(self, seed: int) -> list[tuple[int, Players]]:
        """Draw a batch: per draw its game and what was drawn."""
        tasks = []
        for number in range(self.n_draws, self.n_draws + self._batch):
            turn, which = divmod(number, len(self.games))
            if self._exact and turn >= self.games[which].n_players:
                continue  # games may differ in size by a few rows
            tasks.append((which, self.samplers[which].draw(turn, generator_of(seed, number))))
        return tasks

    def _add(self, tasks: Sequence[tuple[int, Players]], results: Sequence[Any]) -> None:
        for which, (game, sampler) in enumerate(zip(self.games, self.samplers, strict=True)):
            own = [place for place, (played, _) in enumerate(tasks) if played == which]
            if not own:
                continue
            drawn, worths = [tasks[place][1] for place in own], [results[place][0] for place in own]
            for players, contributions in sampler.contributions(drawn, worths):
                self.moments.add(game.rows[players].astype(np.int64), contributions)
        self.n_fits += sum(n_fits for _, n_fits in results)


def _play(
    task: tuple[int, Players],
    shared: tuple[Sequence[TrainingGame], Sequence[Sampler]],
    stop: threading.Event,
) -> tuple[FloatArray, int]:
    """Have a draw evaluated; nobody waits for it once `stop` is set."""
    which, drawn = task
    games, samplers = shared

    def game(members: Players) -> FloatArray:
        if stop.is_set():
            raise RuntimeError("The run has ended.")
        return games[which](members)

    return samplers[which].evaluate(game, drawn)


def read_semivalue(given: Any) -> Any:
    """Give a semivalue as plain data: its name, or a list of "beta" or "distributional" and its numbers."""
    if isinstance(given, str) and given in _NAMES:
        return given
    if isinstance(given, tuple | list) and len(given) == 3 and given[0] == "beta":
        numbers = given[1:]
        if all(isinstance(own, int | float | np.number) and 0 < own < np.inf for own in numbers):
            return ["beta", *map(float, numbers)]
    if isinstance(given, tuple | list) and len(given) == 2 and given[0] == "distributional":
        return ["distributional", check_count("semivalue[1]", given[1], 1, _MOST_ROWS)]
    raise ValueError(
        "`semivalue` must be 'shapley', 'banzhaf', 'loo', a tuple ('beta', a, b) of numbers above 0 or a "
        f"tuple ('distributional', m) of a whole number of rows, got {given!r}."
    )


def sampler_for(semivalue: Any, n_players: int) -> Sampler:
    """Give what draws sets of rows for a semivalue, or walks through them."""
    if semivalue == "banzhaf":
        return Subsets(n_players)
    if semivalue == "loo":
        return LeaveOneOut(n_players)
    beta = (semivalue[1], semivalue[2]) if semivalue[0] == "beta" else (1.0, 1.0)
    length = semivalue[1] if semivalue[0] == "distributional" else n_players
    if length > n_players:
        raise ValueError(
            f"`semivalue[1]` must be at most {n_players}, the number of rows that models are trained on "
            f"(without `validation`, those outside a fold), got {length}."
        )
    return Walks(n_players, None if length <= _ROW_BY_ROW else _STEPS, beta, _TRUNCATION, length)
