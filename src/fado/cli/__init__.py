"""The command line. Every command wraps one call of the library."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        from fado.cli._app import build_app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(
            f"error: the command line needs {error.name}: install it with `pip install 'fado-ml[cli]'`.",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    build_app()()
