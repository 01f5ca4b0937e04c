"""Go on from the draws that an earlier run left behind in its valuation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fado.valuation._provenance import Provenance
from fado.valuation._result import Valuation
from fado.valuation.shapley._semivalues import Moments

__all__ = ["ALGORITHM", "check_earlier", "check_origin", "moments_of"]

ALGORITHM = "data-shapley"
_ROUNDING = 1e-6  # other machines may add up in another order


def check_origin(earlier: Any, semivalue: Any) -> None:
    """Refuse to go on from what no draws were left behind in."""
    if not isinstance(earlier, Valuation):
        raise TypeError(f"`continue_from` must be a Valuation, got {type(earlier).__name__}.")
    told = earlier.provenance
    n_draws = told.settings.get("n_draws")
    if told.algorithm != ALGORITHM or told.seed is None or not isinstance(n_draws, int) or n_draws < 1:
        raise ValueError(
            f"`continue_from` must be a valuation that DataShapley made, got one by {told.algorithm!r}."
        )
    if semivalue == "loo":
        raise ValueError(
            "`continue_from` is for random draws, and leave-one-out values are exact: leave it out."
        )


def check_earlier(earlier: Valuation, settings: dict[str, Any], provenance: Provenance, n_rows: int) -> None:
    """Refuse to go on from other rows, settings or seeds than these."""
    theirs, told = earlier.provenance, dict(earlier.provenance.settings)
    pairs = {
        "number of rows": (len(earlier), n_rows),
        "variables": (earlier.variables, list(provenance.variables)),
        "estimator": (theirs.estimators, provenance.estimators),
        "seed": (theirs.seed, provenance.seed),
        **{name: (told.get(name), own) for name, own in settings.items() if name != "full_worths"},
    }
    for what, (before, now) in pairs.items():
        if before != now:
            raise ValueError(
                f"`continue_from` must have been made with the same rows, settings and seed: its {what} was "
                f"{before!r}, and now it is {now!r}."
            )
    if theirs.target_pattern != provenance.target_pattern or not _are_close(
        told.get("full_worths"), settings["full_worths"]
    ):
        raise ValueError(
            "`continue_from` was made of other rows or validation rows: pass the valuation of these rows."
        )


def _are_close(before: Any, now: Sequence[Sequence[float]]) -> bool:
    """Tell whether a file holds these numbers, to rounding."""
    try:
        theirs = np.array(before, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    own = np.array(now)
    return theirs.shape == own.shape and np.allclose(theirs, own, rtol=_ROUNDING, atol=_ROUNDING)


def moments_of(earlier: Valuation, names: Sequence[str]) -> Moments:
    """Give what an earlier run's draws added up to."""
    mean, error = (
        np.column_stack([earlier.field(field, name) for name in names])
        for field in ("values", "standard_error")
    )
    return Moments.resume(mean, error, earlier.field("counts", "y"))
