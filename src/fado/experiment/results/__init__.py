"""What the results of an experiment look like: charts, tables, notes, and their way to other tools."""

from fado.experiment.results._comparing import areas_of, mark_comparable
from fado.experiment.results._looks import intervention_names, looks_of
from fado.experiment.results._mlflow import log_runs
from fado.experiment.results._notes import left_out_groups, notes_of
from fado.experiment.results._optuna import add_trials
from fado.experiment.results._report import RULE, points_table, write_report
from fado.experiment.results._shown import results_shown, tell_lacking
from fado.experiment.results._winners import winners_of

__all__ = [
    "RULE",
    "add_trials",
    "areas_of",
    "intervention_names",
    "left_out_groups",
    "log_runs",
    "looks_of",
    "mark_comparable",
    "notes_of",
    "points_table",
    "results_shown",
    "tell_lacking",
    "winners_of",
    "write_report",
]
