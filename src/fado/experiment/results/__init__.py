"""What the results of an experiment look like: charts, tables, notes, and their way to other tools."""

from fado.experiment.results._shown import results_shown

__all__ = ["results_shown"]
