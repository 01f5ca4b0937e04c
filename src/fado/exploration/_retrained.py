"""The truth of the curve: remove the most harmful rows, train again, measure on rows no value has seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fado._messages import COMPARE_TARGET, warn_user
from fado.exploration._effect_metrics import INFLUENCE
from fado.exploration._material import Material
from fado.tabular import Column, Problem, column_from, group_rows, take_rows, variable_from
from fado.valuation import TreeInfluence, Valuation, removal_effects

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_retraining", "hold_out", "measure_removals", "most_harmful"]

Rows = npt.NDArray[np.intp]

SHARES = (0.02, 0.05, 0.1)
HELD_OUT = 4  # every fourth row
REPEATS = 3
LEFT_OUT = 0.05  # of the training rows, in every repeat others
_SETTINGS = ("performance", "fairness", "max_fpr", "n_bags", "form")


def check_retraining(retrain: bool, estimator: Any, valuation: Valuation | None) -> None:
    """Refuse to retrain for values that it cannot tell about, before anything is computed."""
    if not retrain:
        if estimator is not None:
            raise ValueError(
                "`estimator` is what `retrain=True` trains again: set that too, or leave it out."
            )
        return
    algorithm = None if valuation is None else valuation.provenance.algorithm
    if algorithm != INFLUENCE:
        made = "no values are given" if algorithm is None else f"these were made by {algorithm!r}"
        raise ValueError(
            f"`retrain` measures what TreeInfluence's values foretell, and {made}: value the rows with "
            "TreeInfluence, or leave `retrain` out."
        )


def measure_removals(material: Material, estimator: Any) -> dict[str, dict[str, Any]]:
    """Measure what removing the most harmful rows does, one protected attribute at a time.

    Three quarters of the rows are valued anew, without the others; their most harmful rows are removed, the
    model is trained again, and the others judge it.

    Returns
    -------
    dict
        By attribute: ``train_rows``, ``judged_rows``, ``repeats``, where the metrics stood ``before``, and
        ``points``, one per share removed, with what was predicted and what was measured: the mean over the
        repeats, and the lowest and highest.
    """
    _check_material(material)
    problem, seed = _larger_is_positive(material.problem.take(material.rows)), material.seed
    train, judged = hold_out(_strata(problem), problem.blocks, np.random.default_rng([seed, 0]))
    names = [one.name for one in material.attributes]
    told = material.valuation.provenance.settings
    settings = {name: told[name] for name in _SETTINGS if name in told}
    learnt = problem.take(train)
    valuation = TreeInfluence(estimator, random_state=seed, **settings).fit_problem(learnt).valuation_
    _warn_of_another_model(material.valuation, valuation)
    settings = {name: settings[name] for name in _SETTINGS[:3] if name in settings}
    worst = [most_harmful(valuation[name] * _weights(learnt), share) for name in names for share in SHARES]
    trial = _Trial(learnt, valuation, estimator, _handed_over(problem, judged), settings, seed)
    effects = [trial.remove(worst, repeat) for repeat in range(REPEATS)]
    return {
        name: {
            "train_rows": len(train),
            "judged_rows": len(judged),
            "repeats": REPEATS,
            "left_out": LEFT_OUT,
            **_averaged(effects, name, number * len(SHARES), [len(rows) for rows in worst]),
        }
        for number, name in enumerate(names)
    }


def hold_out(
    strata: npt.NDArray[np.integer], blocks: npt.NDArray[np.int64] | None, generator: np.random.Generator
) -> tuple[Rows, Rows]:
    """Part the rows, three to train on and one to judge by, alike in every stratum.

    Rows that belong together stay together; there is then no other order to keep.

    Examples
    --------
    >>> import numpy as np
    >>> train, judged = hold_out(np.repeat([0, 1], [80, 8]), None, np.random.default_rng(0))
    >>> len(train), int((judged < 80).sum()), int((judged >= 80).sum())
    (66, 20, 2)
    """
    if blocks is not None:
        order = generator.permutation(int(blocks.max()) + 1)
        held = np.isin(blocks, order[HELD_OUT - 1 :: HELD_OUT])
    else:
        order = np.lexsort((generator.random(len(strata)), strata))
        held = np.zeros(len(strata), dtype=np.bool_)
        held[order[HELD_OUT - 1 :: HELD_OUT]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def most_harmful(effects: npt.NDArray[np.float64], share: float) -> Rows:
    """Give the rows of the lowest effects, in the order of the table.

    Examples
    --------
    >>> import numpy as np
    >>> most_harmful(np.array([0.2, -0.1, 0.0, -0.3]), 0.5)
    array([1, 3])
    """
    return np.sort(np.argsort(effects, kind="stable")[: round(share * len(effects))])


@dataclass(frozen=True, eq=False)
class _Trial:
    """Rows that were valued, and those that judge what removing some of them does."""

    problem: Problem
    valuation: Valuation
    estimator: Any
    judge: tuple[Any, Any, Any]
    settings: dict[str, Any]
    seed: int

    def remove(self, parts: list[Rows], repeat: int) -> pd.DataFrame:
        """Remove each part, from rows of which every repeat leaves out others."""
        from lightgbm import LGBMClassifier

        n_rows = self.problem.n_rows
        generator = np.random.default_rng([self.seed, 1, repeat])
        kept = np.sort(generator.permutation(n_rows)[round(LEFT_OUT * n_rows) :])
        X, y, protected = _handed_over(self.problem, kept)
        weights = self.problem.sample_weight
        return removal_effects(
            self.valuation.take(kept),
            LGBMClassifier() if self.estimator is None else self.estimator,
            X,
            y,
            sensitive_features=protected,
            sample_weight=None if weights is None else weights[kept],
            judge=self.judge,
            parts=[np.isin(kept, rows) for rows in parts],
            random_state=self.seed,
            **self.settings,
        )


def _averaged(effects: list[pd.DataFrame], name: str, first: int, sizes: list[int]) -> dict[str, Any]:
    """Average one attribute's removals over the repeats."""

    def figures(key: str, column: str, part: int) -> npt.NDArray[np.float64]:
        return np.array(
            [one.loc[(one["part"] == part) & (one["column"] == column), key].item() for one in effects]
        )

    points = []
    for number, share in enumerate(SHARES):
        point: dict[str, Any] = {"share": share, "rows": sizes[first + number]}
        for metric, column in (("ratio", name), ("performance", "y")):
            actual = figures("actual", column, first + number)
            point |= {
                f"predicted_{metric}_change": float(figures("predicted", column, first + number).mean()),
                f"measured_{metric}_change": float(actual.mean()),
                f"lowest_{metric}_change": float(actual.min()),
                f"highest_{metric}_change": float(actual.max()),
            }
        points.append(point)
    before = {
        metric: float((figures("metric", column, first) - figures("actual", column, first)).mean())
        for metric, column in (("ratio", name), ("performance", "y"))
    }
    return {"before": before, "points": points}


