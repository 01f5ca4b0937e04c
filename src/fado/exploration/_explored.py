"""The data that is explored, read once and cut to valued rows: features, target, values, groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fado._messages import list_names
from fado._messages import plain_number as plain_number
from fado._typing import Bools, Floats, Integers
from fado.tabular import (
    MIN_GROUP_SIZE,
    SMALL_SHARE,
    Column,
    Groups,
    Problem,
    Variable,
    check_known,
    check_min_group_size,
    group_rows,
)
from fado.valuation import OutOfBagEntropy, Valuation, check_alignment

if TYPE_CHECKING:
    from fado.exploration._files import Sampled


FEWEST_MEMBERS = 10  # groups of fewer rows are never named
MOST_GROUPS = 12
MOST_LISTED = 60
_MOST_KEPT = 50  # groups of an attribute: valuators keep probabilities for no more

# why a listed group is not compared
POOLED, SMALL, UNNAMED = "shown with others", "too small to compare", "too small to compare or to name"
OF_UNKNOWN = "the group is unknown"
SEVERAL = "shown with others, or too small to compare"


def percent(share: float) -> str:
    """Write a share as a percentage of three digits.

    Examples
    --------
    >>> percent(0.6685), percent(0.00012), percent(1.0)
    ('66.8 %', '0.012 %', '100 %')
    """
    return f"{plain_number(100 * share)} %"


def quoted(name: str) -> str:
    """Set a name off from the sentence around it."""
    return f"“{name}”"


def written(number: float) -> str:
    """Write a number of a column with at most six digits.

    Examples
    --------
    >>> written(50.0), written(1 / 3)
    ('50', '0.333333')
    """
    return str(int(number)) if float(number).is_integer() else f"{number:.6g}"


class ListedGroup(NamedTuple):
    """A group with its rows, why it is not compared (None if it is), and the groups that it contains."""

    name: str
    rows: int
    note: str | None
    members: tuple[int, ...]


@dataclass(frozen=True)
class ShownGroups:
    """The groups that are shown: per row the position of its group's name, -1 for a row of none of them.

    Parameters
    ----------
    codes : ndarray of int
        Each row's shown group.
    names : tuple of str
        The shown groups: those that are compared, and then pools of others.
    others : int or None
        The position of the pool of groups beyond the largest, which are too many to be shown.
    small : int or None
        The position of the groups that are too small to be compared: counted, but without rates.
    unknown : int or None
        The position of the rows whose group is unknown.
    listed : tuple of ListedGroup
        All groups, the compared ones first; those of fewer than ten rows as one, without their names.
    place : ndarray of int
        For each group, the shown one that it is part of.
    """

    codes: Integers
    names: tuple[str, ...]
    others: int | None = None
    small: int | None = None
    unknown: int | None = None
    listed: tuple[ListedGroup, ...] = ()
    place: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def compared(self) -> list[int]:
        """The groups that are compared with each other."""
        apart = (self.others, self.small, self.unknown)
        return [group for group in range(len(self)) if group not in apart]

    @property
    def rated(self) -> list[int]:
        """The groups that have rates and means: those compared, the unknown one and the pool of others."""
        return [group for group in range(len(self)) if group != self.small]

    @property
    def rated_rows(self) -> Bools:
        """Mark the rows of groups that have rates."""
        return np.isin(self.codes, self.rated)

    @property
    def sizes(self) -> Integers:
        """How many rows each group has."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self))

    def count(self, rows: Bools) -> Integers:
        """Count the marked rows of each group."""
        return np.bincount(self.codes[rows & (self.codes >= 0)], minlength=len(self))

    def total(self, amounts: npt.NDArray[Any]) -> Floats:
        """Add up amounts, group by group."""
        there = self.codes >= 0
        sums = np.bincount(self.codes[there], amounts[there], minlength=len(self))
        return np.asarray(sums, dtype=np.float64)

    def per_row(self, sums: npt.NDArray[Any], counts: npt.NDArray[Any]) -> list[float | None]:
        """Divide each group's sum by its count; None for small groups, and where the count is 0."""
        return [
            float(total / count) if count > 0 and group != self.small else None
            for group, (total, count) in enumerate(zip(sums, counts, strict=True))
        ]

    def members(self, group: int) -> Bools:
        """Mark the rows of one group."""
        return self.codes == group


