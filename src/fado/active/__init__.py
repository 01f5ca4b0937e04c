"""Active learning: select the unlabelled rows to label next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fado.active._query import DEFAULT_ALPHA, UtilityQuery

if TYPE_CHECKING:
    from fado.active._strategies import UtilitySampling, UtilityStream

__all__ = ["DEFAULT_ALPHA", "UtilityQuery", "UtilitySampling", "UtilityStream"]

_STRATEGIES = {"UtilitySampling", "UtilityStream"}


def __getattr__(name: str) -> Any:
    """Import a strategy for scikit-activeml on first use, as that package is optional."""
    if name not in _STRATEGIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module("fado.active._strategies"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "skactiveml":
            raise
        raise ModuleNotFoundError(
            f"{name} needs scikit-activeml: install it with `pip install 'fado-ml[active]'`.",
            name="skactiveml",
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *_STRATEGIES})
