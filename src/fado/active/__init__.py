"""Active learning: select the unlabelled rows to label next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fado.active._query import DEFAULT_ALPHA, UtilityQuery

if TYPE_CHECKING:
    from fado.active._strategies import UtilitySampling

__all__ = ["DEFAULT_ALPHA", "UtilityQuery", "UtilitySampling"]


def __getattr__(name: str) -> Any:
    """Import the strategy for scikit-activeml on first use, as that package is optional."""
    if name != "UtilitySampling":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from fado.active._strategies import UtilitySampling
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "skactiveml":
            raise
        raise ModuleNotFoundError(
            "UtilitySampling needs scikit-activeml: install it with `pip install 'fado-ml[active]'`.",
            name="skactiveml",
        ) from error
    return UtilitySampling


def __dir__() -> list[str]:
    return sorted({*globals(), "UtilitySampling"})
