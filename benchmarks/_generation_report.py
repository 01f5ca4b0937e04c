"""The quality of synthetic rows: what models learn from them, and how near they are to real rows."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from fado.engine import LightGBMEngine, Task
from fado.execution import ThreadExecutor, n_workers
from fado.generation._making import draw_donors, draw_parents, row_keys
from fado.generation._sampler import Cells
from fado.metrics import tpr_at_fpr
from fado.tabular import Column, Table, Variable, deal_rows, join_problems, read_problem
from fado.valuation import read_validation

FOLDS = 5  # of the model that distinguishes made rows from real ones
MOST_ROWS = 2_000  # of each kind, for the search of nearest rows


def generation_report(X, y, sensitive_features, *, validation, max_fpr=0.05, random_state=0, n_jobs=None):
    """Make a table with as many rows of each label and group as X, and compare it with validation rows.

    Gives a dict: ``trained_on_real`` and ``trained_on_made`` have the ``auc`` and ``tpr`` on validation
    rows of a model trained on `X`, or on the synthetic rows. ``told_apart`` is the AUC of a model that
    distinguishes synthetic rows from validation rows of the same label and group, on rows that it has not
    seen; 0.5 is chance. ``distances`` has the ``median`` and the ``lowest_twentieth`` (5 % quantile) of
    the distances of ``made`` and ``held_out`` rows to the nearest row of `X`, and the ``ratio`` of both,
    from at most 2,000 rows of either. A distance is the mean over columns: for numbers the share of rows
    between the two, for categories 0 or 1, and 1 if one entry is missing. ``copies`` are the shares of
    ``made`` and ``held_out`` rows that equal a row of `X` in every column.
    """
    problem = read_problem(X, y, sensitive_features)
    validated = read_validation(validation)
    made = _made_again(problem, random_state, n_jobs)
    return {
        "trained_on_real": _figures(problem, validated, max_fpr, random_state),
        "trained_on_made": _figures(made, validated, max_fpr, random_state),
        "told_apart": _told_apart(made, validated, random_state, n_workers(n_jobs)),
        **_nearness(problem, made, validated, random_state),
    }


def _made_again(problem, seed, n_jobs):
    """Make as many rows in every cell as there are."""
    labels, groups = problem.labels, problem.groups
    cells = Cells.of(labels, groups, np.ones(len(groups), dtype=bool), None)
    parents = draw_parents(cells.rows, labels, groups, None, None, np.random.default_rng([seed, 4]))
    donors = draw_donors(problem, parents, seed=seed, n_jobs=n_jobs)
    columns = [column.take(donors[:, j]) for j, column in enumerate(problem.table.columns)]
    return replace(problem.take(parents), table=Table.of_columns(columns, named=problem.table.is_named))


def _figures(problem, validated, max_fpr, seed):
    """Train on some rows, and measure on validation data."""
    from sklearn.metrics import roc_auc_score

    scores = train_and_score(problem.table, problem.labels.is_positive, validated.table, seed=seed)
    truth = validated.labels.is_positive
    tpr = tpr_at_fpr(truth, scores, max_fpr=max_fpr)
    return {"auc": float(roc_auc_score(truth, scores)), "tpr": float(tpr)}


def _told_apart(made, validated, seed, workers):
    """Measure how well a model distinguishes made from validation rows, as many of each in every cell."""
    from sklearn.metrics import roc_auc_score

    joined = join_problems(validated, made)
    is_made = np.arange(joined.n_rows) >= validated.n_rows
    cells = joined.groups.codes * len(joined.labels.classes) + joined.labels.codes
    generator = np.random.default_rng([seed, 5])
    chosen = [np.zeros(0, dtype=np.intp)]
    for cell in np.unique(cells).tolist():
        sides = [
            generator.permutation(np.flatnonzero((cells == cell) & (is_made == side))) for side in (0, 1)
        ]
        chosen += [rows[: min(map(len, sides))] for rows in sides]
    rows = np.sort(np.concatenate(chosen))
    if len(rows) < 2 * FOLDS:
        return float("nan")
    known = []
    for name, codes in (("label", joined.labels.codes), ("group", joined.groups.codes)):
        levels = tuple(map(str, range(int(codes.max()) + 1)))
        known.append(Column(name, pa.chunked_array([pa.array(codes, pa.int32())]), levels))
    table = Table.of_columns([column.take(rows) for column in (*joined.table.columns, *known)], named=False)
    origin = Variable("made", "classes", is_made[rows].astype(np.int32), (False, True))
    folds = deal_rows(cells[rows] * 2 + origin.labels, [1 / FOLDS] * FOLDS, generator)
    engine = LightGBMEngine(table, workers=workers)
    both = [fold for fold in range(FOLDS) if len(np.unique(origin.labels[folds == fold])) == 2]

    def area(fold, engine, stop):
        inside, outside = (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        task = Task(checking_estimator(), origin, inside.astype(np.int32), seed, outside.astype(np.int32))
        return float(roc_auc_score(origin.labels[outside], engine.fit(task, stop).scores[:, 1]))

    return float(np.mean(list(ThreadExecutor(workers).run(area, both, engine)))) if both else float("nan")


def _nearness(problem, made, validated, seed):
    """Measure the distances of made and validation rows to the table, and count copies."""
    columns = join_problems(join_problems(problem, made), validated).table.columns
    n_known = problem.n_rows
    parts = {
        "made": np.arange(n_known, n_known + made.n_rows),
        "held_out": np.arange(n_known + made.n_rows, len(columns[0])),
    }
    keys = row_keys(np.column_stack([column.encode()[0] for column in columns]))
    copies = {name: float(np.isin(keys[rows], keys[:n_known]).mean()) for name, rows in parts.items()}
    positions = as_positions(columns, n_known)
    generator = np.random.default_rng([seed, 6])
    distances = {}
    for name, rows in parts.items():
        some = generator.permutation(rows)[:MOST_ROWS]
        nearest = nearest_distances(positions[some], positions[:n_known])
        median, low = np.quantile(nearest, [0.5, 0.05]).tolist()
        distances[name] = {"median": median, "lowest_twentieth": low}
    distances["ratio"] = {
        which: distance / distances["held_out"][which] if distances["held_out"][which] > 0 else float("nan")
        for which, distance in distances["made"].items()
    }
    return {"distances": distances, "copies": copies}


def checking_estimator():
    """Give the unfitted LightGBM classifier that `generation_report` and `train_and_score` use."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=100, num_leaves=15, learning_rate=0.1, min_child_samples=20, verbose=-1
    )