def show_groups(groups: Groups, min_group_size: int = MIN_GROUP_SIZE, *, noun: str = "groups") -> ShownGroups:
    """Choose which groups are compared, and pool the others.

    Groups that are small by `Groups.compared`, and groups of fewer than ten rows, make one pool; of more than
    a dozen others the smallest make a second. A pool of one group has that group's name; a pool of fewer than
    ten rows is hidden. The unknown group is shown, and not compared.

    Examples
    --------
    >>> import numpy as np
    >>> groups = Groups(np.repeat([0, 1, 2, 3], [30, 20, 7, 4]), tuple("abcd"), tuple("abcd"))
    >>> shown = show_groups(groups)
    >>> shown.names, shown.sizes, shown.compared
    (('a', 'b', '(2 small groups)'), array([30, 20, 11]), [0, 1])
    """
    sizes, names = groups.sizes, groups.titles
    too_few = (sizes > 0) & (sizes < FEWEST_MEMBERS)
    unknown = [] if groups.unknown is None or too_few[groups.unknown] else [groups.unknown]
    small = ~groups.compared(min_group_size) | too_few
    by_size = np.argsort(-sizes, kind="stable")
    large = [int(group) for group in by_size if sizes[group] and not small[group]]
    n_kept = len(large) if len(large) <= MOST_GROUPS else MOST_GROUPS - 1
    kept, rest = sorted(large[:n_kept]), large[n_kept:]
    left = [int(group) for group in by_size if small[group] and group not in unknown]

    place = np.full(len(names), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    shown = [names[group] for group in kept]
    pools: dict[str, int | None] = {}
    for pool, word in ((unknown, "unknown"), (rest, "other"), (left, "small")):
        hidden = not pool or sizes[pool].sum() < FEWEST_MEMBERS
        pools[word] = None if hidden else len(shown)
        if not hidden:
            place[pool] = len(shown)
            shown.append(names[pool[0]] if len(pool) == 1 else f"({len(pool)} {word} {noun})")
    listed = [
        ListedGroup(names[group], int(sizes[group]), note, (group,))
        for members, note in ((kept, None), (unknown, OF_UNKNOWN), (rest, POOLED), (left, SMALL))
        for group in members
        if not too_few[group]
    ]
    if too_few.any():
        members = tuple(np.flatnonzero(too_few).tolist())
        word = noun if len(members) > 1 else noun.removesuffix("s")
        name = f"({len(members)} {word} of fewer than {FEWEST_MEMBERS} rows)"
        listed.append(ListedGroup(name, int(sizes[too_few].sum()), UNNAMED, members))
    places = pools["other"], pools["small"], pools["unknown"]
    return ShownGroups(place[groups.codes], tuple(shown), *places, tuple(listed), place)


def listed_groups(
    groups: ShownGroups, sampled: Sampled | None = None, whole: Integers | None = None
) -> list[dict[str, Any]]:
    """List all groups with their rows; for a sample, also their rows and rates in the whole table."""
    listed, more = list(groups.listed[:MOST_LISTED]), groups.listed[MOST_LISTED:]
    if more:
        notes = {one.note for one in more}
        note = notes.pop() if len(notes) == 1 else SEVERAL
        members = tuple(member for one in more for member in one.members)
        listed.append(ListedGroup(f"({len(more)} more)", sum(one.rows for one in more), note, members))
    entries = []
    for one in listed:
        entry = {"name": one.name, "rows": one.rows, "compared": one.note is None, "note": one.note}
        if sampled is not None and whole is not None:
            entry["in_all"], entry["rate_in_all"] = sampled.together(whole, one.members)
        entries.append(entry)
    return entries


def tell_left_out(groups: ShownGroups, speak: Callable[[str], str], min_group_size: int) -> str | None:
    """Say which groups are not compared, and why; None if all are.

    Examples
    --------
    >>> import numpy as np
    >>> groups = Groups(np.repeat([0, 1, 2], [3000, 2993, 7]), tuple("abc"), tuple("abc"))
    >>> tell_left_out(show_groups(groups), repr, 30)
    '1 group of fewer than 10 rows (7 rows) is not compared and not named.'
    """
    sentences = []
    small, unnamed, pooled, unknown = (
        [one for one in groups.listed if one.note == note] for note in (SMALL, UNNAMED, POOLED, OF_UNKNOWN)
    )
    for one in unknown:
        sentences.append(f"The group of {one.rows:,} rows is unknown: they are compared with no other.")
    if small:
        names, sizes = [speak(one.name) for one in small], [one.rows for one in small]
        told = list_names([f"{name} ({size} rows)" for name, size in zip(names, sizes, strict=True)])
        sentences.append(
            f"Group{'s' if len(small) > 1 else ''} {told}, with fewer than {min_group_size} rows and less "
            f"than {100 * SMALL_SHARE:g} % of the table, {'is' if len(small) == 1 else 'are'} not compared."
        )
    for one in unnamed:
        in_all, verb = ("", "is") if len(one.members) == 1 else (" in all", "are")
        told = f"{one.name[1:-1]} ({one.rows} rows{in_all})"
        sentences.append(f"{told} {verb} not compared and not named.")
    if pooled:
        rows = sum(one.rows for one in pooled)
        sentences.append(
            f"Only the {len(groups.compared)} largest groups are shown one by one and compared; the "
            f"{len(pooled)} others with enough rows ({rows:,} rows in all) are shown together as one."
        )
    return " ".join(sentences) or None


def cells_of(groups: ShownGroups, labels: ShownGroups) -> Iterator[tuple[str, str, npt.NDArray[np.intp]]]:
    """Go through the rows of every rated group and label that have at least ten."""
    for group in groups.rated:
        for label, label_name in enumerate(labels.names):
            rows = np.flatnonzero(groups.members(group) & labels.members(label))
            if len(rows) >= FEWEST_MEMBERS:
                yield groups.names[group], label_name, rows


@dataclass(frozen=True)
class Protected:
    """One protected attribute: its variable, the groups it makes, and those of them that are shown."""

    variable: Variable
    fine: Groups
    groups: ShownGroups
    position: int | None  # among the feature columns, if it was given by name
    whole: Integers | None  # rows and positives of groups over all rows, where a sample is explored

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.variable.name

    @property
    def is_continuous(self) -> bool:
        """Whether it is a number rather than classes."""
        return self.variable.kind == "continuous"

    @property
    def spoken(self) -> tuple[str, ...]:
        """The shown groups' names for a sentence."""
        return tuple(map(self.speak, self.groups.names))

    def speak(self, group: str) -> str:
        """Give a group's name for a sentence, with the attribute's name before "up to 30"."""
        return quoted(f"{self.name} {group}" if self.is_continuous else group)


class Span(NamedTuple):
    """The ends of an axis, and its neutral point if there is one."""

    low: float
    high: float
    neutral: float | None = None


@dataclass(frozen=True)
class ExploredRows:
    """The data of all parts of a page.

    Parameters
    ----------
    problem : Problem
        All rows as they were read.
    target_name : str
        The user's name for the target.
    target : Variable
        The target of the explored rows.
    positive : int or None
        The code of the positive label; None if there is none.
    attributes : tuple of Protected
        The protected attributes.
    valuation : Valuation
        The values.
    rows : ndarray
        The positions of the explored rows among all rows; those without a value are left out.
    sample : ndarray
        Sorted positions among the explored rows, at most `max_rows`, for searches.
    min_group_size : int
        Groups with at least this many rows are always compared.
    seed : int
        Seed of the sample, and of the order of rows with equal utility.
    sampled : Sampled or None
        The larger table that these rows are a sample of.
    """

    problem: Problem
    target_name: str
    target: Variable
    positive: int | None
    attributes: tuple[Protected, ...]
    valuation: Valuation
    rows: npt.NDArray[np.intp]
    sample: npt.NDArray[np.intp]
    min_group_size: int
    seed: int
    sampled: Sampled | None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The features of the explored rows; none for a sparse matrix."""
        every = self.problem.table.columns
        return every if len(self) == self.problem.n_rows else tuple(one.take(self.rows) for one in every)

    @property
    def searched(self) -> Problem:
        """The rows that are searched, as a problem."""
        rows = self.rows[self.sample]
        return self.problem if len(rows) == self.problem.n_rows else self.problem.take(rows)

    @property
    def weights(self) -> Floats | None:
        """The rows' weights in the models; None if all are the same."""
        weights = self.problem.sample_weight
        return None if weights is None else weights[self.rows]

    @property
    def is_binary(self) -> bool:
        """Whether the target has two classes."""
        return self.target.kind == "classes" and len(self.target.classes) == 2

    @property
    def is_positive(self) -> Bools | None:
        """Mark the rows of the positive label, if there is one."""
        return None if self.positive is None else self.target.labels == self.positive

    @property
    def outcome(self) -> Floats | None:
        """The outcome by which groups are compared: 1 for a positive label, or a continuous target."""
        if self.target.kind == "continuous":
            return self.target.labels
        return None if self.is_positive is None else self.is_positive.astype(np.float64)

    @cached_property
    def labels(self) -> ShownGroups:
        """The rows by their label; by the two halves of a continuous target."""
        target = self.target
        if target.kind == "classes":
            codes, names = target.labels.astype(np.int64), tuple(map(str, target.classes))
        else:
            middle = float(np.median(target.labels))
            codes = (target.labels > middle).astype(np.int64)
            names = (f"up to {plain_number(middle, 4)}", f"over {plain_number(middle, 4)}")
        return show_groups(Groups(codes, names, names), 0, noun="labels")

    def row_number(self, row: int) -> int:
        """Give the position of an explored row in the user's table."""
        place = self.rows[row]
        return int(place if self.sampled is None else self.sampled.places[place])

    def shown_name(self, variable: Variable) -> str:
        """Give the user's name for the target or a protected attribute."""
        return self.target_name if variable is self.target else variable.name

    def speak_label(self, code: int) -> str:
        """Give a label for a sentence, with the target's name before "True" or "2"."""
        label = self.target.classes[code]
        return label if isinstance(label, str) else f"{self.target_name} = {label}"

    def agreement(self, name: str) -> Floats | None:
        """Give the agreement of models and labels; None if the values do not contain it."""
        agreement = self.valuation.field("label_probability", name)
        return None if np.isnan(agreement).all() else agreement

    def scores(self) -> tuple[Bools, Floats] | None:
        """Mark the positives of two labels, and give the models' scores; None unless known for all rows."""
        positive, agreement = self.is_positive, self.agreement("y")
        if positive is None or not self.is_binary or agreement is None or np.isnan(agreement).any():
            return None
        return positive, np.where(positive, agreement, 1.0 - agreement)

    def is_unit(self, *names: str) -> bool:
        """Say whether the values of these variables and of the target are uncertainties."""
        return all(self.valuation.scales[name].is_unit for name in ("y", *names))

    def excluded_columns(self, name: str) -> set[str]:
        """Name the features that were hidden from an attribute's models."""
        return set((self.valuation.provenance.excluded_columns or {}).get(name, ()))

    def span(self, name: str) -> Span:
        """Give the range in which the values of a variable are drawn."""
        scale = self.valuation.scales[name]
        if scale.low is not None and scale.high is not None:
            return Span(scale.low, scale.high, scale.neutral)
        return span_around(self.valuation[name], scale.neutral)


def span_around(values: Floats, neutral: float | None) -> Span:
    """Give a range around the neutral point, or 0, that contains all but a few extreme values."""
    centre = 0.0 if neutral is None else neutral
    reach = float(np.quantile(np.abs(values - centre), 0.995)) if len(values) else 0.0
    reach = reach if reach > 0 else 1.0
    return Span(centre - reach, centre + reach, neutral)


def known_mean(numbers: Floats) -> float | None:
    """Give the mean of the known numbers; None if there are none."""
    known = numbers[~np.isnan(numbers)]
    return float(known.mean()) if len(known) else None


def sample_rows(n_rows: int, max_rows: int, seed: int) -> npt.NDArray[np.intp]:
    """Draw sorted positions of at most `max_rows` rows."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, max_rows, replace=False))


def read_explored(
    problem: Problem,
    target_name: str,
    valuation: Valuation | None,
    *,
    max_rows: int,
    min_group_size: int,
    seed: int,
    sampled: Sampled | None = None,
    z_exclude: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> ExploredRows:
    """Gather the data to be explored, and value the rows if that has not been done."""
    if not isinstance(max_rows, int | np.integer) or max_rows < 1:
        raise ValueError(f"`max_rows` must be a positive whole number, got {max_rows!r}.")
    check_min_group_size(min_group_size)
    if valuation is None:
        _ = problem.positive  # refuses an unknown label before rows are valued
        valuator = OutOfBagEntropy(
            random_state=seed,
            keep_probabilities=_can_aim(problem),
            z_exclude=z_exclude,
            n_jobs=n_jobs,
            progress=progress,
        ).fit_problem(problem)
        valuation = valuator.valuation_
    if not isinstance(valuation, Valuation):
        raise TypeError(
            f"`valuation` must be a Valuation, got {type(valuation).__name__}: pass a valuator's "
            "`valuation_`."
        )
    if not problem.names_given and len(valuation.protected) == 1:
        problem = problem.with_attribute_named(valuation.protected[0])
    if len(valuation) != problem.n_rows:
        raise ValueError(
            f"`valuation` has {len(valuation)} rows and X has {problem.n_rows}: pass the valuation of the "
            "same rows."
        )
    check_known(problem.protected)
    check_variables("valuation", valuation, [one.name for one in problem.protected], "sensitive_features")
    check_alignment(valuation, problem)
    names = [variable.name for variable in problem.variables]
    told = {name: note.kind for name, note in valuation.provenance.variables.items() if note.kind}
    problem = problem.with_kinds({name: kind for name, kind in told.items() if name in names})
    rows = np.flatnonzero(valuation.values.notna().all(axis=1).to_numpy())
    if not len(rows):
        raise ValueError("The valuation has no value for any row: value the rows first.")
    return ExploredRows(
        problem=problem,
        target_name=target_name,
        target=problem.target.take(rows),
        positive=problem.positive if sampled is None or sampled.has_positive else None,
        attributes=tuple(_attributes(problem, rows, min_group_size, sampled)),
        valuation=valuation if len(rows) == problem.n_rows else valuation.take(rows),
        rows=rows,
        sample=sample_rows(len(rows), max_rows, seed),
        min_group_size=min_group_size,
        seed=seed,
        sampled=sampled,
    )


def check_variables(given: str, valuation: Valuation, names: Iterable[str], asked: str) -> None:
    """Refuse values of other attributes."""
    for name in names:
        if name not in valuation.protected:
            raise ValueError(
                f"`{given}` has no values for {name!r}; it has {valuation.protected}: value the rows with "
                f"the same `{asked}`."
            )


def _attributes(
    problem: Problem, rows: npt.NDArray[np.intp], min_group_size: int, sampled: Sampled | None
) -> Iterator[Protected]:
    for variable, position in zip(problem.protected, problem.positions, strict=True):
        cut = variable.take(rows)
        fine = _readable(group_rows([cut], quarters=True), cut)
        shown = show_groups(fine, min_group_size)
        yield Protected(cut, fine, shown, position, None if sampled is None else sampled.groups_of(cut))


def _readable(groups: Groups, variable: Variable) -> Groups:
    """Name groups so that each name is clear alone: "older = True", not "True"."""
    if all(isinstance(label, str) for label in variable.classes):  # of numbers there are no classes
        return groups
    kept = {str(variable.classes[-1]): str(variable.classes[-1])} if variable.has_missing else {}
    if set(variable.name) & set("<>="):  # a comparison
        kept |= {"True": variable.name, "False": f"not {variable.name}"}
    return replace(groups, titles=tuple(kept.get(own, f"{variable.name} = {own}") for own in groups.titles))


def _can_aim(problem: Problem) -> bool:
    """Say whether there are two labels and groups whose probabilities can be kept."""
    target, sizes = problem.target, [len(own.classes) for own in problem.protected if own.kind == "classes"]
    return target.kind == "classes" and len(target.classes) == 2 and 0 < max(sizes, default=0) <= _MOST_KEPT
