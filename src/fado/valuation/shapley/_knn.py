"""KNN-Shapley: the exact effect of rows on a vote of nearest neighbours.

The worth of a set of rows to a validation row is the sum of the payoffs of those K of the set that are
nearest to it, divided by K. With the payoffs in order of distance, the shares of all rows follow from one
pass from the farthest to the nearest (Jia et al., 2019).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fado._checks import check_count
from fado._memory import check_room_for
from fado._messages import COMPARE_TARGET, insert_parameters
from fado._progress import tracked
from fado._typing import Floats, Integers
from fado.execution import ThreadExecutor, n_workers
from fado.tabular import UNSEEN, Problem, label_codes
from fado.valuation._bags import BYTES, MOST_BAGS, out_of_bag_sets, strata_of, units_of
from fado.valuation._base import BaseValuator, provenance_of, register_valuator, valuator_parameters
from fado.valuation._result import Valuation
from fado.valuation._validation_rows import ValidationRows, check_metrics, effect_scales, read_validation_rows
from fado.valuation.shapley._distances import TablePoints, read_points, squared_distances

_MOST_NEIGHBORS = 10**9
_ROWS_PER_TASK = 128  # validation rows
_ENTRIES = 1 << 20  # distances that one worker holds at a time


@register_valuator("knn-shapley")
@insert_parameters(valuator_parameters)
@dataclass(eq=False, repr=False)
class KNNShapley(BaseValuator):
    """Value rows by their Shapley value in a vote of nearest neighbours.

    The label of a validation row is predicted by the votes of the K valued rows nearest to it. The worth of a
    set of valued rows to one validation row is the number of right votes among its K nearest rows, divided
    by K, also if the set has fewer than K rows; the empty set is worth 0. A set's worth is the mean over the
    validation rows, and the worth of all rows is the accuracy of the votes. The value of a row for ``"y"`` is
    its Shapley value: what it adds to a set of other rows, averaged over all orders in which rows can join.
    It is computed exactly. If the target is a number, a vote counts 1 minus its error, as a share of the
    target's range.

    For a protected attribute, the value is the row's share in a ratio of rates. A validation row counts as
    predicted positive to the degree that its K votes are positive. A ratio is not a sum over validation rows,
    so the share is taken in its linear approximation around the vote of all rows; the groups with the lowest
    and the highest rate determine it.

    With `validation`, all valued rows vote on the validation data. Without it, each of `n_bags` bags
    leaves out some rows, every row once, and the other rows vote on them; a row's value is the sum of its
    shares over the bags.

    The distance of two rows is a sum over columns. Numbers add the square of their difference, divided by the
    variance among the valued rows; columns that do not vary are left out. Text, categories and booleans add 1
    if they differ. A missing entry adds 1 against any other and 0 against another missing one. Of rows at the
    same distance, those that come first in the table count as nearer.

    Votes have no weights. Without `validation`, `sample_weight` is how much each row counts when it is
    validated; with `validation` it has no effect.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many rows vote, K.
    performance : {"accuracy"}, default="accuracy"
        The metric that the values of ``"y"`` are effects on. Other metrics are not sums over votes; use
        `TreeInfluence` or `DataShapley` for them.
    fairness : {"fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"}, default="fpr_ratio"
        The ratio that the values of protected attributes are effects on. It needs a target of two classes.
    n_bags : int, default=5
        How many bags; not used with `validation`.
    {random_state, n_jobs, progress}

    Attributes
    ----------
    valuation_ : Valuation
        The values: signed effects, 0 is neutral. `counts` is how many bags held each row. There are no
        standard errors and no label probabilities.
    bags_ : list of ndarray
        The positions of the rows that each bag left out; empty with `validation`.
    {seed_}

    See Also
    --------
    fado.TreeInfluence : Effects on a LightGBM model.
    fado.DataShapley : Effects on any classifier, by training many models.

    References
    ----------
    R. Jia, D. Dao, B. Wang, F. A. Hubis, N. M. Gurel, B. Li, C. Zhang, C. Spanos and D. Song (2019),
    "Efficient Task-Specific Data Valuation for Nearest Neighbor Algorithms", VLDB, arXiv:1908.08619.

    Examples
    --------
    The first 50 labels are wrong:

    >>> import numpy as np
    >>> from fado import KNNShapley
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> y[:50] = 1 - y[:50]
    >>> values = KNNShapley(random_state=0).fit(X, y).valuation_["y"]
    >>> round(float(values[:50].sum()), 1), round(float(values[50:].sum()), 1)
    (-0.1, 1.0)
    >>> round(float(values.sum()), 2)  # the accuracy of the votes
    0.89
    """

    n_neighbors: int = 5
    _: KW_ONLY
    performance: str = "accuracy"
    fairness: str = "fpr_ratio"
    n_bags: int = 5
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool = False

    def _value(self, problem: Problem, validation: Problem | None, seed: int) -> Valuation:
        n_neighbors = self._check(problem, validation)
        vote = _read_vote(problem, validation)
        points, validated = read_points(problem.table, None if validation is None else validation.table)
        every = np.arange(problem.n_rows)
        self.bags_ = []
        if validation is None:
            fraction = 1.0 / self.n_bags
            strata = strata_of(problem.variables, fraction)
            bags = np.random.default_rng([seed, 0]), problem.blocks
            self.bags_ = out_of_bag_sets(problem.n_rows, self.n_bags, fraction, strata, *bags)
            rounds: list[tuple[Integers, Integers]] = [(np.delete(every, bag), bag) for bag in self.bags_]
        else:
            rounds = [(every, np.arange(validation.n_rows))]
        sums, degrees = np.zeros((sum(vote.sizes), problem.n_rows)), np.zeros(len(vote.validated))
        held = np.zeros(problem.n_rows, dtype=np.int32)
        for valued, _ in rounds:
            held[valued] += 1
        tasks = _plan_tasks(rounds, points, vote, n_neighbors)
        done = ThreadExecutor(n_workers(self.n_jobs)).run(_hold_vote, tasks, (vote, validated, n_neighbors))
        n_tasks = sum(-(-len(bag) // _ROWS_PER_TASK) for _, bag in rounds)
        for result in tracked(done, n_tasks, what="blocks of validation rows", show=self.progress):
            task, cells, by_cell, of_rows = result
            degrees[task.validated] = of_rows
            for cell, of_cell in zip(cells, by_cell, strict=True):
                sums[cell, task.valued] += of_cell
        values = _values(vote, sums, degrees, rounds, n_neighbors, str(self.fairness))
        settings = {"n_neighbors": n_neighbors, "performance": self.performance, "fairness": self.fairness}
        return Valuation(
            values,
            counts=dict.fromkeys(values, held),
            scales=effect_scales(values, "accuracy", self.fairness),
            provenance=provenance_of(
                "knn-shapley",
                problem,
                seed,
                settings if validation is not None else settings | {"n_bags": int(self.n_bags)},
            ),
        )

    def _check(self, problem: Problem, validation: Problem | None) -> int:
        """Raise an error for settings that cannot work with these rows; return the number of neighbours."""
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
            n_bytes = BYTES * problem.n_rows * self.n_bags
            check_room_for(f"`n_bags={self.n_bags}` of {problem.n_rows:,} rows", n_bytes)
            n_units, units = units_of(problem)
            if n_units < self.n_bags:
                raise ValueError(
                    f"`n_bags` must be at most the number of {units}, {n_units} (n_samples = {n_units}), got "
                    f"{self.n_bags}: use fewer bags or more {units}."
                )
        return n_neighbors


@dataclass(frozen=True, eq=False)
class _Vote:
    """The labels of valued and of validation rows, as numbers, and the payoffs of votes.

    A row's shares are added up over the validation rows of a cell: a label and a group. A metric's
    coefficients are the same for all rows of a cell, except for their weights, and are known once all have
    voted. `cells`, of shape (n_validated, n_attributes or 1), are odd for the positive label, if the target
    has two; `sizes` is the number of cells of each column. With `rows`, votes pay for positive labels, right
    or wrong.
    """

    valued: Floats
    validated: Floats
    weights: Floats
    cells: npt.NDArray[np.int64]
    sizes: tuple[int, ...] = (1,)
    rows: ValidationRows | None = None
    of_numbers: bool = False

    def payoffs(self, labels: Floats, row: int) -> Floats:
        """Return the payoffs of valued rows with these labels for a validation row."""
        if self.rows is not None:
            return labels
        label = self.validated[row]
        return 1.0 - np.abs(labels - label) if self.of_numbers else (labels == label).astype(np.float64)


def _read_vote(problem: Problem, validation: Problem | None) -> _Vote:
    target = problem.target
    if target.kind == "classes" and len(target.classes) <= 2:
        rows = read_validation_rows(problem, validation, "KNNShapley")
        sizes = tuple(2 * len(attribute.names) for attribute in rows.attributes) or (2,)
        groups = [attribute.codes for attribute in rows.attributes] or [np.zeros(rows.n_rows, dtype=np.int64)]
        starts = accumulate(sizes, initial=0)
        places = [start + 2 * codes + rows.positive for start, codes in zip(starts, groups, strict=False)]
        positive, validated = (
            each.astype(np.float64) for each in (problem.labels.is_positive, rows.positive)
        )
        return _Vote(positive, validated, rows.weights, np.column_stack(places), sizes, rows)
    if problem.protected:
        what = "is continuous" if target.kind == "continuous" else f"has {len(target.classes)} classes"
        raise ValueError(
            f"Ratios of rates need a target of two classes, and `y` {what}: {COMPARE_TARGET}, or "
            "leave `sensitive_features` out."
        )
    valued = validated = target.labels.astype(np.float64)
    if validation is not None and target.kind == "classes":
        validated = _codes(problem, validation)
    elif validation is not None:
        source = validation.sources[0]
        if source.levels is not None:
            raise ValueError(
                "`y` holds text among the validation rows and numbers among the valued: convert it."
            )
        validated = source.numbers()
    if target.kind == "continuous":  # in units of its range
        low = min(valued.min(), validated.min())
        width = max(valued.max(), validated.max()) / 2 - low / 2  # halves, so that it is finite
        valued, validated = ((labels / 2 - low / 2) / width for labels in (valued, validated))
    weights = problem.sample_weight if validation is None else validation.sample_weight
    weights = np.ones(len(validated)) if weights is None else weights
    cells = np.zeros((len(validated), 1), dtype=np.int64)
    return _Vote(valued, validated, weights, cells, of_numbers=target.kind == "continuous")


def _codes(problem: Problem, validation: Problem) -> Floats:
    """Return the validation rows' labels with the codes of the valued rows; -1 for new labels."""
    source = validation.sources[0]
    codes = label_codes(source, problem.target.classes)
    if (codes == UNSEEN).all():
        raise ValueError(
            f"Validation rows have the label {source.label_of(source.encode()[1][0])!r}, and none that the "
            "valued rows have: give both the same labels."
        )
    return codes.astype(np.float64)


