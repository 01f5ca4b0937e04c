"""KNN-Shapley: what rows do to a vote of nearest neighbours, exactly."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._checks import check_count
from fado._messages import COMPARE_TARGET
from fado._progress import tracked
from fado._version import library_versions
from fado.execution import ThreadExecutor, n_workers
from fado.tabular import Problem
from fado.valuation._bags import MOST_BAGS, check_memory, out_of_bag_sets, strata_of
from fado.valuation._base import BaseValuator, register_valuator
from fado.valuation._provenance import Provenance, VariableNote
from fado.valuation._result import Valuation
from fado.valuation._validation_rows import ValidationRows, check_metrics, effect_scales, read_validation_rows
from fado.valuation.shapley._distances import read_points
from fado.valuation.shapley._knn_values import (
    Game,
    Round,
    Sums,
    Vote,
    class_payoffs,
    hold_vote,
    n_tasks,
    number_payoffs,
    plan_tasks,
    positive_payoffs,
)

__all__ = ["KNNShapley"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.integer[Any]]

_MOST_NEIGHBORS = 10**9


@register_valuator("knn-shapley")
class KNNShapley(BaseValuator):
    """Value every row by its Shapley value in a vote of nearest neighbours.

    The label of a validation row is predicted by the votes of the K valued rows nearest to it. To one
    validation row, a set of valued rows is worth the number of right votes among its K nearest rows, divided
    by K, also if the set has fewer than K rows; the empty set is worth 0. A set's worth is the mean over the
    validation rows, and the worth of all rows is the accuracy of the votes. The value of a row for ``"y"`` is
    its Shapley value: what it adds to a set of other rows, averaged over all orders in which rows can join.
    It is computed exactly. If the target is a number, a vote counts 1 minus its error, as a share of the
    target's range.

    For a protected attribute, the value is the row's share in a ratio of rates. A validation row counts as
    predicted positive to the degree that its K votes are positive. A ratio is not a sum over validation rows,
    so the share is taken in its linear approximation around the vote of all rows; only the groups with the
    lowest and the highest rate play a part in it.

    With `validation`, all valued rows vote on the rows of `validation`. Without it, each of `n_bags` bags
    leaves out some rows, every row once, and the other rows vote on them; a row's value is the sum of its
    shares over the bags.

    The distance of two rows is a sum over columns. Numbers add the square of their difference, divided by the
    variance among the valued rows; columns that do not vary are left out. Text, categories and booleans add 1
    if they differ. A missing entry adds 1 against any other and 0 against another missing one. Of rows at the
    same distance, those that come first in the table count as nearer.

    Votes have no weights. Without `validation`, `sample_weight` says how much each row counts where it is
    validated; with `validation` it has no effect.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many rows vote, K.
    performance : {"accuracy"}, default="accuracy"
        The metric that values for ``"y"`` are effects on. Other metrics are not sums over votes; use
        `TreeInfluence` or `DataShapley` for them.
    fairness : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}, default="fpr_ratio"
        The ratio that values for protected attributes are effects on. It needs a target of two classes.
    n_bags : int, default=5
        How many bags; not used with `validation`.
    random_state : int, RandomState or None, default=None
        Seed of the bags.
    n_jobs : int, optional
        How many threads work; None uses every core. It never changes a value.
    progress : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    valuation_ : Valuation
        The values: signed effects, 0 is neutral. `counts` says how many bags held each row. There are no
        standard errors and no agreement.
    bags_ : list of ndarray
        The positions of the rows that each bag left out; empty with `validation`.
    seed_ : int
        The seed; as `random_state` it gives the same values again.

    Examples
    --------
    >>> import numpy as np
    >>> from fado import KNNShapley
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> y[:50] = 1 - y[:50]  # wrong labels
    >>> sex = rng.choice(["f", "m"], size=1000)
    >>> valuation = KNNShapley(random_state=0).fit(X, y, sensitive_features={"sex": sex}).valuation_
    >>> bool(valuation["y"][:50].mean() < 0 < valuation["y"][50:].mean())
    True
    >>> round(float(valuation["y"].sum()), 2)  # the accuracy of the votes
    0.89
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        performance: str = "accuracy",
        fairness: str = "fpr_ratio",
        n_bags: int = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.performance = performance
        self.fairness = fairness
        self.n_bags = n_bags
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _value(self, problem: Problem, validation: Problem | None, seed: int) -> Valuation:
        n_neighbors = self._check(problem, validation)
        game = _read_game(problem, validation)
        points, validated = read_points(problem.table, None if validation is None else validation.table)
        self.bags_ = self._draw_bags(problem, seed) if validation is None else []
        if validation is None:
            rounds = [Round(_others(problem.n_rows, bag), bag) for bag in self.bags_]
        else:
            rounds = [Round(np.arange(problem.n_rows), np.arange(validation.n_rows))]
        counted = Sums(game, problem.n_rows, n_neighbors)
        tasks = plan_tasks(rounds, points, game, n_neighbors)
        vote = Vote(game, validated, n_neighbors)
        done = ThreadExecutor(n_workers(self.n_jobs)).run(hold_vote, tasks, vote)
        for result in tracked(done, n_tasks(rounds), what="blocks of validation rows", show=self.progress):
            counted.add(result)
        values = counted.values(rounds, str(self.fairness))
        held = np.zeros(problem.n_rows, dtype=np.int32)
        for own in rounds:
            held[own.valued] += 1
        settings = {"n_neighbors": n_neighbors, "performance": self.performance, "fairness": self.fairness}
        return Valuation(
            values,
            counts=dict.fromkeys(values, held),
            scales=effect_scales(values, "accuracy", self.fairness),
            provenance=Provenance(
                "knn-shapley",
                settings=settings if validation is not None else settings | {"n_bags": int(self.n_bags)},
                seed=seed,
                variables={own.name: VariableNote(own.kind, own.classes) for own in problem.variables},
                versions=library_versions(),
            ),
        )

    def _check(self, problem: Problem, validation: Problem | None) -> int:
        """Refuse settings that cannot work with these rows; give the number of neighbours."""
        n_neighbors = check_count("n_neighbors", self.n_neighbors, 1, _MOST_NEIGHBORS)
        check_metrics(self.performance, self.fairness)
        if self.performance != "accuracy":
            raise ValueError(
                "`performance` of KNNShapley must be 'accuracy', which is a sum over neighbours, got "
                f"{self.performance!r}: use TreeInfluence or DataShapley for it."
            )
        n_workers(self.n_jobs)
        if validation is None:
            check_count("n_bags", self.n_bags, 2, MOST_BAGS)
            check_memory(problem.n_rows, self.n_bags)
            n_units, units = problem.n_rows, "rows"
            if problem.blocks is not None:
                n_units, units = int(problem.blocks.max()) + 1, "groups of rows"
            if n_units < self.n_bags:
                raise ValueError(
                    f"`n_bags` must be at most the number of {units}, {n_units} (n_samples = {n_units}), got "
                    f"{self.n_bags}: use fewer bags or more {units}."
                )
        return n_neighbors

    def _draw_bags(self, problem: Problem, seed: int) -> list[npt.NDArray[np.int32]]:
        fraction = 1.0 / self.n_bags
        strata = strata_of(problem.variables, fraction)
        generator = np.random.default_rng([seed, 0])
        return out_of_bag_sets(problem.n_rows, self.n_bags, fraction, strata, generator, problem.blocks)


