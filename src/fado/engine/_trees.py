"""The trees in LightGBM's text of a model, and the leaves of rows in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._typing import Integers
from fado.engine._bins import Columns, fitting
from fado.tabular import Variable

_CATEGORICAL = 1  # the flag of a split by categories
_BLOCK = 2**16  # rows whose leaves are read together


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
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    decision: npt.NDArray[np.int8]
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
    lines = (
        ("split_feature", np.int32),
        ("left_child", np.int32),
        ("right_child", np.int32),
        ("decision_type", np.int8),
        ("leaf_value", np.float64),
    )
    trees = []
    for section in text.partition("\nend of trees")[0].split("\nTree=")[1:]:
        entries = dict(line.partition("=")[::2] for line in section.splitlines()[1:])
        numbers: Any = (
            np.array(entries.get(name, "").split(), np.float64).astype(kind) for name, kind in lines
        )
        trees.append(Tree(*numbers))
    return trees


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
                block: Any = self._booster.predict(numbers, pred_leaf=True, num_threads=1)
            leaves[:, start : start + _BLOCK] = block.T
        return leaves
