"""Are the consequences that explore prints true? The part `--slices` of benchmarks/faithfulness.py.

The rules, fixed before the first run that counts. One draw of Adult, number 100, was looked at before and is
not among those counted; the population was 100,000 rows then.

- Six questions: Adult by sex, Give Me Some Credit by age < 40, ACS Income by race (Black or not) and by sex
  (which is a feature), Diabetes by sex (readmitted or not), and generated fraud, variant II, by age >= 50.
  Of each, `--draws` samples of 12,000 rows are drawn; all other rows, 50,000 at most, are the population.
- `explore` of the sample with all its defaults prints consequences: slices that are removed, and the most
  harmful 2, 5 and 10 % of rows removed. The model is LightGBM of 60 trees and 15 leaves. Nothing was tuned on
  these draws.
- The truth: the model is trained on the whole sample with and without the removed rows, three times, each
  without another random twentieth of the rows (the same with and without), and measured in the population:
  the ratio of false-positive rates and the true-positive rate at the threshold of 5 % false positives. The
  change is the mean of the three.
- A consequence is clear if its change is more than 1.96 of its printed errors from 0. Counted: of all and of
  the clear ones, the share whose sign is that of the truth; how many of all lie within 1.96 errors of the
  truth (the truth's own noise is not allowed for). Beside them, for removals of slices, the sign of
  a forecast: minus the sum of the influence on the search rows.
"""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from _aim_tables import QUESTIONS, draw_sample, measure
from fado.exploration._consequences import Consequences
from fado.exploration._explored import read_explored
from fado.exploration._slices import SliceFinder, binned_column
from fado.metrics import threshold_at_fpr
from fado.tabular import read_problem

NAMES = ("adult", "credit", "race-20", "sex", "diabetes", "fraud")
SAMPLE_ROWS = 12_000
MOST_ROWS = 50_000
REPEATS, LEFT_OUT = 3, 0.05
MODEL = LGBMClassifier(n_estimators=60, num_leaves=15, verbosity=-1, n_jobs=1)
METRICS = {"ratio": "fpr_ratio", "performance": "tpr"}


def run(directory, draws, retrain, kept):
    """Print, by question and in all, how often printed consequences are true; `kept` has a line for each."""
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(one["table"], one["draw"]) for one in rows}
    for draw, name in product(range(draws), NAMES):
        if (name, draw) in done:
            continue
        start = time.process_time()
        found = [{"table": name, "draw": draw} | own for own in one_draw(directory, name, draw, retrain)]
        rows += found
        with kept.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(own) + "\n" for own in found)
        print(f"{name} {draw}: {len(found)} consequences, {time.process_time() - start:.0f} s", flush=True)
    print_tables(pd.DataFrame(rows))


def one_draw(directory, name, number, retrain):
    question = replace(QUESTIONS[name], rows=SAMPLE_ROWS)
    draw, y_population = draw_sample(directory, question, number)
    problem = read_problem(draw.X, draw.y, {"z": draw.z})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explored = read_explored(problem, "y", None, max_rows=50_000, min_group_size=30, seed=number)
        columns = SliceFinder(explored).columns
        columns = [*columns, binned_column(len(columns), problem.sources[0], explored.sample)]
        consequences = Consequences(explored, columns, retrain, MODEL, n_jobs=2)
    attribute = explored.attributes[0]
    found = consequences.of(attribute)
    effects = found["effects"][0]
    truth = Truth(draw, y_population, number)
    rows = []
    for part, measured in found["slices"]:
        if measured is not None:
            removed = part.rows(columns)
            forecast = {"forecast": -effects[removed].sum()}
            rows.append({"kind": "slice"} | measured | truth.change(removed) | forecast)
    for _, removed, measured in found["curve"]:
        if measured is not None:
            rows.append({"kind": "most harmful"} | measured | truth.change(removed))
    return rows


class Truth:
    """Models of the whole sample, measured in the population."""

    def __init__(self, draw, y_population, seed):
        self._draw, self._y, self._seed = draw, y_population[:MOST_ROWS], seed
        self._X, self._z = draw.X_population.iloc[:MOST_ROWS], draw.z_population[:MOST_ROWS]
        nothing = np.zeros(len(draw.y), dtype=bool)
        self._before = [self._measure(nothing, repeat) for repeat in range(REPEATS)]

    def change(self, mask):
        after = [self._measure(mask, repeat) for repeat in range(REPEATS)]
        return {
            f"true_{name}_change": float(
                np.mean(
                    [own[metric] - before[metric] for own, before in zip(after, self._before, strict=True)]
                )
            )
            for name, metric in METRICS.items()
        }

    def _measure(self, removed, repeat):
        kept = np.random.default_rng([self._seed, repeat]).random(len(self._draw.y)) >= LEFT_OUT
        kept &= ~removed
        model = LGBMClassifier(**MODEL.get_params())
        model.fit(self._draw.X[kept], self._draw.y[kept])
        scores = model.predict_proba(self._X)[:, 1]
        return measure(scores >= threshold_at_fpr(self._y, scores, 0.05), self._y, self._z)


def print_tables(frame):
    print("\n| | consequences | clear | sign right, clear | sign right, all | truth within 1.96 errors |")
    print("|---|---|---|---|---|---|")
    parts = [*frame.groupby("table", sort=False), *frame.groupby("kind", sort=False), ("all", frame)]
    for metric in METRICS:
        for name, own in parts:
            change, error, true = (
                own[f"{metric}_change"],
                own[f"{metric}_error"],
                own[f"true_{metric}_change"],
            )
            right, clear = np.sign(change) == np.sign(true), change.abs() > 1.96 * error
            inside = (change - true).abs() <= 1.96 * error
            told = f"{right[clear].mean():.0%}" if clear.any() else ""
            print(
                f"| {metric}: {name} | {len(own)} | {clear.mean():.0%} | {told} | {right.mean():.0%} | "
                f"{inside.mean():.0%} |"
            )
    removed = frame[frame["kind"] == "slice"]
    right = (np.sign(removed["forecast"]) == np.sign(removed["true_ratio_change"])).mean()
    print(f"\nRemoved slices, sign of the sum of effects: right in {right:.0%} of {len(removed)}")
