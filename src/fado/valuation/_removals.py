"""Parts of a table to remove, so that retraining shows what they did to a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.engine import LightGBMEngine, Task
from fado.tabular import Problem, read_rows

__all__ = ["KINDS", "draw_parts", "read_parts"]

Rows = npt.NDArray[np.int32]

KINDS = ("cell", "leaves", "random")


def draw_parts(
    problem: Problem, n_parts: int, seed: int, kinds: Sequence[str] = KINDS
) -> list[tuple[str, Rows]]:
    """Draw parts of the kinds in turn.

    A cell is a tenth to six tenths of the rows of one label and group. Leaves are half of the rows of a few
    leaves of a small tree of the target. The random part is 2 to 20 % of all rows.

    Parameters
    ----------
    problem : Problem
        The table, with a target of classes.
    n_parts : int
        How many.
    seed : int
        The seed; a part depends on it and on its own number alone.
    kinds : sequence of str
        Which kinds.

    Returns
    -------
    list of (kind, ndarray of int32)
        Sorted positions of the rows to remove.
    """
    cells = problem.groups.codes * len(problem.labels.classes) + problem.labels.codes
    leaves = _leaves_of_a_tree(problem) if "leaves" in kinds else np.zeros(problem.n_rows, dtype=np.int32)
    found = []
    for number in range(n_parts):
        generator = np.random.default_rng([seed, number])
        kind = kinds[number % len(kinds)]
        if kind == "cell":
            pool = np.flatnonzero(cells == generator.choice(np.unique(cells)))
            size = generator.uniform(0.1, 0.6) * len(pool)
        elif kind == "leaves":
            pool = _few_leaves(leaves, generator)
            size = 0.5 * len(pool)
        else:
            pool = np.arange(problem.n_rows)
            size = generator.uniform(0.02, 0.2) * len(pool)
        chosen = generator.choice(pool, max(1, round(size)), replace=False)
        found.append((kind, np.sort(chosen).astype(np.int32)))
    return found


def read_parts(parts: Any, n_rows: int) -> list[tuple[str, Rows]]:
    """Read the parts that a user asks for: masks over the rows, or positions."""
    is_one = hasattr(parts, "dtype") and np.ndim(parts) == 1 and np.asarray(parts).dtype.kind in "biu"
    if is_one or isinstance(parts, str) or not isinstance(parts, Iterable):
        told = "one of them alone: write `[part]`" if is_one else f"{parts!r}"
        raise TypeError(f"`parts` must be a list of masks or of positions of rows, got {told}.")
    found = []
    for number, part in enumerate(parts):
        rows = np.unique(read_rows(part, n_rows, f"`parts[{number}]`"))
        if not 0 < len(rows) < n_rows:
            raise ValueError(
                f"`parts[{number}]` removes {len(rows)} of {n_rows} rows: name some, and not all."
            )
        found.append(("given", rows.astype(np.int32)))
    return found


def _leaves_of_a_tree(problem: Problem) -> npt.NDArray[np.int32]:
    """Give each row's leaf in one tree that predicts the target."""
    from lightgbm import LGBMClassifier

    engine = LightGBMEngine(problem.table)
    rows = np.arange(problem.n_rows, dtype=np.int32)
    model: Any = engine.fit(Task(LGBMClassifier(n_estimators=1, num_leaves=31), problem.target, rows, 0))
    forest = model.forest
    return engine.read_leaves([forest]).read(forest.trees[0])


def _few_leaves(leaves: npt.NDArray[np.int32], generator: np.random.Generator) -> npt.NDArray[np.intp]:
    """Give the rows of leaves drawn at random, a tenth of all rows or a little more."""
    order = generator.permutation(int(leaves.max()) + 1)
    sizes = np.bincount(leaves)[order]
    n_chosen = 1 + int(np.searchsorted(np.cumsum(sizes), 0.1 * len(leaves)))
    return np.flatnonzero(np.isin(leaves, order[:n_chosen]))
