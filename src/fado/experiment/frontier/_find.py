"""Search for the best models of a table at every level of ratios between groups, in so many fits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np

from fado._checks import check_count, check_share, seed_from
from fado.aim import check_line, lines_of, read_rows_apart
from fado.experiment._data import data_from
from fado.experiment._results import Results
from fado.experiment._runner import run_experiment
from fado.experiment._store import Store
from fado.experiment.config import Config, Given, config_from, draw_models
from fado.experiment.frontier._frontier import Frontier
from fado.experiment.frontier._proposer import (
    GROUP_FITS,
    TREES,
    FrontierProposer,
    n_models,
    student_fits,
)
from fado.metrics import Budget
from fado.tabular import MIN_GROUP_SIZE, Problem, deal_rows, join_problems, read_problem

__all__ = ["find_frontier"]

SPACE: dict[str, Any] = {
    "n_estimators": {"log_uniform": [40, 250]},
    "num_leaves": {"log_uniform": [6, 64]},
    "min_child_samples": {"log_uniform": [5, 200]},
    "learning_rate": {"log_uniform": [0.03, 0.25]},
}
LINES = (0.8, 0.9, 0.95, 0.7)
SHARE = 0.25  # of its trees, or of the rows, at first
VALIDATION = 0.2  # of the rows, if none are given
DRAWS = 200  # for intervals
MOST_FITS = 10_000
_LIMITS = {
    "fpr": "max_fpr",
    "selection_rate": "max_selection_rate",
    "top_k": "top_k",
    "threshold": "fixed_threshold",
}


def find_frontier(
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    ratio: str | Mapping[str, float] = "fpr_ratio",
    max_fpr: float = 0.05,
    max_fits: int = 60,
    validation: Any = None,
    test: Any = 0.2,
    estimator: Any = None,
    space: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    lines: Sequence[float] = LINES,
    students: bool = False,
    budget: Any = None,
    min_group_size: int = MIN_GROUP_SIZE,
    sample_weight: Any = None,
    groups: Any = None,
    pos_label: Any = None,
    client: Any = None,
    progress: bool = False,
) -> Frontier:
    """Search for the best models at every level of ratios between groups, in so many fits.

    First, models of random parameters are trained in part: on a quarter of their trees or, if they have no
    trees, of the rows. The best third of them is trained in full. A model of the groups then gives the whole
    trade-off of each of these without another fit: the scores of the model, moved by what a row's features
    tell of its group. Validation rows decide at every step. Test rows decide nothing; they only show what
    the models achieve.

    Parameters
    ----------
    X : array, pandas, polars or pyarrow table of shape (n_rows, n_columns)
        The features. Without `validation`, a fifth of the rows is kept apart as validation rows.
    y : array-like of shape (n_rows,)
        The target, of two classes.
    sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
        The protected attributes; the groups are the combinations of several.
    ratio : str or mapping of str to float, default="fpr_ratio"
        ``"fpr_ratio"``, ``"fnr_ratio"``, ``"tpr_ratio"`` or ``"selection_rate_ratio"``: the lowest of the
        groups' rates over the highest; ``"equalized_odds_ratio"`` is both ``"fpr_ratio"`` and
        ``"tpr_ratio"``. Or several with the line of each, as
        ``{"fpr_ratio": 0.8, "tpr_ratio": 0.8}``: all lines must hold.
    max_fpr : float, default=0.05
        The share of negatives that may be predicted positive. It sets the threshold of every model.
    max_fits : int, default=60
        How many whole fits the search may cost, at least 2. A model with a quarter of its trees costs a
        quarter, the model of the groups one.
    validation : tuple of (X, y, sensitive_features), optional
        The validation rows; a fourth entry says how much each counts.
    test : float or tuple of (X, y, sensitive_features), default=0.2
        The share of the rows that is kept apart as test rows, in (0, 0.7]; or the test rows, as `validation`.
    estimator : classifier, optional
        What is trained; None is LightGBM's classifier.
    space : dict, optional
        The values to draw the estimator's parameters from. For the name of each parameter it has a value, a
        list of choices, or ``{"log_uniform": [low, high]}``. None is a space of our own for LightGBM's
        classifier; an `estimator` that you pass without a space is trained with its own parameters.
    store : path-like, optional
        A directory that keeps the search. A search that was stopped goes on if it is called again with the
        same directory. None keeps nothing.
    n_jobs : int, optional
        How many fits run side by side; None uses every core. It changes no result.
    random_state : int, RandomState or None, default=0
        The seed of all random numbers.
    lines : sequence of float, default=(0.8, 0.9, 0.95, 0.7)
        The lines that students are trained for, each in (0, 1], if `ratio` is a name.
    students : bool, default=False
        Whether the best model at the first line also teaches a student for each of them, a regressor of the
        features alone. The first takes eleven fits, every other one.
    budget : Budget or pair of kind and limit, optional
        What sets the threshold instead of `max_fpr`: ``("selection_rate", 0.02)``, ``("top_k", 500)`` rows
        of each part, or ``("threshold", 0.5)``.
    min_group_size : int, default=30
        Groups of fewer rows that are also less than 1 % of a part are left out of ratios. 0 compares all.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts, in training (scaled to a mean of 1) and in rates.
    groups : array-like of shape (n_rows,), optional
        Rows of the same entry, such as those of one person, are in the same part: training, validation or
        test.
    pos_label : label, optional
        The positive label; None is the larger of the two.
    client : dask.distributed.Client, cluster or str, optional
        A cluster to run the fits on: a client of it, the cluster object, or
        its scheduler's address. The store stays on this machine.
    progress : bool, default=False
        Whether to show progress lines.

    Returns
    -------
    Frontier
        ``best(at_least=0.8)`` gives the best model above a line, fitted, or None if no model reaches it.

    Examples
    --------
    >>> from fado import find_frontier
    >>> from fado.datasets import make_account_fraud
    >>> X = make_account_fraud(4000, random_state=0)
    >>> y, old = X.pop("fraud_bool"), X.pop("customer_age") >= 50
    >>> frontier = find_frontier(X, y, sensitive_features=old, max_fits=4, space={"n_estimators": 20})
    >>> best = frontier.best(at_least=0.5)
    >>> best.predict_proba(X[:3]).shape
    (3, 2)
    """
    asked = lines_of(ratio, 0.8)
    check_count("max_fits", max_fits, 2, MOST_FITS)
    sought = _lines(lines)
    limit = Budget.read(budget, max_fpr)
    problem = read_problem(
        X,
        y,
        sensitive_features,
        sample_weight=sample_weight,
        groups=groups,
        pos_label=pos_label,
        least_rows=10,
    )
    if not problem.protected:
        raise ValueError("`sensitive_features` is missing: name the protected attributes.")
    seed = seed_from(random_state)
    joined, parts = _parts(problem, validation, test, seed)
    given = Given(estimator, space if space is not None else (None if estimator is not None else SPACE))
    own_lines = isinstance(ratio, Mapping) or "=" in ratio
    taught = [asked] if own_lines else [dict.fromkeys(asked, own) for own in sought]
    taught = taught if students else []
    reserved = GROUP_FITS + student_fits(len(taught))
    if reserved >= max_fits:
        raise ValueError(f"`max_fits` must be at least {reserved + 1} with students, got {max_fits}.")
    count = 1 if estimator is not None and not space else n_models(max_fits - reserved, SHARE)
    config = config_from(
        _configuration(problem, y, limit, seed, count, min_group_size, asked, taught), given=given
    )
    data = data_from(joined, parts, config)
    proposer = _proposer(config, asked, taught, max_fits, estimator)
    place = Path(mkdtemp(prefix="fado-frontier-")) if store is None else Path(store)
    try:
        run_experiment(
            config,
            place,
            n_jobs=n_jobs,
            client=client,
            progress=progress,
            proposer=proposer,
            isolated=False,
            data=data,
            given=given,
        )
        results, costs = _results(place, config, proposer)
        _check_trained(results)
    except BaseException:
        if store is None:
            rmtree(place, ignore_errors=True)
        raise
    fits = int(np.ceil(sum(costs) + GROUP_FITS - 1e-9))
    frontier = Frontier(results, data, asked, fits, place, given)
    if store is None:
        finalize(results, rmtree, place, ignore_errors=True)  # which read scores from it
    return frontier


def _check_trained(results: Results) -> None:
    """Refuse a search in which every model failed, with the reason of the first."""
    failed = results.frame["status"] == "failed"
    if len(failed) and failed.all():
        kind, _, reason = str(results.frame["error"].iloc[0]).partition(": ")
        raise ValueError(f"No model could be trained: {reason or kind}")


def _lines(lines: Any) -> tuple[float, ...]:
    """Read the lines that students are trained for."""
    if isinstance(lines, str) or not isinstance(lines, Iterable):
        raise TypeError(f"`lines` must be a list of numbers in (0, 1], got {lines!r}.")
    found = tuple(check_line(line, "lines") for line in lines)
    if not found:
        raise ValueError("`lines` is empty: list at least one line.")
    return tuple(dict.fromkeys(found))


def _parts(problem: Problem, validation: Any, test: Any, seed: int) -> tuple[Problem, dict[str, Any]]:
    """Deal the rows out to parts, but for those that are given."""
    given = {"validation": validation, "test": test if isinstance(test, tuple | list) else None}
    if given["test"] is None and not 0 < check_share("test", test) <= 0.7:
        raise ValueError(f"`test` must be a share in (0, 0.7] or rows, got {test!r}.")
    shares = [
        VALIDATION if validation is None else 0.0,
        float(test) if given["test"] is None else 0.0,
    ]
    cells = 2 * problem.groups.codes + problem.labels.is_positive
    generator = np.random.default_rng([seed, 1])
    dealt = deal_rows(cells, [1 - sum(shares), *shares], generator, problem.blocks)
    parts = {name: np.flatnonzero(dealt == number) for number, name in enumerate(("train", *given))}
    for name, rows in given.items():
        if rows is not None:
            own = read_rows_apart(rows, name)
            parts[name] = problem.n_rows + np.arange(own.n_rows)
            problem = join_problems(problem, own, f"`{name}`")
    return problem, parts


def _configuration(
    problem: Problem,
    y: Any,
    budget: Budget,
    seed: int,
    count: int,
    min_group_size: int,
    lines: Mapping[str, float],
    taught: Sequence[Mapping[str, float]],
) -> dict[str, Any]:
    """Say the search as an experiment's configuration."""
    name = getattr(y, "name", None)
    students = {
        "ratios": list(lines),
        "lines": list(dict.fromkeys(own for one in taught for own in one.values())),
    }
    return {
        "seed": seed,
        "data": {
            "given": True,
            "target": name if isinstance(name, str) and name else "y",
            "protected": [variable.name for variable in problem.protected],
            "min_group_size": min_group_size,
        },
        "split": {"method": "given"},
        "interventions": {
            "rps": False,
            "rw": False,
            "aimed": {"ratios": list(lines), "lines": list(dict.fromkeys(lines.values()))},
            "student": students if taught else False,
        },
        "models": {"count": count, "seed": seed},
        "evaluation": {_LIMITS[budget.kind]: budget.limit, "bootstrap": DRAWS, "keep_scores": True},
    }


