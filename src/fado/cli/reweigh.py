"""`fado reweigh`: weigh rows, by default by their utility."""

from __future__ import annotations

from typing import Any

from fado.cli import _options as o
from fado.cli.sample import INTERVENED, intervene

__all__ = ["reweigh"]


@o.command(*INTERVENED)
def reweigh(
    data: o.DataOrParts,
    out: o.OutOrParts,
    intervention: str = "uar",
    utility: str | None = None,
    seed: o.Seed = 0,
    **asked: Any,
) -> None:
    """Weigh every row by its utility, for equal positive rates of groups, or both; see --intervention."""
    intervene("reweigh", data, out, intervention, utility=utility, seed=seed, **asked)
