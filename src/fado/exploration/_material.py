"""What is explored: features, target, protected attributes and values, read once and cut to valued rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._frames import Table
from fado._variables import Kind, Variable, protected_columns, target_column, variable_from
from fado.exploration._groups import Groups, fine_groups, shown
from fado.valuation import OutOfBagEntropy, Valuation
from fado.valuation._alignment import warn_of_other_rows

__all__ = ["Attribute", "Material", "known_mean", "read_material"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Attribute:
    """One protected attribute: its variable, the groups it makes, and those of them that are shown."""

    variable: Variable
    fine: Groups
    groups: Groups
    position: int | None  # among the feature columns, if it was given by a name

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.variable.name

    @property
    def spoken(self) -> tuple[str, ...]:
        """The shown groups' names for a sentence, where a bare "True" or "3" would say nothing."""
        if self.is_continuous:
            return tuple(f"{self.name} {name}" for name in self.groups.names)
        if all(isinstance(label, str) for label in self.variable.classes):
            return self.groups.names
        return tuple(f"{self.name} = {name}" for name in self.groups.names)

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

    def __len__(self) -> int:
        return len(self.rows)

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

    def agreement(self, name: str) -> FloatArray | None:
        """Give the agreement of models and labels; None for values that came without."""
        agreement = self.valuation.agreement[name].to_numpy()
        return None if np.isnan(agreement).all() else agreement

    def error(self, name: str) -> FloatArray | None:
        """Give the values' standard errors; None for values that came without."""
        error = self.valuation.standard_error[name].to_numpy()
        return None if np.isnan(error).all() else error


def known_mean(numbers: FloatArray) -> float | None:
    """Give the mean of the numbers that are known; None if none is."""
    known = numbers[~np.isnan(numbers)]
    return float(known.mean()) if len(known) else None


def read_material(
    X: Any,
    y: Any,
    sensitive_features: Any,
    valuation: Valuation | None,
    pos_label: Any,
    max_rows: int,
    seed: int,
) -> Material:
    """Read what is to be explored, and value it if that has not been done."""
    if sensitive_features is None:
        raise ValueError("There is no protected attribute to explore: pass one as `sensitive_features`.")
    _check_max_rows(max_rows)
    if valuation is None:
        with warnings.catch_warnings():  # valuing the rows tells of what is wrong with the labels
            warnings.simplefilter("ignore")
            _positive_code(variable_from(target_column(y, Table.from_input(X).n_rows), kind=None), pos_label)
        valuation = OutOfBagEntropy(random_state=seed).fit(X, y, sensitive_features).valuation_
    table = Table.from_input(X)
    protected = protected_columns(sensitive_features, table)
    _check_valuation(valuation, [column.name for column, _ in protected], table.n_rows)
    warn_of_other_rows(valuation, y)
    kinds: dict[str, Kind] = {
        name: about["kind"] for name, about in valuation.metadata.get("variables", {}).items()
    }
    with warnings.catch_warnings():  # valuing the rows has told of missing entries and lonely classes
        warnings.simplefilter("ignore")
        target = variable_from(target_column(y, table.n_rows), kind=kinds.get("y"))
        variables = [variable_from(column, kind=kinds.get(column.name)) for column, _ in protected]
    rows = np.flatnonzero(valuation.values.notna().all(axis=1).to_numpy())
    if not len(rows):
        raise ValueError("The valuation holds no value for any row: value the rows first.")
    target = _cut(target, rows)
    attributes = []
    for variable, (_, position) in zip(variables, protected, strict=True):
        fine = fine_groups(_cut(variable, rows))
        attributes.append(Attribute(_cut(variable, rows), fine, shown(fine), position))
    return Material(
        table=table,
        target=target,
        target_name=str(getattr(y, "name", None) or "y"),
        positive=_positive_code(target, pos_label),
        attributes=tuple(attributes),
        valuation=valuation if len(rows) == table.n_rows else valuation.take(rows),
        rows=rows,
        sample=_sample(len(rows), max_rows, seed),
        seed=seed,
    )


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


def _cut(variable: Variable, rows: npt.NDArray[np.intp]) -> Variable:
    return Variable(variable.name, variable.kind, variable.labels[rows], variable.classes)


def _positive_code(target: Variable, pos_label: Any) -> int | None:
    """Find the positive label: the one asked for, or the larger of two."""
    if pos_label is None:
        return 1 if target.kind == "classes" and len(target.classes) == 2 else None
    if target.kind == "continuous":
        raise ValueError("`pos_label` is for a target of classes, and this one is continuous: leave it out.")
    if pos_label not in target.classes:
        shown_classes = ", ".join(map(repr, target.classes[:8]))
        raise ValueError(f"`pos_label` must be one of the labels {shown_classes}, got {pos_label!r}.")
    return target.classes.index(pos_label)


def _check_max_rows(max_rows: int) -> None:
    if not isinstance(max_rows, int | np.integer) or max_rows < 1:
        raise ValueError(f"`max_rows` must be a positive whole number, got {max_rows!r}.")


def _sample(n_rows: int, max_rows: int, seed: int) -> npt.NDArray[np.intp]:
    if n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, max_rows, replace=False))
