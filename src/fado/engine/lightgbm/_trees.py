"""Grown trees as arrays, read from LightGBM's own text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.tabular import Variable

__all__ = ["Forest", "Tree", "read_trees"]

_CATEGORICAL, _LEFT_BY_DEFAULT, _MISSING_TYPE = 1, 2, 2  # the last is how far its two bits are shifted
_ZERO, _NAN = 1, 2  # types of missing values


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree. Nodes that split are 0, 1, ..., with the root first; a child below 0 is the leaf ``~child``.

    Parameters
    ----------
    feature, left, right : ndarray of int32
        Of each split: the column, and where rows go.
    threshold : ndarray of float64
        Rows whose number is at most this go left; of a split by categories, the position of their set.
    decision : ndarray of int8
        LightGBM's flags: by categories, missing to the left, and which entries are missing.
    categories : tuple of ndarray
        Per set, the codes that go left.
    values : ndarray of float64
        What each leaf adds to a row's score; those of the first tree hold the initial score too.
    """

    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float64]
    decision: npt.NDArray[np.int8]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    categories: tuple[npt.NDArray[np.int64], ...]
    values: npt.NDArray[np.float64]

    @property
    def n_leaves(self) -> int:
        """How many leaves there are; one if nothing is split."""
        return len(self.values)

    def is_categorical(self, node: int) -> bool:
        """Tell whether a node splits by categories."""
        return bool(self.decision[node] & _CATEGORICAL)

    def missing_goes_left(self, node: int) -> bool:
        """Tell where missing entries go."""
        return bool(self.decision[node] & _LEFT_BY_DEFAULT)

    def misses_nan(self, node: int) -> bool:
        """Tell whether NaN is a missing entry; otherwise it counts as 0."""
        return (int(self.decision[node]) >> _MISSING_TYPE) & 3 == _NAN

    def misses_zero(self, node: int) -> bool:
        """Tell whether 0 is a missing entry."""
        return (int(self.decision[node]) >> _MISSING_TYPE) & 3 == _ZERO

    def parents(self) -> npt.NDArray[np.int32]:
        """Give the node above each leaf."""
        above = np.zeros(self.n_leaves, dtype=np.int32)
        for children in (self.left, self.right):
            leaves = children < 0
            above[~children[leaves]] = np.flatnonzero(leaves)
        return above


@dataclass(frozen=True, eq=False)
class Forest:
    """The trees of one model, and what decided the values of their leaves.

    Parameters
    ----------
    trees : tuple of Tree
        In the order in which they were grown.
    variable : Variable
        What was learnt.
    layout : tuple of int
        Which columns of the engine's table the trees see, in their order.
    parameters : mapping
        The booster's.
    many_sided : frozenset of int
        The columns, in the trees' order, whose splits set many categories against many.
    """

    trees: tuple[Tree, ...]
    variable: Variable
    layout: tuple[int, ...]
    parameters: Mapping[str, Any]
    many_sided: frozenset[int]

    def leaf_penalties(self, tree: Tree) -> npt.NDArray[np.float64]:
        """Give the L2 penalty behind each leaf's value: more below splits of many categories against many."""
        plain = float(self.parameters.get("lambda_l2", self.parameters.get("reg_lambda", 0.0)))
        more = float(self.parameters.get("cat_l2", 10.0))
        if not len(tree.feature):
            return np.full(tree.n_leaves, plain)
        many = [
            tree.is_categorical(node) and int(j) in self.many_sided for node, j in enumerate(tree.feature)
        ]
        return plain + more * np.array(many, dtype=np.float64)[tree.parents()]


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
    return [_read_tree(entries) for entries in _sections(text)]


def _sections(text: str) -> Iterator[dict[str, str]]:
    """Give the entries of one tree after the other."""
    start = text.find("\nTree=")
    end = text.find("\nend of trees")
    if start < 0:
        return
    for section in text[start:end].split("\nTree=")[1:]:
        lines = (line.partition("=") for line in section.splitlines()[1:])
        yield {name: value for name, _, value in lines}


def _read_tree(entries: dict[str, str]) -> Tree:
    def numbers(name: str, kind: type) -> npt.NDArray[np.generic]:
        return np.array(entries.get(name, "").split(), dtype=np.float64).astype(kind)

    boundaries = numbers("cat_boundaries", np.int64).tolist()
    words = np.array(entries.get("cat_threshold", "").split(), dtype=np.uint32)
    sets = [
        np.flatnonzero(np.unpackbits(words[first:last].view(np.uint8), bitorder="little"))
        for first, last in pairwise(boundaries)
    ]
    return Tree(
        feature=numbers("split_feature", np.int32),  # type: ignore[arg-type]
        threshold=numbers("threshold", np.float64),  # type: ignore[arg-type]
        decision=numbers("decision_type", np.int8),  # type: ignore[arg-type]
        left=numbers("left_child", np.int32),  # type: ignore[arg-type]
        right=numbers("right_child", np.int32),  # type: ignore[arg-type]
        categories=tuple(sets),
        values=numbers("leaf_value", np.float64),  # type: ignore[arg-type]
    )
