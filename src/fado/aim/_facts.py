"""What the card of an aimed model tells."""

from __future__ import annotations

from typing import Any

from fado.aim._aiming import Aim, Aimed
from fado.models import Facts, Part
from fado.tabular import Groups, Problem

__all__ = ["tell_facts"]


def tell_facts(aim: Aim, estimator: Any, problem: Problem, aimed: Aimed, target: Any) -> Facts:
    """Gather it.

    Parameters
    ----------
    aim : Aim
        What was aimed at.
    estimator : estimator
        What was trained.
    problem : Problem
        The rows to learn from.
    aimed : Aimed
        What came of it.
    target : object
        What the target is called, if it is a text.
    """
    path, judged = aimed.path, aimed.judged
    step, n_fits = path.steps[path.best], len(path.steps)
    moved = path.frame(aim.ratio, judged.compared).iloc[path.best]
    n_reached = sum(map(path.search.reached, path.steps))
    return Facts(
        target=target if isinstance(target, str) and target else "y",
        protected=[variable.name for variable in problem.protected],
        ratio=aim.ratio,
        at_least=aim.at_least,
        budget=aim.budget,
        reached=path.reached,
        confidence=aim.confidence,
        why="" if path.reached else path.why_missed(judged, aimed.told),
        estimator=type(estimator).__name__,
        parameters=estimator.get_params(deep=True),
        intervention="aimed" if any(step.log_factors) else "",
        settings={str(name): float(own) for name, own in moved.items() if str(name).startswith("strength")},
        fits=n_fits,
        models=n_fits,
        chosen=(
            f"Of {n_fits} fits on the way to the line, {n_reached} reached it; the one of the highest "
            "true-positive rate was kept."
            if path.reached
            else f"None of {n_fits} fits reached the line; the closest was kept."
        ),
        parts=[
            Part.of("training", problem.labels.is_positive, problem.groups),
            Part.of("validation", judged.positive, Groups(judged.codes, judged.names, judged.names)),
        ],
        measured={"validation": path.metrics[path.best]},
        left_out=[name for name, own in zip(judged.names, judged.compared, strict=True) if not own],
        min_group_size=aim.min_group_size,
        seed=aim.seed,
    )
