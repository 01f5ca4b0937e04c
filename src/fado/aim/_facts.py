"""What was measured of an aimed model, and what its card tells."""

from __future__ import annotations

from typing import Any

import numpy as np

from fado.aim._choosing import INTERVAL, log_factors_frame
from fado.aim._scores import Aimed
from fado.metrics import RATIO_NAMES, Budget, measure
from fado.models import Facts, Part
from fado.tabular import Groups, Problem

__all__ = ["measure_aimed", "tell_facts"]

DRAWS = 200


def measure_aimed(aimed: Aimed, budget: Budget, seed: int) -> dict[str, float]:
    """Give all metrics of the validation rows, with intervals.

    Where each attribute has groups of its own, a ratio is the lowest of the attributes' ratios, which stand
    beside it by name.

    Parameters
    ----------
    aimed : Aimed
        What was measured.
    budget : Budget
        What set the threshold.
    seed : int
        Of the draws for intervals.
    """
    confidence = 2 * (aimed.lines.confidence or INTERVAL) - 1
    rows = aimed.rows
    weights = None if (rows.weights == rows.weights[0]).all() else rows.weights
    by_attribute = {}
    for own in aimed.attributes:
        by_attribute[own.name], _ = measure(
            rows.positive,
            aimed.scores,
            own.validation,
            own.names,
            budget=budget,
            n_boot=DRAWS,
            random_state=seed,
            sample_weight=weights,
            left_out=~own.compared,
            confidence=confidence,
        )
    first = next(iter(by_attribute.values()))
    if len(by_attribute) == 1:
        return first
    found = dict(first)
    for ratio in RATIO_NAMES:
        lowest = min(by_attribute.values(), key=lambda own: np.nan_to_num(own[ratio], nan=-1.0))
        for end in ("", "_low", "_high"):
            found[f"{ratio}{end}"] = lowest[f"{ratio}{end}"]
            found |= {f"{ratio}[{name}]{end}": own[f"{ratio}{end}"] for name, own in by_attribute.items()}
    return found


def tell_facts(
    aimed: Aimed,
    *,
    by: str,
    lines: dict[str, float],
    budget: Budget,
    estimator: Any,
    problem: Problem,
    target: Any,
    metrics: dict[str, float],
    reason: str,
    n_fits: int,
    min_group_size: int,
    seed: int,
) -> Facts:
    """Gather what the card of an aimed model tells."""
    ratio = next(iter(lines))
    moved = log_factors_frame(aimed.point, aimed.attributes)
    untouched = aimed.point.coefficients.moves_nothing
    factors = {
        f"log factor of {label}s, {row['group']}": float(row[label])
        for _, row in moved.iterrows()
        for label in ("negative", "positive")
    }
    crossed = problem.groups
    groups = Groups(crossed.codes, crossed.names, crossed.titles)
    parts = [Part.of("training", problem.labels.is_positive, groups)]
    if len(aimed.attributes) == 1:
        own = aimed.attributes[0]
        validation = Groups(own.validation, own.names, own.titles)
        parts.append(Part.of("validation", aimed.rows.positive, validation))
    n_points = len(aimed.points)
    what = "fits" if by == "weights" else "points of the trade-off"
    return Facts(
        target=target if isinstance(target, str) and target else "y",
        protected=[variable.name for variable in problem.protected],
        ratio=ratio,
        at_least=lines[ratio],
        budget=budget,
        reached=aimed.reached,
        confidence=aimed.lines.confidence,
        why=reason,
        estimator=type(estimator).__name__,
        parameters=estimator.get_params(deep=True),
        intervention="" if untouched else f"aimed {by}",
        settings={} if untouched else factors,
        fits=n_fits,
        models=n_points,
        chosen=(
            f"Of {n_points} {what}, this one was chosen."
            if aimed.reached
            else f"None of {n_points} {what} reached the line; the closest was kept."
        ),
        parts=parts,
        measured={"validation": metrics},
        left_out=[
            name
            for own in aimed.attributes
            for name, kept in zip(own.titles, own.compared, strict=True)
            if not kept
        ],
        min_group_size=min_group_size,
        seed=seed,
    )
