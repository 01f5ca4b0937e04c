"""How far values tell what rows do to a model: remove rows, train again, compare.

    python benchmarks/faithfulness.py --data DIR [--tables adult ...] [--rows 40000] [--repeats 3] [--study]
    python benchmarks/faithfulness.py --data DIR --slices --json FILE [--draws 3] [--retrain 120]

The second form asks whether the consequences that `explore` prints are true; its rules stand in
`_printed_consequences.py`. The first is about values.

For each table half of so many rows (of the fraud, where positives are rare, 2.5 times as many) is valued and
trained on, the other half is for validation: a seeded draw. The model is LightGBM's own `LGBMClassifier()`,
without the attribute among its features. Parts of the training rows are removed, one at a time, and the model
is trained again:

- cells: a tenth to six tenths of the rows of one label and group (48 parts),
- leaves: half of the rows of a few leaves of a tree of the target that hold a tenth of the table (24),
- slices: half of the rows of a slice that explore's search found on the training rows (up to 24),
- random: 2 to 20 % of the rows (24).

What values foretell is minus their sum over the removed rows. What happened is the change of the metric on
the validation rows, the mean of `--repeats` retrainings that each do without another random twentieth of the
rows (a single one is noisy). Printed are the rank correlation and, for effects, the slope of what happened to
what was foretold. "Measured" values are measured on the validation rows, the others out of bag on the
training rows.

Added after the first run, which showed it to matter on ACS and Diabetes: a last table for cells, with ratios
of the two groups that are extreme for the model of all rows, in that order. Where a ratio is near 1, its
groups change places and it falls again, which no sum of values can foretell.

Written down before the first run: influence's form and bandwidth are chosen on Adult, credit and ACS by the
mean rank correlation of the four ratios on cells; Diabetes and the generated fraud have no say in it.
`--study` prints that choice. The aim for `fpr_ratio` on cells: .85 on Adult, .7 on the others.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

import _printed_consequences
from _data import TABLES, data_argument, real_table, text_as_categories
from fado import KNNShapley, OutOfBagEntropy, TreeInfluence
from fado.datasets import make_account_fraud
from fado.execution import ThreadExecutor
from fado.exploration._explored import read_explored
from fado.exploration._slices import SliceFinder
from fado.metrics import RATIO_NAMES
from fado.tabular import read_problem
from fado.valuation import _retraining as retraining
from fado.valuation._retraining import draw_parts
from fado.valuation._validation_rows import (
    read_validation_rows,
)
from fado.valuation.influence import _effects

REAL = ["adult", "give_me_some_credit", "acs_income", "diabetes130"]
CHOSEN_ON = REAL[:3]
PERFORMANCES = ("tpr_at_fpr", "log_loss")
METRICS = (*RATIO_NAMES, *PERFORMANCES)
DIRECTED = {f"directed {ratio}": ratio for ratio in RATIO_NAMES}
MODEL = LGBMClassifier()
BANDWIDTHS = (0.05, 0.1, 0.2, 0.4)


class Trial:
    """One table in two halves, parts to remove, and what their removal did."""

    def __init__(self, directory, name, rows, repeats):
        X, y, z = fraud(5 * rows // 2) if name == "fraud" else real_table(directory, name, rows)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[: len(y) // 2], order[len(y) // 2 :]
        self.X, self.y, self.z = X.iloc[train].reset_index(drop=True), y[train], z[train]
        self.validation = X.iloc[test].reset_index(drop=True), y[test], {"z": z[test]}
        problem = read_problem(self.X, self.y, {"z": self.z})
        self.validated = read_validation_rows(problem, read_problem(*self.validation), "this")
        entropy = OutOfBagEntropy(random_state=0)
        self.entropy = entropy.fit(self.X, self.y, sensitive_features={"z": self.z}).valuation_
        self.parts = [
            *draw_parts(problem, 48, 0, ("cell",)),
            *draw_parts(problem, 24, 1, ("leaves",)),
            *self._slices(problem),
            *draw_parts(problem, 24, 2, ("random",)),
        ]
        self.kinds = np.array([kind for kind, _ in self.parts])
        self.actual = self._retrain(problem, repeats)

    def _slices(self, problem):
        """Give half of the rows of slices where models are surest and least sure of target and group."""
        valuation = self.entropy
        explored = read_explored(problem, "y", valuation, max_rows=50_000, min_group_size=30, seed=0)
        finder, generator, parts = SliceFinder(explored), np.random.default_rng(3), []
        for variable in ("y", "z"):
            for sign in (1.0, -1.0):
                for found in finder.find(sign * valuation[variable], 6):
                    rows = np.flatnonzero(found.rows(finder.columns))
                    half = generator.choice(rows, len(rows) // 2, replace=False)
                    parts.append(("slices", np.sort(half).astype(np.int32)))
        return parts

    def _retrain(self, problem, repeats):
        """Give every metric's change by every part, and its value on all rows."""
        nothing = np.zeros(0, dtype=np.int32)
        place = retraining._Place(
            retraining.engine_class(MODEL, problem.table)(problem.table), problem, MODEL, self.validated, 0
        )
        place.engine.prepare([place.task(nothing)])
        beside = retraining._twentieths(problem.n_rows, repeats, 0)
        removed = [
            np.union1d(own, rows) for own in beside for rows in (nothing, *(rows for _, rows in self.parts))
        ]
        scores = list(ThreadExecutor(2).run(retraining._score, removed, place))
        figures = {}
        for number, ratio in enumerate(RATIO_NAMES):
            performance = PERFORMANCES[number % 2]
            measured = [self.validated.measure(own, performance, ratio, 0.05) for own in scores]
            figures[ratio] = [own["z"] for own in measured]
            figures[performance] = [own["y"] for own in measured]
            decisions = [self.validated.decide(own, 0.05) for own in scores]
            (groups,) = self.validated.attributes
            extremes = self.validated.extremes(groups, ratio, decisions[0])
            figures[f"directed {ratio}"] = [
                self.validated.directed_ratio(groups, ratio, own, extremes) for own in decisions
            ]
        self.untouched = {metric: own[0] for metric, own in figures.items()}
        return {metric: retraining._changes(own, repeats)[1] for metric, own in figures.items()}

    def sums(self, values):
        """Give what values foretell for every part."""
        return np.array([-values[rows].sum() for _, rows in self.parts])

    def compare(self, metric, foretold, kind):
        """Give the rank correlation and the slope of what was foretold with what happened."""
        actual = self.actual[metric]
        chosen = (self.kinds == kind) & np.isfinite(actual)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return retraining._agreement(foretold[chosen], actual[chosen])


