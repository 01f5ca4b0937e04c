"""Which features the models of each protected attribute must not see, and when they determine it.

A column that alone determines an attribute is hidden. Several columns may determine it together though none
does alone: dummies of an age next to ``age >= 50``, a postcode and a shop. Then models are certain about
nearly every row, and values near zero remove fairness from every utility.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fado._messages import closest_names, list_names, warn_user
from fado._typing import Floats
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
from fado.valuation._probabilities import Moments

_LEFT_OPEN = 0.05  # of the uncertainty of the classes' shares; on real tables .1 to .93 was left
_EVIDENCE = 10.0  # rows that two guesses by these shares would disagree on, at the least
_MOST_GAIN = 0.98  # of the splits on features: those that have it are named, also the lesser of two
_PATTERN_FROM = 3  # names with the same beginning
_SHOWN = 5  # entries of the example


def variables_to_learn(problem: Problem, z_exclude: Any, *, sees_target: bool) -> list[Variable]:
    """Check the variables, the target first, and set which columns the models of each must not see.

    Columns that alone determine an attribute are hidden from its models, with a warning.
    """
    table = problem.table
    by_hand = _excluded_by_hand(z_exclude, table, [variable.name for variable in problem.protected])
    check_learnable(problem.target)
    copies = [repr(table.names[j]) for j in columns_equal_to(problem.target, table)]
    if copies:
        warn_user(
            f"Column(s) {', '.join(copies)} of X repeat the target: models will be certain about every row. "
            "Leave them out of X."
        )
    variables = [problem.target]
    for variable, position in zip(problem.protected, problem.positions, strict=True):
        check_learnable(variable)
        excluded = by_hand[variable.name] | (frozenset() if position is None else {position})
        determining = columns_that_determine(variable, table, excluded)
        if determining:
            names = ", ".join(repr(table.names[j]) for j in determining)
            warn_user(
                f"Column(s) {names} of X alone determine the protected attribute {variable.name!r} and are "
                "left out of its models; name them in `z_exclude` to leave them out without this warning."
            )
        excluded |= set(determining)
        if len(excluded) == table.n_columns and not sees_target:
            raise ValueError(
                f"No column of X is left for the models of {variable.name!r}: pass more features."
            )
        variables.append(replace(variable, excluded=excluded, sees_target=sees_target))
    return variables


def _excluded_by_hand(z_exclude: Any, table: Table, attributes: Sequence[str]) -> dict[str, frozenset[int]]:
    """Find the columns that the user hides from the models of each attribute."""
    if not isinstance(z_exclude, Mapping):
        z_exclude = dict.fromkeys(attributes, z_exclude)
    z_exclude = {str(name): as_names(columns, "z_exclude") for name, columns in z_exclude.items()}
    unknown = [name for name in z_exclude if name not in attributes]
    if unknown:
        raise ValueError(
            f"`z_exclude` names {unknown[0]!r}, which is not one of the attributes {list(attributes)}."
        )
    return {
        attribute: frozenset(j for name in z_exclude.get(attribute, []) for j in _positions(name, table))
        for attribute in attributes
    }


def _positions(name: Any, table: Table) -> list[int]:
    """Find the columns with a name or, if there is none, those that match it as a shell pattern."""
    places = table.positions(name)
    if places:
        return places
    like = set(names_like(str(name), table.names))
    if not like:
        what = (
            f"has the pattern {name!r}, which matches no"
            if is_pattern(str(name))
            else f"names {name!r}, which is not a"
        )
        raise ValueError(f"`z_exclude` {what} column of X{closest_names(str(name), table.names)}")
    return [j for j, column in enumerate(table.names) if column in like]


def is_given_away(variable: Variable, moments: Moments) -> bool:
    """Return whether models are almost certain about the class of almost every row that they scored.

    The probability that they give to classes other than the row's own is compared with that of a prediction
    by the shares of the classes: for a class that almost all rows have, a model that has learnt nothing is
    almost certain too. Continuous variables are never reported.
    """
    scored = np.flatnonzero(moments.count)
    if variable.kind != "classes" or not len(scored):
        return False
    shares = np.bincount(variable.labels[scored]) / len(scored)
    differ = float(1.0 - np.square(shares).sum())  # how often two random rows differ in class
    doubt = float(np.mean(1.0 - moments.label_probability[scored]))
    return len(scored) * differ >= _EVIDENCE and doubt <= _LEFT_OPEN * differ


def warn_of_giveaways(variable: Variable, mean_value: float, columns: Sequence[str], gains: Floats) -> None:
    """Warn that features determine an attribute together, naming the features and what to do.

    `gains` are what its models gained by splitting on each column and, last, on the target; zeros if unknown.
    """
    by_target = gains[-1] > gains[:-1].sum()
    named = [columns[j] for j in _most_gaining(gains[:-1])] if not by_target else []
    what = [*map(repr, named), *(["the target"] if by_target else [])]
    above_all = f", mainly {list_names(what)}" if what else ""
    if by_target:
        remedy = "If it only restates the attribute, keep it from the models with `z_sees_target=False`."
    else:
        example = ", ".join(f'"{name}"' for name in _as_patterns(named)[:_SHOWN] or ["age_*"])
        remedy = (
            "If columns only restate the attribute, name them in `z_exclude`, for example "
            f"`[{example}]`, or drop them from X."
        )
    warn_user(
        f"Models of the protected attribute {variable.name!r} are almost certain about almost every row: "
        f"their features determine it together{above_all}. Its values are near zero everywhere "
        f"({mean_value:.3f} on average), so fairness drops out of utilities. {remedy}"
    )


def _most_gaining(gains: Floats) -> list[int]:
    """List the fewest columns that have most of the gain, the largest first."""
    if not gains.sum() > 0:
        return []
    order = np.argsort(-gains, kind="stable")
    enough = int(np.searchsorted(np.cumsum(gains[order]), _MOST_GAIN * gains.sum())) + 1
    return order[:enough].tolist()


def _as_patterns(names: Sequence[str]) -> list[str]:
    """Shorten names for an example: one pattern for several with the same beginning.

    Examples
    --------
    >>> _as_patterns(["age_20", "age_30", "age_40", "job"])
    ['age_*', 'job']
    """
    by_beginning: dict[str, list[str]] = {}
    for name in names:
        by_beginning.setdefault(re.sub(r"[^_=.: -]*$", "", name), []).append(name)
    short: list[str] = []
    for beginning, same in by_beginning.items():
        as_pattern = len(same) >= _PATTERN_FROM and beginning and not set(beginning) & set("*?[")
        short += [f"{beginning}*"] if as_pattern else same
    return short
