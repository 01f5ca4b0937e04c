"""Data Shapley: what each row adds to models trained on many sets of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fado._checks import check_classifier, check_count
from fado._messages import insert_parameters, warn_user
from fado._progress import tracked
from fado.execution import n_workers
from fado.tabular import Problem
from fado.valuation._base import BaseValuator, provenance_of, register_valuator, valuator_parameters
from fado.valuation._result import Valuation
from fado.valuation._validation_rows import check_metrics, effect_scales, effect_valuation
from fado.valuation.shapley._semivalues import RunningMeans, precision_of
from fado.valuation.shapley._training_game import (
    Draws,
    Goals,
    read_semivalue,
    sampler_for,
    training_games,
)

_ALGORITHM = "data-shapley"
_FITS_PER_ROW, _LEAST_FITS, _MOST_FITS = 200, 5_000, 20_000
_MOST_ASKED = 10**9


@register_valuator(_ALGORITHM)
@insert_parameters(valuator_parameters)
@dataclass(eq=False, repr=False)
class DataShapley(BaseValuator):
    """Value rows by what each adds to models trained on random sets of the other rows.

    The worth of a set of rows is what a model trained on it achieves on validation data: for the target its
    performance, for every protected attribute the linear approximation of its ratio around the decisions of
    the model of all rows. The value of a row is the mean change of the worth when the row joins a set of
    other rows, over random sets. This takes thousands of fits: use it for tables of up to a few hundred rows,
    and to check faster valuators.

    Shapley and Beta values come from walks: rows join one after the other in a random order, and many orders
    are averaged (Ghorbani and Zou, 2019). With up to 100 rows, a model is trained after every row that joins.
    With more, it is trained after each of 50 steps, which grow from a few rows to many. Each row of a step of
    m rows then contributes the change of the whole step, less what m - 1 rows add on average at that step
    in other walks. (If the change were shared equally, values would be m times too close to each other.) A
    walk ends early, and later rows contribute 0, once five worths in a row are close to the worth of all
    rows, for the target and for every attribute. Close means within 1 % of the difference between the worths
    of all rows and of no rows.

    The linear approximation of a ratio other than `fnr_ratio` is 0 both for all rows and for no rows. So with
    protected attributes hardly any walk ends early, and the Shapley values of an attribute sum to about 0.
    They show which rows raise the ratio and which lower it.

    Distributional Shapley values measure what a row is worth to a model of m rows like these (Ghorbani, Kim
    and Zou, 2020): the number of rows that it joins is uniform from 0 to m - 1, and the rows are drawn from
    the others. With m = n these are the Shapley values. They come from walks of m rows instead of all n, with
    a model after every row up to m = 100 and after each of 50 steps beyond.

    The worth of no rows, and of rows of one label only, is that of a constant prediction. The constant is the
    share of positives in the validation data: it predicts their most common label, is the best constant
    for log-loss and, at a budget of false positives, predicts no row positive.

    Parameters
    ----------
    estimator : classifier, optional
        An unfitted scikit-learn classifier that gives probabilities and learns from few rows. None means
        LightGBM with 20 small trees, which takes any table, missing values and categories included.
    performance : {"accuracy", "tpr_at_fpr", "log_loss"}, default="accuracy"
        The metric that the values of ``"y"`` are effects on: the accuracy at a probability threshold of 0.5,
        the true-positive rate at the budget, or the negative mean log-loss.
    {fairness, max_fpr}
    semivalue : {"shapley", "banzhaf", "loo"}, ("beta", a, b) or ("distributional", m), default="shapley"
        How sets are weighted. ``"shapley"``: every size of set equally. ``("beta", 16, 1)``: small sets more,
        where one row matters most (Kwon and Zou, 2022). ``"banzhaf"``: every set equally. Each set then
        contributes to the value of every row, so that the fewest fits give a good ranking (Wang and Jia,
        2023). ``"loo"``: only the set of all other rows (leave-one-out), with one fit per row and fold.
        ``("distributional", 50)``: every size of set below 50 equally. The number is at least 1 and at most
        the number of rows that models are trained on.
    tolerance : float, default=0.05
        When to stop: once, for the target and every attribute, the mean standard error of the values is at
        most this share of the distance between their 5 % and 95 % quantiles. It is checked after every batch
        of draws.
    max_fits : int, optional
        The maximum number of fits. None means 200 per row, at least 5,000 and at most 20,000, or more if
        ``"loo"`` or the first batch of draws needs more. A warning says if `tolerance` was not reached.
    {random_state, n_jobs, progress}

    Attributes
    ----------
    valuation_ : Valuation
        The values: signed effects, 0 is neutral. A value is a mean of contributions: `counts` is their
        number, and `standard_error` is the standard error of that mean.
    precision_ : float
        The figure that `tolerance` bounds, as it was reached; NaN if every row has only one contribution,
        infinite if no draw distinguished rows.
    n_fits_ : int
        How many models were trained.
    {seed_}

    Notes
    -----
    Without `validation`, the rows are split into five stratified folds, or fewer if a label is too rare for
    five. Models are trained on rows outside a fold and measured on the fold. Draws use the folds in turn,
    and a row's value is the mean over the folds in which it was trained on.

    See Also
    --------
    fado.KNNShapley : Exact Shapley values in a vote of nearest neighbours.
    fado.TreeInfluence : Effects for tables of any size, for LightGBM.

    References
    ----------
    A. Ghorbani and J. Zou (2019), "Data Shapley: Equitable Valuation of Data for Machine Learning", ICML.

    A. Ghorbani, M. P. Kim and J. Zou (2020), "A Distributional Framework for Data Valuation", ICML.

    Y. Kwon and J. Zou (2022), "Beta Shapley: a Unified and Noise-reduced Data Valuation Framework for Machine
    Learning", AISTATS.

    J. T. Wang and R. Jia (2023), "Data Banzhaf: A Robust Data Valuation Framework for Machine Learning",
    AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from fado import DataShapley
    >>> X = np.array([0.0, 0.1, 0.2, 0.3, 0.7, 0.8, 0.9, 1.0])[:, None]
    >>> y = np.array([0, 0, 0, 1, 1, 1, 1, 1])  # the row at 0.3 is wrong
    >>> x = np.linspace(0, 1, 50)
    >>> validation = x[:, None], x >= 0.5, None
    >>> model = KNeighborsClassifier(1)
    >>> valuator = DataShapley(model, tolerance=0.2, max_fits=80, random_state=0, n_jobs=1)
    >>> values = valuator.fit(X, y, validation=validation).valuation_["y"]
    >>> int(values.argmin())
    3
    """

    _two_classes = True

    estimator: Any = None
    performance: str = "accuracy"
    fairness: str = "fpr_ratio"
    max_fpr: float = 0.05
    semivalue: Any = "shapley"
    tolerance: float = 0.05
    max_fits: int | None = None
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool = False

    @insert_parameters(valuator_parameters)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        unknown: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        validation: Any = None,
    ) -> Self:
        """Value every row.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features. Text, categories and missing values are allowed if the estimator takes them.
        y : array-like of shape (n_rows,)
            The target, of two classes.
        {sensitive_features, unknown}
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts in the models' fits, scaled to a mean of 1, and, without `validation`, in
            the metrics.
        groups : array-like of shape (n_rows,), optional
            Which rows belong together, such as those of one person or one month. They are in the same fold.
        validation : tuple of (X, y, sensitive_features), optional
            Validation data, on which effects are measured; without them, folds of the valued rows are used.

        Returns
        -------
        self
            With `valuation_`, `precision_`, `n_fits_` and `seed_`.
        """
        return super().fit(
            X,
            y,
            sensitive_features=sensitive_features,
            unknown=unknown,
            sample_weight=sample_weight,
            groups=groups,
            validation=validation,
        )

    def _value(self, problem: Problem, validation: Problem | None, seed: int) -> Valuation:
        semivalue = self._check()
        workers = n_workers(self.n_jobs)
        goals = Goals(self.performance, self.fairness, float(self.max_fpr))
        estimator = _default_estimator() if self.estimator is None else self.estimator
        by_content = self.estimator is None
        games = training_games(problem, validation, estimator, goals, seed, workers, by_content=by_content)
        samplers = [sampler_for(semivalue, game.n_players) for game in games]
        names = [variable.name for variable in problem.variables]
        run = Draws(games, samplers, RunningMeans(problem.n_rows, len(names)))
        most_fits = self._most_fits(problem.n_rows, run, semivalue)
        draws = run.play(seed, workers, most_fits, float(self.tolerance))
        for _ in tracked(draws, run.draws_for(most_fits), what="draws", show=self.progress):
            pass
        self.n_fits_, self.precision_ = run.n_fits, precision_of(run.means)
        if self.precision_ > self.tolerance:
            needed = ""
            if np.isfinite(self.precision_):  # standard errors fall with the root of the number of draws
                fits = run.n_fits * (self.precision_ / self.tolerance) ** 2
                needed = f", which takes about {float(f'{fits:.2g}'):,.0f} fits"
            warn_user(
                f"After {run.n_fits:,} fits the values are precise to {self.precision_:.2g}, not yet to "
                f"`tolerance={self.tolerance:g}`{needed}: raise `max_fits`, or do not act on single rows."
            )
        settings = {**goals._asdict(), "semivalue": semivalue, "n_draws": run.n_draws}
        return effect_valuation(
            run.means.mean,
            run.means.standard_error,
            run.means.count.astype(np.int32),
            effect_scales(names, goals.performance, goals.fairness),
            provenance_of(_ALGORITHM, problem, seed, settings, [estimator]),
        )

    def _check(self) -> Any:
        """Raise an error for settings that cannot work, and return the semivalue as plain data."""
        check_metrics(self.performance, self.fairness, self.max_fpr)
        semivalue = read_semivalue(self.semivalue)
        if isinstance(self.tolerance, bool) or not isinstance(self.tolerance, int | float | np.number):
            raise TypeError(f"`tolerance` must be a number above 0, got {self.tolerance!r}.")
        if not self.tolerance > 0:
            raise ValueError(f"`tolerance` must be above 0, got {self.tolerance}.")
        if self.max_fits is not None:
            check_count("max_fits", self.max_fits, 1, _MOST_ASKED)
        n_workers(self.n_jobs)
        if self.estimator is not None:
            check_classifier("estimator", self.estimator)
        return semivalue

    def _most_fits(self, n_rows: int, run: Draws, semivalue: Any) -> int:
        """Return the maximum number of fits, or raise an error if it is too small."""
        least = run.least_fits
        if self.max_fits is None:
            return max(least, min(max(_FITS_PER_ROW * n_rows, _LEAST_FITS), _MOST_FITS))
        if self.max_fits < least:
            what = "every row's" if semivalue == "loo" else "the first batch's"
            raise ValueError(
                f"`max_fits` must be at least {least:,}, {what} fits for {n_rows} rows, got {self.max_fits}."
            )
        return int(self.max_fits)


def _default_estimator() -> Any:
    """Return LightGBM, which takes any table and whose fits share the binned table.

    Few rows per leaf, since sets are small; few bins, with which a fit takes half the time.
    """
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=20, num_leaves=7, min_child_samples=3, learning_rate=0.2, reg_lambda=1.0, max_bin=63
    )
