"""The target, where a variable's models see it beside the features."""

from __future__ import annotations

from dataclasses import replace

from fado.engine._base import LabelArray
from fado.tabular import Variable

__all__ = ["check_labels", "check_target", "replace_target"]


def check_target(variable: Variable, target: Variable | None) -> None:
    """Refuse a variable whose models see the target, where there is none."""
    if variable.sees_target and target is None:
        raise ValueError(
            f"The models of {variable.name!r} see the target, but the engine was given none: pass `target`."
        )


def replace_target(
    target: Variable | None, labels: LabelArray | None, n_rows: int, variable: Variable
) -> Variable | None:
    """Give the target of another table's rows; None if a variable's models do not see it.

    Parameters
    ----------
    target : Variable or None
        The target of the engine's table.
    labels : ndarray or None
        Those of the other table's rows, coded like the target's.
    n_rows : int
        How many rows there are.
    variable : Variable
        What was learnt.
    """
    if target is None or not variable.sees_target:
        return None
    return replace(target, labels=check_labels(labels, n_rows, f"The models of {variable.name!r} see"))


def check_labels(labels: LabelArray | None, n_rows: int, who: str = "The model sees") -> LabelArray:
    """Give the target's labels of another table's rows, refusing none, or another number of them."""
    if labels is None:
        raise ValueError(f"{who} the target: pass its labels for the rows of the table.")
    if len(labels) != n_rows:
        raise ValueError(f"`target` must have one label per row, got {len(labels)} for {n_rows} rows.")
    return labels
