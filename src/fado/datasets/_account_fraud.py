"""A generator of account-opening fraud data with controlled bias."""

from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fado.datasets._applicants import draw_applications, draw_separating_columns
from fado.datasets._columns import CATEGORIES, COLUMNS, EXTRA_COLUMNS, NUMBERS
from fado.datasets._variants import FIRST_LATE_MONTH, VARIANTS, Variant, cell_shares

__all__ = ["make_account_fraud"]

# Every chunk has a seed of its own, so the first rows do not depend on how many follow.
_CHUNK = 10_000
_GOLDEN_RATIO = (np.sqrt(5) - 1) / 2


def make_account_fraud(
    n_samples: int = 100_000,
    variant: str = "base",
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> pd.DataFrame:
    """TODO."""
    if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
        raise ValueError(f"`n_samples` must be a positive integer, got {n_samples!r}.")
    if variant not in VARIANTS:
        raise ValueError(f"`variant` must be one of {', '.join(map(repr, VARIANTS))}, got {variant!r}.")
    entropy = _entropy(random_state)
    chosen = VARIANTS[variant]
    names = COLUMNS + (EXTRA_COLUMNS if chosen.separable_majority else ())
    columns = {name: np.empty(n_samples, dtype=_dtype(name)) for name in names}
    starts = [*range(0, int(n_samples), _CHUNK), int(n_samples)]
    for chunk, (start, stop) in enumerate(pairwise(starts)):
        for name, values in _draw_chunk(chosen, entropy, chunk).items():
            columns[name][start:stop] = values[: stop - start]
    return pd.DataFrame({name: _typed(name, values) for name, values in columns.items()}, copy=False)


def _draw_chunk(variant: Variant, entropy: int, chunk: int) -> dict[str, NDArray[np.generic]]:
    rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(chunk,)))
    month, older, fraud = _draw_cells(rng, variant, entropy, chunk)
    columns = draw_applications(rng, older, fraud, month)
    if variant.separable_majority:
        early, late = variant.separable_majority
        told = np.where(month < FIRST_LATE_MONTH, early, late) & ~older
        columns |= draw_separating_columns(rng, fraud & told)
    return columns


def _draw_cells(
    rng: np.random.Generator, variant: Variant, entropy: int, chunk: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Draw month, group and label of a chunk's rows.

    Multiples of the golden ratio fill the unit interval more evenly than random numbers do: after any
    number of chunks every cell holds its share to within a few rows. Within a chunk the order is random.
    """
    shares = cell_shares(variant)
    offset = np.random.default_rng(entropy).random()
    position = chunk * _CHUNK + rng.permutation(_CHUNK)
    cell = np.searchsorted(np.cumsum(shares)[:-1], (position * _GOLDEN_RATIO + offset) % 1, side="right")
    month, older, fraud = np.unravel_index(cell, shares.shape)
    return month, older.astype(bool), fraud.astype(bool)


def _entropy(random_state: int | np.random.Generator | np.random.RandomState | None) -> int:
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, Integral) and random_state >= 0:
        return int(random_state)
    raise ValueError(
        f"`random_state` must be a non-negative integer, a numpy generator or None, got {random_state!r}."
    )


def _dtype(name: str) -> type[np.generic]:
    if name in CATEGORIES:
        return np.int8
    return np.float64 if name in NUMBERS else np.int64


def _typed(name: str, values: NDArray[Any]) -> NDArray[Any] | pd.Categorical:
    if name in CATEGORIES:
        return pd.Categorical.from_codes(values.tolist(), CATEGORIES[name])
    return values
