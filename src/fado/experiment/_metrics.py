"""The registry of metrics that are measured beside the built-in ones."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from fado._checks import ClassRegistry
from fado._messages import closest_names
from fado.metrics import RATIO_NAMES

Function = TypeVar("Function", bound=Callable[..., Any])

_FUNCTIONS: Any = ClassRegistry("metric")
_NAME = re.compile(r"[A-Za-z]\w*")
_TAKEN = {"threshold", "fpr", "tpr", "selection_rate", "selected", *RATIO_NAMES}


def register_metric(name: str) -> Callable[[Function], Function]:
    """Register a metric under a name, for ``evaluation.metrics`` of a configuration.

    Parameters
    ----------
    name : str
        A word that no other metric has. The columns are ``validation_<name>`` and ``test_<name>``.

    Returns
    -------
    callable
        A decorator for a function that returns a number, or NaN if it is undefined. The function is called
        with the labels (an array of bool), the scores and the groups (an array of names) of the rows of one
        part. If it has parameters of these names, it also gets the ``threshold`` of decisions, the
        ``sample_weight`` (None without weights), and the other ``metrics`` of the part, a dict by name.

    See Also
    --------
    fado.experiment.Experiment : Takes further metrics as an argument, too.
    Results.remeasure : Measures all models again by other metrics.

    Examples
    --------
    >>> from fado.experiment import register_metric
    >>> @register_metric("accuracy")
    ... def accuracy(y_true, scores, groups, threshold):
    ...     return ((scores >= threshold) == y_true).mean()
    """
    _check_name(name)
    decorator: Callable[[Function], Function] = _FUNCTIONS.register(name)
    return decorator


def metric_names() -> tuple[str, ...]:
    """List the metrics, in the order in which they were registered."""
    names: tuple[str, ...] = _FUNCTIONS.names()
    return names


def metric_functions(
    names: Iterable[str], functions: Mapping[str, Callable[..., Any]] | None = None
) -> dict[str, Callable[..., Any]]:
    """Find the functions of some names among those passed in Python and registered ones."""
    known = {name: _FUNCTIONS[name] for name in metric_names()} | dict(functions or {})
    names = list(names)
    for name in names:
        if name not in known:
            raise ValueError(
                f"There is no metric {name!r}{closest_names(name, list(known), ': register it, ')}"
                "or pass it in Python, as `metrics`."
            )
    return {name: known[name] for name in names}


def check_metrics(metrics: Mapping[str, Callable[..., Any]] | None) -> dict[str, Callable[..., Any]]:
    """Check metrics that are passed in Python."""
    for name, function in (metrics or {}).items():
        _check_name(name)
        if not callable(function):
            raise TypeError(f"The metric {name!r} must be a function, got {function!r}.")
    return dict(metrics or {})


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.endswith(("_low", "_high")):
        raise ValueError(f"A metric's name must be a word, such as 'f1', got {name!r}.")
    if name in _TAKEN:
        raise ValueError(f"{name!r} is the name of a built-in metric: choose another name.")


def apply_metric(name: str, function: Callable[..., Any], *rows: Any, **optional: Any) -> float:
    """Return the value of a user's metric, or raise a ValueError if it fails.

    It gets the optional arguments for which it has parameters.

    Examples
    --------
    >>> apply_metric("half", lambda y, scores, groups, threshold: threshold / 2, [], [], [], threshold=1)
    0.5
    """
    try:
        parameters: Any = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of some that are written in C
        parameters = {}
    try:
        value = function(*rows, **{name: optional[name] for name in optional if name in parameters})
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"The metric {name!r} failed with {type(error).__name__}: {error}") from error
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isinf(number):
        raise ValueError(f"The metric {name!r} must return a number or NaN, got {str(value)[:80]}.")
    return number


@register_metric("equalized_odds_ratio")
def _equalized_odds_ratio(y_true: Any, scores: Any, groups: Any, metrics: Mapping[str, float]) -> float:
    """Return the lesser of the ratios of false-positive and true-positive rates between groups."""
    ratios = metrics["fpr_ratio"], metrics["tpr_ratio"]
    return math.nan if any(map(math.isnan, ratios)) else min(ratios)
