"""Remove rows, train again, measure: how well values predict what rows do to a model."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_classifier, check_count, seed_from
from fado._messages import insert_parameters, warn_user
from fado._progress import tracked
from fado._typing import Floats, Integers
from fado.engine import Engine, LightGBMEngine, Task, engine_class
from fado.execution import JoblibExecutor, ThreadExecutor, n_workers
from fado.tabular import Problem, read_problem, read_rows
from fado.valuation._base import read_validation
from fado.valuation._result import Valuation
from fado.valuation._validation_rows import ValidationRows, check_metrics, read_validation_rows

if TYPE_CHECKING:
    import pandas as pd


_KINDS = ("cell", "leaves", "random")
_MOST_FITS = 100_000
_FEWEST = 5  # parts for a correlation


@insert_parameters()
def retraining_check(
    valuation: Valuation,
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    unknown: Any = None,
    validation: Any,
    performance: str = "tpr_at_fpr",
    fairness: str = "fpr_ratio",
    max_fpr: float = 0.05,
    n_fits: int = 60,
    parts: Any = None,
    n_repeats: int = 1,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Measure how well values predict effects: remove parts of the rows, train again, and compare.

    Parameters
    ----------
    valuation : Valuation
        The values of the rows, of any kind.
    estimator : classifier
        The model to train again.
    X, y, sensitive_features
        The rows that were valued, as a valuator takes them.
    {unknown}
    validation : tuple of (X, y, sensitive_features)
        Validation data, which no model learns from.
    performance, fairness, max_fpr
        The metrics, as in :class:`~fado.TreeInfluence`.
    n_fits : int, default=60
        How many parts to remove, one at a time: in turn rows of one label and group, rows of a few leaves of
        a tree, and random rows.
    parts : list of masks or of arrays of positions, optional
        The parts to remove, instead of `n_fits` random parts.
    n_repeats : int, default=1
        How often to train again for each part. One retraining is noisy: a few rows fewer can give other trees
        and shift a ratio by 0.01. With more repeats, each also leaves out another random 5 % of the rows, the
        same for all parts, and changes are averaged.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts in the fits, scaled to a mean of 1. Values are effects per unit of this
        weight.
    {random_state, n_jobs, progress}

    Returns
    -------
    DataFrame
        One row per column of values. ``correlation`` is the rank correlation between the predicted change of
        the metric (minus the sum of the removed rows' values) and the measured change; ``low`` and ``high``
        are its 95 % interval. ``slope`` is the measured change per unit of predicted change: at 1 the size is
        right as well. ``directed`` is the rank correlation with the change of a ratio that keeps its two
        groups in the same order, and so may rise above 1. Use it if the ratio is near 1: there the ratio
        falls again once the two groups swap, which no sum of values can predict. ``n_parts`` counts the parts
        for which the metric is defined. If there are fewer than five, or nothing changed, ``correlation``,
        ``slope``, ``low`` and ``high`` are NaN, with a warning.

    See Also
    --------
    fado.valuation.removal_effects : The predicted and measured change of each part.

    Examples
    --------
    >>> import numpy as np
    >>> from lightgbm import LGBMClassifier
    >>> from fado import TreeInfluence
    >>> from fado.valuation import retraining_check
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6000, 3))
    >>> z = np.where(X[:, 2] + rng.normal(size=6000) > 0, "b", "a")
    >>> y = X[:, 0] + X[:, 2] + rng.normal(size=6000) > 1
    >>> rows = {"sensitive_features": z[:3000]}
    >>> rows["validation"] = X[3000:], y[3000:], z[3000:]
    >>> X, y, z = X[:3000], y[:3000], z[:3000]
    >>> model = LGBMClassifier(n_estimators=30)
    >>> values = TreeInfluence(model).fit(X, y, **rows).valuation_
    >>> cells = [(y == label) & (z == group) & (rng.random(3000) < share)
    ...          for label in (0, 1) for group in "ab" for share in (0.2, 0.4, 0.6)]
    >>> check = retraining_check(values, model, X, y, **rows, parts=cells)
    >>> check.loc["z", ["correlation", "n_parts"]].round().tolist()
    [1.0, 12.0]
    """
    return compare_effects(removal_effects(**locals()))  # it takes the same parameters


