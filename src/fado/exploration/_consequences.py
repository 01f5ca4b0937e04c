"""Measured changes of the model when rows are removed.

Influence ranks candidates, retraining measures them. The rows are split into two halves. Effects on the first
half, the search rows, find slices and single rows that make groups less equal. The second half, the
validation rows, measures. (The ranking models are also trained on validation rows, so the two halves are not
fully independent.) In folds of the validation rows, models are trained on all other rows, with and without
the removal, and decide about the fold. The decisions about the same rows are compared, so that errors that
both models make cancel out. The error of a change has two parts: the choice of validation rows, and the
training of the models, which other folds would change. The error of a performance has two more. The threshold
of a fold is set on the fold's own negatives: other negatives would move it along the slope of the ROC curve.
And the model of all rows has a spread of its own, and has learnt from more rows than the models of the folds:
half of the share of rows that these lack is allowed for, as a part of the change. Without these, 83 % of the
intervals contained the change of the true-positive rate on new rows, with them 96 % (Adult, credit and
generated fraud, four draws each).
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fado._checks import check_classifier
from fado._messages import COMPARE_TARGET
from fado._progress import tracked
from fado._typing import Bools, Floats, Integers
from fado.engine import Engine, Task, engine_class
from fado.execution import JoblibExecutor, ThreadExecutor, n_workers
from fado.exploration._explored import ExploredRows, Protected
from fado.exploration._removals import find_slices, label_cells, most_harmful
from fado.exploration._slices import BinnedColumn
from fado.metrics import RATIOS, Budget, predicted_positive
from fado.tabular import Problem, column_from, deal_rows, variable_from
from fado.valuation import TreeInfluence, readable_estimator

# decisions, performance and what negatives do to it by the threshold, of shape (repeats, validation rows)
Decided = tuple[Floats, Floats, Floats]

INFLUENCE = "influence"  # what TreeInfluence's values say of their algorithm
SHARES = (0.02, 0.05, 0.1)  # of the rows, the most harmful first
FOLDS, REPEATS = 3, 2
DRAWS = 2_000
FITS_EACH = FOLDS * REPEATS  # of one removal
LEAST_FITS, MOST_FITS = 2 * FITS_EACH, 100_000
LEAST_ROWS = 20  # of a group among those that its rate counts
LEAST_SELECTED = 2  # negatives of a fold, at the budget
_METRICS = ("performance", "fairness", "max_fpr", "form")


def check_retraining(retrain: Any, estimator: Any) -> None:
    """Refuse an invalid number of fits, and an estimator that is not a classifier."""
    if isinstance(retrain, bool) or not isinstance(retrain, int | np.integer):
        raise TypeError(f"`retrain` must be a number of fits, 0 for none, got {retrain!r}.")
    if retrain and not LEAST_FITS <= retrain <= MOST_FITS:
        raise ValueError(
            f"`retrain` must be 0, or a number of fits from {LEAST_FITS} to {MOST_FITS:,}, got {retrain}."
        )
    if estimator is not None:
        check_classifier("estimator", estimator)


class Consequences:
    """Candidates for a removal, and the measured changes; the last column is the target."""

    def __init__(
        self,
        explored: ExploredRows,
        columns: Sequence[BinnedColumn],
        retrain: int,
        estimator: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.explored, self.columns = explored, columns
        self._estimator, self._workers, self._progress = estimator, n_workers(n_jobs), progress
        provenance = explored.valuation.provenance
        settings = provenance.settings if provenance.algorithm == INFLUENCE else {}
        self._influence = {name: settings[name] for name in _METRICS if name in settings}
        self.fairness = str(settings.get("fairness", "fpr_ratio"))
        self.performance = str(settings.get("performance", "tpr_at_fpr"))
        self.max_fpr = float(settings.get("max_fpr", 0.05))
        self._positive = np.zeros(0, dtype=bool)  # the positives among the searched rows
        if explored.is_binary:
            code = 1 if explored.positive is None else explored.positive
            self._positive = np.asarray(explored.target.labels == code)[explored.sample]
        self.reasons = {one.name: self._reason(one, retrain) for one in explored.attributes}
        self._results: dict[str, dict[str, Any]] = {}
        measurable = [one for one in explored.attributes if not self.reasons[one.name]]
        if measurable:
            self._measure(measurable, retrain)

    def of(self, attribute: Protected) -> dict[str, Any]:
        """Give the results for an attribute; empty if nothing was measured.

        ``effects`` are those of the searched rows on ratio and performance, by influence, or None if the
        values themselves are effects; ``slices`` are pairs of a slice and its changes, the largest change of
        the ratio first, and ``curve`` has shares, the searched rows that go, and changes (None if they were
        not measured); ``measured`` says how.
        """
        return self._results.get(attribute.name, {})

    def _reason(self, attribute: Protected, retrain: int) -> str:
        """Say why nothing can be measured; empty if it can."""
        target, name = self.explored.target, self.explored.target_name
        if not retrain:
            return "Nothing was measured, since no model was retrained (`retrain=0`)."
        if not self.explored.is_binary:
            what = "is continuous" if target.kind != "classes" else f"has {len(target.classes)} classes"
            return f"Retraining needs a target with two classes, and {name} {what}: {COMPARE_TARGET}."
        if attribute.is_continuous:
            return f"Retraining needs groups, and {attribute.name} is a number: compare it, as in age >= 50."
        counted, negatives = len(self._counted(attribute)), int((~self._positive).sum())
        if counted < 2:
            return (
                f"Too few rows for retraining: it needs two groups with at least {LEAST_ROWS} rows that the "
                f"ratio counts, and {attribute.name} has {counted}."
            )
        least = math.ceil(2 * FOLDS * LEAST_SELECTED / self.max_fpr)
        if negatives < least:
            return (
                f"Too few rows for retraining: at a budget of {100 * self.max_fpr:g} % it needs {least:,} "
                f"negatives, and there are {negatives:,}."
            )
        return ""

    def _counted(self, attribute: Protected) -> list[Bools]:
        """Mark the searched rows that the rate of each group counts, for groups with enough of them."""
        label, codes = RATIOS[self.fairness].label, attribute.groups.codes[self.explored.sample]
        counted = np.isin(self._positive, [False, True] if label is None else [bool(label)])
        groups = [counted & (codes == group) for group in attribute.groups.compared]
        return [rows for rows in groups if rows.sum() >= LEAST_ROWS]

    def _measure(self, attributes: Sequence[Protected], retrain: int) -> None:
        """Find candidates, train models without them, and compare decisions."""
        explored, seed, sample = self.explored, self.explored.seed, self.explored.sample
        self._problem = problem = _larger_is_positive(explored.searched)
        cells = np.zeros(problem.n_rows, dtype=np.int64)
        for one in attributes:
            cells = cells * (len(one.groups) + 1) + one.groups.codes[sample] + 1
        cells = np.unique(2 * cells + problem.labels.codes, return_inverse=True)[1]
        halves = deal_rows(cells, [0.5, 0.5], np.random.default_rng([seed, 10]), problem.blocks)
        search, held = (np.flatnonzero(halves == half).astype(np.int32) for half in (0, 1))
        try:
            effects = self._search_effects(cells, search)
        except ValueError as error:  # a ratio that is undefined on the search rows
            self.reasons |= {one.name: f"Nothing was measured: {error}" for one in attributes}
            return
        each, of_label = max(1, (retrain // FITS_EACH - 1) // len(attributes)), label_cells(explored)
        candidates = []
        for one in attributes:
            on_ratio = explored.effects(one.name)[sample] if effects is None else effects[one.name]
            slices = find_slices(explored, self.columns, -on_ratio, of_label)
            curve = [(share, most_harmful(on_ratio, share, of_label)) for share in SHARES]
            harmful = [(share, rows) for share, rows in curve if rows.any()]
            tried: list[tuple[Any, Bools]] = [
                (part, part.rows(self.columns)[sample]) for part in slices[: max(1, each - len(harmful))]
            ]
            candidates.append((one, slices, curve, [*tried, *harmful][:each]))
        removed = [rows for *_, tried in candidates for _, rows in tried]
        untouched, *decided = self._decided(cells, held, removed)
        notes = []
        if effects is None:
            notes.append(
                "Slices were found with the values that you passed. If these were measured on the same rows, "
                "the changes shown are slightly too optimistic."
            )
        if self._estimator is not None and "random_state" not in self._estimator.get_params():
            name = type(self._estimator).__name__
            notes.append(f"{name} takes no seed: repeats differ only by their folds.")
        fits = FITS_EACH * (1 + len(removed)) + (0 if effects is None else 2)
        for one, slices, curve, tried in candidates:
            after, decided = decided[: len(tried)], decided[len(tried) :]
            members = [np.flatnonzero(rows[held]) for rows in self._counted(one)]
            compared = GroupDecisions(problem, held, members, missed=self.fairness == "fnr_ratio", seed=seed)
            changes = compared.changes(untouched, after)
            of_part = {part: figures for (part, _), figures in zip(tried, changes, strict=True)}
            measured = [(part, of_part.get(part)) for part in slices]
            measured.sort(key=lambda pair: -(pair[1] or {"ratio_change": -np.inf})["ratio_change"])
            self._results[one.name] = {
                "slices": measured,
                "curve": [(share, rows, of_part.get(share)) for share, rows in curve],
                "effects": None if effects is None else (effects[one.name], effects["y"]),
                "measured": {
                    "fits": fits,
                    "search_rows": len(search),
                    "validation_rows": len(held),
                    "before": compared.level(untouched),
                    "note": " ".join(notes),
                },
            }

    def _search_effects(self, cells: Integers, search: Integers) -> dict[str, Floats] | None:
        """Give every row's effects on the metrics of the search rows; None if given values are effects."""
        explored, problem = self.explored, self._problem
        scales, algorithm = explored.valuation.scales, explored.valuation.provenance.algorithm
        if algorithm != INFLUENCE and all(scales[one.name].is_signed for one in explored.attributes):
            return None
        try:  # rank by the estimator if its leaves are readable, else by LightGBM
            readable_estimator(self._estimator, explored.problem.table)
            ranking = self._estimator
        except (TypeError, ValueError):
            ranking = None
        generator = np.random.default_rng([explored.seed, 11])
        dealt = deal_rows(cells[search], [0.5, 0.5], generator, _some_blocks(problem, search))
        names = [variable.name for variable in problem.variables]
        sums = {name: np.zeros(problem.n_rows) for name in names}
        counts = np.zeros(problem.n_rows)
        for part in np.unique(dealt):
            validated = search[dealt == part]
            train = np.setdiff1d(np.arange(problem.n_rows, dtype=np.int32), validated)
            valuator = TreeInfluence(
                ranking,
                random_state=explored.seed,
                n_jobs=self._workers,
                progress=self._progress,
                **self._influence,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about small groups in a half
                values = valuator.fit_problem(problem.take(train), problem.take(validated)).valuation_
            counts[train] += 1
            for name in names:
                sums[name][train] += values[name]
        weights = 1.0 if problem.sample_weight is None else problem.sample_weight
        return {name: effects * weights / np.maximum(counts, 1) for name, effects in sums.items()}

    def _decided(self, cells: Integers, held: Integers, removals: Sequence[Bools]) -> list[Decided]:
        """Train models on all rows but a fold of the validation rows, and without each removal."""
        from lightgbm import LGBMClassifier

        seed, problem = self.explored.seed, self._problem
        blocks = _some_blocks(problem, held)
        estimator = LGBMClassifier() if self._estimator is None else self._estimator
        places = []
        for repeat in range(REPEATS):
            generator = np.random.default_rng([seed, 12, repeat])
            folds = deal_rows(cells[held], [1 / FOLDS] * FOLDS, generator, blocks)
            places += [(repeat, folds == fold) for fold in np.unique(folds)]
        every = [np.zeros(problem.n_rows, dtype=np.bool_), *removals]
        tasks = [
            task_without(problem, estimator, removed, held[fold], seed + repeat)
            for removed in every
            for repeat, fold in places
        ]
        kind: Any = engine_class(estimator, problem.table)
        engine: Engine = kind(problem.table)
        engine.prepare(tasks[:1])
        executor = ThreadExecutor(self._workers) if kind.in_threads else JoblibExecutor(self._workers)
        scored = tracked(
            executor.run(_score, tasks, engine), len(tasks), what="retrained models", show=self._progress
        )
        decided = [np.zeros((3, REPEATS, len(held))) for _ in every]
        for number, scores in enumerate(scored):
            repeat, fold = places[number % len(places)]
            decided[number // len(places)][:, repeat, fold] = self._decisions(scores, held[fold])
        return [(one[0], one[1], one[2]) for one in decided]

    def _decisions(self, scores: Floats, rows: Integers) -> Floats:
        """Decide about a fold's rows at the budget, and give each row's part in the performance.

        The third row is what each negative moves the true-positive rate by, if it is selected: more selected
        negatives raise the threshold, along the slope of the ROC curve between half and twice the budget.
        """
        performance, max_fpr, problem = self.performance, self.max_fpr, self._problem
        positive = problem.labels.is_positive[rows]
        weights = None if problem.sample_weight is None else problem.sample_weight[rows]
        decided = _selected(positive, scores, max_fpr, weights)
        if performance == "accuracy":
            return np.stack([decided, (scores >= 0.5) == positive, np.zeros(len(rows))])
        if performance != "tpr_at_fpr":
            of_label = np.where(positive, scores, 1.0 - scores)
            return np.stack([decided, np.log(np.maximum(of_label, np.finfo(np.float64).eps)), 0.0 * scores])
        ends = (max_fpr / 2, min(2 * max_fpr, (1 + max_fpr) / 2))
        low, high = (
            np.average(
                _selected(positive, scores, end, weights)[positive],
                weights=None if weights is None else weights[positive],
            )
            for end in ends
        )
        rate = np.average(decided[~positive], weights=None if weights is None else weights[~positive])
        moved = -(high - low) / (ends[1] - ends[0]) * (decided - rate)
        return np.stack([decided, np.where(positive, decided, np.nan), np.where(positive, np.nan, moved)])


def task_without(problem: Problem, estimator: Any, removed: Bools, scored: Integers, seed: int) -> Task:
    """Train on all rows but those to be scored and those removed."""
    inside = ~removed
    inside[scored] = False
    rows, weights = np.flatnonzero(inside).astype(np.int32), problem.sample_weight
    return Task(estimator, problem.target, rows, seed, scored, None if weights is None else weights[rows])


class GroupDecisions:
    """Decisions about the validation rows that the rates of one attribute's groups count, compared."""

    def __init__(
        self, problem: Problem, held: Integers, members: Sequence[Integers], *, missed: bool, seed: int
    ) -> None:
        self._weights = np.ones(len(held)) if problem.sample_weight is None else problem.sample_weight[held]
        self._blocks = _some_blocks(problem, held)
        self._members, self._missed = members, missed
        self._normal = np.random.default_rng([seed, 13]).standard_normal((DRAWS, len(members), 2))

    def level(self, outcome: Decided) -> dict[str, float]:
        """Give ratio and performance with their errors."""
        performance = outcome[1].mean(axis=0)
        return {
            "ratio": self._ratio(outcome[0].mean(axis=0)),
            "ratio_error": float(np.nanstd(_ratios(self._drawn(outcome[0], outcome[0])[..., 0]))),
            "performance": self._mean(performance),
            "performance_error": self._error(performance, outcome[2].mean(axis=0)),
        }

    def changes(self, before: Decided, after: Sequence[Decided]) -> list[dict[str, float] | None]:
        """Give the changes of ratio and performance with their errors; None where the ratio is undefined."""
        ratio_noise, performance_noise = self._noise(before, after)
        changes: list[dict[str, float] | None] = []
        for figures in (self._change(before, one) for one in after):
            lacking = abs(figures["performance_change"]) / (
                4 * FOLDS
            )  # a fold is 1 / (2 * FOLDS) of the rows
            figures["ratio_error"] = math.hypot(figures["ratio_error"], ratio_noise)
            spread = math.hypot(performance_noise * math.sqrt(1 + REPEATS), lacking)
            figures["performance_error"] = math.hypot(figures["performance_error"], spread)
            undefined = np.isnan([figures["ratio_change"], figures["ratio_error"]]).any()
            changes.append(None if undefined else figures)
        return changes

    def _change(self, before: Decided, after: Decided) -> dict[str, float]:
        """Give the changes, with errors due to the choice of validation rows."""
        drawn = self._drawn(before[0], after[0])
        moved = after[1].mean(axis=0) - before[1].mean(axis=0)
        return {
            "ratio_change": self._ratio(after[0].mean(axis=0)) - self._ratio(before[0].mean(axis=0)),
            "ratio_error": float(np.nanstd(_ratios(drawn[..., 1]) - _ratios(drawn[..., 0]))),
            "performance_change": self._mean(moved),
            "performance_error": self._error(moved, (after[2] - before[2]).mean(axis=0)),
        }

    def _noise(self, before: Decided, after: Sequence[Decided]) -> list[float]:
        """Give the errors due to training: the spread over repeats, the same for all changes."""
        noise = []
        for place, measure in enumerate((self._ratio, self._mean)):
            levels = np.array([[measure(row) for row in one[place]] for one in (before, *after)])
            variances = np.var(levels[1:] - levels[0], axis=1, ddof=1)
            known = variances[~np.isnan(variances)]
            noise.append(float(np.sqrt(known.mean() / REPEATS)) if len(known) else np.nan)
        return noise

    def _ratio(self, decisions: Floats) -> float:
        """Give the ratio between the groups' rates."""
        events = 1.0 - decisions if self._missed else decisions
        rates = [np.average(events[rows], weights=self._weights[rows]) for rows in self._members]
        return float(_ratios(np.array(rates)))

    def _drawn(self, before: Floats, after: Floats) -> Floats:
        """Draw rates of each group before and after, as other validation rows would have them."""
        both = np.stack([before.mean(axis=0), after.mean(axis=0)])
        both = 1.0 - both if self._missed else both
        drawn = np.empty_like(self._normal)
        for place, rows in enumerate(self._members):
            events, weights = both[:, rows], self._weights[rows]
            means = np.average(events, axis=1, weights=weights)
            off = self._summed((events - means[:, np.newaxis]) * weights / weights.sum(), rows)
            spread = off @ off.T + np.eye(2) * (0.5 / len(rows)) ** 2 * (events[0] != events[1]).any()
            values, vectors = np.linalg.eigh(spread)  # it may be singular
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            drawn[:, place] = means + self._normal[:, place] @ root.T
        return np.maximum(drawn, 0.0)

    def _mean(self, numbers: Floats) -> float:
        known = ~np.isnan(numbers)
        return float(np.average(numbers[known], weights=self._weights[known]))

    def _error(self, *parts: Floats) -> float:
        """Give the error of the sum of several means, each over the rows where its numbers are known."""
        off = np.zeros(len(self._weights))
        for numbers in parts:
            rows = np.flatnonzero(~np.isnan(numbers))
            weights = self._weights[rows]
            off[rows] += (numbers[rows] - self._mean(numbers)) * weights / weights.sum()
        return float(np.sqrt((self._summed(off[np.newaxis], np.arange(len(off))) ** 2).sum()))

    def _summed(self, off: Floats, rows: Integers) -> Floats:
        """Add up the rows of one block, since they were drawn together."""
        if self._blocks is None:
            return off
        return np.stack([np.bincount(self._blocks[rows], one) for one in off])


def _selected(positive: Bools, scores: Floats, max_fpr: float, weights: Floats | None) -> Bools:
    """Mark the rows that a budget of false positives selects."""
    return predicted_positive(scores, Budget("fpr", max_fpr).threshold(positive, scores, weights))


def _ratios(rates: Floats) -> Floats:
    """Give the lowest over the highest rate, in the last axis; NaN where all are 0."""
    highest = rates.max(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.where(highest > 0, rates.min(axis=-1) / np.where(highest > 0, highest, 1.0), np.nan)


def _larger_is_positive(problem: Problem) -> Problem:
    """Give the problem with the larger label as the positive one, as valuators need it."""
    if problem.labels.positive == 1:
        return problem
    column = column_from(problem.sources[0].name, problem.labels.is_positive)
    return replace(
        problem, target=variable_from(column), sources=(column, *problem.sources[1:]), pos_label=None
    )


def _some_blocks(problem: Problem, rows: Integers) -> Integers | None:
    """Give the blocks of some rows, numbered anew."""
    return None if problem.blocks is None else np.unique(problem.blocks[rows], return_inverse=True)[1]


def _score(task: Task, engine: Engine, stop: threading.Event | None) -> Floats:
    return engine.fit(task, stop).scores[:, 1]
