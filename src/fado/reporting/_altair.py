"""Altair, which only pictures need."""

from __future__ import annotations

from typing import Any

__all__ = ["load_altair"]


def load_altair() -> Any:
    """Import Altair, or say how to get it."""
    try:
        import altair
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Charts need Altair: install it with `pip install 'fado-ml[plot]'`.", name="altair"
        ) from error
    return altair
