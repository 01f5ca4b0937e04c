"""What is explored: features, target, protected attributes and values, read once and cut to valued rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.exploration._groups import ShownGroups, show_groups
from fado.exploration._sampled import Sampled, WholeGroups
from fado.exploration._unlabelled import Unlabelled, read_pool
from fado.exploration._wording import quoted
from fado.tabular import MISSING, Column, Groups, Problem, Table, Variable, check_min_group_size, group_rows
from fado.valuation import OutOfBagEntropy, Valuation, check_alignment

__all__ = [
    "Attribute",
    "Material",
    "Span",
    "known_mean",
    "label_groups",
    "read_material",
    "row_contents",
    "sample_rows",
    "span_around",
]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_MOST_KEPT = 50  # groups of an attribute: valuators keep no more probabilities of two labels


@dataclass(frozen=True)
class Attribute:
    """One protected attribute: its variable, the groups it makes, and those of them that are shown."""

    variable: Variable
    fine: Groups
    groups: ShownGroups
    position: int | None  # among the feature columns, if it was given by a name
    whole: WholeGroups | None = None  # the groups over all rows, where a sample is explored

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.variable.name

    def speak(self, group: str) -> str:
        """Give a group's name for a sentence, where a bare "up to 30" would say nothing."""
        return quoted(f"{self.name} {group}" if self.is_continuous else group)

    @property
    def spoken(self) -> tuple[str, ...]:
        """The shown groups' names for a sentence."""
        return tuple(map(self.speak, self.groups.names))

    @property
    def is_continuous(self) -> bool:
        """Whether it is a number rather than classes."""
        return self.variable.kind == "continuous"


@dataclass(frozen=True)
class Material:
    """All that the parts of a page are made from.

    Parameters
    ----------
    table : Table
        The features, of all rows.
    target : Variable
        The target.
    target_name : str
        What the user calls it.
    positive : int or None
        The code of the positive label; None where there is none.
    attributes : tuple of Attribute
        The protected attributes.
    valuation : Valuation
        The values.
    rows : ndarray
        The positions of the explored rows among all rows; those without a value are left out.
    sample : ndarray
        Sorted positions among the explored rows, at most `max_rows`, for what is searched and not counted.
    seed : int
        Of the sample and of the shuffle by which ties in utility fall.
    min_group_size : int
        From how many rows on groups are compared in any case.
    problem : Problem
        All rows as they were read.
    max_rows : int
        How many rows are searched at most.
    pool : Unlabelled or None
        Rows without labels, to be shown beside these.
    sampled : Sampled or None
        The larger table that these rows were drawn from.
    """

    table: Table
    target: Variable
    target_name: str
    positive: int | None
    attributes: tuple[Attribute, ...]
    valuation: Valuation
    rows: npt.NDArray[np.intp]
    sample: npt.NDArray[np.intp]
    seed: int
    min_group_size: int
    problem: Problem
    max_rows: int
    pool: Unlabelled | None = None
    sampled: Sampled | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The features of the explored rows; none of a sparse matrix."""
        every = self.table.columns
        return every if len(self) == self.table.n_rows else tuple(one.take(self.rows) for one in every)

    @property
    def weights(self) -> FloatArray | None:
        """Give what the rows weigh in the models; None where they weigh the same."""
        weights = self.problem.sample_weight
        return None if weights is None else weights[self.rows]

    def row_number(self, row: int) -> int:
        """Give the place of an explored row in the table that the user has."""
        place = self.rows[row]
        return int(place if self.sampled is None else self.sampled.places[place])

    @property
    def is_positive(self) -> Bools | None:
        """Mark the rows of the positive label, if there is one."""
        return None if self.positive is None else self.target.labels == self.positive

    @property
    def outcome(self) -> FloatArray | None:
        """Give what groups are compared by: 1 for a positive label, or a continuous target's numbers."""
        if self.target.kind == "continuous":
            return self.target.labels
        return None if self.is_positive is None else self.is_positive.astype(np.float64)

    def shown_name(self, variable: Variable) -> str:
        """Give what the user calls the target or a protected attribute."""
        return self.target_name if variable is self.target else variable.name

    def speak_label(self, code: int) -> str:
        """Give a label for a sentence, where a bare "True" or "2" would say nothing."""
        label = self.target.classes[code]
        return label if isinstance(label, str) else f"{self.target_name} = {label}"

    def agreement(self, name: str) -> FloatArray | None:
        """Give the agreement of models and labels; None for values that came without."""
        agreement = self.valuation.field("agreement", name)
        return None if np.isnan(agreement).all() else agreement

    def error(self, name: str) -> FloatArray | None:
        """Give the values' standard errors; None for values that came without."""
        error = self.valuation.field("standard_error", name)
        return None if np.isnan(error).all() else error

    def excluded_columns(self, name: str) -> set[str]:
        """Name the features that were kept from an attribute's models."""
        return set((self.valuation.provenance.excluded_columns or {}).get(name, ()))

    def span(self, name: str) -> Span:
        """Say between which ends the values of a variable are drawn."""
        scale = self.valuation.scales[name]
        if scale.low is not None and scale.high is not None:
            return Span(scale.low, scale.high, scale.neutral)
        return span_around(self.valuation[name], scale.neutral)


