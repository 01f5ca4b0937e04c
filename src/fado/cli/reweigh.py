"""`fado reweigh`: weigh rows, by default by their utility."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from fado.cli._options import SETTINGS, command
from fado.cli.sample import INTERVENED, intervene


@command(*INTERVENED, *SETTINGS["reweigh"], in_parts=True)
def reweigh(
    data: Path,
    *,
    out: Path,
    intervention: Literal["rw", "uar", "corrected_uar", "fairlearn_grid"] = "uar",
    seed: int = 0,
    **asked: Any,
) -> None:
    """Weigh every row by its utility, for equal positive rates of groups, or both; see --intervention.

    Parameters
    ----------
    intervention : choice
        The intervention.
    """
    intervene("reweigh", data, out, intervention, seed=seed, **asked)
