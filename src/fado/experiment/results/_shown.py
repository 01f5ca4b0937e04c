"""What a notebook shows of results: the models that no other beats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fado.experiment.results._frame import parts_of
from fado.experiment.results._looks import describe_settings
from fado.reporting import shown_table

if TYPE_CHECKING:
    from fado.experiment.results._results import Results

__all__ = ["results_shown"]

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