def nearest_first(distances: Floats) -> npt.NDArray[np.int64]:
    """Order positions by distance, each row of an array separately; equally far ones come by position.

    The array, of numbers from 0 on, is overwritten. Distances count as equal if they agree to about ten
    digits: each shares 64 bits with its position, and these sort much faster than pairs of the two.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_first(np.array([[0.5, 0.0, 0.5, 0.1]]))
    array([[1, 3, 0, 2]])
    """
    n_rows = distances.shape[1]
    low = np.uint64((1 << max(1, (n_rows - 1).bit_length())) - 1)
    keys = distances.view(np.uint64)
    keys <<= np.uint64(1)  # the sign, which is always the same
    keys &= ~low
    keys |= np.arange(n_rows, dtype=np.uint64)
    keys.sort(axis=1)
    keys &= low
    return keys.view(np.int64)


def rank_weights(n_rows: int, n_neighbors: int) -> tuple[Floats, Floats]:
    """Return the weights of a payoff by its rank: for the row itself, and against it and all nearer rows.

    Jia et al. have ``s[N] = a[N] / max(K, N)`` and ``s[i] = s[i + 1] + (a[i] - a[i + 1]) / max(K, i)``. Added
    up, ``s[i] = a[i] * of_row[i] - sum(a[l] * against[l] for l >= i)``.
    """
    rank = np.arange(1, n_rows + 1, dtype=np.float64)
    before = np.maximum(n_neighbors, rank - 1.0)
    of_row = 1.0 / before
    return of_row, of_row - 1.0 / np.maximum(n_neighbors, rank)