def train_and_score(table, positive, validated, *, weights=None, seed=0):
    """Train the checking estimator on some rows, and score others by their probability of being positive."""
    variable = Variable("y", "classes", positive.astype(np.int32), (False, True))
    rows = np.arange(table.n_rows, dtype=np.int32)
    task = Task(checking_estimator(), variable, rows, seed, validated, weights)
    return LightGBMEngine(table).fit(task).scores[:, 1]


_BLOCK = 2**22  # pairs of rows that are compared together


def as_positions(columns, n_known):
    """Give columns as numbers, such that the distance of two entries is their difference, at most 1."""
    laid = []
    for column in columns:
        codes, _ = column.encode()
        if column.levels is not None:
            laid.append(2.0 * codes)
            continue
        known = np.sort(codes[:n_known][codes[:n_known] >= 0])
        below, up_to = (np.searchsorted(known, codes, side=side) for side in ("left", "right"))
        laid.append(np.where(codes < 0, -2.0, (below + up_to) / (2 * max(len(known), 1))))
    return np.column_stack(laid).astype(np.float32)


def nearest_distances(rows, table):
    """Give every row's distance to the nearest of a table: the mean over columns, each at most 1."""
    nearest = np.empty(len(rows), dtype=np.float32)
    step = max(1, _BLOCK // len(table))
    columns = np.ascontiguousarray(table.T)
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        sums = np.zeros((len(block), len(table)), dtype=np.float32)
        for j, column in enumerate(columns):
            apart = np.abs(block[:, j, None] - column)
            sums += np.minimum(apart, 1.0, out=apart)
        nearest[start : start + step] = sums.min(axis=1) / len(columns)
    return nearest