def fraud(rows):
    """Make the paper's own setting."""
    frame = make_account_fraud(rows, random_state=0)
    y, z = frame.pop("fraud_bool").to_numpy(), (frame.pop("customer_age") >= 50).to_numpy().astype(int)
    return text_as_categories(frame.drop(columns="month")), y, z


def influence(trial, form="direct", *, validated=False):
    """Foretell all metrics by effects."""
    values = {}
    for number, ratio in enumerate(RATIO_NAMES):
        performance = PERFORMANCES[number % 2]
        valuator = TreeInfluence(MODEL, performance=performance, fairness=ratio, form=form, random_state=0)
        validation = trial.validation if validated else None
        own = valuator.fit(
            trial.X, trial.y, sensitive_features={"z": trial.z}, validation=validation
        ).valuation_
        values |= {ratio: trial.sums(own["z"]), performance: trial.sums(own["y"])}
    return values


def neighbours(trial):
    """Foretell all metrics by KNN-Shapley values; those for accuracy stand in for both performances."""
    values = {}
    for ratio in RATIO_NAMES:
        own = KNNShapley(fairness=ratio, random_state=0)
        own = own.fit(trial.X, trial.y, sensitive_features={"z": trial.z}).valuation_
        values |= {ratio: trial.sums(own["z"]), **dict.fromkeys(PERFORMANCES, trial.sums(own["y"]))}
    return values