def shares(payoffs: Floats, weights: tuple[Floats, Floats]) -> Floats:
    """Return every row's Shapley value for one validation row, from payoffs by distance, the nearest first.

    Examples
    --------
    >>> import numpy as np
    >>> shares(np.array([1.0, 0.0, 1.0]), rank_weights(3, 1)).round(3)
    array([ 0.833, -0.167,  0.333])
    """
    of_row, against = weights
    lost = np.cumsum((payoffs * against)[::-1])[::-1]
    return payoffs * of_row - lost


class _Task(NamedTuple):
    """Some validation rows of a round, and the rows that vote on them."""

    valued: Integers
    validated: Integers
    points: TablePoints
    labels: Floats
    weights: tuple[Floats, Floats]


def _plan_tasks(
    rounds: Sequence[tuple[Integers, Integers]], points: TablePoints, vote: _Vote, n_neighbors: int
) -> Iterator[_Task]:
    """Cut rounds into tasks, the same ones for any number of workers."""
    for valued, validated in rounds:
        voters = points if len(valued) == points.n_rows else points.take(valued)
        labels, weights = vote.valued[valued], rank_weights(len(valued), n_neighbors)
        for start in range(0, len(validated), _ROWS_PER_TASK):
            yield _Task(valued, validated[start : start + _ROWS_PER_TASK], voters, labels, weights)


