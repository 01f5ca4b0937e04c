"""What changing rows does to the model, measured: remove them, weigh them by half, or relabel them.

Influence ranks, retraining tells. The rows are dealt into two halves. Effects on the first half, the search
rows, find slices and single rows that make groups less equal. On the second half, the validation rows, no
effect is measured; but they are among the rows that the ranking models learn from, so they are not wholly
apart. In folds of them, models are trained on all other rows, as they are and changed, and decide about the
fold. Decisions of the same rows are compared, so that what both models get wrong cancels out.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import has_fit_parameter

from fado._checks import check_classifier
from fado._messages import COMPARE_TARGET
from fado.execution import n_workers
from fado.exploration._conditions import BinnedColumn
from fado.exploration._effect_metrics import INFLUENCE
from fado.exploration._material import Attribute, Material, label_groups
from fado.exploration._removal_search import RemovalSearch
from fado.exploration._retrained import FOLDS, REPEATS, Change, Compared, Trial, some_blocks
from fado.exploration._search import Slice, rows_of
from fado.exploration._suspicious import contradicted_rows
from fado.tabular import Problem, column_from, deal_rows, variable_from
from fado.valuation import TreeInfluence, compare_effects, forecast_problem, readable_estimator

__all__ = ["ACTIONS", "MOST_SLICES", "Consequences", "cells_of", "check_retraining", "find_slices"]

FloatArray = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]

ACTIONS = ("remove", "halve", "relabel")
SHARES = (0.02, 0.05, 0.1)  # of the rows, the most harmful first
FITS_EACH = FOLDS * REPEATS  # of one way to change the rows
LEAST_FITS, MOST_FITS = 2 * FITS_EACH, 100_000
MOST_SLICES = 8
CANDIDATES = 12
MOST_OF_A_CELL = 0.5  # of the rows of one group and label, that any change may touch
LEAST_ROWS = 20  # of a group among those that its rate counts
LEAST_SELECTED = 2  # negatives of a fold, at the budget
LEAST_RELABELLED = 10
_COUNTED = {"fpr_ratio": 0, "fnr_ratio": 1, "tpr_ratio": 1}  # the label whose rows a rate counts
_METRICS = ("performance", "fairness", "max_fpr", "form")


def check_retraining(retrain: Any, estimator: Any) -> None:
    """Refuse a number of fits that is none, and what is no classifier."""
    if isinstance(retrain, bool) or not isinstance(retrain, int | np.integer):
        raise TypeError(f"`retrain` must be a number of fits, 0 for none, got {retrain!r}.")
    if retrain and not LEAST_FITS <= retrain <= MOST_FITS:
        raise ValueError(
            f"`retrain` must be 0, or a number of fits from {LEAST_FITS} to {MOST_FITS:,}, got {retrain}."
        )
    if estimator is not None:
        check_classifier("estimator", estimator)


class Consequences:
    """Candidates for a change of the rows, and what came of each.

    Parameters
    ----------
    material : Material
        What is explored.
    columns : sequence of BinnedColumn
        What slices are described by, the target last.
    retrain : int
        How many fits may measure.
    estimator : classifier or None
        The model that is trained again; None is LightGBM's own settings.
    n_jobs, progress
        As `explore` takes them.
    """

    def __init__(
        self,
        material: Material,
        columns: Sequence[BinnedColumn],
        *,
        retrain: int,
        estimator: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self._material, self._columns = material, columns
        self._estimator, self._workers, self._progress = estimator, n_workers(n_jobs), progress
        told = material.valuation.provenance.settings
        is_influence = material.valuation.provenance.algorithm == INFLUENCE
        settings = {name: told[name] for name in _METRICS if is_influence and name in told}
        self.performance = str(settings.get("performance", "tpr_at_fpr"))
        self.fairness = str(settings.get("fairness", "fpr_ratio"))
        self.max_fpr = float(settings.get("max_fpr", 0.05))
        self._influence = settings
        self.reasons = {one.name: self._reason(one, retrain) for one in material.attributes}
        self._found: dict[str, dict[str, Any]] = {}
        measured = [one for one in material.attributes if not self.reasons[one.name]]
        if measured:
            self._measure(measured, retrain)

    def of(self, attribute: Attribute) -> dict[str, Any]:
        """Give what was found for an attribute; empty where nothing was measured.

        Returns
        -------
        dict
            ``effects`` on ratio and performance of the searched rows, by influence, or None where those of
            the valuation were used; ``slices``, each with its conditions, `rows`, what was ``measured`` by
            action, and the forecast; the ``curve``; and how it was ``measured``.
        """
        return self._found.get(attribute.name, {})

    def _reason(self, attribute: Attribute, retrain: int) -> str:
        """Say why nothing can be measured; empty if it can."""
        target = self._material.target
        if not retrain:
            return "Nothing was measured, as no model was to be trained again (`retrain=0`)."
        if target.kind != "classes" or len(target.classes) != 2:
            what = "is continuous" if target.kind != "classes" else f"has {len(target.classes)} classes"
            name = self._material.target_name
            return f"Measuring needs a target of two classes, and {name} {what}: {COMPARE_TARGET}."
        if attribute.is_continuous:
            return f"Measuring needs groups, and {attribute.name} is a number: compare it, as in age >= 50."
        compared, negatives = len(self._compared(attribute)), int((~self._positives()).sum())
        if compared < 2:
            return (
                f"Too few rows to train again on: measuring needs two groups of at least {LEAST_ROWS} rows "
                f"that the ratio counts, and {attribute.name} has {compared}."
            )
        least = math.ceil(2 * FOLDS * LEAST_SELECTED / self.max_fpr)
        if negatives < least:
            return (
                f"Too few rows to train again on: at a budget of {100 * self.max_fpr:g} % measuring needs "
                f"{least:,} negatives, and there are {negatives:,}."
            )
        return ""

    def _compared(self, attribute: Attribute) -> list[int]:
        """List the groups that have enough rows, among those searched, for their rate to be measured."""
        codes = attribute.groups.codes[self._material.sample]
        counted = codes[self._counted(self._positives())]
        sizes = np.bincount(counted[counted >= 0], minlength=len(attribute.groups))
        every = np.bincount(codes[codes >= 0], minlength=len(attribute.groups))
        return [own for own in attribute.groups.compared if min(sizes[own], every[own]) >= LEAST_ROWS]

    def _positives(self) -> Bools:
        material = self._material
        positive = material.target.labels == (1 if material.positive is None else material.positive)
        return np.asarray(positive[material.sample])

    def _counted(self, positive: Bools) -> Bools:
        label = _COUNTED.get(self.fairness)
        return np.ones_like(positive) if label is None else positive == bool(label)

    def _measure(self, attributes: Sequence[Attribute], retrain: int) -> None:
        """Find candidates, train models without them, and compare decisions."""
        material, seed = self._material, self._material.seed
        problem = material.problem
        if len(material.sample) < problem.n_rows:
            problem = problem.take(material.rows[material.sample])
        problem = _larger_is_positive(problem)
        cells = np.zeros(problem.n_rows, dtype=np.int64)
        for one in attributes:
            cells = cells * (len(one.groups) + 1) + one.groups.codes[material.sample] + 1
        cells = np.unique(2 * cells + problem.labels.codes, return_inverse=True)[1]
        halves = deal_rows(cells, [0.5, 0.5], np.random.default_rng([seed, 10]), problem.blocks)
        search, held = (np.flatnonzero(halves == half).astype(np.int32) for half in (0, 1))
        goal = self.performance, self.max_fpr
        trial = Trial(problem, self._estimator, goal, cells, held, seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of small groups in a half: what is shown is measured
                effects = self._search_effects(problem, cells, search)
                candidates = {
                    one.name: self._candidates(one, problem, effects, search, held) for one in attributes
                }
        except ValueError as error:  # a ratio that is undefined on the search rows
            self.reasons |= {one.name: f"Nothing was measured: {error}" for one in attributes}
            return
        changes = self._plan(candidates, problem, retrain // FITS_EACH - 1)
        nothing: Change = "none", np.zeros(problem.n_rows, dtype=np.bool_)
        decided = trial.run([nothing, *changes.values()], self._workers, show=self._progress)
        outcome = dict(zip([None, *changes], decided, strict=True))
        for one in attributes:
            own = candidates[one.name]
            codes = one.groups.codes[material.sample][held]
            counted = self._counted(problem.labels.is_positive[held])
            members = [np.flatnonzero(counted & (codes == group)) for group in self._compared(one)]
            missed = self.fairness == "fnr_ratio"
            compared, untouched = Compared(problem, held, members, missed=missed, seed=seed), outcome[None]
            found = {key: compared.change(untouched, outcome[key]) for key in changes if key[0] == one.name}
            noise = compared.noise(untouched, [outcome[key] for key in found])
            for figures in found.values():
                for metric, spread in noise.items():
                    figures[f"{metric}_error"] = float(np.hypot(figures[f"{metric}_error"], spread))
            before = compared.level(untouched)
            self._found[one.name] = self._told(one, own, changes, found, before["ratio"]) | {
                "effects": None if effects is None else (effects[one.name], effects["y"]),
                "measured": {
                    "fits": FITS_EACH * (1 + len(changes)) + (1 if effects is None else 3),
                    "folds": FOLDS,
                    "repeats": REPEATS,
                    "rows": problem.n_rows,
                    "search_rows": len(search),
                    "validation_rows": len(held),
                    "before": before,
                    "note": self._note(effects is not None),
                },
            }

    def _search_effects(
        self, problem: Problem, cells: npt.NDArray[np.int64], search: Rows
    ) -> dict[str, FloatArray] | None:
        """Give every row's effects on the metrics of the search rows; None if given values are effects."""
        scales = self._material.valuation.scales
        own = self._material.valuation.provenance.algorithm == INFLUENCE
        if not own and all(scales[one.name].is_signed for one in self._material.attributes):
            return None
        dealt = deal_rows(
            cells[search],
            [0.5, 0.5],
            np.random.default_rng([self._material.seed, 11]),
            some_blocks(problem, search),
        )
        names = [variable.name for variable in problem.variables]
        sums = {name: np.zeros(problem.n_rows) for name in names}
        counts = np.zeros(problem.n_rows)
        for part in np.unique(dealt):
            validated = search[dealt == part]
            train = np.setdiff1d(np.arange(problem.n_rows, dtype=np.int32), validated)
            valuator = TreeInfluence(
                self._ranking(), random_state=self._material.seed, n_jobs=self._workers, **self._influence
            )
            values = valuator.fit_problem(problem.take(train), problem.take(validated)).valuation_
            counts[train] += 1
            for name in names:
                sums[name][train] += values[name]
        weights = 1.0 if problem.sample_weight is None else problem.sample_weight
        return {name: own * weights / np.maximum(counts, 1) for name, own in sums.items()}

    def _ranking(self) -> Any:
        """Give the model whose leaves rank rows: the estimator, or LightGBM's own settings for any other."""
        try:
            readable_estimator(self._estimator, self._material.table)
        except (TypeError, ValueError):
            return None
        return self._estimator

    def _candidates(
        self,
        attribute: Attribute,
        problem: Problem,
        effects: dict[str, FloatArray] | None,
        search: Rows,
        held: Rows,
    ) -> dict[str, Any]:
        """Find slices and the most harmful rows, and order the slices by what a forecast says of them."""
        material, name = self._material, attribute.name
        if effects is None:
            on_ratio = material.valuation[name][material.sample]
            on_ratio = on_ratio if material.weights is None else on_ratio * material.weights[material.sample]
        else:
            on_ratio = effects[name]
        cells = cells_of(material, attribute)
        slices = find_slices(material, self._columns, -on_ratio, CANDIDATES, cells)
        masks = [rows_of(one.conditions, self._columns) for one in slices]
        curve = [most_harmful(on_ratio, share, cells) for share in SHARES]
        parts = [own[material.sample] for own in masks] + curve
        forecasts = self._forecast(name, problem, parts, search, held)
        order = np.argsort(-forecasts[: len(slices), 0], kind="stable")[:MOST_SLICES].tolist()
        return {
            "slices": [slices[j] for j in order],
            "masks": [masks[j] for j in order],
            "curve": curve,
            "forecasts": [forecasts[j] for j in [*order, *range(len(slices), len(parts))]],
        }

    def _forecast(
        self, name: str, problem: Problem, parts: Sequence[Bools], search: Rows, held: Rows
    ) -> FloatArray:
        """Forecast what each removal changes on the search rows, for a model of the others."""
        inside = [np.flatnonzero(own[held]).astype(np.int32) for own in parts]
        there = [number for number, own in enumerate(inside) if len(own)]
        found = np.full((len(parts), 2), np.nan)
        if there:
            told = forecast_problem(
                self._ranking(),
                problem.take(held),
                problem.take(search),
                [inside[number] for number in there],
                performance=self.performance,
                fairness=self.fairness,
                max_fpr=self.max_fpr,
                seed=self._material.seed,
                workers=self._workers,
            )
            for place, column in enumerate((name, "y")):
                found[there, place] = told.loc[told["column"] == column, "predicted"]
        return np.nan_to_num(found, nan=-np.inf)

    def _plan(
        self, candidates: dict[str, dict[str, Any]], problem: Problem, n_changes: int
    ) -> dict[tuple[str, str, int], Change]:
        """List the changes that are tried, by attribute, action and number, the most telling first.

        Every attribute has its share: removals of slices, then the curve, then what else can be done.
        """
        each = max(1, n_changes // len(candidates))
        weighed = self._estimator is None or has_fit_parameter(self._estimator, "sample_weight")
        agreement = self._material.agreement("y")
        wrong = (
            None if agreement is None else contradicted_rows(self._material, agreement)[self._material.sample]
        )
        found: dict[tuple[str, str, int], Change] = {}
        for name, own in candidates.items():
            masks = [mask[self._material.sample] for mask in own["masks"]]
            removals = [((name, "remove", j), ("remove", mask)) for j, mask in enumerate(masks)]
            curve = [
                ((name, "curve", j), ("remove", mask)) for j, mask in enumerate(own["curve"]) if mask.any()
            ]
            others = []
            for j, mask in enumerate(masks):
                if weighed:
                    others.append(((name, "halve", j), ("halve", mask)))
                if wrong is not None and (mask & wrong).sum() >= LEAST_RELABELLED:
                    others.append(((name, "relabel", j), ("relabel", mask & wrong)))
            found |= dict([*removals[: max(1, each - len(curve))], *curve, *others][:each])
        return found

    def _told(
        self,
        attribute: Attribute,
        own: dict[str, Any],
        changes: dict[tuple[str, str, int], Change],
        found: dict[tuple[str, str, int], dict[str, Any]],
        now: float,
    ) -> dict[str, Any]:
        """Put what was measured beside each candidate; no forecast goes beyond what a ratio can do."""

        def figures(action: str, number: int) -> dict[str, Any] | None:
            key = attribute.name, action, number
            if key not in found or np.isnan([found[key]["ratio_change"], found[key]["ratio_error"]]).any():
                return None
            return {"rows": int(changes[key][1].sum())} | found[key]

        n_slices = len(own["slices"])
        removals = [*(("remove", j) for j in range(n_slices)), *(("curve", j) for j in range(len(SHARES)))]
        trusted = _is_trusted(own["forecasts"], [figures(*one) for one in removals])
        slices = []
        for number, (one, mask) in enumerate(zip(own["slices"], own["masks"], strict=True)):
            on_ratio, on_performance = own["forecasts"][number]
            is_told = trusted and np.isfinite(on_ratio)
            slices.append(
                {
                    "found": one,
                    "rows": mask,
                    "forecast": own["forecasts"][number],
                    "ratio_change": float(np.clip(on_ratio, -now, 1 - now)) if is_told else None,
                    "performance_change": float(on_performance) if is_told else None,
                    "measured": {action: figures(action, number) for action in ACTIONS},
                }
            )
        slices.sort(key=lambda one: -(one["measured"]["remove"] or {"ratio_change": -np.inf})["ratio_change"])
        curve = [
            {"share": share, "rows": int(mask.sum()), "measured": figures("curve", number)}
            for number, (share, mask) in enumerate(zip(SHARES, own["curve"], strict=True))
        ]
        return {"slices": slices, "curve": curve, "trusted": trusted}

    def _note(self, by_influence: bool) -> str:
        """Say what the figures stand on."""
        said = []
        if not by_influence:
            said.append(
                "Slices were found by the values that you passed. If these were measured on the same rows, "
                "the changes shown are a little too good."
            )
        if self._estimator is not None and "random_state" not in self._estimator.get_params():
            said.append(
                f"{type(self._estimator).__name__} takes no seed: repeats differ by their folds alone."
            )
        return " ".join(said)


def find_slices(
    material: Material,
    columns: Sequence[BinnedColumn],
    gains: FloatArray,
    most: int,
    cells: npt.NDArray[np.int64],
) -> list[Slice]:
    """Find slices of the largest gains that leave half of every cell; conditions may name the label."""
    protected = {one.name for one in material.attributes}
    always = [one.number for one in columns if one.name in protected or one is columns[-1]]
    return RemovalSearch(columns, material.sample, gains).find(
        most, always, lambda rows: keeps_cells(rows, cells)
    )


def cells_of(material: Material, attribute: Attribute) -> npt.NDArray[np.int64]:
    """Give each searched row's combination of compared group and label; -1 for all other rows."""
    codes = attribute.groups.codes[material.sample]
    labels = label_groups(material).codes[material.sample]
    known = np.isin(codes, attribute.groups.compared) & (labels >= 0)
    return np.where(known, codes * (labels.max() + 1) + labels, -1)


def keeps_cells(rows: Bools, cells: npt.NDArray[np.int64]) -> bool:
    """Tell whether every combination of group and label keeps half of its rows without these.

    Examples
    --------
    >>> import numpy as np
    >>> cells = np.array([0, 0, 0, 1, 1, -1])
    >>> keeps_cells(np.array([True, False, False, True, False, True]), cells)
    True
    >>> keeps_cells(np.array([True, True, False, False, False, False]), cells)
    False
    """
    known = cells >= 0
    sizes, gone = np.bincount(cells[known]), np.bincount(cells[known & rows], minlength=cells.max() + 1)
    return bool((gone <= MOST_OF_A_CELL * sizes).all())


def most_harmful(effects: FloatArray, share: float, cells: npt.NDArray[np.int64]) -> Bools:
    """Mark the rows of the lowest effects below 0, at most half of those of any group and label.

    Examples
    --------
    >>> import numpy as np
    >>> effects = np.array([-0.4, -0.3, -0.2, -0.1, 0.0, 0.2])
    >>> most_harmful(effects, 0.5, np.array([0, 0, 1, 1, 1, 1])).tolist()
    [True, False, True, True, False, False]
    """
    order = np.argsort(effects, kind="stable")
    order = order[effects[order] < 0]
    own = cells[order]
    sizes = np.bincount(cells[cells >= 0])
    place = np.zeros(len(order))
    for cell in np.unique(own):
        place[own == cell] = np.arange((own == cell).sum())
    order = order[(own < 0) | (place < np.floor(MOST_OF_A_CELL * sizes[np.maximum(own, 0)]))]
    marked = np.zeros(len(effects), dtype=np.bool_)
    marked[order[: round(share * len(effects))]] = True
    return marked


def _is_trusted(forecasts: Sequence[FloatArray], measured: Sequence[dict[str, Any] | None]) -> bool:
    """Tell whether forecasts rank what retraining measured, beyond chance, and mistake no clear sign."""
    import pandas as pd

    pairs = [
        (forecast[0], own["ratio_change"], own["ratio_error"])
        for forecast, own in zip(forecasts, measured, strict=True)
        if own is not None and np.isfinite(forecast[0])
    ]
    if len(pairs) < 5:
        return False
    predicted, actual, errors = np.array(pairs).T
    clear = np.abs(actual) > 1.96 * errors
    if np.ptp(predicted) == 0 or np.ptp(actual) == 0 or (predicted * actual < 0)[clear].any():
        return False
    frame = pd.DataFrame({"column": "z", "predicted": predicted, "actual": actual, "directed": actual})
    return bool(compare_effects(frame)["low"].iloc[0] > 0)


def _larger_is_positive(problem: Problem) -> Problem:
    """Give the problem such that the larger label is the positive one, as valuators take it."""
    if problem.labels.positive == 1:
        return problem
    column = column_from(problem.sources[0].name, problem.labels.is_positive)
    return replace(
        problem, target=variable_from(column), sources=(column, *problem.sources[1:]), pos_label=None
    )
