"""From protected attributes to one group per row: the one encoder for all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import warn_user
from fado.tabular._variables import MISSING, Variable

__all__ = ["Groups", "group_rows", "title_in_full", "warn_of_missing", "warn_of_missing_rows"]

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """The groups: per row the position of its group's name. Every group has rows.

    Parameters
    ----------
    codes : ndarray of int
        Each row's group.
    names : tuple of str
        For messages: labels as Python writes them, so that the text ``'(missing)'`` and a missing entry look
        different.
    titles : tuple of str
        For people: labels as they are.
    """

    codes: Codes
    names: tuple[str, ...]
    titles: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> Codes:
        """How many rows each group has."""
        return np.bincount(self.codes, minlength=len(self))

    @property
    def by_row(self) -> npt.NDArray[np.object_]:
        """What people call the group of each row."""
        return np.array(self.titles, dtype=object)[self.codes]

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Groups:
        """Give the groups of some rows; those without rows are none any more."""
        cut = Groups(self.codes[rows], self.names, self.titles)
        return _numbered_as(cut, np.flatnonzero(cut.sizes))


def group_rows(variables: Sequence[Variable], *, quarters: bool = False, appearance: bool = False) -> Groups:
    """Give every row its group: the combination of its protected attributes.

    Missing entries are a group of their own. Without attributes all rows are one group.

    Parameters
    ----------
    variables : sequence of Variable
        The protected attributes.
    quarters : bool
        Whether a continuous attribute is cut into its quarters; otherwise it is refused.
    appearance : bool
        Whether levels are numbered as a categorical declares them, else in the order in which rows show
        them, the missing last; and not in their own order.

    Examples
    --------
    >>> from fado.tabular import column_from, variable_from
    >>> sex = variable_from(column_from("sex", ["m", "f", "m"]))
    >>> group_rows([sex])
    Groups(codes=array([1, 0, 1]), names=("'f'", "'m'"), titles=('f', 'm'))
    """
    if not variables:
        raise ValueError("There is no protected attribute to make groups of.")
    parts = [_levels(variable, quarters=quarters, appearance=appearance) for variable in variables]
    if len(parts) == 1:
        return parts[0]
    codes = np.zeros(len(parts[0].codes), dtype=np.int64)
    names, titles = [""], [""]
    for number, (variable, part) in enumerate(zip(variables, parts, strict=True)):
        combined, codes = np.unique(codes * len(part) + part.codes, return_inverse=True)
        before, here = np.divmod(combined, len(part))
        joint = ", " if number else ""
        full = title_in_full(variable.name, part)
        names = [f"{names[b]}{joint}{full.names[h]}" for b, h in zip(before, here, strict=True)]
        titles = [f"{titles[b]}{joint}{full.titles[h]}" for b, h in zip(before, here, strict=True)]
    return Groups(codes, tuple(names), tuple(titles))


def title_in_full(attribute: str, groups: Groups) -> Groups:
    """Give an attribute's groups names that tell the attribute; those of comparisons do so as they are.

    Examples
    --------
    >>> title_in_full("sex", Groups(np.arange(2), ("'f'", "'m'"), ("f", "m"))).titles
    ('sex = f', 'sex = m')
    >>> told = ("a < 9", "a >= 9", "(missing)")
    >>> title_in_full("a>=9", Groups(np.arange(3), told, told)).titles
    ('a < 9', 'a >= 9', 'a>=9 = (missing)')
    """
    titles = ["".join(title.split()) for title in groups.titles]
    compared = re.search(r"[<>=]| in \[", attribute) is not None and "".join(attribute.split()) in titles
    kept = [compared and title != MISSING for title in groups.titles]

    def full(texts: tuple[str, ...], equals: str) -> tuple[str, ...]:
        pairs = zip(texts, kept, strict=True)
        return tuple(text if is_kept else f"{attribute}{equals}{text}" for text, is_kept in pairs)

    return Groups(groups.codes, full(groups.names, "="), full(groups.titles, " = "))


def warn_of_missing(variables: Sequence[Variable]) -> None:
    """Say which attributes are missing in some rows, which are a group of their own."""
    for variable in variables:
        if variable.kind == "classes" and variable.has_missing:
            missing = int((variable.labels == len(variable.classes) - 1).sum())
            warn_of_missing_rows(variable, missing, len(variable.labels))


def warn_of_missing_rows(variable: Variable, missing: int, n_rows: int) -> None:
    """Say in how many rows an attribute is missing, which are a group of their own."""
    warn_user(
        f"Protected attribute {variable.name!r} is missing in {missing} of {n_rows} rows: they are a group "
        f"of their own, {variable.classes[-1]!r}."
    )


def _levels(variable: Variable, *, quarters: bool, appearance: bool) -> Groups:
    """Give the groups of one attribute, only those that have rows."""
    if variable.kind == "continuous":
        if not quarters:
            n_numbers = len(np.unique(variable.labels[variable.known]))
            raise ValueError(
                f"Protected attribute {variable.name!r} has {n_numbers} different numbers, too many for "
                "groups: cut it into a few, for example by `age >= 50`."
            )
        return _quarters(variable)
    names = [repr(label) for label in variable.classes]
    if variable.has_missing:
        names[-1] = str(variable.classes[-1])
    groups = Groups(
        variable.labels.astype(np.int64), tuple(names), tuple(str(label) for label in variable.classes)
    )
    order = np.flatnonzero(groups.sizes)
    if appearance:
        order = _by_appearance(variable, order)
    return _numbered_as(groups, order)


def _quarters(variable: Variable) -> Groups:
    numbers, known = variable.labels, variable.known
    edges = np.unique(np.quantile(numbers[known], [0.25, 0.5, 0.75], method="inverted_cdf"))
    edges = edges[edges < numbers[known].max()]
    codes = np.searchsorted(edges, numbers).astype(np.int64)
    bounds = [f"{edge:.4g}" for edge in edges]
    names = [f"up to {bounds[0]}"] if len(bounds) else ["all"]
    names += [f"{low} to {high}" for low, high in pairwise(bounds)]
    names += [f"over {bounds[-1]}"] if len(bounds) else []
    if not known.all():
        codes[~known] = len(names)
        names.append(MISSING)
    return Groups(codes, tuple(names), tuple(names))


def _by_appearance(variable: Variable, occurring: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Order classes as a categorical declares them, or by the first row of each; the missing come last."""
    codes = variable.labels
    first = np.full(len(variable.classes), len(codes))
    if variable.declared is not None:
        first[: len(variable.declared)] = variable.declared
    else:
        first[codes[::-1]] = np.arange(len(codes))[::-1]
    if variable.has_missing:
        first[-1] = max(len(codes), len(variable.classes)) + first.max()
    return occurring[np.argsort(first[occurring], kind="stable")]


def _numbered_as(groups: Groups, order: npt.NDArray[np.intp]) -> Groups:
    """Keep the groups in `order`, which holds all that have rows, and number them so."""
    place = np.zeros(len(groups), dtype=np.int64)
    place[order] = np.arange(len(order))

    def kept(texts: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(texts[group] for group in order)

    return Groups(place[groups.codes], kept(groups.names), kept(groups.titles))
