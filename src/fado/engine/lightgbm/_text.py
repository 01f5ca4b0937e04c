"""LightGBM's text of a model, checked before LightGBM sees it: what is wrong there may end the process."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["check_text"]

_MOST_LEAVES = 2**24
# Of every tree: how many numbers each line has, as a multiple of leaves and of splits.
_SPLITS = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child")
_OF_SPLITS = frozenset({*_SPLITS, "internal_value", "internal_weight", "internal_count"})
_OF_LEAVES = frozenset({"leaf_value", "leaf_weight", "leaf_count", "leaf_const", "num_features"})
_SINGLE = frozenset({"num_leaves", "num_cat", "is_linear", "shrinkage"})
_OTHERS = frozenset({"cat_boundaries", "cat_threshold", "leaf_features", "leaf_coeff"})


def check_text(text: str) -> dict[str, str]:
    """Check that a text is of trees that stay within their nodes and columns; give the lines of its head.

    Raises
    ------
    ValueError
        If it is not what LightGBM writes.
    """
    head, _, body = text.partition("\n\n")
    first, *lines = head.splitlines() or [""]
    told = dict(line.partition("=")[::2] for line in lines)
    try:
        n_columns, per_round = int(told["max_feature_idx"]) + 1, int(told["num_tree_per_iteration"])
        sizes = [int(size) for size in told["tree_sizes"].split()]
    except (KeyError, ValueError):
        first, sizes, n_columns, per_round = "", [], 0, 1
    if (
        first != "tree"
        or n_columns < 1
        or per_round < 1
        or len(sizes) % per_round
        or any(told.get(name, "").count(" ") + 1 != n_columns for name in ("feature_names", "feature_infos"))
    ):
        raise ValueError("The content is of no LightGBM model.")
    rest = body.encode()
    for number, size in enumerate(sizes):
        block, rest = rest[:size].decode("ascii", "replace").splitlines(), rest[size:]
        if size < 1 or block[:1] != [f"Tree={number}"] or not _is_tree(block[1:], n_columns):
            raise ValueError(f"Tree {number} of the content is no tree that LightGBM writes.")
    if not rest.startswith(b"end of trees\n"):
        raise ValueError("The content is of no LightGBM model: its trees do not end where they are said to.")
    return told


def _is_tree(lines: list[str], n_columns: int) -> bool:
    """Tell whether a tree has all its numbers, and leads nowhere but to its own nodes, leaves and columns."""
    while lines and not lines[-1]:
        lines = lines[:-1]
    told = dict(line.partition("=")[::2] for line in lines)
    if len(told) != len(lines) or not set(told) <= _OF_SPLITS | _OF_LEAVES | _SINGLE | _OTHERS:
        return False
    try:
        numbers = {name: np.array(own.split(), dtype=np.float64) for name, own in told.items()}
        if any(len(numbers[name]) != 1 for name in _SINGLE & set(numbers)):
            return False
        n_leaves = int(told["num_leaves"])
        if not 1 <= n_leaves <= _MOST_LEAVES or len(numbers["leaf_value"]) != n_leaves:
            return False
        return _splits_fit(numbers, n_leaves, n_columns) and _leaves_fit(numbers, n_leaves, n_columns)
    except (KeyError, ValueError, OverflowError):  # lines that are missing; text, NaN or infinite
        return False


def _splits_fit(numbers: dict[str, npt.NDArray[np.float64]], n_leaves: int, n_columns: int) -> bool:
    n_splits = n_leaves - 1
    if any(len(numbers[name]) != n_splits for name in _OF_SPLITS & set(numbers) | set(_SPLITS)):
        return False
    order = np.arange(n_splits)
    sides = numbers["left_child"], numbers["right_child"]
    on = all(((side > order) | ((side < 0) & (side >= -n_leaves))).all() for side in sides)
    sets = numbers["threshold"][numbers["decision_type"] % 2 == 1]  # of splits by categories
    n_sets = int(numbers["num_cat"][0])
    ends = numbers.get("cat_boundaries", np.zeros(1))
    return bool(
        on
        and all(_are_whole(side, -n_leaves, n_splits) for side in sides)
        and _are_whole(numbers["split_feature"], 0, n_columns)
        and _are_whole(numbers["decision_type"], 0, 16)
        and _are_whole(sets, 0, n_sets)
        and len(ends) == n_sets + 1
        and ends[0] == 0
        and (np.diff(ends) >= 0).all()
        and ends[-1] == len(numbers.get("cat_threshold", ()))
        and _are_whole(numbers.get("cat_threshold", np.zeros(0)), 0, 2**32)
    )


def _leaves_fit(numbers: dict[str, npt.NDArray[np.float64]], n_leaves: int, n_columns: int) -> bool:
    """Tell the same of the leaves, which hold linear models in some boosters."""
    # A tree of one leaf has no weight of it.
    lengths = {len(numbers[name]) for name in _OF_LEAVES & set(numbers)} - ({0} if n_leaves == 1 else set())
    linear = numbers.get("is_linear", np.zeros(1))
    if lengths != {n_leaves} or linear.tolist() not in ([0.0], [1.0]):
        return False
    counts = numbers.get("num_features", np.zeros(n_leaves))
    features, slopes = (numbers.get(name, np.zeros(0)) for name in ("leaf_features", "leaf_coeff"))
    return bool(
        _are_whole(counts, 0, n_columns + 1)
        and counts.sum() == len(features) == len(slopes)
        and _are_whole(features, 0, n_columns)
        and (not linear[0] or {"leaf_const", "num_features"} <= set(numbers))
    )


def _are_whole(given: npt.NDArray[np.float64], start: int, end: int) -> Any:
    return ((given == np.floor(given)) & (given >= start) & (given < end)).all()
