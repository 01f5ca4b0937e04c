"""The whole trade-off between ratios and performance, from the models behind a valuation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado._checks import seed_from
from fado._typing import Floats
from fado.aim._curve import Point, Rows, curve_points, decision_scores
from fado.aim._groups import Attribute, find_attributes, weights_of
from fado.aim._lines import Lines, check_confidence, read_lines
from fado.metrics import Budget, predicted_positive
from fado.tabular import MIN_GROUP_SIZE, Problem, check_min_group_size, group_rows, read_problem
from fado.valuation import Valuation

if TYPE_CHECKING:
    import pandas as pd


def trade_off(
    valuation: Valuation,
    y: Any,
    *,
    sensitive_features: Any,
    unknown: Any = None,
    ratio: Any = "fpr_ratio",
    at_least: float = 0.8,
    max_fpr: float = 0.05,
    confidence: float = 0.9,
    budget: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    min_group_size: int = MIN_GROUP_SIZE,
    random_state: Any = 0,
) -> pd.DataFrame:
    """Compute what every level of a ratio costs, from the out-of-bag probabilities of a valuation.

    Nothing is fitted. The models behind the values predict the label and the groups of every row that they
    have not seen; the best decisions that do not use the group follow from these probabilities.

    Parameters
    ----------
    valuation : Valuation
        Made with ``OutOfBagEntropy(keep_probabilities=True)``, or with `Valuation.from_probabilities`.
    y : array-like of shape (n_rows,)
        The target of the valued rows, with two classes.
    sensitive_features : Series, array, DataFrame or dict
        Their protected attributes; the groups of each are compared separately.
    unknown : value or list of values, optional
        Values of the attributes that mean the same as a missing one; None means those of the valuation.
    ratio : str or mapping of str to float, default="fpr_ratio"
        A ratio, or several with their lines, as for `AimedEstimator`.
    at_least : float, default=0.8
        The line, in (0, 1], if `ratio` is a name. Points are closest together around it.
    max_fpr : float, default=0.05
        The budget: the share of negatives that may be predicted positive.
    confidence : float, default=0.9
        The confidence of the lower bounds, in (0.5, 1).
    budget : Budget or pair of kind and limit, optional
        Another budget instead of `max_fpr`.
    sample_weight : array-like of shape (n_rows,), optional
        How much each row counts.
    pos_label : label, optional
        The positive label; None means the larger of the two.
    min_group_size : int, default=30
        Groups that have fewer rows than this and less than 1 % of the table are not compared.
    random_state : int, RandomState or None, default=0
        The seed for drawing 200,000 rows to find the curve on, if there are more.

    Returns
    -------
    DataFrame
        One row per point, the untouched decisions first; each point is more equal than the one before, and
        the last has equal rates. The columns are those of `AimedEstimator.path_`: ``tpr`` with its interval,
        ``ratio`` with its lower bound ``low``, the groups' rates, and the log factors. ``tpr_change`` is the
        difference from the untouched true-positive rate, with its standard error: both decide the same rows,
        so the difference is known better than either rate.

    See Also
    --------
    fado.AimedEstimator : Train the model of a point.

    Notes
    -----
    The models of a valuation are means over bags, and those of the groups do not see columns that determine
    an attribute. `AimedEstimator` fits separate models, which see all that the estimator sees; its curve may
    be a little above or below this one.

    Examples
    --------
    The predictions are invented here: half of the rows are probably of the second group and score higher.

    >>> import numpy as np
    >>> from fado import Valuation
    >>> from fado.aim import trade_off
    >>> rng = np.random.default_rng(0)
    >>> half = rng.random(4000) > 0.5
    >>> p_group = np.where(half, 0.8, 0.2)
    >>> p_y = np.where(half, 0.3, 0.1) + 0.4 * rng.random(4000)
    >>> group, y = rng.random((2, 4000)) < [p_group, p_y]
    >>> p_groups = np.column_stack([1 - p_group, p_group])
    >>> valuation = Valuation.from_probabilities(p_y, {"group": p_groups})
    >>> groups = {"group": group}
    >>> curve = trade_off(valuation, y, sensitive_features=groups, max_fpr=0.2)
    >>> curve[["tpr", "ratio", "low"]].iloc[[0, -1]].round(2)
         tpr  ratio   low
    0   0.47   0.29  0.26
    21  0.40   0.99  0.89
    """
    required = read_lines(ratio, at_least)
    check_confidence(confidence)
    check_min_group_size(min_group_size)
    limit_of = Budget.read(budget, max_fpr)
    if not isinstance(valuation, Valuation):
        raise TypeError(f"`valuation` must be a Valuation, got {type(valuation).__name__}.")
    if valuation.probabilities is None:
        raise ValueError(
            "The valuation keeps no probabilities: value the rows with "
            "`OutOfBagEntropy(keep_probabilities=True)`."
        )
    problem = read_problem(
        np.zeros((valuation.values.shape[0], 1)),
        y,
        sensitive_features,
        unknown=valuation.provenance.unknown if unknown is None else unknown,
        sample_weight=sample_weight,
        pos_label=pos_label,
    )
    if not problem.protected:
        raise ValueError("`sensitive_features` is needed: without groups there is no ratio.")
    problem.binary_labels("A trade-off")
    attributes, _ = find_attributes(problem, None, "each", min_group_size)
    return trade_off_of(
        valuation,
        problem,
        [attribute.compared for attribute in attributes],
        lines=required,
        budget=limit_of,
        confidence=confidence,
        seed=seed_from(random_state),
    )


def trade_off_of(
    valuation: Valuation,
    problem: Problem,
    compared: Sequence[npt.NDArray[np.bool_]],
    *,
    lines: Mapping[str, float],
    budget: Budget,
    confidence: float,
    seed: int,
) -> pd.DataFrame:
    """Do what `trade_off` does, for a problem that has been read and given groups.

    Parameters
    ----------
    valuation : Valuation
        With probabilities, of the rows of the problem.
    problem : Problem
        With a target of two classes.
    compared : sequence of ndarray of bool
        For each protected attribute, which of its groups, as `fado.tabular.group_rows` gives them, are
        compared.
    lines : mapping of str to float
        The line of each ratio.
    budget : Budget
        What sets the threshold.
    confidence : float
        The confidence of the lower bounds.
    seed : int
        The seed for drawing rows to find the curve on, if there are many.
    """
    pairs = zip(problem.protected, compared, strict=True)
    attributes = tuple(Attribute(variable.name, group_rows([variable]), chosen) for variable, chosen in pairs)
    rows = _predicted(valuation, problem, attributes)
    given = [negative[:, 0] for negative, _ in rows.group_probabilities]
    rows = rows.take(np.flatnonzero(np.isfinite([rows.scores, *given]).all(axis=0)))
    required = Lines.between(attributes, lines, confidence, budget, seed)
    if not required.limits:
        raise ValueError("There are no two groups to compare.")
    points = curve_points(rows, required.limits, budget, seed)
    frame = required.frame(points, None).drop(columns="chosen")
    frame[["tpr_change", "tpr_change_error"]] = _changes(points, rows.take(np.flatnonzero(rows.positive)))
    return frame


def _changes(points: Sequence[Point], rows: Rows) -> Floats:
    """Give each point's change of the true-positive rate, that of these rows, and its standard error."""
    weights = rows.weights
    decided = [
        predicted_positive(decision_scores(rows, point.coefficients), point.threshold).astype(np.float64)
        for point in points
    ]
    changes = []
    for selected in decided:
        change = float(np.average(selected - decided[0], weights=weights))
        # Where few decisions differ, one more row gained and one more lost keep the error from being too
        # small (Bonett and Price, 2012).
        squares = weights**2 @ (selected - decided[0] - change) ** 2 + 2 * np.mean(weights**2)
        changes.append((change, float(np.sqrt(squares)) / float(weights.sum())))
    return np.array(changes)