def _has_trees(estimator: Any) -> bool:
    """Tell whether an estimator can grow a part of its trees."""
    return estimator is None or isinstance(estimator.get_params().get(TREES), int)


def _proposer(
    config: Config,
    lines: Mapping[str, float],
    taught: Sequence[Mapping[str, float]],
    max_fits: int,
    estimator: Any,
) -> FrontierProposer:
    models = draw_models(config.models.space, config.models.count, config.models.seed)
    if estimator is None:
        models = [model | {"random_state": config.models.seed} for model in models]
    models = list({repr(model): model for model in models}.values())  # a list of choices has but a few
    trees: tuple[int, ...] | None = None
    if _has_trees(estimator) and len(models) > 1:
        own = 100 if estimator is None else estimator.get_params()[TREES]
        trees = tuple(int(model.get(TREES, own)) for model in models)
    return FrontierProposer(tuple(models), trees, SHARE, dict(lines), max_fits, tuple(taught))


def _results(place: Path, config: Config, proposer: FrontierProposer) -> tuple[Results, list[float]]:
    """Read what was found, and what each row cost."""
    results = Results.of_store(place, config)
    with Store.reading(place) as store:
        costs = proposer.costs(store.trials)
    results.frame.insert(list(results.frame.columns).index("training_rows") + 1, "cost", costs)
    return results, costs
