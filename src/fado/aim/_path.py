"""Walk towards the line: fit, look, move the weights, until the line is reached or nothing is left to try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado.aim._judged import JudgedRows
from fado.aim._search import Search, Step

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Path", "walk"]

FloatArray = npt.NDArray[np.float64]
TOLD_LITTLE = 0.02  # of the doubt about groups, below which no weights move a ratio


@dataclass
class Path:
    """The steps that were taken, what was measured after each, and the model of the best.

    Parameters
    ----------
    search : Search
        What decided on them.
    names : tuple of str
        Of the groups, compared or not.
    """

    search: Search
    names: tuple[str, ...]
    steps: list[Step] = field(default_factory=list)
    metrics: list[dict[str, float]] = field(default_factory=list)
    reasons: list[list[str]] = field(default_factory=list)
    model: Any = None

    @property
    def best(self) -> int:
        """The position of the step to keep."""
        return self.search.best(self.steps)

    @property
    def reached(self) -> bool:
        """Whether that step is above the line."""
        return self.search.reached(self.steps[self.best])

    def frame(self, ratio: str, compared: npt.NDArray[np.bool_]) -> pd.DataFrame:
        """Give one row per fit."""
        import pandas as pd

        shown = [name for name, one in zip(self.names, compared, strict=True) if one]
        rows = [
            {
                "strength": float(np.ptp(step.log_factors)) if step.log_factors else 0.0,
                "tpr": step.tpr,
                "ratio": step.ratio,
                "low": step.low,
                "high": metrics[f"{ratio}_high"],
                "threshold": metrics["threshold"],
                "reached": self.search.reached(step),
                **{f"strength[{name}]": own for name, own in zip(shown, step.log_factors, strict=True)},
            }
            for step, metrics in zip(self.steps, self.metrics, strict=True)
        ]
        return pd.DataFrame(rows)

    def why_missed(self, judged: JudgedRows, told: float | None) -> str:
        """Say why the line was not reached, and what came closest."""
        best = self.best
        step, at_least = self.steps[best], self.search.at_least
        bound = "no interval, for want of events" if np.isnan(step.low) else f"lower bound {step.low:.3f}"
        closest = (
            f"The closest of {len(self.steps)} fits has `{judged.ratio}` {step.ratio:.3f} ({bound}) at a "
            f"true-positive rate of {step.tpr:.3f}"
        )
        if len(step.log_factors) < 2:
            return "There are no two groups to compare: the estimator is trained as it is."
        if np.isnan(step.ratio):
            return f"The line {at_least:g} was not reached: {' '.join(self.reasons[best])}"
        if self.search.by_bound and step.ratio >= at_least:
            return (
                f"The line {at_least:g} was not reached with that confidence: {len(judged.positive):,} "
                f"judged rows are too few to tell. {closest}. Judge by more rows, or ask for less."
            )
        if told is not None and told < TOLD_LITTLE:
            return (
                f"The line {at_least:g} was not reached, and no weights will: the features tell next to "
                f"nothing of the groups ({max(told, 0.0):.1%} of the doubt about them), and a model that "
                f"does not know the group cannot treat groups differently. {closest}."
            )
        return f"The line {at_least:g} was not reached. {closest}. Allow more fits, or try another estimator."


def walk(
    search: Search,
    judged: JudgedRows,
    train: Callable[[FloatArray], tuple[FloatArray, Any]],
) -> Path:
    """Fit and look, step by step.

    Parameters
    ----------
    search : Search
        Says which log factors to try.
    judged : JudgedRows
        Measures what came of them.
    train : callable
        From the log factors of the compared groups to the judged rows' scores and a model.
    """
    path = Path(search, judged.names)
    log_factors: FloatArray | None = np.zeros(int(judged.compared.sum()))
    while log_factors is not None:
        scores, model = train(log_factors)
        metrics, reasons = judged.measure(scores)
        path.steps.append(judged.step(log_factors, scores, metrics))
        path.metrics.append(metrics)
        path.reasons.append(reasons)
        if path.best == len(path.steps) - 1:
            path.model = model
        log_factors = search.next(path.steps) if len(log_factors) > 1 else None
    return path
