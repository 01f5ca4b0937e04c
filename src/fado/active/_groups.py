"""Which group every row of a pool is in, or how probably."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.tabular import Table, group_rows, protected_columns, variable_from

__all__ = ["KnownGroups", "PoolGroups", "ProbableGroups", "join_groups", "modelled_groups", "told_groups"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """The groups of rows whose protected attributes are known.

    Parameters
    ----------
    labels : tuple
        The groups' labels.
    codes : ndarray of shape (n_rows,)
        Each row's group.
    """

    labels: tuple[Any, ...]
    codes: npt.NDArray[np.int64]

    def expected(self, rows: Any = slice(None)) -> FloatArray:
        """Give how many of some rows are in each group."""
        return np.bincount(self.codes[rows], minlength=len(self.labels)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class ProbableGroups:
    """The groups of rows whose protected attributes only models tell.

    Parameters
    ----------
    labels : tuple
        The groups' labels.
    probabilities : ndarray of shape (n_rows, n_groups)
        How probably each row is in each group.

    Examples
    --------
    >>> groups = ProbableGroups(("f", "m"), np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]))
    >>> groups.expected([0, 1]).round(2)
    array([1.1, 0.9])
    """

    labels: tuple[Any, ...]
    probabilities: FloatArray

    def expected(self, rows: Any = slice(None)) -> FloatArray:
        """Give how many of some rows are expected in each group."""
        return np.asarray(self.probabilities[rows].sum(axis=0), dtype=np.float64)


PoolGroups = KnownGroups | ProbableGroups


def join_groups(attributes: Sequence[PoolGroups]) -> PoolGroups:
    """Give the combinations of several attributes, labelled by tuples; those of one are its own groups.

    Probabilities are multiplied, as if the attributes were independent given the features.

    Examples
    --------
    >>> sex = KnownGroups(("f", "m"), np.array([0, 1, 1]))
    >>> old = KnownGroups((False, True), np.array([1, 0, 1]))
    >>> both = join_groups([sex, old])
    >>> both.labels[both.codes[0]], both.expected()
    (('f', True), array([0., 1., 1., 1.]))
    """
    if len(attributes) == 1:
        return attributes[0]
    labels = tuple(product(*(own.labels for own in attributes)))
    known = [own for own in attributes if isinstance(own, KnownGroups)]
    if len(known) == len(attributes):
        codes = np.zeros_like(known[0].codes)
        for own in known:
            codes = codes * len(own.labels) + own.codes
        return KnownGroups(labels, codes)
    joint, *others = (_probabilities(own) for own in attributes)
    for other in others:
        joint = (joint[:, :, None] * other[:, None, :]).reshape(len(joint), -1)
    return ProbableGroups(labels, joint)


def told_groups(
    models: Any, table: Table, sensitive_features: Any, *, all_of_classes: bool = False
) -> dict[str, PoolGroups]:
    """Read the groups of protected attributes of classes that are known.

    Parameters
    ----------
    models : ValuationModels or object
        Which may know labels of an attribute that none of the rows has.
    table : Table
        The rows.
    sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of the table, optional
        The attributes.
    all_of_classes : bool
        Whether to refuse an attribute of numbers, and not to leave it out.
    """
    told = [variable_from(column) for column, _ in protected_columns(sensitive_features, table)]
    found: dict[str, PoolGroups] = {}
    for own in told:
        if all_of_classes:
            group_rows([own])  # which refuses numbers in a sentence
        if own.kind == "classes":
            absent = [label for label in _classes(models, own.name) if label not in own.classes]
            found[own.name] = KnownGroups((*own.classes, *absent), own.labels.astype(np.int64))
    return found


def modelled_groups(models: Any, X: Any, but: Collection[str] = ()) -> dict[str, PoolGroups]:
    """Give the groups of protected attributes of classes as models tell them.

    Parameters
    ----------
    models : ValuationModels or object
        Without probabilities, it tells of none.
    X : table
        The rows.
    but : collection of str
        Attributes to leave out.
    """
    if not hasattr(models, "probabilities"):
        return {}
    names = [name for name in models.variables[1:] if name not in but and models.classes(name)]
    return {name: ProbableGroups(models.classes(name), models.probabilities(X, name)) for name in names}


def _probabilities(groups: PoolGroups) -> FloatArray:
    if isinstance(groups, ProbableGroups):
        return groups.probabilities
    return np.eye(len(groups.labels))[groups.codes]


def _classes(models: Any, name: str) -> tuple[Any, ...]:
    """Give the labels that models know of an attribute; none if they know no such attribute of classes."""
    if not hasattr(models, "classes") or name not in models.variables[1:]:
        return ()
    return tuple(models.classes(name))