def candidates(trial):
    """Give what every kind of values foretells: per metric one number per part."""
    entropy = trial.entropy
    noise = np.random.default_rng(9).normal(size=len(trial.y))

    def of(columns):
        return {metric: trial.sums(columns["z" if metric in RATIO_NAMES else "y"]) for metric in METRICS}

    return {
        "influence": influence(trial),
        "influence, validation rows": influence(trial, validated=True),
        "influence, backward": influence(trial, "backward"),
        "knn-shapley": neighbours(trial),
        "entropy": of({name: entropy[name] for name in ("y", "z")}),
        "agreement": of({name: entropy.field("label_probability", name) for name in ("y", "z")}),
        "random": of({"y": noise, "z": noise}),
    }


def print_tables(name, trial):
    """Print what each kind of values foretells."""
    found = candidates(trial)
    print(f"\n{name}: " + ", ".join(f"{metric} {trial.untouched[metric]:.3f}" for metric in METRICS))
    for kind in dict.fromkeys(trial.kinds):
        spread = ", ".join(
            f"{metric} {np.nanstd(own[trial.kinds == kind]):.4f}" for metric, own in trial.actual.items()
        )
        print(f"\n{name}: {kind}, {np.sum(trial.kinds == kind)} parts; changes spread by {spread}")
        print_table(trial, found, kind, {metric: metric for metric in METRICS})
    print(f"\n{name}: cell, ratios of the same two groups in the same order")
    print_table(trial, found, "cell", DIRECTED)


def print_table(trial, found, kind, metrics):
    """Print rank correlations and slopes; `metrics` names the metric that was foretold for each."""
    print(f"{'':<22}" + "".join(f"{metric.replace('selection_rate', 'sel'):>20}" for metric in metrics))
    for label, foretold in found.items():
        told = [trial.compare(metric, foretold[own], kind) for metric, own in metrics.items()]
        slope = label.startswith("influence")
        cells = [f"{own['correlation']:.2f}" + (f" ({own['slope']:.2f})" if slope else "") for own in told]
        print(f"{label:<22}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def print_choice(trials):
    """Print the mean rank correlation on cells by form and bandwidth."""
    print(f"\n{'form':<12}{'bandwidth':>10}{'four ratios':>13}{'their slopes':>14}{'tpr':>7}{'log-loss':>10}")
    chosen = _effects.BANDWIDTH
    for form in ("direct", "backward"):
        for bandwidth in BANDWIDTHS:
            _effects.BANDWIDTH = bandwidth
            told = {metric: [] for metric in METRICS}
            for trial in trials:
                values = influence(trial, form)
                for metric in METRICS:
                    told[metric].append(trial.compare(metric, values[metric], "cell"))
            ratios = pd.DataFrame([own for metric in RATIO_NAMES for own in told[metric]]).mean()
            others = [np.mean([own["correlation"] for own in told[metric]]) for metric in PERFORMANCES]
            print(
                f"{form:<12}{bandwidth:>10}{ratios['correlation']:>13.3f}{ratios['slope']:>14.2f}"
                f"{others[0]:>7.2f}{others[1]:>10.2f}",
                flush=True,
            )
    _effects.BANDWIDTH = chosen


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument("--tables", nargs="+", choices=[*TABLES, "fraud"], default=[*REAL, "fraud"])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--study", action="store_true", help="print how form and bandwidth were chosen")
    parser.add_argument("--slices", action="store_true", help="are printed consequences true?")
    parser.add_argument("--draws", type=int, default=3, help="with --slices: samples of each table")
    parser.add_argument("--json", type=Path, help="with --slices: keeps what was found")
    parser.add_argument("--retrain", type=int, default=120, help="with --slices: fits of `explore`")
    given = parser.parse_args()
    if given.slices:
        if given.data is None or given.json is None:
            parser.error("--data and --json are needed: --slices is about real data, and takes an hour")
        _printed_consequences.run(given.data, given.draws, given.retrain, given.json)
        return
    if given.data is None:
        given.tables = [name for name in given.tables if name == "fraud"]
    trials = {}
    for name in given.tables:
        start = time.perf_counter()
        trials[name] = Trial(given.data, name, given.rows, given.repeats)
        print_tables(name, trials[name])
        print(f"{name}: {time.perf_counter() - start:.0f} s")
    if given.study:
        print_choice([trial for name, trial in trials.items() if name in CHOSEN_ON])


if __name__ == "__main__":
    main()
