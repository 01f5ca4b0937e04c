"""Which feature columns the models of each protected attribute must not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fado._messages import closest_names, warn_user
from fado.tabular import (
    Problem,
    Table,
    Variable,
    as_names,
    check_learnable,
    columns_equal_to,
    columns_that_determine,
    is_pattern,
    names_like,
)

__all__ = ["variables_to_learn"]


def variables_to_learn(problem: Problem, z_exclude: Any, *, sees_target: bool) -> list[Variable]:
    """Check the variables, and say which columns the models of each must not see.

    Parameters
    ----------
    problem : Problem
        What was handed over.
    z_exclude : list of str, or mapping of attribute to such a list, or None
        Columns, or patterns of their names, that the user keeps from the models of protected attributes.
    sees_target : bool
        Whether the models of protected attributes see the target.

    Returns
    -------
    list of Variable
        The target, then the protected attributes.
    """
    table = problem.table
    by_hand = _excluded_by_hand(z_exclude, table, [own.name for own in problem.protected])
    check_learnable(problem.target)
    _warn_of_target_among_features(problem.target, table)
    variables = [problem.target]
    for variable, position in zip(problem.protected, problem.positions, strict=True):
        check_learnable(variable)
        own = frozenset() if position is None else frozenset({position})
        shown = replace(variable, excluded=own | by_hand[variable.name], sees_target=sees_target)
        variables.append(_without_giveaways(shown, table))
    return variables


def _excluded_by_hand(z_exclude: Any, table: Table, attributes: Sequence[str]) -> dict[str, frozenset[int]]:
    """Find the columns that the user keeps from each attribute's models."""
    if not isinstance(z_exclude, Mapping):
        z_exclude = dict.fromkeys(attributes, z_exclude)
    z_exclude = {str(name): as_names(columns, "z_exclude") for name, columns in z_exclude.items()}
    unknown = [name for name in z_exclude if name not in attributes]
    if unknown:
        raise ValueError(
            f"`z_exclude` names {unknown[0]!r}, which is none of the attributes {list(attributes)}."
        )
    return {
        attribute: frozenset(j for name in z_exclude.get(attribute, []) for j in _positions(name, table))
        for attribute in attributes
    }


def _positions(name: Any, table: Table) -> list[int]:
    """Find the columns of a name or, if none is called so, those that match it as a shell pattern."""
    here = table.positions(name)
    if here:
        return here
    like = set(names_like(str(name), table.names))
    if not like:
        what = (
            f"has the pattern {name!r}, which matches no"
            if is_pattern(str(name))
            else f"names {name!r}, which is not a"
        )
        raise ValueError(f"`z_exclude` {what} column of X{closest_names(str(name), table.names)}")
    return [j for j, own in enumerate(table.names) if own in like]


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
