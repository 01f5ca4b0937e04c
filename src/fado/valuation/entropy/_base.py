"""What both entropy algorithms share: have the fits run, average what they say."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fado._messages import warn_user
from fado._progress import tracked
from fado._versions import library_versions
from fado.engine import default_estimators
from fado.execution import n_workers
from fado.tabular import (
    Problem,
    Table,
    Variable,
    check_learnable,
    columns_equal_to,
    columns_that_determine,
)
from fado.valuation._base import BaseValuator
from fado.valuation._provenance import Provenance, VariableNote
from fado.valuation._result import Valuation
from fado.valuation._scale import CLOSENESS, ENTROPY
from fado.valuation.entropy._fits import Bag, plan_fits, run_fits
from fado.valuation.entropy._learnt import largest_errors, shared_gains
from fado.valuation.entropy._moments import Moments
from fado.valuation.entropy._statistics import finish

__all__ = ["EntropyValuator"]


class EntropyValuator(BaseValuator):
    """Base of the entropy valuators: subclasses say which bags there are."""

    def _value(self, problem: Problem, judge: Problem | None, seed: int) -> Valuation:
        self._check(problem)
        variables = self._variables(problem)
        table = problem.table
        bags = self._bags(variables, problem.blocks, np.random.default_rng([seed, 0]))
        estimators = _estimators(self.estimators, table.n_columns)
        fits = plan_fits(estimators, variables, bags, seed)
        moments = {variable.name: Moments(table.n_rows) for variable in variables}
        gains = {variable.name: np.zeros(table.n_columns + 1) for variable in variables}
        paced: dict[str, Any] = {}
        outcomes = run_fits(
            fits,
            table,
            variables[0],
            problem.sample_weight,
            n_workers(self.n_jobs),
            defaults=self.estimators is None,
        )
        for outcome in tracked(outcomes, len(fits), what="fits", show=self.progress):
            moments[outcome.variable].add(outcome.rows, outcome.values, outcome.agreement)
            if outcome.gains is not None:
                gains[outcome.variable] += outcome.gains
            if outcome.estimator is not None:
                paced[outcome.variable] = outcome.estimator
        self.excluded_columns_ = {
            variable.name: [table.names[j] for j in sorted(variable.excluded)] for variable in variables[1:]
        }
        self._keep_bags(bags)
        provenance = Provenance(
            **self._algorithm(),
            seed=seed,
            estimators=tuple(" ".join(repr(estimator).split()) for estimator in estimators),
            variables={own.name: VariableNote(own.kind, own.classes) for own in variables},
            excluded_columns={name: tuple(own) for name, own in self.excluded_columns_.items()},
            versions=library_versions(),
            largest_error=largest_errors(variables, moments),
            split_gains=shared_gains(table.names, gains),
            trees={name: paced[name].n_estimators for name in moments} if paced else None,
            learning_rates={name: paced[name].learning_rate for name in moments} if paced else None,
        )
        return _valuation(variables, moments, provenance)

    def _check(self, problem: Problem) -> None:
        """Refuse settings that cannot work with these rows, before anything else is done."""

    @abstractmethod
    def _bags(self, variables: Sequence[Variable], blocks: Any, generator: np.random.Generator) -> list[Bag]:
        """Say which rows every bag holds."""

    def _keep_bags(self, bags: Sequence[Bag]) -> None:
        """Note the bags for the user, where they tell something."""

    @abstractmethod
    def _algorithm(self) -> dict[str, Any]:
        """Name the algorithm, and the settings that decide a value."""

    def _variables(self, problem: Problem) -> list[Variable]:
        """Check the variables, and say which columns the models of each must not see."""
        table = problem.table
        by_hand = _excluded_by_hand(self.z_exclude, table, [own.name for own in problem.protected])
        check_learnable(problem.target)
        _warn_of_target_among_features(problem.target, table)
        variables = [problem.target]
        for variable, position in zip(problem.protected, problem.positions, strict=True):
            check_learnable(variable)
            own = frozenset() if position is None else frozenset({position})
            shown = replace(
                variable, excluded=own | by_hand[variable.name], sees_target=bool(self.z_sees_target)
            )
            variables.append(_without_giveaways(shown, table))
        return variables


def _excluded_by_hand(z_exclude: Any, table: Table, attributes: Sequence[str]) -> dict[str, frozenset[int]]:
    """Find the columns that the user keeps from each attribute's models."""
    if z_exclude is None:
        z_exclude = []
    elif isinstance(z_exclude, str):
        z_exclude = [z_exclude]
    if not isinstance(z_exclude, Mapping):
        z_exclude = dict.fromkeys(attributes, z_exclude)
    z_exclude = {str(name): columns for name, columns in z_exclude.items()}
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
        warn_user(
            f"Column(s) {', '.join(map(repr, copies))} of X repeat the target: models will be sure of every "
            "row. Leave them out of X."
        )


def _without_giveaways(variable: Variable, table: Table) -> Variable:
    """Leave out of an attribute's models the columns that alone determine it, and say so."""
    found = columns_that_determine(variable, table, variable.excluded)
    if found:
        names = ", ".join(repr(table.names[j]) for j in found)
        warn_user(
            f"Column(s) {names} of X alone determine the protected attribute {variable.name!r} and are left "
            "out of its models; name them in `z_exclude` to leave them out without this warning."
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
    variables: Sequence[Variable], moments: Mapping[str, Moments], provenance: Provenance
) -> Valuation:
    done = {variable.name: finish(variable, moments[variable.name]) for variable in variables}
    return Valuation(
        values={name: parts[0] for name, parts in done.items()},
        standard_error={name: parts[1] for name, parts in done.items()},
        counts={name: moments[name].count for name in done},
        agreement={name: parts[2] for name, parts in done.items()},
        scales={own.name: ENTROPY if own.kind == "classes" else CLOSENESS for own in variables},
        provenance=provenance,
    )