def removal_effects(
    valuation: Valuation,
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    unknown: Any = None,
    validation: Any,
    performance: str = "tpr_at_fpr",
    fairness: str = "fpr_ratio",
    max_fpr: float = 0.05,
    n_fits: int = 60,
    parts: Any = None,
    n_repeats: int = 1,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Remove parts of the rows, train again, and return the predicted and the measured change for each part.

    Parameters are those of :func:`retraining_check`.

    Returns
    -------
    DataFrame
        One row per part and column of values: ``part`` (its number), ``kind`` ("cell", "leaves", "random" or
        "given"), ``rows`` (how many were removed), ``column``, ``predicted`` (minus the sum of the removed
        rows' values), ``metric`` (after removal), ``actual`` (the change of the metric) and ``directed`` (the
        same, but a ratio keeps its two groups in the order that they have for the model of all rows, and so
        may rise above 1).

    See Also
    --------
    fado.valuation.retraining_check : Compare values with the measured changes.
    """
    import pandas as pd

    check_metrics(performance, fairness, max_fpr)
    check_count("n_fits", n_fits, 1, _MOST_FITS)
    check_count("n_repeats", n_repeats, 1, _MOST_FITS)
    problem = read_problem(
        X, y, sensitive_features, unknown=unknown, sample_weight=sample_weight, least_rows=2
    )
    problem = problem.with_mean_weight_one()
    if validation is None:
        raise ValueError("`validation` is needed: data (X, y, sensitive_features) that no model learns from.")
    validated = read_validation_rows(problem, read_validation(validation, unknown), "retraining_check")
    columns = _matching_columns(valuation, problem, validated)
    seed = seed_from(random_state)
    removed = draw_parts(problem, n_fits, seed) if parts is None else read_parts(parts, problem.n_rows)
    also = [np.zeros(0, dtype=np.int32)]
    if n_repeats > 1:  # each repeat does without another twentieth of the rows, whatever part is removed
        draws, size = (np.random.default_rng([seed, 1, n]) for n in range(n_repeats)), problem.n_rows // 20
        also = [draw.choice(problem.n_rows, size, replace=False).astype(np.int32) for draw in draws]
    parts = [np.zeros(0, dtype=np.int32), *(rows for _, rows in removed)]
    wanted = [np.union1d(left_out, rows) for left_out in also for rows in parts]
    check_classifier("estimator", estimator)
    every, weights = np.arange(problem.n_rows, dtype=np.int32), problem.sample_weight
    whole = Task(estimator, problem.target, every, seed, validated.table, weights)
    engine: Engine = engine_class(estimator, problem.table)(problem.table)
    engine.prepare([_without(whole, wanted[0])])
    executor = ThreadExecutor(n_workers(n_jobs)) if engine.in_threads else JoblibExecutor(n_workers(n_jobs))
    all_scores = executor.run(_score, wanted, (engine, whole))
    measured: list[dict[str, float]] = []
    all_directed: list[dict[str, float]] = []
    for scores in tracked(all_scores, len(wanted), what="retrained models", show=progress):
        measured.append(validated.measure(scores, performance, fairness, float(max_fpr)))
        decisions = validated.decide(scores, float(max_fpr))
        if len(measured) == 1:
            extremes = [validated.extremes(groups, fairness, decisions) for groups in validated.attributes]
        directed = {"y": measured[-1]["y"]}
        for groups, of_all in zip(validated.attributes, extremes, strict=True):
            directed[groups.name] = validated.directed_ratio(groups, fairness, decisions, of_all)
        all_directed.append(directed)
    frames = []
    for metric, column in columns.items():
        by_part, changes = _changes([figures[metric] for figures in measured], n_repeats)
        _, directed_changes = _changes([figures[metric] for figures in all_directed], n_repeats)
        effects = valuation[column] if weights is None else valuation[column] * weights
        of_parts: dict[str, Any] = {
            "part": np.arange(len(removed)),
            "kind": [kind for kind, _ in removed],
            "rows": [len(rows) for _, rows in removed],
            "column": column,
            "predicted": [-float(np.nansum(effects[rows])) for _, rows in removed],
            "metric": by_part[1:],
            "actual": changes,
            "directed": directed_changes,
        }
        frames.append(pd.DataFrame(of_parts))
    return pd.concat(frames, ignore_index=True)


def _without(whole: Task, removed: Integers) -> Task:
    rows = np.delete(whole.rows, removed)
    return replace(whole, rows=rows, weights=None if whole.weights is None else whole.weights[rows])


def _score(removed: Integers, shared: tuple[Engine, Task], stop: threading.Event | None) -> Floats:
    engine, whole = shared
    return engine.fit(_without(whole, removed), stop).scores[:, 1]


def _changes(figures: list[float], n_repeats: int) -> tuple[Floats, Floats]:
    """Return a metric's mean over the repeats, for all rows first, and how much each part changes it."""
    by_repeat = np.array(figures).reshape(n_repeats, -1)
    return by_repeat.mean(axis=0), (by_repeat[:, 1:] - by_repeat[:, :1]).mean(axis=0)


def compare_effects(effects: pd.DataFrame) -> pd.DataFrame:
    """Compare predicted with measured changes, for each column of values.

    Parameters
    ----------
    effects : DataFrame
        What `removal_effects` returned.

    Returns
    -------
    DataFrame
        As `retraining_check` returns it.

    See Also
    --------
    fado.valuation.removal_effects : Measure the changes.
    fado.valuation.retraining_check : Do both at once.
    """
    import pandas as pd

    compared = {}
    for column, changes in effects.groupby("column", sort=False):
        known = changes.dropna(subset=["actual", "predicted", "directed"])
        predicted, actual, directed = (known[name].to_numpy() for name in ("predicted", "actual", "directed"))
        figures = _agreement(predicted, actual)
        same = np.array_equal(directed, actual)
        figures["directed"] = figures["correlation"] if same else _rank_correlation(predicted, directed)
        compared[column] = figures | {"n_parts": len(known)}
    names = ["correlation", "slope", "low", "high", "directed", "n_parts"]
    return pd.DataFrame.from_dict(compared, orient="index", columns=names)


def _agreement(predicted: Floats, actual: Floats) -> dict[str, float]:
    n_parts = len(predicted)
    if n_parts < _FEWEST or np.ptp(predicted) == 0 or np.ptp(actual) == 0:
        warn_user(
            f"{n_parts} removals that changed a defined metric are too few or too alike to compare: use more "
            "parts, or more validation data."
        )
        return dict.fromkeys(("correlation", "slope", "low", "high"), float("nan"))
    correlation = _rank_correlation(predicted, actual)
    centred = predicted - predicted.mean()
    # Fisher's transform, with the spread that ranks have (Bonett and Wright)
    middle = np.arctanh(np.clip(correlation, -1 + 1e-12, 1 - 1e-12))
    spread = 1.96 * np.sqrt((1 + correlation**2 / 2) / (n_parts - 3))
    return {
        "correlation": correlation,
        "slope": float(centred @ actual / (centred @ centred)),
        "low": float(np.tanh(middle - spread)),
        "high": float(np.tanh(middle + spread)),
    }


def _rank_correlation(first: Floats, second: Floats) -> float:
    """Return Spearman's rank correlation; NaN if either is constant."""
    from scipy.stats import spearmanr

    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(spearmanr(first, second)[0])


def agreement(values: Floats, others: Floats) -> tuple[float, float]:
    """Return the rank correlation of two values of the same rows, and the overlap of their highest tenths.

    Rows that tie for the last places of a tenth belong to it in part.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.arange(20.0)
    >>> correlation, overlap = agreement(values, np.where(values == 19, -1.0, values))
    >>> round(correlation, 3), overlap
    (0.714, 0.5)
    """
    tenths = [_in_highest_tenth(values), _in_highest_tenth(others)]
    return _rank_correlation(values, others), float(np.minimum(*tenths).sum() / tenths[0].sum())


def _in_highest_tenth(values: Floats) -> Floats:
    """Return how far each row belongs to the tenth with the highest values, at least one row."""
    n_highest = max(1, round(len(values) / 10))
    last = np.partition(values, -n_highest)[-n_highest]
    above, tied = values > last, values == last
    return above + tied * ((n_highest - above.sum()) / tied.sum())


def _matching_columns(valuation: Valuation, problem: Problem, validated: ValidationRows) -> dict[str, str]:
    """Find the column of values for the target and for every attribute."""
    if len(valuation) != problem.n_rows:
        raise ValueError(
            f"`valuation` is of {len(valuation)} rows and X has {problem.n_rows}: pass the rows that were "
            "valued."
        )
    names = [groups.name for groups in validated.attributes]
    if not problem.names_given and len(names) == len(valuation.protected) == 1:
        return {"y": "y", names[0]: valuation.protected[0]}
    missing = [name for name in names if name not in valuation.protected]
    if missing:
        raise ValueError(
            f"`valuation` has no values for the protected attribute {missing[0]!r}; it has "
            f"{valuation.protected}."
        )
    return {"y": "y", **{name: name for name in names}}


def draw_parts(
    problem: Problem, n_parts: int, seed: int, kinds: Sequence[str] = _KINDS
) -> list[tuple[str, Integers]]:
    """Draw parts of the kinds in turn: sorted positions of rows, set by the seed and the part's number.

    A cell is a tenth to six tenths of the rows of one label and group. Leaves are half of the rows of a few
    leaves of a small tree of the target. The random part is 2 to 20 % of all rows.
    """
    cells = problem.groups.codes * len(problem.labels.classes) + problem.labels.codes
    leaves: Any = _leaves_of_a_tree(problem) if "leaves" in kinds else np.zeros(problem.n_rows, np.int32)
    parts = []
    for number in range(n_parts):
        generator = np.random.default_rng([seed, number])
        kind = kinds[number % len(kinds)]
        if kind == "cell":
            pool = np.flatnonzero(cells == generator.choice(np.unique(cells)))
            size = generator.uniform(0.1, 0.6) * len(pool)
        elif kind == "leaves":
            order = generator.permutation(int(leaves.max()) + 1)
            reached = np.cumsum(np.bincount(leaves)[order])
            n_chosen = 1 + int(np.searchsorted(reached, 0.1 * len(leaves)))  # a tenth of all rows, or more
            pool = np.flatnonzero(np.isin(leaves, order[:n_chosen]))
            size = 0.5 * len(pool)
        else:
            pool = np.arange(problem.n_rows)
            size = generator.uniform(0.02, 0.2) * len(pool)
        chosen = generator.choice(pool, max(1, round(size)), replace=False)
        parts.append((kind, np.sort(chosen).astype(np.int32)))
    return parts


def read_parts(parts: Any, n_rows: int) -> list[tuple[str, Integers]]:
    """Read the parts that a user passes: masks over the rows, or positions."""
    is_one = hasattr(parts, "dtype") and np.ndim(parts) == 1 and np.asarray(parts).dtype.kind in "biu"
    if is_one or isinstance(parts, str) or not isinstance(parts, Iterable):
        what = "one of them alone: write `[part]`" if is_one else f"{parts!r}"
        raise TypeError(f"`parts` must be a list of masks or of positions of rows, got {what}.")
    removed = []
    for number, part in enumerate(parts):
        rows = np.unique(read_rows(part, n_rows, f"`parts[{number}]`"))
        if not 0 < len(rows) < n_rows:
            raise ValueError(
                f"`parts[{number}]` removes {len(rows)} of {n_rows} rows: name some, and not all."
            )
        removed.append(("given", rows.astype(np.int32)))
    return removed


def _leaves_of_a_tree(problem: Problem) -> npt.NDArray[np.integer[Any]]:
    """Return each row's leaf in one tree that predicts the target."""
    from lightgbm import LGBMClassifier

    engine = LightGBMEngine(problem.table)
    rows = np.arange(problem.n_rows, dtype=np.int32)
    model: Any = engine.fit(Task(LGBMClassifier(n_estimators=1, num_leaves=31), problem.target, rows, 0))
    return engine.read_leaves(model.forest).read()[0]
