"""Commented configurations to start from."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from fado._storage import remove_abandoned, replacing

__all__ = ["PRESETS", "preset_text", "write_preset"]

PRESETS = ("quick", "paper")


def preset_text(preset: str) -> str:
    """Give a preset's TOML text.

    Examples
    --------
    >>> "count = 25" in preset_text("paper")
    True
    """
    if preset not in PRESETS:
        raise ValueError(f"`preset` must be {' or '.join(map(repr, PRESETS))}, got {preset!r}.")
    return (files("fado.experiment.config") / "templates" / f"{preset}.toml").read_text(encoding="utf-8")


def write_preset(path: str | os.PathLike[str], preset: str = "quick") -> None:
    """Write a commented configuration that runs as it stands; a file that is there already stays."""
    text = preset_text(preset)
    if Path(path).exists():
        remove_abandoned(Path(path))
        raise FileExistsError(f"{str(path)!r} exists already: name another file, or delete it first.")
    with replacing(path, "The configuration") as temporary:
        temporary.write_text(text, encoding="utf-8")