@dataclass(frozen=True)
class Span:
    """The ends of an axis, and its neutral point if there is one."""

    low: float
    high: float
    neutral: float | None = None

    def to_dict(self) -> dict[str, float | None]:
        """Give plain data that JSON can hold."""
        return {"low": self.low, "high": self.high, "neutral": self.neutral}


def span_around(values: FloatArray, neutral: float | None) -> Span:
    """Span all but a few far values evenly around their neutral point; around 0 if there is none."""
    centre = 0.0 if neutral is None else neutral
    reach = float(np.quantile(np.abs(values - centre), 0.995)) if len(values) else 0.0
    reach = reach if reach > 0 else 1.0
    return Span(centre - reach, centre + reach, neutral)


def known_mean(numbers: FloatArray) -> float | None:
    """Give the mean of the numbers that are known; None if none is."""
    known = numbers[~np.isnan(numbers)]
    return float(known.mean()) if len(known) else None


def read_material(
    problem: Problem,
    target_name: str,
    valuation: Valuation | None,
    *,
    max_rows: int,
    min_group_size: int,
    seed: int,
    pool: Any = None,
    sampled: Sampled | None = None,
    z_exclude: Any = None,
) -> Material:
    """Gather what is to be explored, and value it if that has not been done."""
    _check_max_rows(max_rows)
    check_min_group_size(min_group_size)
    given = None if pool is None else read_pool(pool, problem.table, valued=valuation is not None)
    if valuation is None:
        _ = problem.positive  # a label that is none is refused before rows are valued
        valuator = OutOfBagEntropy(
            random_state=seed,
            keep_models=given is not None,
            keep_probabilities=_can_aim(problem),
            z_exclude=z_exclude,
        ).fit_problem(problem)
        valuation = valuator.valuation_
        if given is not None:
            given = replace(given, valuation=valuator.value(given.source))
    if not problem.names_given and len(getattr(valuation, "protected", ())) == 1:
        problem = problem.with_attribute_named(valuation.protected[0])
    _check_valuation(valuation, [variable.name for variable in problem.protected], problem.n_rows)
    check_alignment(valuation, problem)
    told = {name: note.kind for name, note in valuation.provenance.variables.items() if note.kind}
    here = {variable.name for variable in problem.variables}
    problem = problem.with_kinds({name: kind for name, kind in told.items() if name in here})
    rows = np.flatnonzero(valuation.values.notna().all(axis=1).to_numpy())
    if not len(rows):
        raise ValueError("The valuation holds no value for any row: value the rows first.")
    names = [variable.name for variable in problem.variables]
    return Material(
        table=problem.table,
        target=problem.target.take(rows),
        target_name=target_name,
        positive=problem.positive if sampled is None or sampled.has_positive else None,
        attributes=tuple(_attributes(problem, rows, min_group_size, sampled)),
        valuation=valuation if len(rows) == problem.n_rows else valuation.take(rows),
        rows=rows,
        sample=sample_rows(len(rows), max_rows, seed),
        seed=seed,
        min_group_size=min_group_size,
        problem=problem,
        max_rows=max_rows,
        pool=None if given is None else Unlabelled.of(given, valuation, names),
        sampled=sampled,
    )


