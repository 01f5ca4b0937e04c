"""Search for the best models at every level of ratios between groups, within a number of fits."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fado._checks import MOST_ROWS, check_count, check_share, seed_from
from fado._messages import insert_parameters
from fado.aim import check_line, demands_of, read_lines, read_rows_apart
from fado.experiment._config import (
    GIVEN,
    Config,
    DataConfig,
    EvaluationConfig,
    Grid,
    ModelsConfig,
    SplitConfig,
    read_models,
)
from fado.experiment._data import data_from
from fado.experiment._frontier import Frontier
from fado.experiment._models import LIGHTGBM, copied, describe_object, draw_models
from fado.experiment._runner import run_experiment
from fado.experiment._trial import UNTOUCHED, Trial
from fado.interventions import intervention_entries
from fado.metrics import Budget, best_first
from fado.tabular import MIN_GROUP_SIZE, Problem, deal_rows, join_problems, read_problem

SPACE = {
    "n_estimators": {"log_uniform": [40, 250]},
    "num_leaves": {"log_uniform": [6, 64]},
    "min_child_samples": {"log_uniform": [5, 200]},
    "learning_rate": {"log_uniform": [0.03, 0.25]},
}
LINES = (0.8, 0.9, 0.95, 0.7)
SHARE = 0.25  # of the trees, or of the rows, in first fits
VALIDATION = 0.2  # of the rows, if none are given
DRAWS = 200  # for intervals
MOST_FITS = 10_000
TREES = "n_estimators"
CURVE, STUDENT = "aimed", "student"
KEPT = 3  # one in this many models is trained in full
GROUP_FITS = 1  # models of the groups
FOLDS = 5  # of the models that score training rows for students


@insert_parameters()
def find_frontier(
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
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
    """Search for the best models at every level of ratios between groups, within a number of fits.

    First, models with random parameters are trained in part: with a quarter of their trees or, if they have
    no trees, on a quarter of the rows. The best third of them is trained in full. A model of the groups then
    gives the whole trade-off of each of these without another fit: it adjusts the scores of the model by how
    likely each group is, given the features. Every step is decided on validation data. Test data decide
    nothing; they only show what the models achieve.

    Parameters
    ----------
    X : array, pandas, polars or pyarrow table of shape (n_rows, n_columns)
        The features. Without `validation`, a fifth of the rows becomes validation data.
    y : array-like of shape (n_rows,)
        The target, of two classes.
    sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X
        The protected attributes; several attributes are combined into groups. Rows with a missing value are
        not compared.
    {unknown}
    ratio : str or mapping of str to float, default="fpr_ratio"
        ``"fpr_ratio"``, ``"fnr_ratio"``, ``"tpr_ratio"`` or ``"selection_rate_ratio"``: the lowest of the
        groups' rates over the highest; ``"equalized_odds_ratio"`` is both ``"fpr_ratio"`` and
        ``"tpr_ratio"``. A mapping such as ``{"fpr_ratio": 0.8, "tpr_ratio": 0.8}`` has several ratios and the
        line of each; all lines must hold.
    max_fpr : float, default=0.05
        The limit of the false-positive rate. It sets the threshold of every model.
    max_fits : int, default=60
        The limit of whole fits, at least 2. A model with a quarter of its trees costs a quarter, the model
        of the groups one.
    validation : tuple of (X, y, sensitive_features), optional
        The validation data; a fourth entry has their weights.
    test : float or tuple of (X, y, sensitive_features), default=0.2
        The share of the rows that becomes test data, in (0, 0.7]; or the test data, as for `validation`.
    estimator : classifier, optional
        The model to train; None is LightGBM's classifier.
    space : dict, optional
        The values from which the estimator's parameters are drawn. For the name of each parameter it has a
        value, a list of choices, or ``{"log_uniform": [low, high]}``. None uses a default space for
        LightGBM's classifier. An `estimator` without a space is trained with its own parameters.
    store : path-like, optional
        The directory of the search. A search that was stopped continues if it is called again with the same
        directory. None saves nothing.
    n_jobs : int, optional
        How many fits run in parallel; None uses every core. Results do not depend on it.
    random_state : int, RandomState or None, default=0
        The seed of all random numbers.
    lines : sequence of float, default=(0.8, 0.9, 0.95, 0.7)
        The lines for which students are trained, each in (0, 1], if `ratio` is a name.
    students : bool, default=False
        Whether to train a student for each line: a regressor of the features alone, trained on the adjusted
        scores of the best model at the first line. The first student costs eleven fits, every other one.
    budget : Budget or pair of kind and limit, optional
        The budget of decisions, instead of `max_fpr`: ``("selection_rate", 0.02)``, ``("top_k", 500)`` rows
        of each part, or ``("threshold", 0.5)``.
    min_group_size : int, default=30
        Groups of fewer rows that are also less than 1 % of a part are left out of ratios. 0 compares all.
    sample_weight : array-like of shape (n_rows,), optional
        The weights of the rows, in training (scaled to a mean of 1) and in rates.
    groups : array-like of shape (n_rows,), optional
        Rows with the same entry, such as those of one person, stay in the same part: training, validation
        or test.
    pos_label : label, optional
        The positive label; None is the larger of the two.
    client : dask.distributed.Client, cluster or str, optional
        A Dask cluster that runs the fits: a client, the cluster object, or the address of its scheduler. The
        store stays on this machine.
    progress : bool, default=False
        Whether to show progress lines.

    Returns
    -------
    Frontier
        Its ``best(at_least=0.8)`` returns the best fitted model above a line, or None if no model reaches it.

    See Also
    --------
    fado.AimedEstimator : Takes your model to one line, in fewer fits.
    fado.experiment.Experiment : Compares interventions on training data.

    References
    ----------
    Li et al. (2018). Hyperband: a novel bandit-based approach to hyperparameter optimization. JMLR 18(185).

    Examples
    --------
    >>> from fado import find_frontier
    >>> from fado.datasets import make_account_fraud
    >>> X = make_account_fraud(4000, random_state=0)
    >>> y, old = X.pop("fraud_bool"), X.pop("customer_age") >= 50
    >>> frontier = find_frontier(
    ...     X, y, sensitive_features=old, max_fits=4, space={"n_estimators": 20}
    ... )
    >>> best = frontier.best(at_least=0.5)
    >>> best.predict_proba(X[:3]).shape
    (3, 2)
    """
    required = read_lines(ratio, 0.8)
    check_count("max_fits", max_fits, 2, MOST_FITS)
    if isinstance(lines, str) or not isinstance(lines, Iterable):
        raise TypeError(f"`lines` must be a list of numbers in (0, 1], got {lines!r}.")
    student_lines = dict.fromkeys(check_line(line, "lines") for line in lines)
    if not student_lines:
        raise ValueError("`lines` is empty: list at least one line.")
    limit = Budget.read(budget, max_fpr)
    problem = read_problem(
        X,
        y,
        sensitive_features,
        unknown=unknown,
        sample_weight=sample_weight,
        groups=groups,
        pos_label=pos_label,
        least_rows=10,
        warn_of_columns=True,
    )
    if not problem.protected:
        raise ValueError("`sensitive_features` is missing: name the protected attributes.")
    seed = seed_from(random_state)
    joined, parts = _parts(problem, validation, test, seed)
    has_lines = isinstance(ratio, Mapping) or "=" in ratio
    taught = [required] if has_lines else [dict.fromkeys(required, line) for line in student_lines]
    taught = taught if students else []
    reserved = GROUP_FITS + student_fits(len(taught))
    if reserved >= max_fits:
        raise ValueError(f"`max_fits` must be at least {reserved + 1} with students, got {max_fits}.")
    count = 1 if estimator is not None and not space else n_models(max_fits - reserved, SHARE)
    name, usual = LIGHTGBM, SPACE
    if estimator is not None:
        name, usual, estimator = describe_object(estimator), {}, copied(estimator)
    models = ModelsConfig(count, seed, None, usual if space is None else space, name)  # type: ignore[arg-type]
    # test rows are measured at the threshold of validation rows
    evaluation = EvaluationConfig(threshold="validation", bootstrap=DRAWS, keep_scores=True)
    target = getattr(y, "name", None)
    interventions: dict[str, Grid | bool | None] = {
        entry.key: None if entry.settings or entry.uses_values else False for entry in intervention_entries()
    }
    interventions[UNTOUCHED.intervention] = True
    for key, sought in ((CURVE, [required]), (STUDENT, taught)):
        if sought:
            every = dict.fromkeys(line for ratios in sought for line in ratios.values())
            interventions[key] = {"ratios": tuple(required), "lines": tuple(every)}
    config = Config(
        seed=seed,
        data=DataConfig(
            target=target if isinstance(target, str) and target else "y",
            protected=tuple(variable.name for variable in problem.protected),
            unknown=tuple(map(str, problem.unknown)),
            min_group_size=check_count("min_group_size", min_group_size, 0, MOST_ROWS),
            given=True,
        ),
        split=SplitConfig(GIVEN, None, (), (True,), ()),
        interventions=interventions,
        models=read_models(models, estimator),
        evaluation=evaluation.with_budget(limit),
    )
    data = data_from(joined, parts, config)
    drawn = draw_models(config.models.space, count, seed)
    if estimator is None:
        drawn = [model | {"random_state": seed} for model in drawn]
    drawn = list({repr(model): model for model in drawn}.values())  # a list of choices has but a few
    trees: tuple[int, ...] | None = None
    usual_trees = 100 if estimator is None else estimator.get_params().get(TREES)
    if isinstance(usual_trees, int) and len(drawn) > 1:
        trees = tuple(int(model.get(TREES, usual_trees)) for model in drawn)
    proposer = FrontierProposer(tuple(drawn), trees, SHARE, required, max_fits, tuple(taught))
    results = run_experiment(
        config,
        store,
        n_jobs=n_jobs,
        client=client,
        progress=progress,
        proposer=proposer,
        isolated=False,
        data=data,
        estimator=estimator,
    )
    failed = results.frame["status"] == "failed"
    if len(failed) and failed.all():
        kind, _, reason = str(results.frame["error"].iloc[0]).partition(": ")
        raise ValueError(f"No model could be trained: {reason or kind}")
    with results.opened() as opened:
        costs = proposer.costs(opened.trials)
    results.frame.insert(list(results.frame.columns).index("training_rows") + 1, "cost", costs)
    return Frontier(results, data, required, int(np.ceil(sum(costs) + GROUP_FITS - 1e-9)), estimator)


def _parts(problem: Problem, validation: Any, test: Any, seed: int) -> tuple[Problem, dict[str, Any]]:
    """Assign rows to parts, except those that are given."""
    passed = {"validation": validation, "test": test if isinstance(test, tuple | list) else None}
    if passed["test"] is None and not 0 < check_share("test", test) <= 0.7:
        raise ValueError(f"`test` must be a share in (0, 0.7] or rows, got {test!r}.")
    shares = [VALIDATION if validation is None else 0.0, float(test) if passed["test"] is None else 0.0]
    cells = 2 * problem.groups.codes + problem.labels.is_positive
    generator = np.random.default_rng([seed, 1])
    dealt = deal_rows(cells, [1 - sum(shares), *shares], generator, problem.blocks)
    parts = {name: np.flatnonzero(dealt == number) for number, name in enumerate(("train", *passed))}
    for name, rows in passed.items():
        if rows is not None:
            part = read_rows_apart(rows, name, problem.unknown)
            parts[name] = problem.n_rows + np.arange(part.n_rows)
            problem = join_problems(problem, part, f"`{name}`")
    return problem, parts


@dataclass(frozen=True)
class FrontierProposer:
    """Proposes the trials of a search, given the outcomes of earlier trials.

    First every model is trained with a part of its trees, or on a part of the rows. The third with the
    highest true-positive rates on validation data is trained in full. Then every point of the curve of each
    of these is a trial without a fit: the scores of the model, adjusted by a model of the groups. Last come
    students, if required: one per line, all of the model that is best at the first line.

    Parameters
    ----------
    models : tuple of mapping
        The parameters of the models.
    trees : tuple of int or None
        The number of trees of each model, a part of which is grown first; None uses fewer rows instead.
    share : float
        The share of the trees or rows in the first fits.
    lines : mapping of str to float
        The ratios, and the line of each at a demand of 0.
    max_fits : int
        The limit of whole fits, including that of the model of the groups.
    students : tuple of mapping
        The lines for which students are trained, each a line of every ratio.
    """

    models: tuple[Mapping[str, Any], ...]
    trees: tuple[int, ...] | None
    share: float
    lines: Mapping[str, float]
    max_fits: int
    students: tuple[Mapping[str, float], ...] = ()

    def ask(self, outcomes: Sequence[Trial]) -> list[Trial]:
        """Return the next trials; none when all fits are spent, or nothing is left to try."""
        known = {outcome.key: outcome for outcome in outcomes}
        first = [self._trial(number, in_full=len(self.models) == 1) for number in range(len(self.models))]
        new = self._affordable(first, outcomes)
        if not new:
            whole = [self._trial(trial.model, in_full=True) for trial in self._best(first, known, KEPT)]
            new = self._affordable(whole, outcomes)
        if not new:
            best = self._best(whole, known, 1)
            new = self._affordable(
                [point for trial in best for point in self._curve(trial, known[trial.key])], outcomes
            )
        return new or self._affordable(self._students(outcomes), outcomes)

    def _trial(self, number: int, *, in_full: bool) -> Trial:
        """Return the trial of a model, in full or in part: with fewer trees, or on fewer rows."""
        parameters, share = dict(self.models[number]), 1.0 if in_full else self.share
        if self.trees is not None:
            parameters[TREES] = max(1, round(share * self.trees[number]))
            return Trial(UNTOUCHED.intervention, {}, number, parameters)
        return Trial(UNTOUCHED.intervention, {} if in_full else {"share": share}, number, parameters)

    def _affordable(self, trials: Sequence[Trial], before: Sequence[Trial]) -> list[Trial]:
        """Return the new trials that the remaining fits allow."""
        known, chosen = {trial.key for trial in before}, list[Trial]()
        left = self.max_fits - GROUP_FITS - sum(self.costs(before))
        taught = [trial for trial in before if trial.intervention == STUDENT]
        for trial in trials:
            cost = self.costs([*taught, trial])[-1]
            kept = 0 if trial.intervention == STUDENT else student_fits(len(self.students))
            if trial.key not in known and cost <= left - kept + 1e-9:
                left -= cost
                chosen.append(trial)
                taught += [trial] if trial.intervention == STUDENT else []
        return chosen

    def costs(self, trials: Sequence[Trial]) -> list[float]:
        """Return the cost of each trial in whole fits, given the trials before it."""
        costs, taught = list[float](), False
        for trial in trials:
            if trial.intervention == STUDENT:
                costs.append(1.0 if taught else 1.0 + 2 * FOLDS)
                taught = True
            elif trial.intervention == CURVE:
                costs.append(0.0)
            elif self.trees is None:
                costs.append(float(trial.settings.get("share", 1.0)))
            else:
                costs.append(trial.parameters[TREES] / self.trees[trial.model])
        return costs

    @staticmethod
    def _best(trials: Sequence[Trial], known: Mapping[str, Trial], of: int) -> list[Trial]:
        """Return the best of some trials, one in `of`, by true-positive rate from high to low."""
        rates = {trial.key: _rate(known.get(trial.key)) for trial in trials}
        done = [trial for trial in trials if rates[trial.key] > -math.inf]
        ordered = sorted(done, key=lambda trial: (-rates[trial.key], trial.model))
        return ordered[: math.ceil(len(trials) / of)]

    def _curve(self, whole: Trial, outcome: Trial) -> list[Trial]:
        """Return the points of a model's curve, beginning at the baseline model."""
        metrics = outcome.metrics or {}
        ratios = [metrics[f"validation_{ratio}"] for ratio in self.lines]
        return [
            Trial(CURVE, settings_of(self.lines) | {"demand": demand}, whole.model, whole.parameters)
            for demand in demands_of(ratios, list(self.lines.values()))
        ]

    def _students(self, outcomes: Sequence[Trial]) -> list[Trial]:
        """Return a student for each line, all of the model that has the best point at the first."""
        points = [outcome for outcome in outcomes if outcome.intervention == CURVE and outcome.metrics]
        if not points or not self.students:
            return []
        shares = np.array([_closeness(point, self.students[0]) for point in points])
        rates = np.array([_rate(point) for point in points])
        best = points[best_first(rates, shares, shares >= 1)[0]]
        return [Trial(STUDENT, settings_of(lines), best.model, best.parameters) for lines in self.students]


