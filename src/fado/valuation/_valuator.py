"""What both valuators share: read the input, plan the fits, run them, average what they say."""

from __future__ import annotations

import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor

from fado._frames import Table, is_frame
from fado._giveaway import columns_equal_to, columns_that_determine
from fado._progress import tracked
from fado._variables import (
    Variable,
    check_kinds,
    protected_columns,
    target_column,
    variable_from,
)
from fado.engine import _lightgbm, _sklearn
from fado.engine._parallel import in_threads, n_workers, with_joblib
from fado.valuation._growth import LossCurve, bags_that_tell, best_number_of_trees
from fado.valuation._learnt import what_models_learnt
from fado.valuation._moments import Moments
from fado.valuation._result import Valuation, library_versions
from fado.valuation._statistics import finished, row_statistics

__all__ = ["EntropyValuator"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Bag:
    """The rows that a fit learns from and the rows it scores; None scores those it learnt from."""

    number: int
    in_bag: Rows
    out_of_bag: Rows | None

    @property
    def scored(self) -> Rows:
        """The rows that the fit scores."""
        return self.in_bag if self.out_of_bag is None else self.out_of_bag


@dataclass(frozen=True)
class Fit:
    """One estimator learns one variable in one bag."""

    estimator: Any
    variable: Variable
    bag: Bag
    seed: int

    def learnable(self) -> Rows:
        """Give the in-bag rows whose label is known."""
        rows = self.bag.in_bag
        return rows if self.variable.kind == "classes" else rows[self.variable.known[rows]]

    def scored_beyond(self, learnt: Rows) -> Rows | None:
        """Give the rows to score; None if they are those that were learnt from."""
        scored = self.bag.scored
        return None if self.bag.out_of_bag is None and len(learnt) == len(scored) else scored

    def __str__(self) -> str:
        return f"{type(self.estimator).__name__} on variable {self.variable.name!r} in bag {self.bag.number}"


@dataclass(frozen=True)
class Outcome:
    """What a fit says of the rows it scored."""

    variable: str
    rows: Rows
    values: FloatArray
    agreement: FloatArray
    gains: FloatArray | None = None
    n_trees: int | None = None


class EntropyValuator(BaseEstimator):
    """Base of the valuators: subclasses say which bags there are."""

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> EntropyValuator:
        """Value every row.

        Parameters
        ----------
        X : array, sparse matrix, pandas, polars or pyarrow table of shape (n_rows, n_columns)
            The features. Strings, categories and missing values are fine.
        y : array-like of shape (n_rows,)
            The target.
        sensitive_features : Series, array, DataFrame, dict, or name(s) of columns of X, optional
            The protected attributes. Without any, the target alone is valued.

        Returns
        -------
        self
            With `valuation_`, `excluded_columns_` (per attribute, the features kept from its models) and
            `seed_`, which as `random_state` gives the same values again.
        """
        table = _checked_table(X)
        self._check(table.n_rows)
        self.n_features_in_ = table.n_columns
        if is_frame(X) and _names_are_text(X):
            self.feature_names_in_ = np.asarray(table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        variables = self._variables(table, y, sensitive_features)
        self.excluded_columns_ = {
            variable.name: [table.names[j] for j in sorted(variable.excluded)] for variable in variables[1:]
        }
        self.seed_ = _seed(self.random_state)
        bags = self._bags(variables, np.random.default_rng([self.seed_, 0]))
        estimators = _estimators(self.estimators, table.n_columns)
        fits = _plan(estimators, variables, bags, self.seed_)
        moments = {variable.name: Moments(table.n_rows) for variable in variables}
        gains = {variable.name: np.zeros(table.n_columns + 1) for variable in variables}
        trees: dict[str, int | None] = dict.fromkeys(moments)
        defaults = self.estimators is None
        outcomes = _run(fits, table, variables[0], n_workers(self.n_jobs), defaults=defaults)
        for outcome in tracked(outcomes, len(fits), what="fits", show=self.progress):
            moments[outcome.variable].add(outcome.rows, outcome.values, outcome.agreement)
            if outcome.gains is not None:
                gains[outcome.variable] += outcome.gains
            trees[outcome.variable] = outcome.n_trees
        learnt = what_models_learnt(table.names, variables, moments, gains)
        metadata = self._metadata(variables, estimators) | learnt
        if any(trees.values()):
            metadata["trees"] = trees
        self.valuation_ = _valuation(variables, moments, metadata)
        return self

    def _check(self, n_rows: int) -> None:
        """Refuse settings that cannot work with so many rows, before anything else is done."""

    @abstractmethod
    def _bags(self, variables: Sequence[Variable], generator: np.random.Generator) -> list[Bag]:
        """Say which rows every bag holds."""

    @abstractmethod
    def _algorithm(self) -> dict[str, Any]:
        """Describe the algorithm and its settings for the valuation's metadata."""

    def _variables(self, table: Table, y: Any, sensitive_features: Any) -> list[Variable]:
        target = target_column(y, table.n_rows)
        protected = protected_columns(sensitive_features, table)
        kinds = check_kinds(self.kinds, ["y", *(column.name for column, _ in protected)])
        by_hand = _excluded_by_hand(self.z_exclude, table, [column.name for column, _ in protected])
        variables = [variable_from(target, kind=kinds.get("y"))]
        _warn_of_target_among_features(variables[0], table)
        for column, position in protected:
            own = frozenset() if position is None else frozenset({position})
            variable = variable_from(
                column,
                kind=kinds.get(column.name),
                excluded=own | by_hand[column.name],
                sees_target=bool(self.z_sees_target),
            )
            variables.append(_without_giveaways(variable, table))
        return variables

    def _metadata(self, variables: Sequence[Variable], estimators: Sequence[Any]) -> dict[str, Any]:
        return {
            **self._algorithm(),
            "seed": self.seed_,
            "z_sees_target": bool(self.z_sees_target),
            "estimators": [" ".join(repr(estimator).split()) for estimator in estimators],
            "variables": {
                variable.name: {"kind": variable.kind, "classes": list(variable.classes)}
                for variable in variables
            },
            "excluded_columns": self.excluded_columns_,
            "versions": library_versions(),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _checked_table(X: Any) -> Table:
    table = Table.from_input(X)
    if table.n_rows < 2:
        raise ValueError(
            f"`X` has {table.n_rows} row(s) (n_samples = {table.n_rows}); at least 2 are needed."
        )
    if table.n_columns == 0:
        raise ValueError(
            f"`X` has 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required: keep some "
            "columns."
        )
    return table


def _names_are_text(frame: Any) -> bool:
    names = frame.column_names if isinstance(frame, pa.Table) else frame.columns
    return all(isinstance(name, str) for name in names)


def _seed(random_state: Any) -> int:
    """Turn a `random_state` into one whole number that can be written down."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"`random_state` must not be negative, got {random_state}.")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


def _excluded_by_hand(z_exclude: Any, table: Table, attributes: Sequence[str]) -> dict[str, frozenset[int]]:
    """Find the columns that the user keeps from each attribute's models."""
    if z_exclude is None:
        z_exclude = []
    elif isinstance(z_exclude, str):
        z_exclude = [z_exclude]
    if not isinstance(z_exclude, Mapping):
        z_exclude = dict.fromkeys(attributes, z_exclude)
    unknown = [name for name in z_exclude if name not in attributes]
    if unknown:
        raise ValueError(
            f"`z_exclude` names {unknown[0]!r}, which is none of the attributes {list(attributes)}."
        )
    found = {}
    for attribute in attributes:
        positions: set[int] = set()
        for name in z_exclude.get(attribute, []):
            here = table.positions(name)
            if not here:
                raise ValueError(f"`z_exclude` names {name!r}, which is not a column of X.")
            positions.update(here)
        found[attribute] = frozenset(positions)
    return found


def _warn_of_target_among_features(target: Variable, table: Table) -> None:
    copies = [table.names[j] for j in columns_equal_to(target, table)]
    if copies:
        warnings.warn(
            f"Column(s) {', '.join(map(repr, copies))} of X repeat the target: models will be sure of every "
            "row. Leave them out of X.",
            UserWarning,
            stacklevel=4,
        )


def _without_giveaways(variable: Variable, table: Table) -> Variable:
    """Leave out of an attribute's models the columns that alone determine it, and say so."""
    found = columns_that_determine(variable, table, variable.excluded)
    if found:
        names = ", ".join(repr(table.names[j]) for j in found)
        warnings.warn(
            f"Column(s) {names} of X alone determine the protected attribute {variable.name!r} and are left "
            "out of its models; name them in `z_exclude` to leave them out without this warning.",
            UserWarning,
            stacklevel=4,
        )
    excluded = variable.excluded | frozenset(found)
    if len(excluded) == table.n_columns and not variable.sees_target:
        raise ValueError(f"No column of X is left for the models of {variable.name!r}: pass more features.")
    return replace(variable, excluded=excluded)


def _estimators(given: Any, n_columns: int) -> list[Any]:
    if given is None:
        return _lightgbm.default_estimators(n_columns)
    estimators = list(given) if isinstance(given, list | tuple) else [given]
    if not estimators:
        raise ValueError("`estimators` is empty: pass one or more, or None for the default models.")
    for estimator in estimators:
        if (
            isinstance(estimator, type)
            or not hasattr(estimator, "fit")
            or not hasattr(estimator, "get_params")
        ):
            raise TypeError(f"`estimators` must be unfitted scikit-learn estimators, got {estimator!r}.")
    return estimators


def _serving(estimators: Sequence[Any], variable: Variable) -> list[Any]:
    """Choose the estimators that can learn a variable: classifiers for classes, regressors for numbers."""
    fitting = is_classifier if variable.kind == "classes" else is_regressor
    serving = [estimator for estimator in estimators if fitting(estimator)]
    if not serving:
        needed = "classifier" if variable.kind == "classes" else "regressor"
        kind = "class" if variable.kind == "classes" else "continuous"
        raise ValueError(
            f"`estimators` holds no {needed} for the {kind} variable {variable.name!r}: add one."
        )
    for estimator in serving:
        if variable.kind == "classes" and not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"{type(estimator).__name__} has no `predict_proba`, from which values come: use another "
                "classifier, or wrap it in `sklearn.calibration.CalibratedClassifierCV`."
            )
    return serving


def _plan(
    estimators: Sequence[Any], variables: Sequence[Variable], bags: Sequence[Bag], seed: int
) -> list[Fit]:
    """List every fit, each with a seed of its own that depends on nothing but its place in the list."""
    serving = [
        (variable, estimator) for variable in variables for estimator in _serving(estimators, variable)
    ]
    wanted = [(estimator, variable, bag) for variable, estimator in serving for bag in bags]
    seeds = np.random.SeedSequence([seed, 1]).generate_state(len(wanted))
    return [Fit(*which, int(own) % 2**31) for which, own in zip(wanted, seeds, strict=True)]


def _run(
    fits: Sequence[Fit], table: Table, target: Variable, workers: int, *, defaults: bool
) -> Iterator[Outcome]:
    """Run every fit by the engine that honours its estimator, and give the outcomes in a fixed order."""
    estimators = {id(fit.estimator): fit.estimator for fit in fits}
    honoured = {
        key for key, estimator in estimators.items() if not table.is_sparse and _lightgbm.supports(estimator)
    }
    native = [fit for fit in fits if id(fit.estimator) in honoured]
    generic = [fit for fit in fits if id(fit.estimator) not in honoured]
    if native:
        in_order = sorted(native, key=lambda fit: fit.bag.number)
        yield from _run_lightgbm(in_order, table, target, workers, defaults=defaults)
    if generic:
        yield from with_joblib(_run_generic, _laid_out(generic, table, target), workers)


def _run_lightgbm(
    fits: Sequence[Fit], table: Table, target: Variable, workers: int, *, defaults: bool
) -> Iterator[Outcome]:
    sees_target = any(fit.variable.sees_target for fit in fits)
    engine = _lightgbm.LightGBMEngine(table, target if sees_target else None, workers, by_content=defaults)
    for fit in {(id(fit.estimator), fit.variable.name): fit for fit in fits}.values():
        engine.prepare(fit.estimator, fit.variable)

    def run(fit: Fit, stop: threading.Event, watch: LossCurve | None = None) -> Outcome:
        rows = fit.learnable()
        scored = fit.scored_beyond(rows)
        return _outcome(
            fit,
            lambda: engine.predict(fit.estimator, fit.variable, rows, scored, fit.seed, stop, watch),
            rows,
        )

    if defaults and fits[0].bag.out_of_bag is not None:
        return _with_as_many_trees_as_help(run, fits, workers)
    return in_threads(run, fits, workers)


def _with_as_many_trees_as_help(
    run: Callable[..., Outcome], fits: Sequence[Fit], workers: int
) -> Iterator[Outcome]:
    """Let the first bags' unseen rows say how many trees a variable's models need, then run the others."""
    unseen = list({fit.bag.number: fit.bag.scored for fit in fits}.values())
    variables = {fit.variable.name: fit.variable for fit in fits}
    telling = max(bags_that_tell(variable, unseen) for variable in variables.values())
    first = [fit for fit in fits if fit.bag.number < telling]
    curves = {(fit.variable.name, fit.bag.number): LossCurve(fit.variable, fit.bag.scored) for fit in first}

    def watched(fit: Fit, stop: threading.Event) -> Outcome:
        return run(fit, stop, curves[fit.variable.name, fit.bag.number])

    for _ in in_threads(watched, first, workers):
        pass  # what they say is in the curves
    models = {}
    for name, model in {fit.variable.name: fit.estimator for fit in fits}.items():
        own = [curve.losses for (variable, _), curve in curves.items() if variable == name]
        models[name] = clone(model).set_params(
            n_estimators=best_number_of_trees(own, most=model.n_estimators)
        )
    rest = []
    for fit in fits:
        model, curve = models[fit.variable.name], curves.pop((fit.variable.name, fit.bag.number), None)
        said = None if curve is None else curve.kept.get(model.n_estimators)
        if said is None:
            rest.append(replace(fit, estimator=model))
        else:  # the very fit that would be run
            outcome = _outcome(fit, lambda said=said: said, fit.learnable())
            yield replace(outcome, n_trees=model.n_estimators)
    for outcome in in_threads(run, rest, workers):
        yield replace(outcome, n_trees=models[outcome.variable].n_estimators)


def _laid_out(fits: Sequence[Fit], table: Table, target: Variable) -> Iterator[tuple[Fit, Any]]:
    """Lay the features out once per estimator and variable; the fits stand in that order."""
    last, features = None, None
    for fit in fits:
        key = (id(fit.estimator), fit.variable.name)
        if key != last:
            last, features = key, _sklearn.features_for(fit.estimator, table, fit.variable, target)
        yield fit, features


def _run_generic(fit: Fit, features: Any) -> Outcome:
    rows = fit.learnable()
    scored = fit.scored_beyond(rows)
    return _outcome(
        fit,
        lambda: (
            _sklearn.fit_and_predict(fit.estimator, features, fit.variable, rows, scored, fit.seed),
            None,
        ),
        rows,
    )


def _outcome(fit: Fit, predict: Any, learnt: Rows) -> Outcome:
    """Run one fit and reduce its predictions to what is averaged; an error names the fit."""
    variable, scored = fit.variable, fit.bag.scored
    labels = variable.labels[learnt]
    gains = None
    if variable.kind == "classes" and len(labels) and (labels == labels[0]).all():
        # Nothing to learn: the one class that the bag holds is certain. Estimators refuse such labels,
        # and LightGBM's own wrapper turns their probabilities round.
        predicted = np.zeros((len(scored), len(variable.classes)))
        predicted[:, labels[0]] = 1.0
    else:
        try:
            predicted, gains = predict()
        except Exception as error:
            raise RuntimeError(f"{fit} failed: {error}") from error
    if len(predicted) != len(scored):
        raise RuntimeError(f"{fit} gave {len(predicted)} predictions for {len(scored)} rows.")
    training_mean = float(labels.mean()) if variable.kind == "continuous" else float("nan")
    values, agreement = row_statistics(variable, scored, predicted, training_mean)
    return Outcome(variable.name, scored, values, agreement, gains)


def _valuation(
    variables: Sequence[Variable], moments: Mapping[str, Moments], metadata: dict[str, Any]
) -> Valuation:
    done = {variable.name: finished(variable, moments[variable.name]) for variable in variables}
    return Valuation(
        values={name: parts[0] for name, parts in done.items()},
        standard_error={name: parts[1] for name, parts in done.items()},
        counts={name: moments[name].count for name in done},
        agreement={name: parts[2] for name, parts in done.items()},
        metadata=metadata,
    )
