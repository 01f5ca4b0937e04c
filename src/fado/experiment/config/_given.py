"""What is handed over in Python beside a configuration: an estimator, its space, metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from fado.experiment.config._estimators import describe_object
from fado.experiment.config._metrics import check_metric_name

__all__ = ["Given"]


@dataclass(frozen=True)
class Given:
    """Objects that no file can hold; a configuration notes what they are called.

    Parameters
    ----------
    estimator : estimator, optional
        What is trained, instead of what ``models.estimator`` names; an unfitted copy is kept.
    space : mapping, optional
        What its parameters may be, instead of ``models.space``.
    metrics : mapping of str to callable
        Metrics beside those of ``evaluation.metrics``.
    """

    estimator: Any = None
    space: Mapping[str, Any] | None = None
    metrics: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.estimator is not None:
            from sklearn.base import clone

            describe_object(self.estimator)
            object.__setattr__(self, "estimator", clone(self.estimator))  # the user's may change
        for name, function in self.metrics.items():
            check_metric_name(name)
            if not callable(function):
                raise TypeError(f"The metric {name!r} must be a function, got {function!r}.")

    def added_to(self, table: Any) -> Any:
        """Give a configuration that names what is given; one that is none stays for its reader to refuse."""
        if not isinstance(table, Mapping):
            return table
        named = deepcopy(dict(table))
        if self.estimator is not None:
            _section(named, "models")["estimator"] = describe_object(self.estimator)
        if self.space is not None:
            _section(named, "models")["space"] = deepcopy(dict(self.space))
        if self.metrics:
            evaluation = _section(named, "evaluation")
            before = evaluation.get("metrics", [])
            if isinstance(before, list | tuple):
                evaluation["metrics"] = [*before, *(name for name in self.metrics if name not in before)]
        return named


def _section(table: dict[str, Any], name: str) -> dict[str, Any]:
    """Give a table of the configuration, to be changed, or an empty one that nobody reads."""
    own = table.setdefault(name, {})
    return own if isinstance(own, dict) else {}
