"""What kept models say of rows that were not there: score them part by part, reduce to fields."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fado.engine import Scorer
from fado.tabular import Table, Variable
from fado.valuation._probabilities import normalised_entropy, of_all_classes, own_label_probability
from fado.valuation.entropy._fits import KeptModel
from fado.valuation.entropy._labels import NOT_TOLD, UNSEEN
from fado.valuation.entropy._moments import Moments
from fado.valuation.entropy._statistics import what_is_wrong

__all__ = ["ROWS_AT_A_TIME", "Part", "VariableModels", "mean_probabilities", "parts_of", "value_part"]

FloatArray = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]

ROWS_AT_A_TIME = 1 << 15  # a worker holds the numbers of so many, and what is said of them
_ROUNDING = 1e-12  # by which an average of probabilities may be past 1


@dataclass(frozen=True)
class VariableModels:
    """The models of one variable.

    Parameters
    ----------
    variable : Variable
        What they learnt; it has no rows.
    models : tuple of KeptModel
        By bag, then by estimator.
    furthest, largest_error : float
        Of a continuous variable: the largest distance of a prediction from the training mean, and from the
        row's own number, when the models were fitted.
    """

    variable: Variable
    models: tuple[KeptModel, ...]
    furthest: float = 1.0
    largest_error: float = 1.0


@dataclass(frozen=True)
class Part:
    """Some of the new rows.

    Parameters
    ----------
    start : int
        The position of the first.
    table : Table
        Their features.
    labels : mapping of str to ndarray
        The labels that are known, by the variable's name, coded as the models' own.
    """

    start: int
    table: Table
    labels: Mapping[str, Labels]


def parts_of(table: Table, labels: Mapping[str, Labels], n_rows: int) -> Iterator[Part]:
    """Cut new rows into parts of so many."""
    for start in range(0, table.n_rows, n_rows):
        stop = min(start + n_rows, table.n_rows)
        yield Part(start, table.slice(start, stop), {name: own[start:stop] for name, own in labels.items()})


def value_part(
    part: Part, kept: Sequence[VariableModels], stop: threading.Event | None = None
) -> tuple[Part, dict[str, dict[str, npt.NDArray[Any]]]]:
    """Value some rows: per field, one array per variable.

    Parameters
    ----------
    part : Part
        The rows.
    kept : sequence of VariableModels
        The target's first.
    """
    sums = {own.variable.name: _Sums(own, part) for own in kept}
    for own, model, predicted in _predictions(part, kept):
        sums[own.variable.name].add(predicted, model.training_mean)
    finished = {name: own.finish() for name, own in sums.items()}
    return part, {
        field: {name: own[field] for name, own in finished.items()} for field in next(iter(finished.values()))
    }


def mean_probabilities(
    part: Part, kept: Sequence[VariableModels], stop: threading.Event | None = None
) -> tuple[Part, FloatArray]:
    """Give the mean probabilities of all classes over the models of the last variable."""
    total: Any = 0.0
    for own, _, predicted in _predictions(part, kept):
        total = total + predicted if own is kept[-1] else total
    return part, of_all_classes(total / len(kept[-1].models))


class _Sums:
    """What the models of one variable say of some rows, added up model by model."""

    def __init__(self, own: VariableModels, part: Part) -> None:
        self._own = own
        self._labels = part.labels.get(own.variable.name)
        self._rows = np.arange(part.table.n_rows)
        self._moments = Moments(part.table.n_rows)
        self._mean: FloatArray | None = None
        self._count = 0

    def add(self, predicted: FloatArray, training_mean: float) -> None:
        """Add what one model says; the order decides the last bits."""
        if self._own.variable.kind == "classes":
            values, agreement = normalised_entropy(predicted), self._probability_of_own(predicted)
        else:
            values, agreement = np.abs(predicted - training_mean), self._error(predicted)
        self._moments.add(self._rows, values, agreement)
        self._count += 1
        self._mean = predicted if self._mean is None else self._mean + (predicted - self._mean) / self._count

    def finish(self) -> dict[str, npt.NDArray[Any]]:
        """Give the fields, all in [0, 1] but the counts."""
        mean, error = self._moments.mean, self._moments.standard_error
        agreement, unknown = self._moments.agreement, np.full(len(mean), np.nan)
        if self._own.variable.kind == "continuous":
            mean = np.clip(1.0 - mean / self._own.furthest, 0.0, 1.0)
            error = error / self._own.furthest
            agreement = np.clip(1.0 - agreement / self._own.largest_error, 0.0, 1.0)
        elif self._count > 1 and self._mean is not None:
            unknown = np.maximum(normalised_entropy(self._mean) - mean, 0.0)
        return {
            "values": mean,
            "standard_error": error,
            "counts": self._moments.count,
            "agreement": agreement,
            "epistemic": unknown,
        }

    def _probability_of_own(self, predicted: FloatArray) -> FloatArray:
        """Give the probability of each row's own class: 0 of one that no model has learnt."""
        if self._labels is None:
            return np.full(len(predicted), np.nan)
        own = own_label_probability(predicted, np.maximum(self._labels, 0))
        own = np.where(self._labels == UNSEEN, 0.0, own)
        return np.where(self._labels == NOT_TOLD, np.nan, own)

    def _error(self, predicted: FloatArray) -> FloatArray:
        return np.full(len(predicted), np.nan) if self._labels is None else np.abs(predicted - self._labels)


def _predictions(
    part: Part, kept: Sequence[VariableModels]
) -> Iterator[tuple[VariableModels, KeptModel, FloatArray]]:
    """Give what every model says of some rows, the target's models first.

    Where a model sees the target and the labels are not known, it is averaged over what the target's models
    of the same bag predict.
    """
    target = kept[0].variable
    labels = part.labels.get(target.name)
    likely: dict[int, list[FloatArray]] = {}
    for own in kept:
        for model in own.models:
            if not model.scorer.sees_target:
                predicted = model.scorer.score(part.table)
            elif labels is not None:
                predicted = model.scorer.score(part.table, labels)
            else:
                expected = np.mean(likely[model.bag], axis=0)
                expected = of_all_classes(expected) if target.kind == "classes" else expected
                predicted = _averaged(model.scorer, part.table, expected)
            _check(own.variable, part, predicted)
            if own.variable is target and labels is None:
                likely.setdefault(model.bag, []).append(predicted)
            yield own, model, predicted


def _averaged(scorer: Scorer, table: Table, expected: FloatArray) -> FloatArray:
    """Score rows at every label of the target, and weigh by its probabilities; numbers are taken as they are.

    Parameters
    ----------
    scorer : Scorer
        It sees the target.
    table : Table
        The rows.
    expected : ndarray of shape (n,) or (n, K)
        The predicted numbers, or probabilities of all classes.
    """
    if expected.ndim == 1:
        return scorer.score(table, expected)
    total: Any = 0.0
    for code in range(expected.shape[1]):
        given = scorer.score(table, np.full(table.n_rows, code, dtype=np.int32))
        total = total + (expected[:, code] * given.T).T
    if scorer.n_classes:
        total = np.where(np.abs(total - 1.0) < _ROUNDING, np.minimum(total, 1.0), total)
    return np.asarray(total)


def _check(variable: Variable, part: Part, predicted: FloatArray) -> None:
    wrong = what_is_wrong(replace(variable, labels=np.zeros(0)), part.table.n_rows, predicted)
    if wrong:
        raise ValueError(
            f"A model of {variable.name!r} gave {wrong}, from row {part.start:,} on: no value can come of "
            "that."
        )
