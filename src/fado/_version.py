"""The versions of FADO, and of the libraries that affect values."""

from __future__ import annotations

from functools import cache

__version__ = "0.2.0"


@cache
def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that affect values; the file system is searched once."""
    from importlib.metadata import version  # slow to import, and `import fado` is quick

    libraries = {name: version(name) for name in ("numpy", "lightgbm", "scikit-learn")}
    return {"fado": __version__} | libraries
