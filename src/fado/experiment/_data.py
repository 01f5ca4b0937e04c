"""The data of an experiment: rows, groups and parts, from a file, a generator or memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fado._messages import closest_names, list_names, warn_user
from fado._typing import Bools, Floats, Integers
from fado.datasets import make_account_fraud
from fado.experiment._config import GIVEN, Config, DataConfig, SplitConfig
from fado.tabular import (
    SMALL_SHARE,
    Expression,
    Groups,
    Problem,
    Table,
    Variable,
    blocks_of,
    column_from,
    deal_rows,
    group_rows,
    is_pattern,
    names_like,
    positive_code,
    read_problem,
    read_table,
    title_in_full,
    warn_of_unknown,
    weights_of,
)

MOST_GROUPS = 50
PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class ComparedGroups:
    """The groups that a ratio compares.

    Parameters
    ----------
    attribute : str or None
        The one protected attribute that makes them; None if all are crossed.
    groups : Groups
        Each row's group; one may have no rows here.
    left_out : ndarray of bool
        Per group, whether it counts in no ratio: it is too small or unknown.
    """

    attribute: str | None
    groups: Groups
    left_out: Bools

    def take(self, rows: Integers) -> ComparedGroups:
        """Return the groups of some rows."""
        return replace(self, groups=replace(self.groups, codes=self.groups.codes[rows]))


@dataclass(frozen=True)
class DataPart:
    """Some rows of the data; a group may have no rows here."""

    table: Table
    positive: Bools
    groups: Groups
    weights: Floats | None
    blocks: Integers | None = None


@dataclass(frozen=True)
class Data:
    """The rows of all parts; `parts` has the positions of each part.

    Parameters
    ----------
    problem : Problem
        What models see, which rows are positive, the protected attributes, weights and blocks.
    labels : tuple
        The negative and the positive label of the target.
    positive_label : str
        The target and its positive label, for people.
    sources : dict of str to tuple of str
        The columns that each attribute was made from.
    excluded : tuple of str
        The columns that models of protected attributes must not see.
    groups : Groups
        Each row's group, the combination of its protected attributes: that which interventions see.
    comparisons : tuple of ComparedGroups
        The groups that ratios compare: these, or those of each attribute.
    parts : dict of str to ndarray
        The positions of the rows of each part, ascending; an empty part has none.
    min_group_size : int
        From how many rows on a group is compared in any case.
    """

    problem: Problem
    labels: tuple[Any, Any]
    positive_label: str
    sources: dict[str, tuple[str, ...]]
    excluded: tuple[str, ...]
    groups: Groups
    comparisons: tuple[ComparedGroups, ...]
    parts: dict[str, Integers]
    min_group_size: int

    @property
    def positive(self) -> Bools:
        """The rows of the positive label."""
        return self.problem.labels.is_positive

    @property
    def compared(self) -> Bools:
        """The groups, of all attributes crossed, that are large enough in every part."""
        sizes = _count_rows(self.groups, self.parts["train"])
        compared = self.groups.compared(self.min_group_size, sizes) & (sizes > 0)
        if self.comparisons[0].attribute is None:
            compared &= ~self.comparisons[0].left_out
        return compared

    def part(self, *names: str) -> DataPart:
        """Return the rows of some parts, one part after the other."""
        rows = np.concatenate([self.parts[name] for name in names])
        weights, blocks = self.problem.sample_weight, self.problem.blocks
        return DataPart(
            Table.of_columns(
                [column.take(rows) for column in self.problem.table.columns],
                named=self.problem.table.is_named,
            ),
            self.positive[rows],
            replace(self.groups, codes=self.groups.codes[rows]),
            None if weights is None else weights[rows],
            None if blocks is None else np.unique(blocks[rows], return_inverse=True)[1],
        )

    def fingerprint(self) -> str:
        """Return a digest of everything that a result depends on."""
        digest = hashlib.sha256()
        for column in self.problem.table.columns:
            digest.update(repr((column.name, column.levels)).encode())
            digest.update(np.ascontiguousarray(column.numbers()).data)
        sources = [
            (name, columns[0] if len(columns) == 1 else columns)
            for name, columns in sorted(self.sources.items())
        ]
        digest.update(repr((list(self.groups.names), sources)).encode())
        for array in (self.positive, self.groups.codes, *(self.parts[part] for part in PARTS)):
            digest.update(repr((array.dtype.str, array.shape)).encode())  # or a row could change its part
            digest.update(np.ascontiguousarray(array).data)
        for name, optional in (("weights", self.problem.sample_weight), ("blocks", self.problem.blocks)):
            if optional is not None:
                digest.update(name.encode())
                digest.update(np.ascontiguousarray(optional).data)
        # groups that interventions do not change, and those that are left out of ratios
        training = ~self.groups.compared(self.min_group_size, _count_rows(self.groups, self.parts["train"]))
        marked = [(self.groups, training), *((one.groups, one.left_out) for one in self.comparisons)]
        small = [[groups.names[group] for group in np.flatnonzero(mask)] for groups, mask in marked]
        if any(small):
            digest.update(repr(small).encode())
        return digest.hexdigest()

    def summary(self) -> list[dict[str, Any]]:
        """Count rows and positives of every part and group, and mark groups that are left out of ratios."""
        return [
            {
                "part": part,
                "group": name,
                "rows": int(counts[group]),
                "positives": int(positives[group]),
                "attribute": comparison.attribute,
                "left_out": bool(comparison.left_out[group]),
                "unknown": group == comparison.groups.unknown,
            }
            for part, rows in self.parts.items()
            if len(rows)
            for comparison in self.comparisons
            for counts in [_count_rows(comparison.groups, rows)]
            for positives in [_count_rows(comparison.groups, rows[self.positive[rows]])]
            for group, name in enumerate(comparison.groups.names)
        ]


def read_data(config: Config) -> Data:
    """Read or generate the table, and take the columns that the configuration names."""
    settings = config.data
    if settings.given:
        raise ValueError(
            "`data.given` means that the data are passed in Python, but there are none: name a `path`."
        )
    if settings.path is not None:
        table = read_table(Path(settings.path))
    else:
        frame = make_account_fraud(settings.rows, settings.variant, random_state=config.seed)
        table = pa.Table.from_pandas(frame, preserve_index=False)
    target = Expression.of(table.column_names, settings.target, "data.target")
    target.check(table)
    unseen = [*target.sources, *_matching(table.column_names, settings.drop)]
    weight, blocks = settings.weight, settings.groups
    # the column of a split would identify the part, and is not a feature
    beside = {"data.weight": weight, "data.groups": blocks, "split.column": config.split.column}
    for place, name in beside.items():
        if name is not None:
            _check_column(table.column_names, name)
            target.check_apart(place, [name])
            unseen.append(name)
    others = table.drop_columns([*target.sources])
    expressions = {}
    for number, written in enumerate(settings.protected):
        place = f"data.protected[{number}]" if len(settings.protected) > 1 else "data.protected"
        attribute = replace(Expression.of(others.column_names, written, place), unknown=settings.unknown)
        attribute.check(others)
        expressions[written.strip()] = attribute
    protected = {name: attribute.entries(table) for name, attribute in expressions.items()}
    positive, labels = _positive(table, settings, target)
    features = table.select([name for name in table.column_names if name not in set(unseen)])
    if features.num_columns == 0:
        raise ValueError("No column is left for the models to see: drop fewer.")
    excluded = _matching(table.column_names, settings.exclude, features.column_names)
    problem = read_problem(features, positive, protected)
    if weight is not None:
        title = f"`data.weight`, {weight!r},"
        problem = replace(problem, sample_weight=weights_of(table.column(weight), problem.n_rows, title))
    if blocks is not None:
        title = f"`data.groups`, {blocks!r},"
        problem = replace(problem, blocks=blocks_of(table.column(blocks), problem.n_rows, title))
    warn_of_unknown(problem.protected)
    groups = _groups(problem.protected)
    cells = groups.codes * 2 + positive
    parts = _split(table, config.split, cells, np.random.default_rng([config.seed, 2]), problem.blocks)
    sources = {name: attribute.sources for name, attribute in expressions.items()}
    return _checked(problem, labels, sources, excluded, groups, parts, config)


def data_from(problem: Problem, parts: Mapping[str, npt.ArrayLike], config: Config) -> Data:
    """Take the data from a problem in memory, for an experiment whose data are passed in Python.

    Parameters
    ----------
    problem : Problem
        Features, a target of two labels, and protected attributes of the names in ``data.protected``.
    parts : mapping of str to array of int
        The positions of the rows of ``"train"`` and ``"test"``, and of ``"validation"`` if there is one.
    config : Config
        The experiment, with ``data.given`` and the ``split.method`` ``"given"``.

    Examples
    --------
    >>> from fado.experiment._config import config_from
    >>> from fado.tabular import read_problem
    >>> config = config_from({
    ...     "data": {"given": True, "target": "y", "protected": ["sex"]},
    ...     "split": {"method": "given", "validation": False},
    ...     "interventions": {"rw": True},
    ...     "models": {"space": {"n_estimators": 5}},
    ... })
    >>> problem = read_problem([[1.0], [2.0], [3.0], [4.0]], [0, 1, 1, 0], {"sex": ["f", "m", "f", "m"]})
    >>> data_from(problem, {"train": [0, 1], "test": [2, 3]}, config).positive_label
    'y = 1'
    """
    names, expected = [variable.name for variable in problem.protected], config.data.protected
    if names != [name.strip() for name in expected]:
        raise ValueError(f"`data.protected` is {list(expected)}, and the attributes given are {names}.")
    if problem.table.is_sparse:
        raise ValueError("A sparse matrix cannot be split into parts here: convert it to a dense table.")
    labels = problem.labels
    if len(labels.classes) != 2 or labels.positive is None:
        raise ValueError(
            f"The target {config.data.target!r} must hold two labels, got {len(labels.classes)}: models are "
            "measured by true and false positives."
        )
    warn_of_unknown(problem.protected)
    rows_of = {part: np.sort(np.asarray(parts.get(part, []), dtype=np.int64)) for part in PARTS}
    rows, counts = np.unique(np.concatenate(list(rows_of.values())), return_counts=True)
    if len(rows) and (rows[0] < 0 or rows[-1] >= problem.n_rows):
        wrong = rows[0] if rows[0] < 0 else rows[-1]
        raise ValueError(
            f"`parts` must hold positions of the {problem.n_rows:,} rows, 0 to {problem.n_rows - 1}, got "
            f"{wrong}."
        )
    if (counts > 1).any():
        raise ValueError(f"`parts` hold row {rows[counts > 1][0]} more than once: a row is in one part.")
    return _checked(
        problem,
        (labels.classes[1 - labels.positive], labels.classes[labels.positive]),
        {
            name: () if position is None else (problem.table.names[position],)
            for name, position in zip(names, problem.positions, strict=True)
        },
        _matching(problem.table.names, config.data.exclude),
        _groups(problem.protected),
        rows_of,
        config,
    )


def _checked(
    problem: Problem,
    labels: tuple[Any, Any],
    sources: dict[str, tuple[str, ...]],
    excluded: Sequence[str],
    groups: Groups,
    parts: dict[str, Integers],
    config: Config,
) -> Data:
    """Check that models can be trained and measured on the parts, and combine the data."""
    positive = problem.labels.is_positive
    for part, rows in parts.items():
        if not len(rows) and (part != "validation" or config.split.has_validation):
            raise ValueError(f"The {part} part has no rows: {_remedy(part, config)}.")
        if len(rows) and len(np.unique(positive[rows])) < 2:
            label = "positives" if positive[rows].all() else "negatives"
            raise ValueError(
                f"The {part} part ({len(rows):,} rows) holds only {label} of {config.data.target!r}: "
                f"{_remedy(part, config)}."
            )
    return Data(
        problem=problem,
        labels=labels,
        positive_label=f"{config.data.target} = {labels[1]}",
        sources=sources,
        excluded=tuple(excluded),
        groups=groups,
        comparisons=_comparisons(problem.protected, groups, parts, config),
        parts=parts,
        min_group_size=config.data.min_group_size,
    )


def _groups(protected: Sequence[Variable]) -> Groups:
    """Return the groups of all rows, with names that include the attribute."""
    groups = group_rows(protected, appearance=True)
    if len(protected) > 1:
        return groups
    return replace(groups, names=title_in_full(protected[0].name, groups).names)


def _comparisons(
    protected: Sequence[Variable], groups: Groups, parts: dict[str, Integers], config: Config
) -> tuple[ComparedGroups, ...]:
    """Return the groups that ratios compare, and warn of those that are left out."""
    least = config.data.min_group_size
    evaluated = {part: parts[part] for part in ("validation", "test") if len(parts[part])}
    divisions: dict[str | None, Groups] = {None: groups}
    if config.attributes:
        divisions = {variable.name: _groups([variable]) for variable in protected}
    comparisons, sentences = [], []
    for attribute, division in divisions.items():
        sizes = {part: _count_rows(division, rows) for part, rows in evaluated.items()}
        unknown = np.arange(len(division)) == division.unknown
        left_out = few_rows(list(sizes.values()), least) | unknown
        comparisons.append(ComparedGroups(attribute, division, left_out))
        compared = len(division) - int(left_out.sum())
        if compared > MOST_GROUPS:
            raise ValueError(
                f"`data.protected` makes {compared} groups, too many to compare: cut numbers into a few, for "
                'example by "age>=50".'
            )
        small = [
            f"{division.names[group]} ({', '.join(f'{part} {sizes[part][group]}' for part in sizes)})"
            for group in np.flatnonzero(left_out & ~unknown)
        ]
        sentence = ""
        if small:
            subject = "1 group has" if len(small) == 1 else f"{len(small)} groups have"
            where, names = " or the ".join(evaluated), list_names(small)
            sentence = f"{subject} fewer than {least} rows and less than 1 % of the {where} part: {names}"
        if left_out.any() and compared < 2:
            raise ValueError(
                f"{sentence or 'The group of some rows is unknown'}, and fewer than two groups are left to "
                "compare: merge groups, or lower `data.min_group_size`."
            )
        sentences.append(sentence)
    for sentence in filter(None, sentences):
        warn_user(f"{sentence}: ratios leave them out. `data.min_group_size` sets the size.")
    return tuple(comparisons)


def _check_column(there: Sequence[str], name: str) -> None:
    if name not in there:
        raise ValueError(f"The data have no column {name!r}{closest_names(name, there)}")


def _matching(there: Sequence[str], wanted: Sequence[str], among: Sequence[str] | None = None) -> list[str]:
    """Return the columns that are named, or that match a shell pattern such as ``age_*``, `among` some."""
    names: list[str] = []
    for name in wanted:
        if name in there or not is_pattern(name):
            _check_column(there, name)
            names.append(name)
            continue
        matches = names_like(name, there if among is None else among)
        if not matches:
            raise ValueError(f"No column matches {name!r}{closest_names(name, there)}")
        names += matches
    return list(dict.fromkeys(names))


def _positive(table: pa.Table, settings: DataConfig, target: Expression) -> tuple[Bools, tuple[Any, Any]]:
    """Mark the rows of the positive label, by default the larger; return both labels, too."""
    column = column_from(settings.target, target.read(table, named=False))
    codes, entries = column.encode()
    missing = int((codes < 0).sum())
    if missing:
        raise ValueError(
            f"The target {settings.target!r} is missing in {missing:,} rows: drop or label them."
        )
    if len(entries) != 2:
        shown = ", ".join(repr(column.label_of(entry)) for entry in entries[:5])
        raise ValueError(
            f"The target {settings.target!r} must hold two labels, got {len(entries)} "
            f"({shown}{', ...' if len(entries) > 5 else ''}): models need true and false positives."
        )
    labels = [column.label_of(entry) for entry in entries]
    code = positive_code(labels, settings.positive, "data.positive")
    positive = 1 if code is None else code
    return codes == code, (labels[1 - positive], labels[positive])


def few_rows(sizes: Sequence[npt.NDArray[np.int64]], min_group_size: int) -> Bools:
    """Mark the groups that are small in any of some parts: a group must be large enough in all.

    A group without rows in a part is small there: what one part selects could not be measured on the other.

    Examples
    --------
    >>> few_rows([np.array([4000, 50, 20]), np.array([5000, 0, 60])], 30)
    array([False,  True,  True])
    """
    small = [(counts < min_group_size) & (counts < SMALL_SHARE * counts.sum()) for counts in sizes]
    return np.any(small, axis=0)


def _split(
    table: pa.Table,
    split: SplitConfig,
    cells: Integers,
    generator: np.random.Generator,
    blocks: Integers | None = None,
) -> dict[str, Integers]:
    """Return the rows of every part, ascending."""
    if split.column is None:
        shares = [getattr(split, part)[0] for part in PARTS]
        return split_at_random(cells, shares, generator, blocks)
    values = table.column(split.column).to_pandas()
    parts = {}
    for part in PARTS:
        wanted = getattr(split, part)
        wanted = wanted if isinstance(wanted, tuple) else ()
        for position, value in enumerate(wanted):
            if not (values == value).any():
                there = list_names(sorted(map(repr, values.unique().tolist())), most=10)
                raise ValueError(
                    f"`split.{part}[{position}]` is {value!r}, which no row of {split.column!r} has; it has "
                    f"{there}."
                )
        parts[part] = np.flatnonzero(values.isin(wanted).to_numpy())
    if isinstance(split.validation, float) and split.validation > 0:
        rows, shares = parts["train"], [1 - split.validation, split.validation]
        if blocks is not None:
            blocks = np.unique(blocks[rows], return_inverse=True)[1]
        drawn = split_at_random(cells[rows], shares, generator, blocks)
        parts |= {part: rows[drawn[part]] for part in ("train", "validation")}
    return parts


def split_at_random(
    cells: Integers, shares: Sequence[float], generator: np.random.Generator, blocks: Integers | None = None
) -> dict[str, Integers]:
    """Split rows at random, with the same shares of every label and group in each part.

    Parameters
    ----------
    cells : ndarray of int
        Each row's combination of label and group.
    shares : sequence of float
        The shares of `PARTS`, or of the first of them.
    generator : numpy.random.Generator
        The generator of random numbers.
    blocks : ndarray of int, optional
        The block of each row, 0, 1, 2, ...: a block is never split. It counts for the rarest of its cells.
    """
    dealt = deal_rows(cells, shares, generator, blocks)
    return {part: np.flatnonzero(dealt == number) for number, part in enumerate(PARTS)}


def _remedy(part: str, config: Config) -> str:
    """State where the rows of a part come from, and how to change them."""
    split, setting = config.split, getattr(config.split, part)
    if split.method == GIVEN:
        return "pass other rows for it"
    together = ""
    if config.data.groups is not None and (split.column is None or isinstance(setting, float)):
        together = f" (rows of equal {config.data.groups!r}, `data.groups`, stay together)"
    if split.column is None:
        return f"`split.{part}` is {setting[0]:g} of the rows{together}; give it a larger share"
    if isinstance(setting, float):
        of = f"`split.validation` is {setting:g} of the rows of `split.train`"
        return f"{of}{together}; give it a larger share"
    values = list_names([repr(value) for value in setting])
    return f"`split.{part}` names the rows whose {split.column!r} is {values}; name other values"


def _count_rows(groups: Groups, rows: Integers) -> Integers:
    """Count the rows of every group."""
    return np.bincount(groups.codes[rows], minlength=len(groups))