def _check_material(material: Material) -> None:
    target = material.target
    if target.kind != "classes" or len(target.classes) != 2:
        what = "is continuous" if target.kind != "classes" else f"has {len(target.classes)}"
        raise ValueError(f"`retrain` needs a target of two classes, and `y` {what}: {COMPARE_TARGET}.")
    for one in material.attributes:
        if len(one.groups.compared) < 2:
            raise ValueError(
                f"`retrain` needs two groups that can be compared, and protected attribute {one.name!r} has "
                f"{len(one.groups.compared)}: leave it out."
            )


def _warn_of_another_model(given: Valuation, anew: Valuation) -> None:
    theirs, ours = given.provenance.estimators, anew.provenance.estimators
    if theirs and ours and theirs != ours:
        warn_user(
            f"`retrain` trains {ours[0]}, and the values were made with {theirs[0]}: pass that as "
            "`estimator` to measure what they predict."
        )


def _strata(problem: Problem) -> npt.NDArray[np.int64]:
    groups = group_rows(problem.protected, quarters=True)
    return np.asarray(groups.codes * len(problem.labels.classes) + problem.labels.codes, dtype=np.int64)


def _weights(problem: Problem) -> npt.NDArray[np.float64]:
    return np.ones(problem.n_rows) if problem.sample_weight is None else problem.sample_weight


def _larger_is_positive(problem: Problem) -> Problem:
    """Give the problem such that the larger label is the positive one, as valuators take it."""
    if problem.labels.positive == 1:
        return problem
    column = column_from(problem.sources[0].name, problem.labels.is_positive)
    return replace(
        problem, target=variable_from(column), sources=(column, *problem.sources[1:]), pos_label=None
    )


def _handed_over(problem: Problem, rows: Rows) -> tuple[Any, Any, Any]:
    """Give features, target and attributes of some rows, as a user would hand them over."""
    y = np.array(list(problem.labels.classes))[problem.labels.codes[rows]]
    protected = {
        variable.name: take_rows(_entries(column), rows)
        for variable, column in zip(problem.protected, problem.sources[1:], strict=True)
    }
    return take_rows(problem.table.source, rows), y, protected


def _entries(column: Column) -> Any:
    return column.data if column.levels is None else column.to_pandas()
