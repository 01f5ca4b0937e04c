"""Data Shapley: what each row adds to models trained on many sets of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fado._checks import check_classifier, check_count
from fado._messages import insert_parameters
from fado._progress import tracked
from fado.execution import n_workers
from fado.tabular import TARGET, Problem
from fado.valuation._base import (
    BaseValuator,
    provenance_of,
    register_valuator,
    target_pattern,
    valuator_parameters,
)
from fado.valuation._provenance import Provenance, of_new_rows
from fado.valuation._result import Valuation
from fado.valuation._validation_rows import check_metrics, effect_scales, effect_valuation
from fado.valuation.entropy import read_labels, table_of
from fado.valuation.shapley._semivalues import Newcomers, RunningMeans, precision_of
from fado.valuation.shapley._training_game import (
    Draws,
    Goals,
    read_semivalue,
    sampler_for,
    training_games,
    with_newcomers,
)

_ALGORITHM = "data-shapley"
_FITS_PER_ROW, _LEAST_FITS, _MOST_FITS = 200, 5_000, 20_000
_MOST_ASKED = 10**9
_ROUNDING = 1e-6  # other machines may add up in another order


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
    a model after every row up to m = 100 and after each of 50 steps beyond. They are also defined for rows
    that are not in the table: see `value`.

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
        ``"loo"`` or the first batch of draws needs more.
    {random_state, n_jobs, progress}
    keep_rows : bool, default=False
        Whether to keep the rows, and those of `validation`, which `value` trains and measures models on.

    Attributes
    ----------
    valuation_ : Valuation
        The values: signed effects, 0 is neutral. A value is a mean of contributions: `counts` is their
        number, and `standard_error` is the standard error of that mean.
    precision_ : float
        The figure that `tolerance` bounds, as it was reached; NaN if every row has only one contribution,
        infinite if no draw distinguished rows.
    n_fits_ : int
        How many models were trained by this call.
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
    >>> valuator = DataShapley(model, max_fits=80, random_state=0, n_jobs=1)
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
    keep_rows: bool = False

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
        continue_from: Valuation | None = None,
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
        continue_from : Valuation, optional
            The valuation of an earlier call, also one that was read from a file. Its draws are continued, as
            if one call had made them all: by at least one batch, and by up to `max_fits` further fits. Data,
            seed and settings must be the same, except `tolerance`, `max_fits` and `n_jobs`. If `random_state`
            is None, the seed is taken from the valuation. Values of ``"loo"`` are exact and have no draws to
            continue.

        Returns
        -------
        self
            With `valuation_`, `precision_`, `n_fits_` and `seed_`.
        """
        self._earlier = continue_from
        try:
            return super().fit(
                X,
                y,
                sensitive_features=sensitive_features,
                unknown=unknown,
                sample_weight=sample_weight,
                groups=groups,
                validation=validation,
            )
        finally:
            del self._earlier

    def _value(self, problem: Problem, validation: Problem | None, seed: int) -> Valuation:
        semivalue = self._check()
        earlier = getattr(self, "_earlier", None)
        if earlier is not None:
            _check_origin(earlier, semivalue)
            if self.random_state is None:
                seed = self.seed_ = earlier.provenance.seed
        workers = n_workers(self.n_jobs)
        goals = Goals(self.performance, self.fairness, float(self.max_fpr))
        (estimator,) = self._default_models(0) if self.estimator is None else [self.estimator]
        by_content = self.estimator is None
        games = training_games(problem, validation, estimator, goals, seed, workers, by_content=by_content)
        samplers = [sampler_for(semivalue, game.n_players) for game in games]
        settings = {
            **goals._asdict(),
            "semivalue": semivalue,
            "full_worths": [[float(worth) for worth in game.full] for game in games if game.full is not None],
        }
        provenance = provenance_of(_ALGORITHM, problem, seed, settings, estimator)
        names = [own.name for own in problem.variables]
        means, n_draws = RunningMeans(problem.n_rows, len(names)), 0
        if earlier is not None:
            pattern = target_pattern(problem.target.labels)
            _check_earlier(earlier, replace(provenance, target_pattern=pattern), problem.n_rows)
            mean, error = (
                np.column_stack([earlier.field(field, name) for name in names])
                for field in ("values", "standard_error")
            )
            means = RunningMeans.resume(mean, error, earlier.field("counts", TARGET))
            n_draws = earlier.provenance.settings["n_draws"]
        run = Draws(games, samplers, means, n_draws)
        most_fits = self._most_fits(problem.n_rows, run, semivalue)
        draws = run.go_on(seed, workers, most_fits, float(self.tolerance))
        for _ in tracked(draws, run.draws_for(most_fits), what="draws", show=self.progress):
            pass
        self.n_fits_, self.precision_ = run.n_fits, precision_of(run.means)
        nobody = np.zeros(0, dtype=np.intp)
        self._kept = (games, [own.take(nobody) for own in problem.variables]) if self.keep_rows else None
        return _valuation(run, names, goals, provenance)

    def value(
        self, X: Any, y: Any = None, sensitive_features: Any = None, *, unknown: Any = None
    ) -> Valuation:
        """Value new rows by what each adds to models of the fitted rows; needs ``keep_rows=True``.

        A new row joins sets drawn from all rows of the table, as many as a row of the table has contributions
        on average: `tolerance` and `max_fits` of the fit determine it. All new rows join the same sets, which
        depend on the seed only, so a value does not depend on the other new rows. Every set takes one fit,
        and one more for every new row.

        Only the distributional Shapley value is defined for rows outside the table (Ghorbani, Kim and Zou,
        2020); the other semivalues are those of the rows of one table.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The rows. Columns are matched by name, in any order. New categories count as missing.
        y : array-like of shape (n_rows,)
            Their labels. They are required: models learn from a row only with its label.
        sensitive_features, unknown : optional
            Accepted so that valuators can be exchanged. They do not change values: what a row adds is
            measured on the groups of other rows.

        Returns
        -------
        Valuation
            On the scales of `valuation_`. Weights of the fit have a mean of 1, and a new row weighs 1.

        Raises
        ------
        ValueError
            If `semivalue` was another, no rows were kept, `y` is missing or has a label that the table does
            not have, or a column is missing.

        Examples
        --------
        The row at 0.4 with its right label, and with the wrong one:

        >>> import numpy as np
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> from fado import DataShapley
        >>> X = np.array([0.0, 0.1, 0.2, 0.3, 0.7, 0.8, 0.9, 1.0])[:, None]
        >>> x = np.linspace(0, 1, 50)
        >>> validation = x[:, None], x >= 0.5, None
        >>> valuator = DataShapley(
        ...     KNeighborsClassifier(1),
        ...     semivalue=("distributional", 4),
        ...     max_fits=90,
        ...     random_state=0,
        ...     n_jobs=1,
        ...     keep_rows=True,
        ... )
        >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
        >>> valuator = valuator.fit(X, y, validation=validation)
        >>> valuator.value([[0.4], [0.4]], [0, 1])["y"].round(2)
        array([ 0.02, -0.06])
        """
        check_is_fitted(self, "valuation_")
        told = self.valuation_.provenance
        semivalue = told.settings["semivalue"]
        if semivalue[0] != "distributional":
            raise ValueError(
                f"`DataShapley.value` needs distributional Shapley values, since {semivalue!r} is defined "
                'for rows of the table only: set `semivalue=("distributional", m)` and call `fit` again.'
            )
        if self._kept is None:
            raise ValueError(
                "`DataShapley` has kept no rows, which new rows join: set `keep_rows=True` and call `fit` "
                "again."
            )
        if y is None:
            raise ValueError(
                "`y` must hold the labels of the new rows: without a label, a row adds nothing to a model."
            )
        games, variables = self._kept
        table = table_of(X)
        codes = read_labels(y, sensitive_features, table, variables, told, unknown)[TARGET]
        n_rows, n_draws = len(self.valuation_), max(2, round(self.valuation_.field("counts", TARGET).mean()))
        samplers = [Newcomers(game.n_players, table.n_rows, semivalue[1], n_draws) for game in games]
        means = RunningMeans(n_rows + table.n_rows, len(variables))
        run = Draws(with_newcomers(games, table, codes), samplers, means, 0)
        draws = run.go_on(self.seed_, n_workers(self.n_jobs), 0, np.inf)
        for _ in tracked(draws, n_draws, what="draws", show=self.progress):
            pass
        names = [own.name for own in variables]
        valuation = _valuation(
            run, names, games[0].goals, of_new_rows(told, y_given=True), slice(n_rows, None)
        )
        return valuation.with_rows(table.index, target_pattern(codes))

    def _default_models(self, n_columns: int) -> list[Any]:
        """Return LightGBM, which takes any table and whose fits share the binned table.

        Few rows per leaf, since sets are small; few bins, with which a fit takes half the time.
        """
        from lightgbm import LGBMClassifier

        return [
            LGBMClassifier(
                n_estimators=20,
                num_leaves=7,
                min_child_samples=3,
                learning_rate=0.2,
                reg_lambda=1.0,
                max_bin=63,
            )
        ]

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


