"""The versions of FADO, and of the libraries that affect values."""

from __future__ import annotations

__version__ = "0.2.0"

_versions: dict[str, str] = {}  # filled once, because it searches the file system


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that affect values."""
    if not _versions:
        from importlib.metadata import version  # slow to import, and `import fado` is quick

        _versions.update({name: version(name) for name in ("numpy", "lightgbm", "scikit-learn")})
    return {"fado": __version__} | _versions
