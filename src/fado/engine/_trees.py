"""LightGBM's text of a model, checked before LightGBM reads it; its trees; and the leaves of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._typing import Floats, Integers
from fado.engine._bins import Columns, fitting
from fado.tabular import Variable

_CATEGORICAL = 1  # the flag of a split by categories
_BLOCK = 2**16  # rows whose leaves are read together

_MOST_LEAVES = 2**24
# Of every tree: how many numbers each line has, as a multiple of leaves and of splits.
_SPLITS = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child")
_OF_SPLITS = frozenset({*_SPLITS, "internal_value", "internal_weight", "internal_count"})
_OF_LEAVES = frozenset({"leaf_value", "leaf_weight", "leaf_count", "leaf_const", "num_features"})
_SINGLE = frozenset({"num_leaves", "num_cat", "is_linear", "shrinkage"})
_OTHERS = frozenset({"cat_boundaries", "cat_threshold", "leaf_features", "leaf_coeff"})


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree. Nodes that split are 0, 1, ..., with the root first; a child below 0 is the leaf ``~child``.

    Parameters
    ----------
    feature, left, right : ndarray of int32
        Of each split: the column, and the two children.
    decision : ndarray of int8
        LightGBM's flags: by categories, missing to the left, and which entries are missing.
    values : ndarray of float64
        What each leaf adds to a row's score; those of the first tree include the initial score.
    """

    feature: npt.NDArray[np.int32]
    decision: npt.NDArray[np.int8]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]

    @property
    def n_leaves(self) -> int:
        """How many leaves there are; one if nothing is split."""
        return len(self.values)

    def parents(self) -> npt.NDArray[np.int32]:
        """Return the node above each leaf."""
        above = np.zeros(self.n_leaves, dtype=np.int32)
        for children in (self.left, self.right):
            leaves = children < 0
            above[~children[leaves]] = np.flatnonzero(leaves)
        return above


@dataclass(frozen=True, eq=False)
class Forest:
    """The trees of one model, and what determined the values of their leaves.

    Parameters
    ----------
    text : str
        The model, as LightGBM writes it.
    variable : Variable
        What was learnt.
    layout : tuple of int
        Which columns of the engine's table the trees see, in their order.
    parameters : mapping
        The booster's.
    many_sided : frozenset of int
        The columns, in the trees' order, whose splits separate several categories from several.
    """

    text: str
    variable: Variable
    layout: tuple[int, ...]
    parameters: Mapping[str, Any]
    many_sided: frozenset[int]

    @cached_property
    def trees(self) -> tuple[Tree, ...]:
        """The trees, in the order in which they were grown."""
        return tuple(read_trees(self.text))

    def leaf_penalties(self, tree: Tree) -> npt.NDArray[np.float64]:
        """Return the L2 penalty of each leaf's value: more below splits of many categories."""
        plain = float(self.parameters.get("lambda_l2", self.parameters.get("reg_lambda", 0.0)))
        more = float(self.parameters.get("cat_l2", 10.0))
        if not len(tree.feature):
            return np.full(tree.n_leaves, plain)
        many = (tree.decision & _CATEGORICAL).astype(float) * np.isin(tree.feature, list(self.many_sided))
        return plain + more * many[tree.parents()]


def read_trees(text: str) -> list[Tree]:
    """Read the trees of a model in LightGBM's text format.

    Examples
    --------
    >>> import lightgbm, numpy as np
    >>> data = lightgbm.Dataset(np.repeat([[0.0], [1.0]], 50, axis=0), np.repeat([0.0, 1.0], 50))
    >>> model = lightgbm.train({"verbosity": -1, "learning_rate": 1.0, "num_leaves": 2}, data, 1)
    >>> (tree,) = read_trees(model.model_to_string())
    >>> tree.values.round(6), tree.left, tree.right
    (array([0., 1.]), array([-1], dtype=int32), array([-2], dtype=int32))
    """
    sections = text.partition("\nend of trees")[0].split("\nTree=")[1:]
    return [_read_tree(_entries(section.splitlines()[1:])) for section in sections]


def _entries(lines: list[str]) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in lines)


def _read_tree(entries: dict[str, str]) -> Tree:
    def numbers(name: str, kind: type) -> Any:
        return np.array(entries.get(name, "").split(), dtype=np.float64).astype(kind)

    return Tree(
        feature=numbers("split_feature", np.int32),
        decision=numbers("decision_type", np.int8),
        left=numbers("left_child", np.int32),
        right=numbers("right_child", np.int32),
        values=numbers("leaf_value", np.float64),
    )


class LeafReader:
    """Finds the leaves of the rows of one table in the trees of one model.

    Parameters
    ----------
    forest : Forest
        The trees.
    columns : Columns
        The table's, of which the trees see some.
    """

    def __init__(self, forest: Forest, columns: Columns) -> None:
        import lightgbm

        self._columns = columns.in_order(forest.layout)
        sizes = [tree.n_leaves for tree in forest.trees]
        self._n_trees, self._kind = len(sizes), np.min_scalar_type(max(sizes))
        with fitting():
            self._booster = lightgbm.Booster(model_str=forest.text)

    def read(self, rows: Integers | None = None) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Return the leaves of all rows, or of those at some positions, of shape (n_trees, n_rows)."""
        rows = np.arange(self._columns.n_rows, dtype=np.int32) if rows is None else rows
        leaves = np.empty((self._n_trees, len(rows)), dtype=self._kind)
        for start in range(0, len(rows), _BLOCK):
            numbers = self._columns.take(rows[start : start + _BLOCK]).for_scores()
            with fitting():
                found: Any = self._booster.predict(numbers, pred_leaf=True, num_threads=1)
            leaves[:, start : start + _BLOCK] = found.T
        return leaves


def check_text(text: str) -> dict[str, str]:
    """Check that a text is of trees that stay within their nodes and columns; return the lines of its head.

    Text that LightGBM would not write may end the process, and is refused.
    """
    head, _, body = text.partition("\n\n")
    first, *lines = head.splitlines() or [""]
    told = _entries(lines)
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
        raise ValueError("The content is not a LightGBM model.")
    rest = body.encode()
    for number, size in enumerate(sizes):
        block, rest = rest[:size].decode("ascii", "replace").splitlines(), rest[size:]
        if size < 1 or block[:1] != [f"Tree={number}"] or not _is_tree(block[1:], n_columns):
            raise ValueError(f"Tree {number} of the content is not a tree that LightGBM writes.")
    if not rest.startswith(b"end of trees\n"):
        raise ValueError("The content is not a LightGBM model: its trees do not end where they should.")
    return told


def _is_tree(lines: list[str], n_columns: int) -> bool:
    """Return whether a tree has all its numbers, and refers only to its own nodes, leaves and columns."""
    while lines and not lines[-1]:
        lines = lines[:-1]
    told = _entries(lines)
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


def _splits_fit(numbers: dict[str, Floats], n_leaves: int, n_columns: int) -> bool:
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


def _leaves_fit(numbers: dict[str, Floats], n_leaves: int, n_columns: int) -> bool:
    """Return the same for the leaves, which hold linear models in some boosters."""
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


def _are_whole(given: Floats, start: int, end: int) -> Any:
    return ((given == np.floor(given)) & (given >= start) & (given < end)).all()