def _valuation(
    run: Draws, names: Sequence[str], goals: Goals, provenance: Provenance, rows: slice = slice(None)
) -> Valuation:
    """Return the values from the draws so far, of all rows or some."""
    counts = run.means.count[rows].astype(np.int32)
    scales = effect_scales(names, goals.performance, goals.fairness)
    provenance = replace(provenance, settings={**provenance.settings, "n_draws": run.n_draws})
    return effect_valuation(run.means.mean[rows], run.means.standard_error[rows], counts, scales, provenance)


def _check_origin(earlier: Any, semivalue: Any) -> None:
    """Raise an error for a valuation without draws to continue."""
    if not isinstance(earlier, Valuation):
        raise TypeError(f"`continue_from` must be a Valuation, got {type(earlier).__name__}.")
    told = earlier.provenance
    n_draws = told.settings.get("n_draws")
    if told.algorithm != _ALGORITHM or told.seed is None or not isinstance(n_draws, int) or n_draws < 1:
        raise ValueError(
            f"`continue_from` must be a valuation that DataShapley made, got one by {told.algorithm!r}."
        )
    if semivalue == "loo":
        raise ValueError(
            "`continue_from` is for random draws, and leave-one-out values are exact: leave it out."
        )


def _check_earlier(earlier: Valuation, provenance: Provenance, n_rows: int) -> None:
    """Raise an error for a valuation of other rows, settings or seeds."""
    theirs, told, now = earlier.provenance, dict(earlier.provenance.settings), dict(provenance.settings)
    before_worths, worths = told.pop("full_worths", None), now.pop("full_worths")
    pairs = {
        "number of rows": (len(earlier), n_rows),
        "variables": (earlier.variables, list(provenance.variables)),
        "estimator": (theirs.estimators, provenance.estimators),
        "seed": (theirs.seed, provenance.seed),
        **{name: (told.get(name), own) for name, own in now.items()},
    }
    for what, (before, own) in pairs.items():
        if before != own:
            raise ValueError(
                f"`continue_from` must have been made with the same rows, settings and seed: its {what} was "
                f"{before!r}, and now it is {own!r}."
            )
    if theirs.target_pattern != provenance.target_pattern or not _are_close(before_worths, worths):
        raise ValueError(
            "`continue_from` is of other rows or validation data: pass the valuation of these rows."
        )


def _are_close(before: Any, now: Sequence[Sequence[float]]) -> bool:
    """Return whether a file holds these numbers, to rounding."""
    try:
        theirs = np.array(before, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    own = np.array(now)
    return theirs.shape == own.shape and np.allclose(theirs, own, rtol=_ROUNDING, atol=_ROUNDING)
