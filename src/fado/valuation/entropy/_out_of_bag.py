"""The entropy valuators: how uncertain models are about rows that they have, or have not, been trained on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fado._checks import check_instance
from fado._memory import check_room_for
from fado._messages import insert_parameters
from fado._progress import tracked
from fado.engine import default_estimators
from fado.execution import n_workers
from fado.tabular import Problem, Variable
from fado.valuation._bags import BYTES, check_bags, out_of_bag_sets, strata_of, units_of
from fado.valuation._base import BaseValuator, provenance_of, register_valuator, valuator_parameters
from fado.valuation._probabilities import largest_known
from fado.valuation._provenance import CLOSENESS, ENTROPY, SplitGains
from fado.valuation._result import Valuation
from fado.valuation.entropy._exclusions import is_given_away, variables_to_learn, warn_of_giveaways
from fado.valuation.entropy._fits import Bag, VariableResult, plan_fits, run_fits
from fado.valuation.entropy._models import ValuationModels, keep_models

_MOST_CELLS = 100  # classes of the target times groups of an attribute
_FIFTH = 0.2


class EntropyValuator(BaseValuator):
    """Base class of the entropy valuators; a subclass defines the bags."""

    sends_fits = True
    _algorithm: ClassVar[str]
    _settings: ClassVar[Mapping[str, type]]  # those that affect values
    keep_probabilities = False  # of rows that a model has learnt from, it is too sure

    def _value(self, problem: Problem, validation: Problem | None, seed: int) -> Valuation:
        n_workers(self.n_jobs)
        bags = self._bags(problem, np.random.default_rng([seed, 0]))
        variables = variables_to_learn(problem, self.z_exclude, sees_target=bool(self.z_sees_target))
        names, target = problem.table.names, problem.target
        estimators = self._models(problem.table.n_columns)
        results = self._learn(problem, estimators, variables, bags, seed, final=True)
        given_away = [
            variable.name
            for variable in variables[1:]
            if is_given_away(variable, results[variable.name].moments)
        ]
        if given_away and bags[0].out_of_bag is None:
            given_away = self._given_away_unseen(problem, estimators, variables, given_away, seed)
        for name in given_away:
            moments = results[name].moments
            mean_value = float(moments.mean[moments.count > 0].mean())
            warn_of_giveaways(results[name].variable, mean_value, names, results[name].gains)
        self.excluded_columns_ = {
            variable.name: [names[j] for j in sorted(variable.excluded)] for variable in variables[1:]
        }
        shares = {
            name: tuple((result.gains / result.gains.sum()).tolist())
            for name, result in results.items()
            if result.gains.sum() > 0
        }
        paced = {name: result.paced for name, result in results.items() if result.paced is not None}
        settings = {name: kind(getattr(self, name)) for name, kind in self._settings.items()}
        provenance = replace(
            provenance_of(self._algorithm, problem, seed, settings, estimators),
            excluded_columns={name: tuple(columns) for name, columns in self.excluded_columns_.items()},
            largest_error={
                name: largest_known(result.moments.label_probability)
                for name, result in results.items()
                if result.variable.kind == "continuous"
            },
            split_gains=SplitGains(tuple(names), shares) if shares else None,
            trees={name: model.n_estimators for name, model in paced.items()} or None,
            learning_rates={name: model.learning_rate for name, model in paced.items()} or None,
        )
        if self.keep_models:
            self.models_ = keep_models(problem, list(results.values()), provenance)
        fields: dict[str, dict[str, Any]] = {}
        for name, result in results.items():
            for field, array in result.moments.finish(result.variable).items():
                fields.setdefault(field, {})[name] = array
        means = {name: result.mean_probabilities(len(target.classes)) for name, result in results.items()}
        return Valuation(
            **fields,
            scales={
                name: ENTROPY if result.variable.kind == "classes" else CLOSENESS
                for name, result in results.items()
            },
            provenance=provenance,
            probabilities={name: mean for name, mean in means.items() if mean is not None} or None,
        )

    def value(
        self, X: Any, y: Any = None, sensitive_features: Any = None, *, unknown: Any = None
    ) -> Valuation:
        """Value new rows with the models that were kept; needs ``keep_models=True``.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features of the new rows, as `ValuationModels.value` takes them.
        y : array-like of shape (n_rows,), optional
            Their labels, if they are known, for the models of protected attributes that see the target.
            Without labels, these models use the predicted probabilities of the labels.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            Their protected attributes, if they are known. They are used for `label_probability` and do not
            change values.
        unknown : value or list of values, optional
            Values of the attributes that mean the same as a missing one; None means those of the fit.

        Returns
        -------
        Valuation
            The values of the new rows, with the epistemic part of the entropies: the part on which the models
            disagree. It is NaN if there is only one model.

        Raises
        ------
        ValueError
            If no models were kept, a column is missing, or `y` has a label that no model has learnt.
        """
        check_is_fitted(self, "valuation_")
        models: ValuationModels | None = getattr(self, "models_", None)
        if models is None:
            raise ValueError(
                f"`{type(self).__name__}` has kept no models for new rows: set `keep_models=True` and call "
                "`fit` again."
            )
        jobs = {"n_jobs": self.n_jobs, "progress": self.progress}
        return models.value(X, y, sensitive_features, unknown=unknown, **jobs)

    @abstractmethod
    def _bags(self, problem: Problem, generator: np.random.Generator) -> list[Bag]:
        """Return the rows of each bag; raise an error for settings that cannot work with these rows."""

    def _learn(
        self,
        problem: Problem,
        estimators: Sequence[Any],
        variables: Sequence[Variable],
        bags: Sequence[Bag],
        seed: int,
        *,
        final: bool = False,
    ) -> dict[str, VariableResult]:
        """Train every estimator on every variable in every bag; only `final` fits keep models."""
        table = problem.table
        fits = plan_fits(estimators, variables, bags, seed)
        done = run_fits(
            fits,
            problem,
            n_workers(self.n_jobs),
            defaults=self.estimators is None,
            keep_models=final and bool(self.keep_models),
            keep_probabilities=final and bool(self.keep_probabilities),
        )
        results = {
            variable.name: VariableResult(variable, table.n_rows, table.n_columns) for variable in variables
        }
        for fit, result in tracked(done, len(fits), what="fits", show=final and self.progress):
            results[fit.variable.name].add(fit, result)
        return results

    def _given_away_unseen(
        self,
        problem: Problem,
        estimators: Sequence[Any],
        variables: Sequence[Variable],
        names: Sequence[str],
        seed: int,
    ) -> list[str]:
        """Check attributes with models that have not seen a fifth of the rows: all are sure of seen rows."""
        strata, generator = strata_of(variables, _FIFTH), np.random.default_rng([seed, 2])
        unseen = out_of_bag_sets(problem.n_rows, 5, _FIFTH, strata, generator, problem.blocks)[0]
        suspects = [variable for variable in variables if variable.name in names]
        bag = Bag(0, np.delete(np.arange(problem.n_rows, dtype=np.int32), unseen), unseen)
        results = self._learn(problem, estimators, suspects, [bag], seed)
        return [name for name, result in results.items() if is_given_away(result.variable, result.moments)]

    def _models(self, n_columns: int) -> list[Any]:
        """Return the unfitted estimators, or raise an error if they are not estimators."""
        if self.estimators is None:
            return default_estimators(n_columns)
        estimators = list(self.estimators) if isinstance(self.estimators, list | tuple) else [self.estimators]
        if not estimators:
            raise ValueError("`estimators` is empty: pass one or more, or None for the default models.")
        for estimator in estimators:
            check_instance("estimators", estimator)
            if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
                raise TypeError(f"`estimators` must be unfitted scikit-learn estimators, got {estimator!r}.")
        return estimators


@register_valuator("oob")
@insert_parameters(valuator_parameters)
@dataclass(eq=False, repr=False)
class OutOfBagEntropy(EntropyValuator):
    """Value rows by how uncertain models trained on other rows are about them.

    Each of `n_bags` bags leaves out `unseen_fraction` of the rows. Models trained on the other rows predict
    the target and every protected attribute of the rows left out. The value of a row is the mean entropy of
    these predictions, scaled to [0, 1]: 0 if the models are certain, 1 if they know nothing. For a continuous
    variable it is ``1 - d / max(d)``, where `d` is the mean distance of the row's predictions from the
    training mean, and ``max(d)`` the largest over all rows.

    Parameters
    ----------
    {estimators, n_bags, unseen_fraction, z_sees_target, z_exclude, kinds, random_state, n_jobs, progress}
    {keep_models}
    keep_probabilities : bool, default=False
        Whether ``valuation_.probabilities`` holds the mean predicted probabilities for unseen rows: of each
        class of the target, and of each group of a protected attribute given each class of the target. It
        takes one more scoring of every row for each further class of the target, and does not change values.
        The target must have classes.

    Attributes
    ----------
    {valuation_, bags_, excluded_columns_, seed_, models_}

    See Also
    --------
    fado.InBagEntropy : Faster, with models that have seen the rows.
    fado.OnlineEntropy : The same values for rows that arrive in batches.
    fado.value_files : The same values for tables larger than memory.
    fado.TreeInfluence : Effects of rows on performance and fairness.

    {References}

    Examples
    --------
    >>> import numpy as np
    >>> from fado import OutOfBagEntropy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y, coin = X[:, 0] > 0, rng.integers(0, 2, size=1000)
    >>> valuator = OutOfBagEntropy(random_state=0)
    >>> valuator = valuator.fit(X, y, sensitive_features={"coin": coin})
    >>> valuator.valuation_.values.mean().round()
    y       0.0
    coin    1.0
    dtype: float64
    """

    _algorithm = "out-of-bag"
    _settings: ClassVar = {"n_bags": int, "unseen_fraction": float, "z_sees_target": bool}

    estimators: Any = None
    _: KW_ONLY
    n_bags: int = 10
    unseen_fraction: float = 0.2
    z_sees_target: bool = True
    z_exclude: Sequence[str] | Mapping[str, Sequence[str]] | None = None
    kinds: Mapping[str, str] | None = None
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool = False
    keep_models: bool = False
    keep_probabilities: bool = False

    def _bags(self, problem: Problem, generator: np.random.Generator) -> list[Bag]:
        n_units, units = units_of(problem)
        n_rows, fraction = problem.n_rows, self.unseen_fraction
        check_bags(n_units, self.n_bags, fraction, units)
        check_room_for(f"`n_bags={self.n_bags}` of {n_rows:,} rows", BYTES * n_rows * self.n_bags)
        if self.keep_probabilities:
            _check_probabilities(problem)
        strata, every = strata_of(problem.variables, fraction), np.arange(n_rows, dtype=np.int32)
        self.bags_ = out_of_bag_sets(n_rows, self.n_bags, fraction, strata, generator, problem.blocks)
        return [Bag(number, np.delete(every, unseen), unseen) for number, unseen in enumerate(self.bags_)]


@register_valuator("inbag")
@insert_parameters(valuator_parameters)
@dataclass(eq=False, repr=False)
class InBagEntropy(EntropyValuator):
    """Value rows by how uncertain models trained on all rows are about them.

    It takes one fit per estimator and variable, so it is several times faster than `OutOfBagEntropy`. But its
    models have seen the rows that they score: a model that has memorised a row is certain about it, and the
    row's value is too low.

    Parameters
    ----------
    {estimators, z_sees_target, z_exclude, kinds, random_state, n_jobs, progress, keep_models}

    Attributes
    ----------
    {valuation_, excluded_columns_, seed_, models_}

    See Also
    --------
    fado.OutOfBagEntropy : Better values, from models that have not seen the rows.

    {References}

    Examples
    --------
    >>> import numpy as np
    >>> from fado import InBagEntropy
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> valuation = InBagEntropy(random_state=0).fit(X, X[:, 0] > 0).valuation_
    >>> float(valuation["y"].mean().round(1))
    0.0
    """

    _algorithm = "in-bag"
    _settings: ClassVar = {"z_sees_target": bool}

    estimators: Any = None
    _: KW_ONLY
    z_sees_target: bool = True
    z_exclude: Sequence[str] | Mapping[str, Sequence[str]] | None = None
    kinds: Mapping[str, str] | None = None
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool = False
    keep_models: bool = False

    def _bags(self, problem: Problem, generator: np.random.Generator) -> list[Bag]:
        return [Bag(0, np.arange(problem.n_rows, dtype=np.int32), None)]


def _check_probabilities(problem: Problem) -> None:
    """Refuse to keep probabilities of a number, of too many classes and groups, or beyond memory."""
    target, total = problem.target, 0
    if target.kind != "classes":
        raise ValueError(
            "`keep_probabilities=True` needs a target of classes, and 'y' is continuous: leave it out, or "
            'set `kinds={"y": "classes"}`.'
        )
    for variable in problem.variables:
        n_labels, n_classes = len(target.classes), len(variable.classes)
        cells = n_classes if variable is target else n_labels * n_classes
        if cells > _MOST_CELLS:
            counted = f"{n_labels} classes of 'y'"
            counted += "" if variable is target else f" times {n_classes} groups of {variable.name!r}"
            raise ValueError(
                f"`keep_probabilities=True` keeps at most {_MOST_CELLS} numbers of a row and variable, got "
                f"{counted}: merge some, or leave it out."
            )
        total += cells
    check_room_for(f"`keep_probabilities=True` for {problem.n_rows:,} rows", 8 * problem.n_rows * total)
