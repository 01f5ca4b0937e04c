"""All that an online valuator knows, and how a batch changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import warn_user
from fado.tabular import TARGET, Problem, Table
from fado.valuation.entropy import OutOfBagEntropy, ValuationModels
from fado.valuation.online._drift import Check, Pool, Reference, check_drift
from fado.valuation.online._window import blank_columns, has_new_label, without_text

__all__ = ["MOST_CHECKS", "State", "after_batch", "rebuilt", "tell_changes"]

MOST_CHECKS = 10_000  # that are remembered


@dataclass(frozen=True)
class State:
    """What is known after some batches; a batch makes another of it.

    Parameters
    ----------
    window : Problem or None
        The last rows.
    models : ValuationModels or None
        What values come from.
    references : mapping of str to Reference
        The models' doubts out of bag, per variable.
    blank : tuple of int
        Columns without any entry in the rows that the models learnt from.
    version : int
        How often models have been built.
    waiting : int
        Rows that came after the models.
    batches, rows : int
        All that came.
    pools : mapping of str to Pool
        Doubts about new rows that are too few for a check.
    checks : tuple of Check
        The last looks for drift.
    """

    window: Problem | None = None
    models: ValuationModels | None = None
    references: Mapping[str, Reference] = field(default_factory=dict)
    blank: tuple[int, ...] = ()
    version: int = 0
    waiting: int = 0
    batches: int = 0
    rows: int = 0
    pools: Mapping[str, Pool] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()

    def as_learnt(self, table: Table) -> Table:
        """Give new rows as the models can take them, whatever has come to columns that were blank."""
        return table if self.window is None else without_text(table, self.blank, self.window.table)

    def drifting(self) -> set[str]:
        """Name the variables whose last check found drift."""
        return {name for name, drift in {own.variable: own.drift for own in self.checks}.items() if drift}


def after_batch(
    state: State, batch: Problem, window: Problem, labels: tuple[Any, Any], n_jobs: int | None
) -> tuple[State, bool]:
    """Give the state with a batch in its window and checked for drift, and say whether that calls for models.

    Parameters
    ----------
    state : State
        Before the batch.
    batch : Problem
        The new rows.
    window : Problem
        The rows to keep, with the new ones.
    labels : tuple
        The batch's target and protected attributes, as they were given.
    n_jobs : int or None
        How many threads score its rows.

    Returns
    -------
    state : State
        With the old models.
    urgent : bool
        Whether they miss something: a label that they do not know, or drift.
    """
    counted = replace(
        state,
        window=window,
        waiting=state.waiting + batch.n_rows,
        batches=state.batches + 1,
        rows=state.rows + batch.n_rows,
    )
    if state.models is None:
        return counted, True
    if has_new_label(batch.sources[0], state.models.classes(TARGET)):  # which models cannot be asked about
        return counted, True
    told = state.models.value(state.as_learnt(batch.table), *labels, n_jobs=n_jobs)
    doubts = {name: 1.0 - told.field("agreement", name) for name in state.models.variables}
    pools, checks = check_drift(doubts, state.references, state.pools, counted.batches)
    checked = replace(counted, pools=pools, checks=(*state.checks, *checks)[-MOST_CHECKS:])
    strange = any(has_new_label(column, state.models.classes(column.name)) for column in window.sources)
    return checked, strange or any(check.drift for check in checks)


def rebuilt(state: State, window: Problem, valuator: OutOfBagEntropy) -> State:
    """Give the state with models of the rows in its window.

    Parameters
    ----------
    state : State
        With the old models, or none.
    window : Problem
        Its rows.
    valuator : OutOfBagEntropy
        Unfitted; it keeps its models.
    """
    fitted: OutOfBagEntropy = valuator.fit_problem(window)
    valuation, names = fitted.valuation_, fitted.models_.variables
    doubts: dict[str, npt.NDArray[np.float64]] = {
        name: 1.0 - valuation.field("agreement", name) for name in names
    }
    changed = _changed_kinds(state.models, fitted.models_)
    return replace(
        state,
        models=fitted.models_,
        references={name: Reference.of(own) for name, own in doubts.items()},
        blank=blank_columns(window.table),
        version=state.version + 1,
        waiting=0,
        pools={name: pool for name, pool in state.pools.items() if name not in changed},
    )


def tell_changes(before: State, after: State) -> None:
    """Warn of drift that was not there before, and of variables that are no longer what they were."""
    for check in after.checks:
        if check.drift and check.batch > before.batches and check.variable not in before.drifting():
            warn_user(
                f"Drift in batch {check.batch}: models doubt the labels of {check.variable!r} by "
                f"{check.loss:.3f} on average, and did by {check.expected:.3f} before "
                f"({check.statistic:.1f} standard errors). They are rebuilt with the new rows; if rows from "
                "before no longer hold, drop them with `forget`."
            )
    for name, (old, new) in _changed_kinds(before.models, after.models).items():
        warn_user(
            f"Variable {name!r} was valued as {old} and is now valued as {new}, by the number of its labels: "
            f'set `kinds={{{name!r}: "classes"}}` or "continuous", whichever it is.'
        )


def _changed_kinds(
    before: ValuationModels | None, after: ValuationModels | None
) -> dict[str, tuple[str, str]]:
    """Name the variables that models take for another kind, with both kinds."""
    if before is None or after is None:
        return {}
    pairs = [(old.variable, new.variable) for old, new in zip(before.kept, after.kept, strict=True)]
    return {old.name: (old.kind, new.kind) for old, new in pairs if old.kind != new.kind}
