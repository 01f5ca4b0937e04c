"""Columns that reveal an attribute or matter for the target, measured on rows that models have not seen.

In folds, models predict the target and every attribute from the columns that they may see. In the held-out
rows of each fold one column at a time is shuffled, and the error of the predictions grows by what the models
owe to it. The error of a class is one minus the probability of a row's own class; of a number, the distance.
A figure is the growth of the mean error over the error of models that know no column: the share of the
uncertainty that the column removes. How often models split on a column is no such figure: a text of many
levels is split on often, and tells nothing of other rows.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from fado._progress import tracked
from fado._typing import Floats
from fado.engine import LightGBMEngine, Task, default_estimators
from fado.execution import ThreadExecutor, n_workers
from fado.exploration._estimates import skill
from fado.exploration._explored import ExploredRows, Protected, percent, quoted, sample_rows
from fado.tabular import TARGET, Problem, Table, deal_rows

FOLDS = 3
MOST_ROWS = 20_000
MOST_SHUFFLED = 60  # columns of one model, those that it uses most
MOST_COLUMNS = 500  # listed
MOST_DRAWN = 20
MOST_NAMED = 3


class Reliance(NamedTuple):
    """What models of a variable owe to each column, by its position; the target's comes after the last.

    Models that are no better than chance owe nothing to any, and `figures` is None.
    """

    figures: dict[int, dict[str, Any]] | None = None
    n_rows: int = 0

    def of(self, place: int) -> dict[str, Any]:
        """Give the share of a column, half its interval, and whether the interval excludes 0."""
        if self.figures is None:
            return {"share": None, "margin": None, "clear": False}
        return self.figures.get(place, {"share": 0.0, "margin": 0.0, "clear": False})


def column_reliance(explored: ExploredRows, n_jobs: int | None, progress: bool) -> dict[str, Reliance]:
    """Measure what models of the target and of each attribute owe to each column; empty without names."""
    problem = explored.searched
    rows = sample_rows(problem.n_rows, MOST_ROWS, explored.seed)
    problem = problem if len(rows) == problem.n_rows else problem.take(rows)
    if problem.table.is_sparse:
        return {}
    target, names = problem.target, problem.table.names
    sees_target = explored.valuation.provenance.settings.get("z_sees_target") is not False
    variables = [target]
    for one, variable in zip(explored.attributes, problem.protected, strict=True):
        hidden = explored.excluded_columns(one.name)
        places = frozenset(j for j, name in enumerate(names) if name in hidden or j == one.position)
        variables.append(replace(variable, excluded=places, sees_target=sees_target))
    cells = target.labels if target.kind == "classes" else np.zeros(problem.n_rows, dtype=np.int64)
    generator = np.random.default_rng([explored.seed, 20])
    folds = deal_rows(cells.astype(np.int64), [1 / FOLDS] * FOLDS, generator, problem.blocks)
    models = default_estimators(problem.table.n_columns)
    tasks = []
    for variable in variables:
        for fold in range(FOLDS):
            train, held = (
                np.flatnonzero(variable.known & rows).astype(np.int32)
                for rows in (folds != fold, folds == fold)
            )
            if len(train) and len(held):
                estimator = models[variable.kind == "continuous"]
                tasks.append(Task(estimator, variable, train, explored.seed, held))
    workers = n_workers(n_jobs)
    engine = LightGBMEngine(problem.table, target, workers=workers)
    engine.prepare(tasks)
    grown = ThreadExecutor(workers).run(_held_errors, tasks, (engine, problem, explored.seed))
    done = list(tracked(grown, len(tasks), what="models of columns", show=progress))
    return {
        variable.name: _reliance(
            [one for task, one in zip(tasks, done, strict=True) if task.variable is variable], problem
        )
        for variable in variables
    }


class _Held(NamedTuple):
    """The errors of one model on held-out rows, those of knowing no column, and with a column shuffled."""

    rows: npt.NDArray[np.int32]
    errors: Floats
    baseline: Floats
    growth: dict[int, Floats]


def _held_errors(
    task: Task, shared: tuple[LightGBMEngine, Problem, int], stop: threading.Event | None
) -> _Held:
    """Train on a task's rows, and shuffle each column that the model uses in the rows that it scores."""
    engine, problem, seed = shared
    model, variable = engine.fit(task, stop), task.variable
    held = np.asarray(task.scored, dtype=np.int32)
    labels, table, of_target = variable.labels[held], problem.table.take(held), problem.target.labels[held]

    def errors(scores: Floats) -> Floats:
        if variable.kind == "continuous":
            return np.abs(scores - labels)
        if scores.shape[1] == 2:
            return scores[np.arange(len(labels)), 1 - labels]
        return 1.0 - scores[np.arange(len(labels)), labels]

    known = variable.labels[task.rows]
    if variable.kind == "continuous":
        baseline = np.abs(labels - known.mean())
    else:
        baseline = 1.0 - (np.bincount(known, minlength=len(variable.classes)) / len(known))[labels]
    plain, growth = errors(model.scores), {}
    gains = np.zeros(table.n_columns + 1) if model.gains is None else model.gains
    for place in np.argsort(-gains, kind="stable")[: min(MOST_SHUFFLED, int((gains > 0).sum()))].tolist():
        order = np.random.default_rng([seed, 21, place]).permutation(len(held))
        mixed, seen = table, of_target
        if place == table.n_columns:
            seen = of_target[order]
        else:
            columns = list(table.columns)
            columns[place] = columns[place].take(order)
            mixed = Table.of_columns(columns, named=table.is_named)
        growth[place] = errors(model.score(mixed, seen if variable.sees_target else None)) - plain
    return _Held(held, plain, baseline, growth)


