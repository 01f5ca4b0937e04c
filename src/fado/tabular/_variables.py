"""Variables, their labels, and the groups that they form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fado._checks import check_count
from fado._messages import COMPARE_TARGET, list_names, plain_number, warn_user
from fado._typing import Bools, Integers
from fado.tabular._column import Column, is_label

Kind = Literal["classes", "continuous"]


MIN_GROUP_SIZE = 30  # rows
SMALL_SHARE = 0.01  # of the table
UNKNOWN = "unknown"  # the title of the rows whose group is not known
TARGET = "y"
MOST_NUMERIC_CLASSES = 20


@dataclass(frozen=True)
class Variable:
    """One variable in the form that engines use for training.

    Parameters
    ----------
    name : str
        ``"y"`` for the target, the attribute's name otherwise.
    kind : {"classes", "continuous"}
        How it is predicted and valued.
    labels : ndarray
        int32 codes into `classes`, or float64 numbers with NaN where the entry is missing.
    classes : tuple
        The sorted classes; that of missing entries, if any, comes last. Empty for numbers.
    excluded : frozenset of int
        Positions of the feature columns that its models must not see.
    sees_target : bool
        Whether its models see the target beside the features.
    has_missing : bool
        Whether the last class is that of missing entries.
    declared : tuple of int or None
        The positions of the classes, except that group, among the declared categories.
    """

    name: str
    kind: Kind
    labels: npt.NDArray[Any]
    classes: tuple[Any, ...] = ()
    excluded: frozenset[int] = field(default_factory=frozenset)
    sees_target: bool = False
    has_missing: bool = False
    declared: tuple[int, ...] | None = None

    @property
    def known(self) -> Bools:
        """Rows whose label a model can learn from."""
        return ~np.isnan(self.labels)

    @property
    def given(self) -> Bools:
        """Rows whose entry is not missing."""
        return self.labels != len(self.classes) - 1 if self.has_missing else ~np.isnan(self.labels)

    def take(self, rows: Integers) -> Variable:
        """Return the variable at some row positions; all classes stay, whether or not they occur."""
        return replace(self, labels=self.labels[rows])


def check_attribute_names(names: Sequence[str]) -> None:
    """Refuse repeated names of protected attributes, and the name of the target."""
    if TARGET in names:
        raise ValueError("A protected attribute cannot be called 'y', the target's name: rename it.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"Protected attributes must have different names, got {repeated[0]!r} more than once."
        )


def variable_from(column: Column, kind: Kind | None = None) -> Variable:
    """Choose the kind of a variable and encode it.

    Strings, booleans and categories are classes; numbers are classes up to 20 distinct values. Missing
    entries of classes are a separate class, the last.

    Examples
    --------
    >>> from fado.tabular import column_from
    >>> variable_from(column_from("sex", ["m", "f", None])).classes
    ('f', 'm', 'unknown')
    """
    codes, entries = column.encode()
    if column.levels is not None:
        if kind == "continuous":
            raise ValueError(f"Variable {column.name!r} holds text: it cannot be valued as continuous.")
    elif kind is None and len(entries) > MOST_NUMERIC_CLASSES:
        kind = "continuous"
    if kind == "continuous":
        return Variable(column.name, kind, column.numbers())
    classes = tuple(column.label_of(entry) for entry in entries)
    missing = codes < 0
    has_missing = bool(missing.any())
    if has_missing:
        name = UNKNOWN
        while name in classes:
            name = f"({name})"
        codes = np.where(missing, np.int32(len(classes)), codes)
        classes = (*classes, name)
    places = column.declared_places
    return Variable(column.name, "classes", codes, classes, has_missing=has_missing, declared=places)


def check_learnable(variable: Variable) -> None:
    """Refuse a variable that no model can learn, and warn of missing entries and rare classes."""
    name, classes, n_rows = variable.name, variable.classes, len(variable.labels)
    n_missing = n_rows - np.count_nonzero(variable.given)
    if variable.kind == "classes":
        if n_missing == n_rows:
            check_known([variable])
        first, has_one = classes[:1], len(classes) < 2
        advice = (
            f"they are a separate class, {classes[-1]!r}, and every row is valued over {len(classes)} "
            f"classes, not {len(classes) - 1}."
        )
    else:
        numbers = variable.labels[variable.known]
        if np.isinf(numbers).any():
            raise ValueError(f"Variable {name!r} contains infinity: correct or drop those rows first.")
        first, has_one = numbers[:1].tolist(), not (numbers != numbers[:1]).any()
        advice = "its models learn from the others, and those rows are valued by their predictions."
    if has_one:
        what = "`y`" if name == TARGET else f"Protected attribute {name!r}"
        shown = f" ({first[0]!r})" if first else ""
        raise ValueError(
            f"{what} has only one class{shown}: there is nothing to learn; leave it out or check the data."
        )
    if n_missing:
        warn_user(f"Protected attribute {name!r} is unknown in {n_missing} of {n_rows} rows: {advice}")
    if variable.kind == "continuous":
        return
    if len(classes) > 2 and (len(classes) == n_rows or len(classes) > max(10, n_rows // 2)):
        raise ValueError(
            f"Variable {name!r} has {len(classes)} classes in {n_rows} rows, like an identifier: coarsen it, "
            f'leave it out, or, if it is a number, set `kinds={{{name!r}: "continuous"}}`.'
        )
    lonely = [classes[code] for code in np.flatnonzero(np.bincount(variable.labels) == 1)]
    if lonely:
        shown = ", ".join(map(repr, lonely[:5])) + (", ..." if len(lonely) > 5 else "")
        warn_user(
            f"Variable {name!r} has a class with one member ({shown}): no model that values that row has "
            "seen the class; merge it with another to value it better."
        )


@dataclass(frozen=True)
class Labels:
    """A target of classes: per row the position of its label in `classes`.

    Parameters
    ----------
    codes : ndarray of int
        The rows' labels, as positions in `classes`.
    classes : tuple
        The labels, sorted.
    positive : int or None
        The position of the positive label; None if there is none.
    """

    codes: Integers
    classes: tuple[Any, ...]
    positive: int | None = None

    @property
    def is_positive(self) -> Bools:
        """Mark the rows of the positive label."""
        return self.codes == self.positive

    @property
    def pair(self) -> tuple[Any, Any]:
        """The negative label and the positive one, of two."""
        first, second = self.classes
        return (first, second) if self.positive else (second, first)


def labels_of(column: Column, pos_label: Any = None) -> Labels:
    """Read a target of classes; more than two labels must be whole numbers, if they are numbers."""
    codes, entries = column.encode()
    if column.levels is None and len(entries) > 2:
        from sklearn.utils.multiclass import check_classification_targets

        try:
            check_classification_targets(column.numbers())
        except ValueError as error:
            raise ValueError(
                f"`y` is continuous, and this needs classes: {COMPARE_TARGET}. ({error})"
            ) from error
    classes = tuple(column.label_of(entry) for entry in entries)
    return Labels(codes, classes, positive_code(classes, pos_label))


def positive_code(classes: Sequence[Any], pos_label: Any, argument: str = "pos_label") -> int | None:
    """Find the positive label: the chosen one, or the larger of two; more than two have none.

    Examples
    --------
    >>> positive_code(["no", "yes"], None), positive_code(["no", "yes"], "no"), positive_code([1, 2, 3], None)
    (1, 0, None)
    """
    if pos_label is None:
        return 1 if len(classes) == 2 else None
    if pos_label not in classes:
        shown = " and ".join(map(repr, classes)) if len(classes) <= 2 else ", ".join(map(repr, classes[:8]))
        raise ValueError(f"`{argument}` must be one of the labels {shown}, got {pos_label!r}.")
    return list(classes).index(pos_label)


def label_named(classes: Sequence[Any], text: str, argument: str, what: str = "a label of the target") -> Any:
    """Find the label that a text, such as an option, means: "1" for 1, 1.0 and "1"; `what` it should be."""
    for label in classes:
        if is_label(label, text):
            return label
    shown = ", ".join(repr(str(label)) for label in classes[:8]) + (", ..." if len(classes) > 8 else "")
    raise ValueError(f"`{argument} {text}` is not {what}; it has {shown}.")


@dataclass(frozen=True)
class Groups:
    """The groups: per row the position of its group's name.

    Parameters
    ----------
    codes : ndarray of int
        Each row's group.
    names : tuple of str
        For messages: labels as Python writes them, so that the text ``'unknown'`` differs from the group of
        the rows whose group is not known.
    titles : tuple of str
        For tables and pages: labels as they are.
    unknown : int or None
        The position of the group of the rows whose group is not known, which is compared nowhere; None if
        there is none.

    Examples
    --------
    >>> sexes = Groups(np.repeat([0, 1, 2, 3], [5000, 4960, 20, 20]), *2 * (("f", "m", "x", "unknown"),), 3)
    >>> sexes.compared()
    array([ True,  True, False, False])
    >>> sexes.compared(min_group_size=0)
    array([ True,  True,  True, False])
    """

    codes: Integers
    names: tuple[str, ...]
    titles: tuple[str, ...]
    unknown: int | None = None

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def sizes(self) -> Integers:
        """The number of rows of each group."""
        return np.bincount(self.codes, minlength=len(self.names))

    @property
    def by_row(self) -> npt.NDArray[np.object_]:
        """The title of the group of each row."""
        return np.array(self.titles, dtype=object)[self.codes]

    def take(self, rows: Integers) -> Groups:
        """Return the groups of some rows, without groups that have no rows."""
        cut = replace(self, codes=self.codes[rows])
        return _in_order(cut, np.flatnonzero(cut.sizes))

    def compared(self, min_group_size: int = MIN_GROUP_SIZE, sizes: npt.ArrayLike | None = None) -> Bools:
        """Mark the groups that are compared: all but the unknown one and small ones.

        Parameters
        ----------
        min_group_size : int, default=30
            Groups with at least this many rows are not small. A group with fewer is small if it also has
            less than 1 % of all rows; 0 makes none small.
        sizes : array-like of int, optional
            The number of rows of each group, if not that of `codes`. A group without rows is not small.
        """
        counts = self.sizes if sizes is None else np.asarray(sizes)
        large = (counts >= min_group_size) | (counts >= SMALL_SHARE * counts.sum())
        return (large | (counts == 0)) & (np.arange(len(counts)) != self.unknown)

    def reasons(
        self, min_group_size: int = MIN_GROUP_SIZE, sizes: npt.ArrayLike | None = None
    ) -> tuple[str, ...]:
        """Return why each group is not compared, "unknown" or "small"; empty for those that are."""
        compared = self.compared(min_group_size, sizes).tolist()
        return tuple(
            "" if is_compared else "unknown" if group == self.unknown else "small"
            for group, is_compared in enumerate(compared)
        )

    def tell_small(
        self, what: str, min_group_size: int = MIN_GROUP_SIZE, sizes: npt.ArrayLike | None = None
    ) -> str:
        """Say of the small groups that they are, for example, "left out of ratios"; empty without any.

        Of the unknown group `warn_of_unknown` speaks, where attributes are read.

        Examples
        --------
        >>> Groups(np.repeat([0, 1], [4980, 20]), ("'a'", "'b'"), ("a", "b")).tell_small("not compared")
        "Group 'b' (20 rows), with fewer than 30 rows and less than 1 % of the table, is not compared"
        """
        counts = self.sizes if sizes is None else np.asarray(sizes)
        small = np.flatnonzero(~self.compared(min_group_size, counts))
        sizes_of = [
            f"{self.names[group]} ({counts[group]} {'row' if counts[group] == 1 else 'rows'})"
            for group in small
            if group != self.unknown
        ]
        if not sizes_of:
            return ""
        several = len(sizes_of) > 1
        return (
            f"Group{'s' if several else ''} {list_names(sizes_of)}, with fewer than {min_group_size} rows "
            f"and less than {100 * SMALL_SHARE:g} % of the table, {'are' if several else 'is'} {what}"
        )


def group_rows(variables: Sequence[Variable], *, quarters: bool = False, appearance: bool = False) -> Groups:
    """Return every row's group: the combination of its protected attributes.

    Rows in which any attribute is missing are one group, `Groups.unknown`, the last.

    Parameters
    ----------
    variables : sequence of Variable
        The protected attributes.
    quarters : bool
        Whether a continuous attribute is cut into quarters; otherwise it is refused.
    appearance : bool
        Whether levels are numbered in the order of a categorical, or else of their first rows, with missing
        entries last, instead of in sorted order.

    Examples
    --------
    >>> from fado.tabular import column_from, variable_from
    >>> sex = variable_from(column_from("sex", ["m", "f", "m"]))
    >>> group_rows([sex])
    Groups(codes=array([1, 0, 1]), names=("'f'", "'m'"), titles=('f', 'm'), unknown=None)
    """
    if not variables:
        raise ValueError("There is no protected attribute to form groups.")
    parts = [_groups_of(variable, quarters=quarters, appearance=appearance) for variable in variables]
    if len(parts) == 1:
        return parts[0]
    parts = [title_in_full(variable.name, part) for variable, part in zip(variables, parts, strict=True)]
    codes = parts[0].codes
    for part in parts[1:]:
        _, codes = np.unique(codes * len(part) + part.codes, return_inverse=True)
    unknown = np.any([part.codes == part.unknown for part in parts], axis=0)
    _, first, codes = np.unique(np.where(unknown, len(codes), codes), return_index=True, return_inverse=True)
    names = [", ".join(part.names[part.codes[row]] for part in parts) for row in first]
    titles = [", ".join(part.titles[part.codes[row]] for part in parts) for row in first]
    if not unknown.any():
        return Groups(codes, tuple(names), tuple(titles))
    names[-1] = titles[-1] = UNKNOWN
    return Groups(codes, tuple(names), tuple(titles), len(first) - 1)


def title_in_full(attribute: str, groups: Groups) -> Groups:
    """Return an attribute's groups with the attribute in their names; comparisons have it already.

    Examples
    --------
    >>> title_in_full("sex", Groups(np.arange(2), ("'f'", "'m'"), ("f", "m"))).titles
    ('sex = f', 'sex = m')
    >>> titles = ("a < 9", "a >= 9", "unknown")
    >>> title_in_full("a>=9", Groups(np.arange(3), titles, titles, unknown=2)).titles
    ('a < 9', 'a >= 9', 'a>=9 = unknown')
    """
    titles = ["".join(title.split()) for title in groups.titles]
    compared = re.search(r"[<>=]| in \[", attribute) is not None and "".join(attribute.split()) in titles
    kept = [compared and group != groups.unknown for group in range(len(groups))]

    def full(texts: tuple[str, ...], equals: str) -> tuple[str, ...]:
        pairs = zip(texts, kept, strict=True)
        return tuple(text if is_kept else f"{attribute}{equals}{text}" for text, is_kept in pairs)

    return replace(groups, names=full(groups.names, "="), titles=full(groups.titles, " = "))


def warn_of_unknown(variables: Sequence[Variable]) -> None:
    """Warn of attributes that are unknown in some rows, and refuse those that are unknown in every row."""
    check_known(variables)
    for variable in variables:
        if variable.has_missing:
            warn_of_unknown_rows(variable, int((~variable.given).sum()), len(variable.labels))


def warn_of_unknown_rows(variable: Variable, unknown: int, n_rows: int) -> None:
    """Warn of the number of rows in which an attribute is unknown."""
    warn_user(
        f"Protected attribute {variable.name!r} is unknown in {unknown} of {n_rows} rows: they are counted "
        f"as group {variable.classes[-1]!r}, and compared with no other."
    )


def check_known(variables: Sequence[Variable]) -> None:
    """Refuse attributes that are unknown in every row."""
    for variable in variables:
        if not variable.given.any():
            raise ValueError(
                f"Protected attribute {variable.name!r} is unknown in every row: leave it out, or correct "
                "`unknown`."
            )


def _groups_of(variable: Variable, *, quarters: bool, appearance: bool) -> Groups:
    """Return the groups of one attribute that have rows; see `group_rows`."""
    if variable.kind == "continuous":
        if not quarters:
            n_numbers = len(np.unique(variable.labels[variable.known]))
            raise ValueError(
                f"Protected attribute {variable.name!r} has {n_numbers} different numbers, too many for "
                "groups: cut it into a few, for example by `age >= 50`."
            )
        numbers, known = variable.labels, variable.known
        edges = np.unique(np.quantile(numbers[known], [0.25, 0.5, 0.75], method="inverted_cdf"))
        edges = edges[edges < numbers[known].max()]
        bounds = [plain_number(edge, 4) for edge in edges.tolist()]
        between = [f"{low} to {high}" for low, high in pairwise(bounds)]
        quarters_of = [f"up to {bounds[0]}", *between, f"over {bounds[-1]}"] if bounds else ["all"]
        codes = np.where(known, np.searchsorted(edges, numbers), len(quarters_of))
        texts = (*quarters_of, *(() if known.all() else (UNKNOWN,)))
        return Groups(codes, texts, texts, None if known.all() else len(quarters_of))
    names = [repr(label) for label in variable.classes]
    if variable.has_missing:
        names[-1] = str(variable.classes[-1])
    titles = tuple(str(label) for label in variable.classes)
    unknown = len(titles) - 1 if variable.has_missing else None
    groups = Groups(variable.labels.astype(np.int64), tuple(names), titles, unknown)
    if not appearance and groups.sizes.all():
        return groups
    order = np.flatnonzero(groups.sizes)
    if appearance:
        codes = variable.labels
        first = np.full(len(titles), len(codes))
        if variable.declared is not None:
            first[: len(variable.declared)] = variable.declared
        else:
            first[codes[::-1]] = np.arange(len(codes))[::-1]
        if variable.has_missing:
            first[-1] = max(len(codes), len(titles)) + first.max()
        order = order[np.argsort(first[order], kind="stable")]
    return _in_order(groups, order)


def _in_order(groups: Groups, order: Integers) -> Groups:
    """Keep the groups in `order`, which contains all with rows, and number them in this order."""
    place = np.zeros(len(groups), dtype=np.int64)
    place[order] = np.arange(len(order))
    unknown = next((number for number, group in enumerate(order) if group == groups.unknown), None)
    names, titles = (tuple(texts[group] for group in order) for texts in (groups.names, groups.titles))
    return Groups(place[groups.codes], names, titles, unknown)


def check_min_group_size(min_group_size: Any) -> None:
    """Refuse an invalid number of rows; 0 compares all groups."""
    check_count("min_group_size", min_group_size, 0, 10**12)
