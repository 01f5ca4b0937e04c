"""The versions of FADO, and of the libraries that decide a value."""

from __future__ import annotations

from functools import cache

__version__ = "0.2.0"


@cache
def library_versions() -> dict[str, str]:
    """Name the versions of the libraries that decide a value; the file system is searched once."""
    from importlib.metadata import version  # slow to import, and `import fado` is quick

    libraries = {name: version(name) for name in ("numpy", "lightgbm", "scikit-learn")}
    return {"fado": __version__} | libraries
