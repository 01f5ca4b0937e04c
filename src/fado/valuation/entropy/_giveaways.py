"""Tell when features give a protected attribute away together, though none of them does alone.

Dummies of an age beside ``age >= 50``, a postcode and a shop: then models are sure of nearly every row, and
values of nearly zero take fairness out of every utility.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fado._messages import list_names, warn_user
from fado.tabular import Variable
from fado.valuation.entropy._moments import Moments

__all__ = ["has_evidence", "is_given_away", "warn_of_giveaways"]

FloatArray = npt.NDArray[np.float64]

_LEFT_OPEN = 0.05  # of the doubt that the classes' shares alone leave; on real tables .1 to .93 was left
_EVIDENCE = 10.0  # rows that two guesses by these shares would disagree on, at the least
_MOST_GAIN = 0.98  # of the splits on features: those that have it are named, also the lesser of two
_PATTERN_FROM = 3  # names with the same beginning
_SHOWN = 5  # entries of the example


def is_given_away(variable: Variable, moments: Moments) -> bool:
    """Tell whether models are nearly sure of the class of nearly every row that they scored.

    Their doubt, the probability that they give to other classes than the row's own, is compared with that of
    who knows the classes' shares alone: a class that nearly all rows have is predicted with little doubt by a
    model that has learnt nothing.

    Parameters
    ----------
    variable : Variable
        What was learnt; numbers, whose values say nothing of doubt, are never given away.
    moments : Moments
        What models say of rows that they were not trained on.
    """
    scored = np.flatnonzero(moments.count)
    if not has_evidence(variable, scored):
        return False
    doubt = float(np.mean(1.0 - moments.agreement[scored]))
    return doubt <= _LEFT_OPEN * _disagreement(variable, scored)


def has_evidence(variable: Variable, rows: npt.NDArray[np.integer]) -> bool:
    """Tell whether rows are enough to say that features give their classes away."""
    return variable.kind == "classes" and len(rows) * _disagreement(variable, rows) >= _EVIDENCE


def _disagreement(variable: Variable, rows: npt.NDArray[np.integer]) -> float:
    """Give the probability that two random rows differ in class: the doubt of who knows the shares alone."""
    return float(1.0 - np.square(np.bincount(variable.labels[rows]) / max(len(rows), 1)).sum())


def warn_of_giveaways(
    variable: Variable, mean_value: float, columns: Sequence[str], gains: FloatArray
) -> None:
    """Say that features give an attribute away, by which of them, and what to do.

    Parameters
    ----------
    variable : Variable
        The attribute.
    mean_value : float
        What rows are worth for it.
    columns : sequence of str
        The names of the features.
    gains : ndarray
        What its models gained by splitting on each of them and, last, on the target; zeros if not known.
    """
    by_target = gains[-1] > gains[:-1].sum()
    named = [columns[j] for j in _most_gaining(gains[:-1])] if not by_target else []
    what = [*map(repr, named), *(["the target"] if by_target else [])]
    above_all = f", above all {list_names(what)}" if what else ""
    if by_target:
        remedy = "If it only restates the attribute, keep it from the models with `z_sees_target=False`."
    else:
        example = ", ".join(f'"{name}"' for name in _as_patterns(named)[:_SHOWN] or ["age_*"])
        remedy = (
            "Where columns only restate the attribute, name them in `z_exclude`, for example "
            f"`[{example}]`, or drop them from X."
        )
    warn_user(
        f"Models of the protected attribute {variable.name!r} are nearly sure of nearly every row: the "
        f"features that they see give it away together{above_all}. Its values are near zero everywhere "
        f"({mean_value:.3f} on average), so fairness drops out of utilities. {remedy}"
    )


def _most_gaining(gains: FloatArray) -> list[int]:
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
