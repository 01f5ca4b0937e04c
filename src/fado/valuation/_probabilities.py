"""The value of a row, from predictions: for out-of-bag rows, new rows and rows in files."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._typing import Floats
from fado.engine import Scorer
from fado.tabular import NOT_GIVEN, UNSEEN, Table, Variable

_SLACK = 1e-4  # of the sum of probabilities in single precision
_ROUNDING = 1e-12  # by which an average of probabilities may be past 1


@dataclass(frozen=True)
class KeptModel:
    """A model without its rows, its bag, and the training mean of a continuous variable, else NaN."""

    bag: int
    scorer: Scorer
    training_mean: float


@dataclass(frozen=True)
class VariableModels:
    """The models of one variable, by bag and then by estimator; the variable has no rows.

    For a continuous variable, `furthest` and `largest_error` are the largest distances of a prediction from
    the training mean, and from the row's number, when the models were fitted.
    """

    variable: Variable
    models: tuple[KeptModel, ...]
    furthest: float = 1.0
    largest_error: float = 1.0


@dataclass(frozen=True)
class RowsToScore:
    """Some rows that models have not learnt from, and their known labels, with the codes that the models use.

    `where` ends a sentence about a wrong prediction. `scored_by`, of shape (n_rows, n_bags), marks which
    bags' models score each row; without it, all do.
    """

    table: Table
    labels: Mapping[str, npt.NDArray[Any]]
    where: str
    scored_by: npt.NDArray[np.bool_] | None = None


def normalised_entropy(probabilities: npt.ArrayLike) -> Floats:
    """Return the Shannon entropy of predicted distributions, of shape (n, K), divided by its maximum.

    Examples
    --------
    >>> normalised_entropy([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    array([0., 1., 0.])
    """
    p = np.asarray(probabilities, dtype=np.float64)
    logarithm = np.zeros_like(p)
    np.log2(p, out=logarithm, where=p != 0)
    total = (p * logarithm).sum(axis=1)
    return np.clip(-total / np.log2(p.shape[1]), 0.0, 1.0) + 0.0  # + 0.0: no negative zero


def read_probabilities(name: str, probabilities: npt.ArrayLike, n_labels: int | None = None) -> Floats:
    """Read probabilities of G classes: (n,), (n, G), or (n, K, G) at K labels of the target."""
    p = np.ma.filled(np.ma.array(probabilities, dtype=np.float64, copy=True), np.nan)  # it is kept
    if p.ndim not in (1, 2, 3 if n_labels else 1) or (p.ndim > 1 and p.shape[-1] < 2):
        also = f" or (n, {n_labels}, G)" if n_labels else ""
        raise ValueError(
            f"The probabilities of {name!r} must have shape (n,) or (n, K >= 2){also}, got {p.shape}."
        )
    if p.ndim == 3 and p.shape[1] != n_labels:
        raise ValueError(
            f"The probabilities of {name!r} must be given for each of the {n_labels} classes of the target, "
            f"got shape {p.shape}."
        )
    if not np.isfinite(p).all() or (p < 0).any() or (p > 1).any():
        raise ValueError(f"The probabilities of {name!r} must lie in [0, 1], without NaN.")
    if p.ndim > 1 and len(p) and not np.allclose(p.sum(axis=-1), 1.0, atol=1e-6):
        raise ValueError(f"The probabilities of {name!r} must sum to 1 in every row.")
    return np.column_stack([1.0 - p, p]) if p.ndim == 1 else p


def entropies_of(
    p_y: npt.ArrayLike, p_z: Mapping[str, npt.ArrayLike]
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return values and probabilities by variable, in the form of `Valuation`, from predictions."""
    likely = read_probabilities("y", p_y)
    n_rows, n_labels = likely.shape
    values, probabilities = {"y": normalised_entropy(likely)}, {"y": likely}
    for name, of_groups in p_z.items():
        p = read_probabilities(name, of_groups, n_labels)
        if len(p) != n_rows:
            raise ValueError(f"`p_y` has {n_rows} rows and the probabilities of {name!r} have {len(p)}.")
        values[name] = normalised_entropy(p if p.ndim == 2 else np.einsum("nk,nkg->ng", likely, p))
        at_every_label = p if p.ndim == 3 else p[:, np.newaxis]
        probabilities[name] = np.broadcast_to(at_every_label, (n_rows, n_labels, p.shape[-1]))
    return values, probabilities


def log_losses(probability: npt.NDArray[np.floating]) -> Floats:
    """Return the log-loss of every row, from the probability of its own label, clipped as scikit-learn does.

    Examples
    --------
    >>> log_losses(np.array([0.0, 0.5, 1.0])).round(3)
    array([36.044,  0.693,  0.   ])
    """
    margin = np.finfo(probability.dtype).eps
    losses: Floats = -np.log(np.clip(probability, margin, 1 - margin))
    return losses


def what_is_wrong(variable: Variable, n_rows: int, predicted: Floats) -> str:
    """Describe what is wrong with predictions; empty if nothing is."""
    many = len(variable.classes)
    classes = variable.kind == "classes"
    if predicted.shape != ((n_rows, many) if classes else (n_rows,)):
        of = f" and {many} classes" if classes else ""
        return f"predictions of shape {predicted.shape} for {n_rows} rows{of}"
    by_row = predicted.reshape(n_rows, -1)
    faults = {"NaN or infinite " + ("probabilities" if classes else "predictions"): ~np.isfinite(by_row)}
    if classes:
        faults["probabilities outside [0, 1]"] = (by_row < 0) | (by_row > 1)
        faults["probabilities that do not sum to 1"] = np.abs(by_row.sum(axis=1, keepdims=True) - 1) > _SLACK
    for fault, entries in faults.items():
        rows = int(entries.any(axis=1).sum())
        if rows:
            return f"{fault} for {rows} of {n_rows} rows"
    return ""


def row_statistics(
    variable: Variable, predicted: Floats, labels: npt.NDArray[Any] | None, training_mean: float
) -> tuple[Floats, Floats]:
    """Turn predictions into what is averaged over models: the uncertainty, and the probability of the label.

    For numbers they are the distances from the training mean and from the row's number. Without labels,
    the second is NaN.
    """
    classes = variable.kind == "classes"
    values = normalised_entropy(predicted) if classes else np.abs(predicted - training_mean)
    if labels is None:
        return values, np.full(len(predicted), np.nan)
    if not classes:
        return values, np.abs(predicted - labels)
    probability = predicted[np.arange(len(labels)), np.maximum(labels, 0)]
    if (labels < 0).any():
        probability = np.where(labels == UNSEEN, 0.0, np.where(labels == NOT_GIVEN, np.nan, probability))
    return values, probability


class Moments:
    """Mean, spread and count of the models' results for each row; 0 for a row that no model has scored.

    Of a number, `mean` and `label_probability` are the mean distances that `row_statistics` returns. Results
    must be added in one fixed order: floating-point sums depend on it.

    Examples
    --------
    >>> moments = Moments(2)
    >>> moments.add(np.array([0, 1]), np.array([0.2, np.nan]), np.array([1.0, 1.0]))
    >>> moments.add(np.array([0]), np.array([0.4]), np.array([0.0]))
    >>> moments.mean.round(2), moments.count, moments.label_probability
    (array([0.3, 0. ]), array([2, 0], dtype=int32), array([0.5, 0. ]))
    """

    def __init__(self, n_rows: int) -> None:
        self.count = np.zeros(n_rows, dtype=np.int32)
        self.mean = np.zeros(n_rows)
        self.label_probability = np.zeros(n_rows)
        self._squares = np.zeros(n_rows)

    def add(self, rows: npt.NDArray[np.integer], values: Floats, label_probability: Floats) -> None:
        """Add one model's numbers for some rows, each row once; NaN values do not count."""
        finite = np.isfinite(values)
        if not finite.all():
            rows, values, label_probability = rows[finite], values[finite], label_probability[finite]
        self.count[rows] += 1
        count = self.count[rows]
        before = values - self.mean[rows]
        self.mean[rows] += before / count
        self._squares[rows] += before * (values - self.mean[rows])
        self.label_probability[rows] += (label_probability - self.label_probability[rows]) / count

    def finish(
        self, variable: Variable, furthest: float | None = None, largest_error: float | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the fields of a valuation, all in [0, 1] except the counts; NaN where they are not known.

        Distances of numbers are divided by the largest, of these rows if none is given.
        """
        scored, often = self.count > 0, self.count > 1
        mean = np.where(scored, self.mean, np.nan)
        label_probability = np.where(scored, self.label_probability, np.nan)
        error, count = np.full(len(mean), np.nan), self.count[often].astype(np.float64)
        error[often] = np.sqrt(np.maximum(self._squares[often], 0.0) / (count - 1.0) / count)
        if variable.kind == "continuous":
            furthest = furthest or largest_known(mean)
            mean, error = np.clip(1.0 - mean / furthest, 0.0, 1.0), error / furthest
            label_probability = np.clip(
                1.0 - label_probability / (largest_error or largest_known(label_probability)), 0.0, 1.0
            )
        return {
            "values": mean,
            "standard_error": error,
            "counts": self.count,
            "label_probability": label_probability,
        }


def largest_known(distances: Floats) -> float:
    """Return the largest distance, or 1 if all are 0, so that dividing by it leaves them 0."""
    known = distances[~np.isnan(distances)]
    largest = float(known.max()) if len(known) else 0.0
    return largest if largest > 0 else 1.0


def score_rows(
    rows: RowsToScore, kept: Sequence[VariableModels], stop: threading.Event | None = None
) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """Value rows with models that have not seen them, the target's first: an array per field and variable."""
    n_rows = rows.table.n_rows
    moments = {models.variable.name: Moments(n_rows) for models in kept}
    means: dict[str, Floats] = {}
    for models, model, places, predicted in _predictions(rows, kept, stop):
        name = models.variable.name
        labels = rows.labels.get(name)
        labels = None if labels is None else labels[places]
        moments[name].add(places, *row_statistics(models.variable, predicted, labels, model.training_mean))
        mean = means.setdefault(name, np.zeros((n_rows, *predicted.shape[1:])))
        mean[places] += ((predicted - mean[places]).T / moments[name].count[places]).T
    fields: dict[str, dict[str, npt.NDArray[Any]]] = {}
    for models in kept:
        name = models.variable.name
        finished = moments[name].finish(models.variable, models.furthest, models.largest_error)
        finished["epistemic"] = np.full(n_rows, np.nan)
        if models.variable.kind == "classes" and name in means:
            apart = np.maximum(normalised_entropy(_summing_to_1(means[name])) - finished["values"], 0.0)
            finished["epistemic"] = np.where(moments[name].count > 1, apart, np.nan)
        for field, array in finished.items():
            fields.setdefault(field, {})[name] = array
    return fields


def mean_probabilities(
    rows: RowsToScore, kept: Sequence[VariableModels], stop: threading.Event | None = None
) -> Floats:
    """Return the mean probabilities of all classes over the models of the last variable."""
    total: Any = 0.0
    for models, _, _, predicted in _predictions(rows, kept, stop):
        total = total + predicted if models is kept[-1] else total
    return _summing_to_1(total / len(kept[-1].models))


def _summing_to_1(probabilities: Floats) -> Floats:
    """Put right, in place, what rounding leaves between two classes' probabilities."""
    if probabilities.ndim == 2 and probabilities.shape[1] == 2:
        probabilities[:, 0] = 1.0 - probabilities[:, 1]
    return probabilities


def _predictions(
    rows: RowsToScore, kept: Sequence[VariableModels], stop: threading.Event | None
) -> Iterator[tuple[VariableModels, KeptModel, npt.NDArray[np.intp], Floats]]:
    """Yield the predictions of every model for the rows that it scores, the target's models first.

    If a model sees the target and the labels are not known, its predictions are averaged over the labels that
    the target's models of the same bag predict.
    """
    target = kept[0].variable
    labels = rows.labels.get(target.name)
    likely: dict[int, list[Floats]] = {}
    by_bag: dict[int, tuple[npt.NDArray[np.intp], Table]] = {}
    everywhere = np.arange(rows.table.n_rows), rows.table
    for models in kept:
        for model in models.models:
            places, table = everywhere
            if rows.scored_by is not None:
                if model.bag not in by_bag:
                    places = np.flatnonzero(rows.scored_by[:, model.bag])
                    by_bag[model.bag] = places, rows.table.take(places)
                places, table = by_bag[model.bag]
            if not len(places) or (stop is not None and stop.is_set()):  # nobody waits for the rest
                continue
            if not model.scorer.sees_target:
                predicted = model.scorer.score(table)
            elif labels is not None:
                predicted = model.scorer.score(table, labels[places])
            else:
                predicted = _averaged(model.scorer, table, _summing_to_1(np.mean(likely[model.bag], axis=0)))
            wrong = what_is_wrong(models.variable, len(places), predicted)
            if wrong:
                raise ValueError(
                    f"A model of {models.variable.name!r} gave {wrong}{rows.where}, so it has no value."
                )
            predicted = _summing_to_1(predicted)
            if models.variable is target and labels is None:
                likely.setdefault(model.bag, []).append(predicted)
            yield models, model, places, predicted


def _averaged(scorer: Scorer, table: Table, expected: Floats) -> Floats:
    """Score rows for every label of the target, weighted by its probabilities, or for expected numbers."""
    if expected.ndim == 1:
        return scorer.score(table, expected)
    total: Any = 0.0
    for code in range(expected.shape[1]):
        scores = scorer.score(table, np.full(table.n_rows, code, dtype=np.int32))
        total = total + (expected[:, code] * scores.T).T
    if scorer.n_classes:
        total = np.where(np.abs(total - 1.0) < _ROUNDING, np.minimum(total, 1.0), total)
    return np.asarray(total)
