"""What both entropy algorithms share: have the fits run, average what they say."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fado._checks import check_instance
from fado._progress import tracked
from fado._version import library_versions
from fado.engine import default_estimators
from fado.execution import n_workers
from fado.tabular import Problem, Variable
from fado.valuation._base import BaseValuator, texts_of
from fado.valuation._provenance import CLOSENESS, ENTROPY, Provenance, VariableNote
from fado.valuation._result import Valuation
from fado.valuation.entropy._exclusions import variables_to_learn
from fado.valuation.entropy._fits import Bag, plan_fits, run_fits
from fado.valuation.entropy._giveaways import is_given_away, warn_of_giveaways
from fado.valuation.entropy._learnt import Learnt, largest_errors, shared_gains
from fado.valuation.entropy._models import ValuationModels, keep_models
from fado.valuation.entropy._statistics import finish

__all__ = ["EntropyValuator"]


class EntropyValuator(BaseValuator):
    """Base of the entropy valuators: subclasses say which bags there are."""

    sends_fits = True
    keep_probabilities = False  # of rows that a model has learnt from, it is too sure
    _paced = False  # whether estimators that are given are default models of another size

    def _value(self, problem: Problem, validation: Problem | None, seed: int) -> Valuation:
        self._check(problem)
        variables = variables_to_learn(problem, self.z_exclude, sees_target=bool(self.z_sees_target))
        table = problem.table
        bags = self._bags(variables, problem.blocks, np.random.default_rng([seed, 0]))
        learnt = self._learn(
            problem,
            variables,
            bags,
            seed,
            show=self.progress,
            keep_models=bool(self.keep_models),
            keep_probabilities=bool(self.keep_probabilities),
        )
        for variable in self._given_away(problem, variables, learnt, seed):
            mean_value = float(np.nanmean(learnt.moments[variable.name].mean))
            warn_of_giveaways(variable, mean_value, table.names, learnt.gains[variable.name])
        self.excluded_columns_ = {
            variable.name: [table.names[j] for j in sorted(variable.excluded)] for variable in variables[1:]
        }
        self._keep_bags(bags)
        provenance = Provenance(
            **self._algorithm(),
            seed=seed,
            estimators=texts_of(self._models(table.n_columns)),
            variables={own.name: VariableNote(own.kind, own.classes) for own in variables},
            excluded_columns={name: tuple(own) for name, own in self.excluded_columns_.items()},
            versions=library_versions(),
            largest_error=largest_errors(variables, learnt.moments),
            split_gains=shared_gains(table.names, learnt.gains),
            trees=learnt.of_defaults("n_estimators"),
            learning_rates=learnt.of_defaults("learning_rate"),
            names_given=problem.names_given,
        )
        if self.keep_models:
            self.models_ = keep_models(problem, variables, learnt, provenance)
        elif hasattr(self, "models_"):
            del self.models_
        return _valuation(variables, learnt, provenance)

    def value(self, X: Any, y: Any = None, sensitive_features: Any = None) -> Valuation:
        """Value new rows with the models that were kept; needs ``keep_models=True``.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features of the new rows, as `ValuationModels.value` takes them.
        y : array-like of shape (n_rows,), optional
            Their labels, if they are known, for the models of protected attributes that see the target.
            Without labels these models use the predicted probabilities of the labels.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            Their protected attributes, if they are known. They are used for `agreement` and change no value.

        Returns
        -------
        Valuation
            The values of the new rows, with the epistemic part of the entropies: the part in which models
            disagree. It is NaN if there is only one model.

        Raises
        ------
        ValueError
            If no models were kept, a column is missing, or `y` holds a label that no model has learnt.
        """
        check_is_fitted(self, "valuation_")
        models: ValuationModels | None = getattr(self, "models_", None)
        if models is None:
            raise ValueError(
                f"`{type(self).__name__}` has kept no models to value new rows by: set `keep_models=True` "
                "and call `fit` again."
            )
        return models.value(X, y, sensitive_features, n_jobs=self.n_jobs, progress=self.progress)

    def _check(self, problem: Problem) -> None:
        """Refuse settings that cannot work with these rows, before anything else is done."""
        n_workers(self.n_jobs)

    @abstractmethod
    def _bags(self, variables: Sequence[Variable], blocks: Any, generator: np.random.Generator) -> list[Bag]:
        """Say which rows every bag holds."""

    def _learn(
        self,
        problem: Problem,
        variables: Sequence[Variable],
        bags: Sequence[Bag],
        seed: int,
        *,
        show: bool,
        keep_models: bool = False,
        keep_probabilities: bool = False,
    ) -> Learnt:
        """Have every estimator learn every variable in every bag."""
        table = problem.table
        fits = plan_fits(self._models(table.n_columns), variables, bags, seed)
        outcomes = run_fits(
            fits,
            table,
            problem.target,
            problem.sample_weight,
            n_workers(self.n_jobs),
            defaults=self.estimators is None or self._paced,
            keep_models=keep_models,
            keep_probabilities=keep_probabilities,
        )
        learnt = Learnt(variables, table.n_rows, table.n_columns)
        for outcome in tracked(outcomes, len(fits), what="fits", show=show):
            learnt.add(outcome)
        return learnt

    def _given_away(
        self, problem: Problem, variables: Sequence[Variable], learnt: Learnt, seed: int
    ) -> list[Variable]:
        """Find the protected attributes that features give away together."""
        return [own for own in variables[1:] if is_given_away(own, learnt.moments[own.name])]

    def _keep_bags(self, bags: Sequence[Bag]) -> None:
        """Note the bags for the user, where they tell something."""

    def _default_models(self, n_columns: int) -> list[Any]:
        return default_estimators(n_columns)

    def _models(self, n_columns: int) -> list[Any]:
        """Give the unfitted estimators, refusing what are none."""
        if self.estimators is None:
            return self._default_models(n_columns)
        estimators = list(self.estimators) if isinstance(self.estimators, list | tuple) else [self.estimators]
        if not estimators:
            raise ValueError("`estimators` is empty: pass one or more, or None for the default models.")
        for estimator in estimators:
            check_instance("estimators", estimator)
            if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
                raise TypeError(f"`estimators` must be unfitted scikit-learn estimators, got {estimator!r}.")
        return estimators

    @abstractmethod
    def _algorithm(self) -> dict[str, Any]:
        """Name the algorithm, and the settings that decide a value."""


def _valuation(variables: Sequence[Variable], learnt: Learnt, provenance: Provenance) -> Valuation:
    moments = learnt.moments
    done = {variable.name: finish(variable, moments[variable.name]) for variable in variables}
    return Valuation(
        values={name: parts[0] for name, parts in done.items()},
        standard_error={name: parts[1] for name, parts in done.items()},
        counts={name: moments[name].count for name in done},
        agreement={name: parts[2] for name, parts in done.items()},
        scales={own.name: ENTROPY if own.kind == "classes" else CLOSENESS for own in variables},
        provenance=provenance,
        probabilities=learnt.mean_probabilities(),
    )
