"""The strategies of benchmarks/active.py: each gives the positions of n open rows to be labelled next."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression

from _active_rounds import Round, quietly
from fado import LinearUtility
from fado.active import UtilityQuery


def highest(scores: np.ndarray, n: int) -> np.ndarray:
    """Give the n rows of highest score."""
    return np.argsort(-scores, kind="stable")[:n]


def drawn(weights: np.ndarray, n: int, generator: np.random.Generator) -> np.ndarray:
    """Draw n rows in proportion to weights, without replacement."""
    return highest(np.log(generator.random(len(weights))) / np.maximum(weights, 1e-12), n)


def in_shares(parts: np.ndarray, shares, scores: np.ndarray, n: int) -> np.ndarray:
    """Give the rows of highest score of each part, as many as its share of n; the rest from all."""
    chosen = []
    for part, share in enumerate(shares):
        members = np.flatnonzero(parts == part)
        chosen.append(members[highest(scores[members], round(share * n))])
    chosen = np.concatenate(chosen)
    others = np.setdiff1d(np.arange(len(scores)), chosen)
    return np.concatenate([chosen, others[highest(scores[others], n - len(chosen))]])


def random(state: Round, n: int) -> np.ndarray:
    return drawn(np.ones(len(state.rest)), n, state.generator)


def entropy(state: Round, n: int) -> np.ndarray:
    return highest(state.target_values["y"], n)


def utility(state: Round, n: int, alpha: float) -> np.ndarray:
    return highest(LinearUtility(alpha)(state.values), n)


def epistemic(state: Round, n: int) -> np.ndarray:
    """Rank by what the models disagree on, and not by what all find hard."""
    return highest(state.target_values.field("epistemic", "y"), n)


def epistemic_utility(state: Round, n: int, alpha: float) -> np.ndarray:
    """Rank by what the models of target and group disagree on."""
    query = UtilityQuery(state.of_both, LinearUtility(alpha), epistemic=True)
    return quietly(query.query, state.X_rest, n)


def epistemic_scaled(state: Round, n: int, alpha: float) -> np.ndarray:
    """Do so with the parts of target and group over their standard deviations."""
    parts = np.column_stack([state.values.field("epistemic", name) for name in ("y", "group")])
    return highest(_mixed(parts, alpha), n)


def epistemic_drawn(state: Round, n: int) -> np.ndarray:
    """Draw in proportion to it."""
    return drawn(state.target_values.field("epistemic", "y"), n, state.generator)


def epistemic_diverse(state: Round, n: int) -> np.ndarray:
    """Trade it against the distance from rows that were chosen before."""
    query = UtilityQuery(state.of_target, LinearUtility(1.0), epistemic=True, diversity=0.3)
    return quietly(query.query, state.X_rest, n)


def equal_groups(state: Round, n: int) -> np.ndarray:
    """Draw the same number of every group."""
    return in_shares(state.z_rest, (0.5, 0.5), state.generator.random(len(state.rest)), n)


def equal_groups_entropy(state: Round, n: int) -> np.ndarray:
    """Take the same number of every group, of each those of most entropy."""
    return in_shares(state.z_rest, (0.5, 0.5), state.target_values["y"], n)


def equal_groups_epistemic(state: Round, n: int) -> np.ndarray:
    """Take the same number of every group, of each those that the models disagree on most."""
    return in_shares(state.z_rest, (0.5, 0.5), state.target_values.field("epistemic", "y"), n)


def equal_groups_guessed(state: Round, n: int) -> np.ndarray:
    """Do so by guessed groups: as many rows are of one as among the labelled rows, the likeliest."""
    p = state.probability("group")
    guessed = (p >= np.quantile(p, 1 - state.z.mean())).astype(int)
    return in_shares(guessed, (0.5, 0.5), state.target_values["y"], n)


def equal_cells(state: Round, n: int) -> np.ndarray:
    """Draw so that every label of every group can be expected as often, by the model and the known groups."""
    p, z = state.probability("y"), state.z_rest
    cells = [np.abs(label - 1 + p) * (z == group) for label in (0, 1) for group in (0, 1)]
    return drawn(sum(own / own.sum() for own in cells), n, state.generator)


def equal_rates(state: Round, n: int) -> np.ndarray:
    """Rank by entropy times the probability of the label that the row's group lacks.

    That is the positive one in the group that has fewer positives among the labelled rows, and the negative
    one in the other.
    """
    p, z = state.probability("y"), state.z_rest
    low = int(state.y[state.z == 1].mean() < state.y[state.z == 0].mean())
    lacking = np.where(z == low, p, 1 - p)
    return highest(state.target_values["y"] * lacking, n)


def epistemic_aimed(state: Round, n: int) -> np.ndarray:
    """Rank by what models with aimed weights disagree on."""
    return highest(state.aimed_values.field("epistemic", "y"), n)


def expected(state: Round, n: int, alpha: float) -> np.ndarray:
    """Rank by the effect that can be expected: on the TPR at alpha 1, on the ratio at 0."""
    return highest(_mixed(state.effects.at(state.effects.probability), alpha), n)


def stirring(state: Round, n: int, alpha: float) -> np.ndarray:
    """Rank by the mean size of the effect over both labels, whatever its sign."""
    told = state.effects
    p = told.probability[:, np.newaxis]
    return highest(_mixed((1 - p) * np.abs(told.negative) + p * np.abs(told.positive), alpha), n)


def _mixed(columns: np.ndarray, alpha: float) -> np.ndarray:
    """Mix what concerns the target with what concerns the group, each over its standard deviation."""
    spread = columns.std(axis=0)
    of_target, of_group = (columns / np.where(spread > 0, spread, 1.0)).T
    return alpha * of_target + (1 - alpha) * of_group


def covariance(state: Round, n: int, alpha: float = 0.5) -> np.ndarray:
    """Fair Active Learning by covariance (Anahideh et al.): entropy, and less covariance with the group.

    A linear model's covariance with the group comes from features that covary with the group, by its
    coefficients, which follow the features' covariance with the label among the labelled rows. So a row
    counts by how far it can be expected to lower the latter, weighed by the former. Both are brought to
    [0, 1] and mixed; entropies and probabilities are those of the linear model too.
    """
    numbers, split = state.split.numbers, state.split
    learnt, rest = numbers[state.labelled], numbers[state.rest]
    linear = LogisticRegression(C=0.1, max_iter=300).fit(learnt, state.y)
    p = linear.predict_proba(rest)[:, 1]
    z = split.z[split.pool[state.rest]]
    with_group = (rest - rest.mean(axis=0)).T @ (z - z.mean()) / (len(z) - 1)
    importance = np.abs(linear.coef_[0] * with_group)
    before = np.abs(_label_covariance(len(state.y), learnt.sum(axis=0), learnt.T @ state.y, state.y.sum()))
    gain = np.zeros(len(rest))
    for label, share in ((0, 1 - p), (1, p)):
        after = _label_covariance(
            len(state.y) + 1,
            learnt.sum(axis=0) + rest,
            learnt.T @ state.y + label * rest,
            state.y.sum() + label,
        )
        gain += share * ((before - np.abs(after)) @ importance)
    unsure = -(p * np.log(p) + (1 - p) * np.log1p(-p))
    return highest(alpha * _unit(unsure) + (1 - alpha) * _unit(gain), n)


def _label_covariance(count, sum_x, sum_xy, sum_y):
    return sum_xy / count - sum_x * sum_y / count**2


def _unit(scores: np.ndarray) -> np.ndarray:
    return (scores - scores.min()) / max(float(np.ptp(scores)), 1e-300)


WHOLE_POOL = "whole pool"
STRATEGIES = {
    "random": random,
    WHOLE_POOL: random,
    "entropy": entropy,
    "utility .75": partial(utility, alpha=0.75),
    "utility .5": partial(utility, alpha=0.5),
    "utility .25": partial(utility, alpha=0.25),
    "utility 0": partial(utility, alpha=0.0),
    "epistemic": epistemic,
    "epistemic, utility .75": partial(epistemic_utility, alpha=0.75),
    "epistemic, scaled .75": partial(epistemic_scaled, alpha=0.75),
    "epistemic, drawn": epistemic_drawn,
    "epistemic, diverse": epistemic_diverse,
    "epistemic, aimed": epistemic_aimed,
    "equal groups": equal_groups,
    "equal groups, entropy": equal_groups_entropy,
    "equal groups, epistemic": equal_groups_epistemic,
    "equal groups guessed, entropy": equal_groups_guessed,
    "equal cells": equal_cells,
    "equal rates": equal_rates,
    "expected, TPR": partial(expected, alpha=1.0),
    "expected, mixed": partial(expected, alpha=0.5),
    "expected, ratio": partial(expected, alpha=0.0),
    "stirring, mixed": partial(stirring, alpha=0.5),
    "stirring, ratio": partial(stirring, alpha=0.0),
    "covariance": covariance,
}
