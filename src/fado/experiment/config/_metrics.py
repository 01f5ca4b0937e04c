"""The one list of metrics that configurations may name beside those that every experiment has."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from fado._messages import closest_names
from fado._registry import load_plugins
from fado.metrics import RATIO_NAMES

__all__ = ["apply_metric", "check_metric_name", "metric_functions", "metric_names", "register_metric"]

Function = TypeVar("Function", bound=Callable[..., Any])

_FUNCTIONS: dict[str, Callable[..., Any]] = {}
_NAME = re.compile(r"[A-Za-z]\w*")
_OURS = {"threshold", "fpr", "tpr", "selection_rate", "selected", *RATIO_NAMES}


def register_metric(name: str) -> Callable[[Function], Function]:
    """Register a metric under a name, for ``evaluation.metrics`` of a configuration.

    Parameters
    ----------
    name : str
        A word that no other metric has. The metric's columns are ``validation_<name>`` and ``test_<name>``.

    Returns
    -------
    callable
        A decorator for a function that returns a number, or NaN if it is undefined. The function is called
        with the labels (an array of bool), the scores and the groups (an array of their names) of the rows of
        one part. If it has parameters of these names, it also gets the ``threshold`` of decisions, the rows'
        ``sample_weight`` (None if they have none), and the other ``metrics`` of the part, a dict by name.

    Examples
    --------
    >>> from fado.experiment import register_metric
    >>> @register_metric("accuracy")
    ... def accuracy(y_true, scores, groups, threshold):
    ...     return ((scores >= threshold) == y_true).mean()
    """
    check_metric_name(name)

    def enter(function: Function) -> Function:
        known = _FUNCTIONS.get(name)
        if known is not None and _named(known) != _named(function):
            raise ValueError(f"There is a metric called {name!r} already, {_named(known)}.")
        _FUNCTIONS[name] = function
        return function

    return enter


def metric_names() -> tuple[str, ...]:
    """List the metrics, in the order in which they were registered."""
    load_plugins()
    return tuple(_FUNCTIONS)


def metric_functions(
    names: Iterable[str], given: Mapping[str, Callable[..., Any]] | None = None
) -> dict[str, Callable[..., Any]]:
    """Find the functions of some names: those that are given, else those that are registered."""
    known = {name: _FUNCTIONS[name] for name in metric_names()} | dict(given or {})
    found = {}
    for name in names:
        if name not in known:
            raise ValueError(
                f"There is no metric {name!r}{closest_names(name, list(known), ': register it, ')}"
                "or hand it over in Python, by `metrics`."
            )
        found[name] = known[name]
    return found


def check_metric_name(name: Any) -> None:
    """Refuse a name that no column can have, or that another metric has."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.endswith(("_low", "_high")):
        raise ValueError(f"A metric's name must be a word, such as 'f1', got {name!r}.")
    if name in _OURS:
        raise ValueError(f"{name!r} is the name of a metric that every experiment may have: choose another.")


def apply_metric(name: str, function: Callable[..., Any], *rows: Any, **offered: Any) -> float:
    """Give what a metric of the user's own says of some rows, or say in a sentence what is wrong with it.

    Examples
    --------
    >>> apply_metric("half", lambda y, scores, groups, threshold: threshold / 2, [], [], [], threshold=1)
    0.5
    """
    try:
        value = function(*rows, **_taken(function, offered))
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"The metric {name!r} failed with {type(error).__name__}: {error}") from error
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isinf(number):
        raise ValueError(f"The metric {name!r} must give a number or NaN, got {str(value)[:80]}.")
    return number


def _taken(function: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Choose what a function has parameters for."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of some that are written in C
        return {}
    return {name: value for name, value in offered.items() if name in parameters}


def _named(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


@register_metric("equalized_odds_ratio")
def _equalized_odds_ratio(y_true: Any, scores: Any, groups: Any, metrics: Mapping[str, float]) -> float:
    """Give the lesser of the ratios of false-positive and true-positive rates between groups."""
    ratios = metrics["fpr_ratio"], metrics["tpr_ratio"]
    return math.nan if any(map(math.isnan, ratios)) else min(ratios)