def _predicted(valuation: Valuation, problem: Problem, attributes: tuple[Attribute, ...]) -> Rows:
    """Give the rows with the probabilities of the valuation, of groups as the attributes number them."""
    probabilities = valuation.probabilities or {}
    labels = problem.labels
    if probabilities["y"].shape[1] != 2:
        raise ValueError(
            f"The valuation's target has {probabilities['y'].shape[1]} classes, and rates need two: value "
            "the rows with a target of two."
        )
    places = _places(valuation, "y", probabilities["y"], labels.classes)
    positive = labels.positive or 0
    both = [places[1 - positive], places[positive]]
    pairs = []
    names = [name for name in probabilities if name != "y"]
    for variable, attribute in zip(problem.protected, attributes, strict=True):
        name = variable.name
        if name not in probabilities and len(names) == len(attributes) == 1 and not problem.names_given:
            name = names[0]
        if name not in probabilities:
            kept = ", ".join(map(repr, names)) or "none"
            raise ValueError(f"The valuation keeps no probabilities of {name!r}; it keeps those of {kept}.")
        known = probabilities[name]
        places = _places(valuation, name, known, variable.classes)
        class_of = np.full(known.shape[2], attribute.n_classes)  # levels without rows belong to nobody
        numbers = attribute.training_classes.tolist()
        for code, number in {*zip(variable.labels.tolist(), numbers, strict=True)}:
            class_of[places[int(code)]] = number
        summed = np.zeros((2, len(known), attribute.n_classes + 1))
        for level, number in enumerate(class_of):
            summed[:, :, number] += known[:, both, level].T
        pairs.append((summed[0, :, :-1], summed[1, :, :-1]))
    groups = tuple(attribute.groups.codes for attribute in attributes)
    scores = probabilities["y"][:, both[1]]
    return Rows(labels.is_positive, groups, weights_of(problem), scores, tuple(pairs))


def _places(valuation: Valuation, name: str, probabilities: Floats, classes: tuple[Any, ...]) -> list[int]:
    """Find the column of each class in the probabilities."""
    width, known = probabilities.shape[-1], valuation.classes.get(name)
    if known is None:
        if width != len(classes):
            raise ValueError(
                f"The valuation keeps probabilities of {width} classes of {name!r}, and there are "
                f"{len(classes)}."
            )
        return list(range(width))
    lacking = [label for label in classes if label not in known]
    if lacking:
        raise ValueError(f"{lacking[0]!r} of {name!r} is not among the classes that were valued.")
    return [known.index(label) for label in classes]