def settings_of(lines: Mapping[str, float]) -> dict[str, Any]:
    """Return the settings that stand for some lines.

    Examples
    --------
    >>> settings_of({"fpr_ratio": 0.8})
    {'ratio': 'fpr_ratio', 'at_least': 0.8}
    >>> settings_of({"fpr_ratio": 0.8, "tpr_ratio": 0.9})
    {'ratio': 'fpr_ratio=0.8, tpr_ratio=0.9'}
    """
    if len(lines) == 1:
        ((ratio, line),) = lines.items()
        return {"ratio": ratio, "at_least": line}
    return {"ratio": ", ".join(f"{ratio}={line!r}" for ratio, line in lines.items())}


def student_fits(n_students: int) -> int:
    """Return the fits that some students need: folds of label and groups once, and one each."""
    return 2 * FOLDS + n_students if n_students else 0


def n_models(max_fits: float, share: float) -> int:
    """Return with how many models a search of some whole fits begins.

    Parameters
    ----------
    max_fits : float
        The whole fits of models of the label.
    share : float
        The cost of a first fit.

    Examples
    --------
    >>> n_models(59, 0.25), n_models(1, 0.25)
    (100, 1)
    """
    most = int(max_fits / (share + 1 / KEPT))
    return next((n for n in range(most, 1, -1) if share * n + math.ceil(n / KEPT) <= max_fits), 1)


def _rate(outcome: Trial | None) -> float:
    """Return the true-positive rate on validation rows; -inf where there is none."""
    if outcome is None or outcome.metrics is None:
        return -math.inf
    rate = outcome.metrics["validation_tpr"]
    return -math.inf if math.isnan(rate) else rate


def _closeness(outcome: Trial, lines: Mapping[str, float]) -> float:
    """Return the lowest ratio on validation rows relative to its line; 0 where one is undefined."""
    metrics = outcome.metrics or {}
    shares = [metrics[f"validation_{ratio}"] / line for ratio, line in lines.items()]
    return min((0.0 if math.isnan(share) else share for share in shares), default=0.0)