def _reliance(held: Sequence[_Held], problem: Problem) -> Reliance:
    """Put the folds together: every row counts once, and rows of one block as one."""
    if not held:
        return Reliance()
    rows, errors, baseline = (np.concatenate([one[part] for one in held]) for part in range(3))
    if not baseline.mean() > 0 or not skill(errors, baseline).low > 0:
        return Reliance()
    blocks = None if problem.blocks is None else problem.blocks[rows]
    places = sorted({place for one in held for place in one.growth})
    reach = float(ndtri(1 - 0.025 / max(len(places), 1)))  # intervals hold for all columns together
    figures = {}
    for place in places:
        growth = np.concatenate([one.growth.get(place, np.zeros(len(one.rows))) for one in held])
        off = growth - growth.mean()
        off = off if blocks is None else np.bincount(blocks, off)
        error = float(np.sqrt(np.square(off).sum())) / len(rows)
        share, margin = float(growth.mean() / baseline.mean()), reach * (error / float(baseline.mean()))
        figures[place] = {"share": share, "margin": margin, "clear": share > margin}
    return Reliance(figures, len(rows))


def columns_part(
    explored: ExploredRows, attribute: Protected, reliance: dict[str, Reliance]
) -> dict[str, Any]:
    """Say how much every feature, and the target, reveals the attribute and matters for the target.

    The columns that reveal most come first; those ``drawn`` clearly reveal the attribute or matter for the
    target. A column that models of the attribute must not see has no share, and stands last.
    """
    of_z, of_y = (reliance.get(name, Reliance()) for name in (attribute.name, TARGET))
    sees_target = explored.valuation.provenance.settings.get("z_sees_target") is not False
    hidden, nothing = explored.excluded_columns(attribute.name), Reliance().of(0)
    names = explored.problem.table.names if reliance else []
    rows: list[dict[str, Any]] = []
    for place, name in enumerate([*names, explored.target_name] if names and sees_target else names):
        is_target = place == len(names)
        left_out = not is_target and (name in hidden or place == attribute.position)
        rows.append(
            {
                "name": name,
                "is_target": is_target,
                "left_out": left_out,
                "reveals": nothing if left_out else of_z.of(place),
                "matters": nothing if is_target else of_y.of(place),
            }
        )
    kinds = ("reveals", "matters")
    rows.sort(key=lambda row: (row["left_out"], *(-(row[kind]["share"] or 0.0) for kind in kinds)))
    shown = rows[:MOST_COLUMNS]
    clear = [[row[kind]["share"] for kind in kinds if row[kind]["clear"]] for row in shown]
    drawn = sorted((j for j in range(len(shown)) if clear[j]), key=lambda j: -max(clear[j]))
    return {
        "columns": shown,
        "rows": max(of_z.n_rows, of_y.n_rows),
        "not_shown": len(rows) - len(shown),
        "drawn": sorted(drawn[:MOST_DRAWN]),
        "sentence": _strongest(rows, of_z, attribute.name),
    }


def _strongest(rows: Sequence[dict[str, Any]], of_z: Reliance, attribute: str) -> str:
    """Name the columns that clearly reveal an attribute."""
    if of_z.figures is None:
        return f"Models do not predict {attribute} from the columns beyond chance: none is said to reveal it."
    *others, last = [
        f"{quoted(row['name'])} ({percent(row['reveals']['share'])} ± {percent(row['reveals']['margin'])})"
        for row in [row for row in rows if row["reveals"]["clear"]][:MOST_NAMED]
    ] or [""]
    if not last:
        return f"No column clearly reveals {attribute}."
    named = f"{', '.join(others)} and {last} reveal" if others else f"{last} reveals"
    return (
        f"{named} {attribute} most (in brackets: the share of the uncertainty about the group that comes "
        "back if the column is shuffled, in rows that models have not seen)."
    )
