"""One model after one intervention after the other, measured on the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fado.aim import AimedEstimator
from fado.generation import UtilityAwareOverSampler, checking_estimator, train_and_score
from fado.interventions import RandomPrevalenceSampler, Reweigher, UtilityAwarePrevalenceSampler
from fado.metrics import evaluate
from fado.tabular import MISSING, Problem, Table, group_rows, take_rows

__all__ = ["METRICS", "compare_interventions"]

Bools = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

METRICS = ("tpr", "fpr_ratio", "fnr_ratio", "selection_rate_ratio")
NEIGHBOURS = 5  # between which SMOTENC makes rows


def compare_interventions(
    training: Problem,
    validated: Problem,
    valuation: Any,
    *,
    utility: Any = None,
    strength: float = 1.0,
    min_group_size: int = 30,
    max_fpr: float = 0.05,
    seed: int = 0,
    n_jobs: int | None = None,
) -> list[dict[str, Any]]:
    """Train the same model after every intervention, and measure it on rows that were held out.

    Parameters
    ----------
    training, validated : Problem
        The rows to learn from, and those to measure on; with a positive label.
    valuation : Valuation
        The values of the rows to learn from.
    utility : utility, optional
        What a row is worth.
    strength : float
        Of the samplers.
    min_group_size : int
        Which groups are too small to be compared.
    max_fpr : float
        The budget of false positives.
    seed, n_jobs
        As everywhere.

    Returns
    -------
    list of dict
        ``intervention``, how many ``rows`` the model learnt from, and `METRICS`.
    """
    z = {variable.name: variable.labels for variable in validated.protected}
    truth = validated.labels.is_positive
    settings = {"strength": strength, "min_group_size": min_group_size, "random_state": seed}
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said when the rows were made; here, once per method
        for name, rows, scores in _all_scores(
            training, validated, valuation, utility, settings, n_jobs, max_fpr
        ):
            figures = evaluate(
                truth, scores, sensitive_features=z, max_fpr=max_fpr, min_group_size=min_group_size
            )
            lines.append(
                {"intervention": name, "rows": rows} | {metric: figures[metric] for metric in METRICS}
            )
    return lines


def _all_scores(
    training: Problem,
    validated: Problem,
    valuation: Any,
    utility: Any,
    settings: dict[str, Any],
    n_jobs: int | None,
    max_fpr: float,
) -> Iterator[tuple[str, int, FloatArray]]:
    """Give every intervention's name, number of rows, and scores of the validation rows."""
    X, y, seed = training.table.source, training.labels.is_positive, settings["random_state"]
    given = {"X": X, "y": y, "sensitive_features": {own.name: _labels(own) for own in training.protected}}
    valued = given | {"valuation": valuation}

    def trained(source: Any, positive: Bools, weights: FloatArray | None = None) -> tuple[int, FloatArray]:
        table = Table.from_input(source)
        scores = train_and_score(table, positive, validated.table, weights=weights, seed=seed)
        return int(table.n_rows), scores

    yield "none", *trained(X, y)
    random = RandomPrevalenceSampler(**settings).fit(**given).sample_indices_
    yield "RPS", *trained(take_rows(X, random), y[random])
    useful = UtilityAwarePrevalenceSampler(utility, **settings).fit(**valued).sample_indices_
    yield "UAPS", *trained(take_rows(X, useful), y[useful])
    reweigher = Reweigher(min_group_size=settings["min_group_size"]).fit(**given)
    yield "RW", *trained(X, y, reweigher.sample_weight_)
    for method in ("repeat", "trees"):
        sampler = UtilityAwareOverSampler(utility, method=method, n_jobs=n_jobs, **settings)
        yield f"made ({method})", *trained(*sampler.fit_resample(**valued))
    if len(sampler.parents_):
        tables, positive = _smoted(training, validated, sampler.parents_, seed)
        yield "SMOTENC", len(positive), train_and_score(tables[0], positive, tables[1], seed=seed)
    aimed = AimedEstimator(
        checking_estimator(),
        max_fpr=max_fpr,
        min_group_size=settings["min_group_size"],
        random_state=seed,
        n_jobs=n_jobs,
    )
    yield "aimed scores", len(y), aimed.fit(**given).predict_proba(validated.table.source)[:, 1]


def _labels(variable: Any) -> npt.NDArray[Any]:
    """Give an attribute's labels, by which groups are told apart."""
    return group_rows([variable]).codes


def _smoted(
    training: Problem, validated: Problem, parents: npt.NDArray[np.integer], seed: int
) -> tuple[tuple[Table, Table], Bools]:
    """Make as many rows of the same cells by SMOTENC, of a table whose missing entries are filled."""
    from imblearn.over_sampling import SMOTE, SMOTEN, SMOTENC

    cells = training.groups.codes * 2 + training.labels.is_positive
    wanted = np.bincount(np.r_[cells, cells[parents]])
    smallest = np.bincount(cells)[np.unique(cells[parents])].min()
    frames = _filled(training.table, validated.table)
    levelled = [j for j, column in enumerate(training.table.columns) if column.levels is not None]
    shared = {
        "sampling_strategy": {int(cell): int(wanted[cell]) for cell in np.unique(cells[parents])},
        "k_neighbors": int(min(NEIGHBOURS, smallest - 1)),
        "random_state": seed,
    }
    if smallest < 2:
        made, own = frames[0], cells
    elif not levelled:
        made, own = SMOTE(**shared).fit_resample(frames[0], cells)
    elif len(levelled) == training.table.n_columns:
        made, own = SMOTEN(**shared).fit_resample(frames[0], cells)
    else:
        made, own = SMOTENC(levelled, **shared).fit_resample(frames[0], cells)
    positive: Bools = np.asarray(own) % 2 == 1
    return (Table.from_input(made), Table.from_input(frames[1])), positive


def _filled(*tables: Table) -> list[pd.DataFrame]:
    """Fill missing numbers by the median of the first table, and missing levels by a level of their own."""
    frames = [
        pd.DataFrame({j: column.to_pandas() for j, column in enumerate(table.columns)}) for table in tables
    ]
    numbers = [j for j, column in enumerate(tables[0].columns) if column.levels is None]
    usual = dict.fromkeys(frames[0], MISSING) | frames[0][numbers].median().fillna(0.0).to_dict()
    return [frame.fillna(usual).set_axis(tables[0].names, axis=1) for frame in frames]