def _attributes(
    problem: Problem, rows: npt.NDArray[np.intp], min_group_size: int, sampled: Sampled | None
) -> Iterator[Attribute]:
    for variable, position in zip(problem.protected, problem.positions, strict=True):
        cut = variable.take(rows)
        fine = _readable(group_rows([cut], quarters=True), cut)
        shown = show_groups(fine.codes, fine.titles, min_group_size)
        whole = None if sampled is None else sampled.groups_of(cut)
        yield Attribute(cut, fine, shown, position, whole)


def _readable(groups: Groups, variable: Variable) -> Groups:
    """Name groups so that each can stand alone: "older = True", where a bare "True" or "3" says nothing."""
    if all(isinstance(label, str) for label in variable.classes):  # of numbers there are no classes
        return groups
    kept = {str(variable.classes[-1]): str(variable.classes[-1])} if variable.has_missing else {}
    if set(variable.name) & set("<>="):  # a comparison
        kept |= {"True": variable.name, "False": f"not {variable.name}"}
    return replace(groups, titles=tuple(kept.get(own, f"{variable.name} = {own}") for own in groups.titles))


def _check_valuation(valuation: Valuation, names: list[str], n_rows: int) -> None:
    if not isinstance(valuation, Valuation):
        raise TypeError(
            f"`valuation` must be a Valuation, got {type(valuation).__name__}: pass a valuator's "
            "`valuation_`."
        )
    if len(valuation) != n_rows:
        raise ValueError(
            f"`valuation` has {len(valuation)} rows and X has {n_rows}: pass the valuation of the same rows."
        )
    missing = [name for name in names if name not in valuation.protected]
    if missing:
        raise ValueError(
            f"`valuation` holds no values for {missing[0]!r}; it has {valuation.protected}: value the rows "
            "with the same `sensitive_features`."
        )


def _can_aim(problem: Problem) -> bool:
    """Tell whether there are two labels and groups, of which probabilities can be kept."""
    target, sizes = problem.target, [len(own.classes) for own in problem.protected if own.kind == "classes"]
    return target.kind == "classes" and len(target.classes) == 2 and 0 < max(sizes, default=0) <= _MOST_KEPT


def _check_max_rows(max_rows: int) -> None:
    if not isinstance(max_rows, int | np.integer) or max_rows < 1:
        raise ValueError(f"`max_rows` must be a positive whole number, got {max_rows!r}.")


def label_groups(material: Material) -> ShownGroups:
    """Split rows by their label; by the two halves of a continuous target."""
    target = material.target
    if target.kind == "classes":
        codes, names = target.labels.astype(np.int64), tuple(map(str, target.classes))
    else:
        middle = float(np.median(target.labels))
        codes = (target.labels > middle).astype(np.int64)
        names = (f"up to {middle:.4g}", f"over {middle:.4g}")
    return show_groups(codes, names, 0, noun="labels")


def row_contents(material: Material, row: int) -> dict[str, Any]:
    """Give the label and the features of one explored row as text, for readers who asked to see them."""
    target, place = material.target, int(material.rows[row])
    label = target.labels[row]
    return {
        "label": str(target.classes[label]) if target.kind == "classes" else f"{label:.6g}",
        "features": [[column.name, _cell(column, place)] for column in material.table.columns],
    }


def _cell(column: Column, row: int) -> str:
    value = column.data[row].as_py()
    if value is None or value != value:
        return MISSING
    return str(value) if column.levels is None else column.levels[value]


def sample_rows(n_rows: int, max_rows: int, seed: int) -> npt.NDArray[np.intp]:
    """Draw sorted positions of at most so many rows."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, max_rows, replace=False))
