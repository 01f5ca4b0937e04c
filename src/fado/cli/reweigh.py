"""`fado reweigh`: weigh rows, by default by their utility."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from fado.cli._options import command
from fado.cli.sample import INTERVENED, intervene

__all__ = ["reweigh"]


@command(*INTERVENED, "scaling", "negative", "floor", "prevalence_correction", "constraint", "point")
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
    data : DATA
        The table: a .csv or .parquet file; or a directory or a pattern of such files, which are read part by
        part.
    out : FILE|DIR
        The file to write, .csv or .parquet. For a table that is read part by part: a directory, or a .parquet
        file.
    intervention : choice
        The intervention.
    """
    intervene("reweigh", data, out, intervention, seed=seed, **asked)