def _hold_vote(
    task: _Task, shared: tuple[_Vote, TablePoints, int], stop: threading.Event
) -> tuple[_Task, npt.NDArray[np.int64], Floats, Floats]:
    """Let the nearest rows vote on some validation rows; return their shares by cell, and the payoffs."""
    vote, points, n_neighbors = shared
    n_valued = len(task.valued)
    cells, places = np.unique(vote.cells[task.validated], return_inverse=True)
    places = places.reshape(len(task.validated), -1)
    sums = np.zeros((len(cells), n_valued))
    degrees = np.empty(len(task.validated))
    by_row = np.empty(n_valued)
    step = max(1, _ENTRIES // max(n_valued, task.points.width))
    for start in range(0, len(task.validated), step):
        if stop.is_set():
            break
        rows = task.validated[start : start + step]
        orders = nearest_first(squared_distances(points.take(rows), task.points))
        for number, (row, order) in enumerate(zip(rows, orders, strict=True), start):
            payoffs = vote.payoffs(task.labels, row)[order]
            degrees[number] = payoffs[:n_neighbors].sum() / n_neighbors
            by_row[order] = shares(payoffs, task.weights)
            if vote.weights[row] != 1.0:
                np.multiply(by_row, vote.weights[row], out=by_row)
            for place in places[number]:
                sums[place] += by_row
    return task, cells, sums, degrees


def _values(
    vote: _Vote,
    sums: Floats,
    degrees: Floats,
    rounds: Sequence[tuple[Integers, Integers]],
    n_neighbors: int,
    fairness: str,
) -> dict[str, Floats]:
    """Return the values of every variable, from the rows' shares by cell."""
    first, total = vote.sizes[0], vote.weights.sum()
    if vote.rows is None:
        return {"y": sums[:first].sum(axis=0) / total}
    # Negatives are paid for votes for the other label: 1 less what votes for the positive one pay, and a
    # vote that always pays 1 gives all rows the same share.
    right = sums[1:first:2].sum(axis=0) - sums[0:first:2].sum(axis=0)
    for valued, validated in rounds:
        negative = ~vote.rows.positive[validated]
        share = 1.0 / max(n_neighbors, len(valued))
        right[valued] += share * vote.weights[validated][negative].sum()
    values = {"y": right / total}
    starts = accumulate(vote.sizes, initial=0)
    for number, (attribute, start) in enumerate(zip(vote.rows.attributes, starts, strict=False)):
        coefficients = vote.rows.ratio_coefficients(attribute, fairness, degrees)
        cells, n_cells = vote.cells[:, number] - start, vote.sizes[number]
        weights = np.bincount(cells, vote.weights, n_cells)
        factors = np.bincount(cells, coefficients, n_cells) / np.where(weights > 0, weights, 1.0)
        values[attribute.name] = factors @ sums[start : start + n_cells]
    return values