def _read_game(problem: Problem, validation: Problem | None) -> Game:
    target = problem.target
    if target.kind == "classes" and len(target.classes) <= 2:
        return _game_of_positives(problem, read_validation_rows(problem, validation, "KNNShapley"))
    if problem.protected:
        found = "is continuous" if target.kind == "continuous" else f"has {len(target.classes)} classes"
        raise ValueError(
            f"Ratios of rates need a target of two classes, and `y` {found}: {COMPARE_TARGET}, or "
            "leave `sensitive_features` out."
        )
    if target.kind == "continuous":
        payoffs: Callable[[FloatArray, float], FloatArray] = number_payoffs
        valued, validated = _numbers(problem, validation)
    else:
        payoffs = class_payoffs
        valued, validated = target.labels.astype(np.float64), _codes(problem, validation)
    weights = problem.sample_weight if validation is None else validation.sample_weight
    n_validated = len(validated)
    return Game(
        payoffs,
        valued,
        validated,
        np.ones(n_validated) if weights is None else weights,
        np.zeros((n_validated, 1), dtype=np.int64),
        (1,),
    )


def _game_of_positives(problem: Problem, rows: ValidationRows) -> Game:
    sizes = tuple(2 * len(own.names) for own in rows.attributes) or (2,)
    groups = [own.codes for own in rows.attributes] or [np.zeros(rows.n_rows, dtype=np.int64)]
    starts = accumulate(sizes, initial=0)
    cells = [start + 2 * codes + rows.positive for start, codes in zip(starts, groups, strict=False)]
    return Game(
        positive_payoffs,
        problem.labels.is_positive.astype(np.float64),
        rows.positive.astype(np.float64),
        rows.weights,
        np.column_stack(cells),
        sizes,
        rows,
    )


def _numbers(problem: Problem, validation: Problem | None) -> tuple[FloatArray, FloatArray]:
    """Give the target of valued and of validation rows in units of its range."""
    valued = problem.target.labels.astype(np.float64)
    validated = valued
    if validation is not None:
        source = validation.sources[0]
        if source.levels is not None:
            raise ValueError(
                "`y` holds text among the validation rows and numbers among the valued: convert it."
            )
        validated = source.numbers()
    low = min(valued.min(), validated.min())
    width = max(valued.max(), validated.max()) / 2 - low / 2  # halves, so that it is finite
    return (valued / 2 - low / 2) / width, (validated / 2 - low / 2) / width


def _codes(problem: Problem, validation: Problem | None) -> FloatArray:
    """Give the validation rows' labels as the valued rows number them; -1 for one that they do not have."""
    if validation is None:
        return problem.target.labels.astype(np.float64)
    source = validation.sources[0]
    codes, entries = source.encode()
    place = {label: code for code, label in enumerate(problem.target.classes)}
    places = np.array([place.get(source.label_of(entry), -1) for entry in entries], dtype=np.float64)
    if (places < 0).all():
        raise ValueError(
            f"Validation rows have the label {source.label_of(entries[0])!r}, and none that the valued rows "
            "have: give both the same labels."
        )
    return places[codes]


def _others(n_rows: int, rows: Rows) -> Rows:
    inside = np.ones(n_rows, dtype=np.bool_)
    inside[rows] = False
    return np.flatnonzero(inside)
