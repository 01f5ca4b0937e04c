"""The versions of FADO, and of the libraries that decide a value."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

__all__ = ["__version__", "library_versions"]

__version__ = "0.2.0"

_installed = cache(version)  # it searches the file system


def library_versions() -> dict[str, str]:
    """Name the versions of the libraries that decide a value."""
    return {"fado": __version__} | {name: _installed(name) for name in ("numpy", "lightgbm", "scikit-learn")}
