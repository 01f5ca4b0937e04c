"""Search for the best models of a table at every level of a ratio, in a budget of fits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np

from fado._validation import check_choice, check_count
from fado.aim import check_line
from fado.experiment.config import Config, Given, config_from, draw_models
from fado.experiment.frontier._frontier import Frontier
from fado.experiment.frontier._proposer import TREES, FrontierProposer, n_models
from fado.experiment.results import Results
from fado.experiment.run import Data, data_from, dial_of, run_experiment
from fado.experiment.search import Trial
from fado.experiment.store import Store, read_trials
from fado.metrics import RATIO_NAMES, Budget
from fado.tabular import MIN_GROUP_SIZE, Problem, deal_rows, join_problems, read_problem
from fado.valuation import read_judge, seed_from

__all__ = ["find_frontier"]

SPACE: dict[str, Any] = {
    "n_estimators": {"log_uniform": [40, 250]},
    "num_leaves": {"log_uniform": [6, 64]},
    "min_child_samples": {"log_uniform": [5, 200]},
    "learning_rate": {"log_uniform": [0.03, 0.25]},
}
TARGETS = (0.8, 0.9, 0.95, 0.7)
SHARE = 0.25  # of its trees, or of the rows, at first
DRAWS = 200  # for intervals
MOST_FITS, MOST_TURNS = 10_000, 1_000  # of all models, of one
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
    ratio: str = "fpr_ratio",
    max_fpr: float = 0.05,
    budget: int = 60,
    judge: Any = None,
    estimator: Any = None,
    space: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    targets: Sequence[float] = TARGETS,
    decide: Any = None,
    min_group_size: int = MIN_GROUP_SIZE,
    sample_weight: Any = None,
    groups: Any = None,
    pos_label: Any = None,
    client: Any = None,
    progress: bool = False,
) -> Frontier:
    """Search for the best models at every level of a ratio between groups, within a budget of fits.

    First, models of random parameters are trained in part: on a quarter of their trees or, if they have no
    trees, of the rows. The best third of them is trained in full. The weights of the best few are then aimed
    at one line after the other, as `AimedEstimator` does, until the budget is spent. Validation rows decide
    at every step. Test rows decide nothing; they only show what the models achieve.

    Parameters
    ----------
    X : array, pandas, polars or pyarrow table of shape (n_rows, n_columns)
        The features. A fifth of the rows is kept apart as test rows and, without `judge`, another fifth as
        validation rows.
    y : array-like of shape (n_rows,)
        The target, of two classes.
    sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
        The protected attributes; the groups are the combinations of several.
    ratio : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}, default="fpr_ratio"
        The ratio: the lowest of the groups' rates over the highest.
    max_fpr : float, default=0.05
        The share of negatives that may be predicted positive. It sets the threshold of every model.
    budget : int, default=60
        How many whole fits the search may cost. A model with a quarter of its trees costs a quarter.
    judge : tuple of (X, y, sensitive_features), optional
        The validation rows.
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
    targets : sequence of float, default=(0.8, 0.9, 0.95, 0.7)
        The lines that models are aimed at, in this order, each in (0, 1].
    decide : Budget or pair of kind and limit, optional
        What sets the threshold instead of `max_fpr`: ``("selection_rate", 0.02)``, ``("top_k", 500)`` rows
        of each part, or ``("threshold", 0.5)``.
    min_group_size : int, default=30
        Groups of fewer rows that are also less than 1 % of a part are left out of ratios, and their rows keep
        their weight. 0 compares all.
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
    >>> frontier = find_frontier(X, y, sensitive_features=old, budget=4, space={"n_estimators": 20})
    >>> best = frontier.best(at_least=0.5)
    >>> best.predict_proba(X[:3]).shape
    (3, 2)
    """
    check_choice("ratio", ratio, RATIO_NAMES)
    check_count("budget", budget, 1, MOST_FITS)
    lines = _lines(targets)
    decides = _decides(decide, max_fpr)
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
    joined, parts = _parts(problem, None if judge is None else read_judge(judge), seed)
    given = Given(estimator, space if space is not None else (None if estimator is not None else SPACE))
    count = 1 if estimator is not None and not space else n_models(budget, SHARE)
    asked = _configuration(problem, y, decides, seed, count, min_group_size)
    turns = min(budget, MOST_TURNS)
    asked["interventions"]["aimed"] = {"ratios": [ratio], "targets": list(lines), "max_fits": turns}
    config = config_from(asked, given=given)
    data = data_from(joined, parts, config)
    proposer = _proposer(config, data, ratio, lines, budget, estimator)
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
    frontier = Frontier(results, data, ratio, int(np.ceil(sum(costs) - 1e-9)), place, given)
    if store is None:
        finalize(results, rmtree, place, ignore_errors=True)  # which read scores from it
    return frontier


def _check_trained(results: Results) -> None:
    """Refuse a search in which every model failed, with the reason of the first."""
    failed = results.frame["status"] == "failed"
    if len(failed) and failed.all():
        kind, _, reason = str(results.frame["error"].iloc[0]).partition(": ")
        raise ValueError(f"No model could be trained: {reason or kind}")


def _lines(targets: Any) -> tuple[float, ...]:
    """Read the lines that models are aimed at."""
    if isinstance(targets, str) or not isinstance(targets, Iterable):
        raise TypeError(f"`targets` must be a list of numbers in (0, 1], got {targets!r}.")
    lines = tuple(check_line(target, "targets") for target in targets)
    if not lines:
        raise ValueError("`targets` is empty: list at least one line.")
    return tuple(dict.fromkeys(lines))


def _decides(decide: Any, max_fpr: float) -> Budget:
    """Read what decides; `budget` is the name of something else here."""
    try:
        return Budget.read(decide, max_fpr)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("`budget`", "`decide`")) from None


def _parts(problem: Problem, judge: Problem | None, seed: int) -> tuple[Problem, dict[str, Any]]:
    """Deal the rows out to parts; those to judge by are the validation part."""
    cells = 2 * problem.groups.codes + problem.labels.is_positive
    shares = [0.6, 0.2, 0.2] if judge is None else [0.8, 0.0, 0.2]
    dealt = deal_rows(cells, shares, np.random.default_rng([seed, 1]), problem.blocks)
    train, validation, test = (np.flatnonzero(dealt == part) for part in range(3))
    if judge is not None:
        validation = problem.n_rows + np.arange(judge.n_rows)
        problem = join_problems(problem, judge)
    return problem, {"train": train, "validation": validation, "test": test}


def _configuration(
    problem: Problem, y: Any, decide: Budget, seed: int, count: int, min_group_size: int
) -> dict[str, Any]:
    """Say the search as an experiment's configuration."""
    name = getattr(y, "name", None)
    return {
        "seed": seed,
        "data": {
            "given": True,
            "target": name if isinstance(name, str) and name else "y",
            "protected": [variable.name for variable in problem.protected],
            "min_group_size": min_group_size,
        },
        "split": {"method": "given"},
        "interventions": {"rps": False, "rw": False},
        "models": {"count": count, "seed": seed},
        "evaluation": {_LIMITS[decide.kind]: decide.limit, "bootstrap": DRAWS, "keep_scores": True},
    }


def _has_trees(estimator: Any) -> bool:
    """Tell whether an estimator can grow a part of its trees."""
    return estimator is None or isinstance(estimator.get_params().get(TREES), int)


def _proposer(
    config: Config,
    data: Data,
    ratio: str,
    targets: tuple[float, ...],
    budget: int,
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
    dial = dial_of("aimed", ratio, targets, budget, config, data)
    return FrontierProposer(tuple(models), trees, SHARE, dial, budget)


def _results(place: Path, config: Config, proposer: FrontierProposer) -> tuple[Results, list[float]]:
    """Read what was found, and what each fit cost."""
    results = Results.of_store(place, config)
    with Store.reading(place) as store:
        trials: list[Trial] = [stored.trial for stored in read_trials(store)]
    costs = [proposer.cost(trial) for trial in trials]
    results.frame.insert(list(results.frame.columns).index("training_rows") + 1, "cost", costs)
    return results, costs
