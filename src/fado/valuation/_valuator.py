"""What both valuators share: read the input, have the fits run, average what they say."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator

from fado._frames import Table, is_frame
from fado._giveaway import columns_equal_to, columns_that_determine
from fado._progress import tracked
from fado._variables import (
    Variable,
    check_kinds,
    protected_columns,
    target_column,
    variable_from,
)
from fado.engine._lightgbm import default_estimators
from fado.engine._parallel import n_workers
from fado.valuation._alignment import TARGET_PATTERN, target_pattern
from fado.valuation._fits import Bag, plan, run
from fado.valuation._learnt import what_models_learnt
from fado.valuation._moments import Moments
from fado.valuation._result import Valuation, library_versions
from fado.valuation._statistics import finished

__all__ = ["EntropyValuator"]


class EntropyValuator(BaseEstimator):
    """Base of the valuators: subclasses say which bags there are."""

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> EntropyValuator:
        """Value every row.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features. Strings, categories and missing values are fine.
        y : array-like of shape (n_rows,)
            The target.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            The protected attributes. Without any, the target alone is valued.

        Returns
        -------
        self
            With `valuation_`, `excluded_columns_` (per attribute, the features kept from its models) and
            `seed_`, which as `random_state` gives the same values again.
        """
        table = _checked_table(X)
        self._check(table.n_rows)
        self.n_features_in_ = table.n_columns
        if is_frame(X) and _names_are_text(X):
            self.feature_names_in_ = np.asarray(table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        variables = self._variables(table, y, sensitive_features)
        self.excluded_columns_ = {
            variable.name: [table.names[j] for j in sorted(variable.excluded)] for variable in variables[1:]
        }
        self.seed_ = _seed(self.random_state)
        bags = self._bags(variables, np.random.default_rng([self.seed_, 0]))
        estimators = _estimators(self.estimators, table.n_columns)
        fits = plan(estimators, variables, bags, self.seed_)
        moments = {variable.name: Moments(table.n_rows) for variable in variables}
        gains = {variable.name: np.zeros(table.n_columns + 1) for variable in variables}
        paced: dict[str, Any] = {}
        defaults = self.estimators is None
        outcomes = run(fits, table, variables[0], n_workers(self.n_jobs), defaults=defaults)
        for outcome in tracked(outcomes, len(fits), what="fits", show=self.progress):
            moments[outcome.variable].add(outcome.rows, outcome.values, outcome.agreement)
            if outcome.gains is not None:
                gains[outcome.variable] += outcome.gains
            if outcome.model is not None:
                paced[outcome.variable] = outcome.model
        learnt = what_models_learnt(table.names, variables, moments, gains)
        metadata = self._metadata(variables, estimators) | learnt
        if paced:
            metadata["trees"] = {name: paced[name].n_estimators for name in moments}
            metadata["learning_rates"] = {name: paced[name].learning_rate for name in moments}
        if variables[0].kind == "classes":
            metadata[TARGET_PATTERN] = target_pattern(variables[0].labels)
        self.valuation_ = _valuation(variables, moments, metadata)
        return self

    def _check(self, n_rows: int) -> None:
        """Refuse settings that cannot work with so many rows, before anything else is done."""

    @abstractmethod
    def _bags(self, variables: Sequence[Variable], generator: np.random.Generator) -> list[Bag]:
        """Say which rows every bag holds."""

    @abstractmethod
    def _algorithm(self) -> dict[str, Any]:
        """Describe the algorithm and its settings for the valuation's metadata."""

    def _variables(self, table: Table, y: Any, sensitive_features: Any) -> list[Variable]:
        target = target_column(y, table.n_rows)
        protected = protected_columns(sensitive_features, table)
        kinds = check_kinds(self.kinds, ["y", *(column.name for column, _ in protected)])
        by_hand = _excluded_by_hand(self.z_exclude, table, [column.name for column, _ in protected])
        variables = [variable_from(target, kind=kinds.get("y"))]
        _warn_of_target_among_features(variables[0], table)
        for column, position in protected:
            own = frozenset() if position is None else frozenset({position})
            variable = variable_from(
                column,
                kind=kinds.get(column.name),
                excluded=own | by_hand[column.name],
                sees_target=bool(self.z_sees_target),
            )
            variables.append(_without_giveaways(variable, table))
        return variables

    def _metadata(self, variables: Sequence[Variable], estimators: Sequence[Any]) -> dict[str, Any]:
        return {
            **self._algorithm(),
            "seed": self.seed_,
            "z_sees_target": bool(self.z_sees_target),
            "estimators": [" ".join(repr(estimator).split()) for estimator in estimators],
            "variables": {
                variable.name: {"kind": variable.kind, "classes": list(variable.classes)}
                for variable in variables
            },
            "excluded_columns": self.excluded_columns_,
            "versions": library_versions(),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _checked_table(X: Any) -> Table:
    table = Table.from_input(X)
    if table.n_rows < 2:
        raise ValueError(
            f"`X` has {table.n_rows} row(s) (n_samples = {table.n_rows}); at least 2 are needed."
        )
    if table.n_columns == 0:
        raise ValueError(
            f"`X` has 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required: keep some "
            "columns."
        )
    return table


def _names_are_text(frame: Any) -> bool:
    names = frame.column_names if isinstance(frame, pa.Table) else frame.columns
    return all(isinstance(name, str) for name in names)


def _seed(random_state: Any) -> int:
    """Turn a `random_state` into one whole number that can be written down."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"`random_state` must not be negative, got {random_state}.")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


def _excluded_by_hand(z_exclude: Any, table: Table, attributes: Sequence[str]) -> dict[str, frozenset[int]]:
    """Find the columns that the user keeps from each attribute's models."""
    if z_exclude is None:
        z_exclude = []
    elif isinstance(z_exclude, str):
        z_exclude = [z_exclude]
    if not isinstance(z_exclude, Mapping):
        z_exclude = dict.fromkeys(attributes, z_exclude)
    unknown = [name for name in z_exclude if name not in attributes]
    if unknown:
        raise ValueError(
            f"`z_exclude` names {unknown[0]!r}, which is none of the attributes {list(attributes)}."
        )
    found = {}
    for attribute in attributes:
        positions: set[int] = set()
        for name in z_exclude.get(attribute, []):
            here = table.positions(name)
            if not here:
                raise ValueError(f"`z_exclude` names {name!r}, which is not a column of X.")
            positions.update(here)
        found[attribute] = frozenset(positions)
    return found


def _warn_of_target_among_features(target: Variable, table: Table) -> None:
    copies = [table.names[j] for j in columns_equal_to(target, table)]
    if copies:
        warnings.warn(
            f"Column(s) {', '.join(map(repr, copies))} of X repeat the target: models will be sure of every "
            "row. Leave them out of X.",
            UserWarning,
            stacklevel=4,
        )


def _without_giveaways(variable: Variable, table: Table) -> Variable:
    """Leave out of an attribute's models the columns that alone determine it, and say so."""
    found = columns_that_determine(variable, table, variable.excluded)
    if found:
        names = ", ".join(repr(table.names[j]) for j in found)
        warnings.warn(
            f"Column(s) {names} of X alone determine the protected attribute {variable.name!r} and are left "
            "out of its models; name them in `z_exclude` to leave them out without this warning.",
            UserWarning,
            stacklevel=4,
        )
    excluded = variable.excluded | frozenset(found)
    if len(excluded) == table.n_columns and not variable.sees_target:
        raise ValueError(f"No column of X is left for the models of {variable.name!r}: pass more features.")
    return replace(variable, excluded=excluded)


def _estimators(given: Any, n_columns: int) -> list[Any]:
    if given is None:
        return default_estimators(n_columns)
    estimators = list(given) if isinstance(given, list | tuple) else [given]
    if not estimators:
        raise ValueError("`estimators` is empty: pass one or more, or None for the default models.")
    for estimator in estimators:
        if (
            isinstance(estimator, type)
            or not hasattr(estimator, "fit")
            or not hasattr(estimator, "get_params")
        ):
            raise TypeError(f"`estimators` must be unfitted scikit-learn estimators, got {estimator!r}.")
    return estimators


def _valuation(
    variables: Sequence[Variable], moments: Mapping[str, Moments], metadata: dict[str, Any]
) -> Valuation:
    done = {variable.name: finished(variable, moments[variable.name]) for variable in variables}
    return Valuation(
        values={name: parts[0] for name, parts in done.items()},
        standard_error={name: parts[1] for name, parts in done.items()},
        counts={name: moments[name].count for name in done},
        agreement={name: parts[2] for name, parts in done.items()},
        metadata=metadata,
    )
