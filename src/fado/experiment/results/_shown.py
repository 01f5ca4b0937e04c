"""What is said of results: in a notebook the models that no other beats, and what is not registered here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fado._messages import list_names, warn_user
from fado.experiment._frame import parts_of
from fado.experiment.config import metric_names
from fado.experiment.results._looks import describe_settings
from fado.reporting import shown_table

if TYPE_CHECKING:
    from fado.experiment._results import Results

__all__ = ["results_shown", "tell_lacking"]

MOST = 20  # rows


def results_shown(title: str, results: Results, metric: str) -> str:
    """Give the frontier of one ratio, on the rows that models are chosen by, as an output of a notebook."""
    part = results.chosen_on
    frontier = results.pareto(metric, part)
    if not len(frontier):
        return shown_table(title, [f"No model can be compared by {metric} so far."])
    chosen = frontier.iloc[:MOST]
    table = chosen[["intervention"]].assign(settings=describe_settings(chosen), model=chosen["model"])
    for own in parts_of(results.config):
        for name in ("tpr", metric):
            table[f"{own} {name}"] = chosen[f"{own}_{name}"]
    told = [f"Models that no other beats in both true-positive rate and {metric} on {part} rows:"]
    if len(frontier) > MOST:
        told.append(f"The first {MOST} of {len(frontier):,}; `pareto` gives all.")
    return shown_table(title, told, table)


def tell_lacking(results: Results, store: str | os.PathLike[str]) -> None:
    """Warn of what an experiment used and nobody has registered here."""
    where = f"The store {os.fspath(store)!r}"
    if results.lacking:
        warn_user(
            f"{where} was made with {'; '.join(results.lacking)}, not registered here: its results are shown "
            "as they were measured. To go on with it, or to train its models again, import or install that "
            "first."
        )
    metrics = [name for name in results.config.evaluation.metrics if name not in metric_names()]
    if metrics:
        warn_user(
            f"{where} has metrics that are not registered here, {list_names(metrics)}: they are shown as "
            "they were measured."
        )
