"""The data that is explored, read once and cut to valued rows: features, target, values, groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado._messages import plain_number as plain_number
from fado._typing import Bools, Floats, Integers
from fado.exploration._groups import ShownGroups, show_groups
from fado.tabular import (
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


_MOST_KEPT = 50  # groups of an attribute: valuators keep probabilities for no more


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


@dataclass(frozen=True)
class Protected:
    """One protected attribute: its variable, the groups it makes, and those of them that are shown."""

    variable: Variable
    every_group: Groups
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


@dataclass(frozen=True)
class ExploredRows:
    """The data of all parts of a page.

    Parameters
    ----------
    problem : Problem
        The rows that have values.
    target_name : str
        The user's name for the target.
    positive : int or None
        The code of the positive label; None if there is none.
    attributes : tuple of Protected
        The protected attributes.
    valuation : Valuation
        The values.
    rows : ndarray
        The rows' numbers in the user's table.
    n_unvalued : int
        How many rows without a value are left out.
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
    positive: int | None
    attributes: tuple[Protected, ...]
    valuation: Valuation
    rows: Integers
    n_unvalued: int
    sample: npt.NDArray[np.intp]
    min_group_size: int
    seed: int
    sampled: Sampled | None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def target(self) -> Variable:
        """The target."""
        return self.problem.target

    @property
    def searched(self) -> Problem:
        """The rows that are searched, as a problem."""
        return self.problem if len(self.sample) == len(self) else self.problem.take(self.sample)

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

    def speak_label(self, code: int) -> str:
        """Give a label for a sentence, with the target's name before "True" or "2"."""
        label = self.target.classes[code]
        return label if isinstance(label, str) else f"{self.target_name} = {label}"

    def label_probability(self, name: str) -> Floats | None:
        """Give the probability of each row's own label; None if the values do not contain it."""
        probability = self.valuation.field("label_probability", name)
        return None if np.isnan(probability).all() else probability

    def effects(self, name: str) -> Floats:
        """Give the values of a variable as the rows' effects, which are per unit of weight."""
        weights = self.problem.sample_weight
        return self.valuation[name] if weights is None else self.valuation[name] * weights

    def is_unit(self, *names: str) -> bool:
        """Say whether the values of these variables and of the target are uncertainties."""
        return all(self.valuation.scales[name].is_unit for name in ("y", *names))

    def excluded_columns(self, name: str) -> set[str]:
        """Name the features that were hidden from an attribute's models."""
        return set((self.valuation.provenance.excluded_columns or {}).get(name, ()))


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
        target = problem.target
        sizes = [len(one.classes) for one in problem.protected if one.kind == "classes"]
        valuator = OutOfBagEntropy(
            random_state=seed,
            keep_probabilities=target.kind == "classes"
            and len(target.classes) == 2
            and 0 < max(sizes, default=0) <= _MOST_KEPT,
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
    notes = valuation.provenance.variables.items()
    problem = problem.with_kinds({name: note.kind for name, note in notes if note.kind and name in names})
    rows = np.flatnonzero(valuation.values.notna().all(axis=1).to_numpy())
    if not len(rows):
        raise ValueError("The valuation has no value for any row: value the rows first.")
    n_unvalued = problem.n_rows - len(rows)
    if n_unvalued:
        problem, valuation = problem.take(rows), valuation.take(rows)
    attributes = []
    for variable, position in zip(problem.protected, problem.positions, strict=True):
        groups = _with_clear_names(group_rows([variable], quarters=True), variable)
        whole = None if sampled is None else sampled.groups_of(variable)
        shown = show_groups(groups, min_group_size)
        attributes.append(Protected(variable, groups, shown, position, whole))
    return ExploredRows(
        problem=problem,
        target_name=target_name,
        positive=problem.positive if sampled is None or sampled.has_positive else None,
        attributes=tuple(attributes),
        valuation=valuation,
        rows=rows if sampled is None else sampled.places[rows],
        n_unvalued=n_unvalued,
        sample=sample_rows(len(rows), max_rows, seed),
        min_group_size=min_group_size,
        seed=seed,
        sampled=sampled,
    )


def check_variables(given: str, valuation: Valuation, names: Iterable[str], argument: str) -> None:
    """Refuse values of other attributes."""
    for name in names:
        if name not in valuation.protected:
            raise ValueError(
                f"`{given}` has no values for {name!r}; it has {valuation.protected}: value the rows with "
                f"the same `{argument}`."
            )


def _with_clear_names(groups: Groups, variable: Variable) -> Groups:
    """Name groups so that each name is clear alone: "older = True", not "True"."""
    if all(isinstance(label, str) for label in variable.classes):  # of numbers there are no classes
        return groups
    kept = {str(variable.classes[-1]): str(variable.classes[-1])} if variable.has_missing else {}
    if set(variable.name) & set("<>="):  # a comparison
        kept |= {"True": variable.name, "False": f"not {variable.name}"}
    return replace(
        groups, titles=tuple(kept.get(title, f"{variable.name} = {title}") for title in groups.titles)
    )
