"""What the interventions do on real data: chosen on validation rows, measured on test rows.

    python benchmarks/mitigation.py --data DIR [--names ...] [--splits 3] [--settings 33] [--models 10]

Every intervention gets the same budget: `--settings` settings, each followed by the same `--models` LightGBM
models. The utility-aware ones spend it on the paper's three utilities and eleven alphas; with effects as
values (`TreeInfluence`, on TPR at the budget and on the ratio of false-positive rates), which only the linear
utility takes, on eleven alphas and three strengths or floors. Random sampling spends it on strengths and
seeds, reweighing on powers of its factor, and "none", which has nothing to set, on more models.

Figures are means over random splits into training, validation and test rows, each with its own values, and so
are the ends of the 95 % bootstrap intervals. Last, the script tells what moves a ratio: the rank correlation,
over all models, of the ratio on test rows with the groups' positive rates in the training set (weighted, the
lower rate of the untouched data over the higher one).
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from scipy.stats import spearmanr

from _data import data_argument, real_table
from fado import (
    CobbDouglasUtility,
    DifferenceUtility,
    LinearUtility,
    OutOfBagEntropy,
    RandomPrevalenceSampler,
    TreeInfluence,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
)
from fado.engine import LightGBMEngine, Task
from fado.execution import ThreadExecutor
from fado.metrics import evaluate, hypervolume, pareto_frontier
from fado.tabular import Table, Variable

RATIOS = {
    "fpr_ratio": "predictive equality",
    "fnr_ratio": "equality of opportunity (FNR)",
    "selection_rate_ratio": "demographic parity",
}
UTILITIES = (LinearUtility, DifferenceUtility, CobbDouglasUtility)
ALPHAS = np.linspace(0, 1, 11).round(1)
WORKERS = 2


def model_space(n_models, seed):
    """Draw models from a part of the paper's space that fits in minutes."""
    rng = np.random.default_rng(seed)

    def log_uniform(low, high):
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    return [
        {
            "n_estimators": round(log_uniform(20, 150)),
            "num_leaves": round(log_uniform(5, 63)),
            "min_child_samples": round(log_uniform(5, 300)),
            "max_depth": round(log_uniform(2, 20)),
            "learning_rate": log_uniform(0.05, 0.3),
            "random_state": 0,
        }
        for _ in range(n_models)
    ]


def spread(items, n):
    """Take n items at even distances."""
    items = list(items)
    return [items[int(j)] for j in np.linspace(0, len(items) - 1, n).round()]


def interventions(X, y, z, valuation, effects, n_settings, models):
    """List every intervention's settings as (name, setting, kept rows, weights, models)."""
    everything = np.arange(len(y), dtype=np.int32)
    fit = {"X": X, "y": y, "sensitive_features": z}
    for number in range(n_settings):
        yield "none", f"models {number}", everything, None, models[number]
    grid = [utility(alpha) for utility, alpha in itertools.product(UTILITIES, ALPHAS)]
    strengths = np.linspace(0, 1, 12)[1:]
    for strength, seed in spread(itertools.product(strengths, range(3)), n_settings):
        sampler = RandomPrevalenceSampler(strength=strength, random_state=seed).fit(**fit)
        yield "RPS", f"strength {strength:.2f}", sampler.sample_indices_, None, models[0]
    for power in np.linspace(0, 2, n_settings + 1)[1:]:
        reweigher = UtilityAwareReweigher(floor=1.0, prevalence_correction=power)
        weights = reweigher.fit(**fit, valuation=valuation).sample_weight_
        yield "RW", f"power {power:.2f}", everything, weights, models[0]
    for utility in spread(grid, n_settings):
        sampler = UtilityAwarePrevalenceSampler(utility, random_state=0).fit(**fit, valuation=valuation)
        yield "UAPS", repr(utility), sampler.sample_indices_, None, models[0]
    for utility in spread(grid, n_settings):
        weights = UtilityAwareReweigher(utility).fit(**fit, valuation=valuation).sample_weight_
        yield "UAR", repr(utility), everything, weights, models[0]
    powers, floors = (0.5, 1.0, 1.5, 2.0), (0.0, 0.1, 0.3)
    for j, utility in enumerate(spread(grid, n_settings)):
        power, floor = powers[j % 4], floors[j % 3]
        reweigher = UtilityAwareReweigher(utility, prevalence_correction=power, floor=floor)
        weights = reweigher.fit(**fit, valuation=valuation).sample_weight_
        yield "corrected UAR", f"{utility!r}, power {power}, floor {floor}", everything, weights, models[0]
    linear = list(itertools.product(map(LinearUtility, ALPHAS), (0, 1, 2)))
    for utility, j in spread(linear, n_settings):
        strength = (1.0, 0.67, 0.33)[j]
        sampler = UtilityAwarePrevalenceSampler(utility, strength=strength, random_state=0)
        rows = sampler.fit(**fit, valuation=effects).sample_indices_
        yield "UAPS, effects", f"{utility!r}, strength {strength}", rows, None, models[0]
    for utility, j in spread(linear, n_settings):
        floor = (0.0, 0.3, 0.6)[j]
        weights = UtilityAwareReweigher(utility, floor=floor).fit(**fit, valuation=effects).sample_weight_
        yield "UAR, effects", f"{utility!r}, floor {floor}", everything, weights, models[0]
    for number, (utility, j) in enumerate(spread(linear, n_settings)):
        power, floor = powers[number % 4], (0.0, 0.3, 0.6)[j]
        reweigher = UtilityAwareReweigher(utility, prevalence_correction=power, floor=floor)
        weights = reweigher.fit(**fit, valuation=effects).sample_weight_
        setting = f"{utility!r}, power {power}, floor {floor}"
        yield "corrected UAR, effects", setting, everything, weights, models[0]


def trained(X, y, parts, jobs):
    """Train every model after every intervention on shared bins; give the scores of the other rows."""
    table = Table.from_input(X)
    training, validated = (table.take(rows) for rows in parts)
    engine = LightGBMEngine(training, workers=WORKERS, prefilter=False)
    target = Variable("y", "classes", y[parts[0]].astype(np.int32), (0, 1))

    def fit(job, engine, stop):
        _, _, rows, weights, parameters = job
        weights = None if weights is None else weights[rows]
        rows = np.asarray(rows, dtype=np.int32)
        return engine.fit(
            Task(LGBMClassifier(**parameters), target, rows, 0, validated, weights), stop
        ).scores[:, 1]

    return ThreadExecutor(WORKERS).run(fit, jobs, engine)


def rate_ratio(y, z, rows, weights):
    """Divide the weighted positive rate of the group where it was lower at first by the other's."""
    weights = np.ones(len(y)) if weights is None else weights
    first, second = sorted((0, 1), key=lambda group: y[z == group].mean())

    def rate(group):
        own = rows[z[rows] == group]
        return np.average(y[own], weights=weights[own])

    return rate(first) / rate(second)


def landscape(X, y, z, seed, arguments):
    """Measure every model of every intervention on validation and test rows."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, validation, test = np.split(order, [int(0.5 * len(y)), int(0.75 * len(y))])
    train = np.sort(train)
    valuator = OutOfBagEntropy(random_state=seed)
    valuation = valuator.fit(X.iloc[train], y[train], sensitive_features=z[train]).valuation_
    influence = TreeInfluence(random_state=seed)
    effects = influence.fit(X.iloc[train], y[train], sensitive_features=z[train]).valuation_
    models = [model_space(arguments.models, number) for number in range(arguments.settings)]
    settings = interventions(
        X.iloc[train], y[train], z[train], valuation, effects, arguments.settings, models
    )
    jobs = [
        (name, setting, rows.astype(np.int32), weights, model)
        for name, setting, rows, weights, own in settings
        for model in own
    ]
    held_out = np.concatenate([validation, test])
    found = []
    for job, scores in zip(jobs, trained(X, y, (train, held_out), jobs), strict=True):
        row = {"intervention": job[0], "setting": job[1]}
        row["rate_ratio"] = rate_ratio(y[train], z[train], job[2], job[3])
        for part, rows, own in (
            ("validation", validation, scores[: len(validation)]),
            ("test", test, scores[len(validation) :]),
        ):
            n_boot = 200 if part == "test" else 0
            metrics = evaluate(y[rows], own, sensitive_features=z[rows], n_boot=n_boot, random_state=0)
            row |= {f"{part}_{name}": value for name, value in metrics.items()}
        found.append(row)
    return pd.DataFrame(found)


def chosen(frame, intervention, ratio):
    """Choose on validation rows: the fairest of the best, the best of the fair; and the frontier's volume."""
    untouched = frame.loc[frame["intervention"] == "none", "validation_tpr"].max()
    own = frame[frame["intervention"] == intervention]
    own = own.dropna(subset=[f"validation_{ratio}", f"test_{ratio}"])
    fair = own[own[f"validation_{ratio}"] >= 0.8].nlargest(1, "validation_tpr")
    near = own[own["validation_tpr"] >= untouched - 0.01].nlargest(1, f"validation_{ratio}")
    frontier = own[pareto_frontier(own[["validation_tpr", f"validation_{ratio}"]].to_numpy())]
    return fair, near, hypervolume(frontier[["test_tpr", f"test_{ratio}"]].to_numpy())


def shown(rows, metric):
    middle, low, high = (rows[f"test_{metric}{end}"].mean() for end in ("", "_low", "_high"))
    return f"{middle:.3f} [{low:.3f}, {high:.3f}]"


def report(name, frames):
    for ratio, title in RATIOS.items():
        print(f"\n{name}, {title}: test figures of the models chosen on validation rows")
        left, right = "highest TPR at a ratio of 0.8", "highest ratio within 1 p.p. of the best untouched TPR"
        print(f"| | {left}: TPR, ratio | splits | {right}: ratio, TPR | splits | hypervolume |")
        print("|---|---|---|---|---|---|")
        for intervention in frames[0]["intervention"].unique():
            fair, near, volumes = zip(*(chosen(f, intervention, ratio) for f in frames), strict=True)
            fair, near = pd.concat(fair), pd.concat(near)
            left = f"{shown(fair, 'tpr')}, {shown(fair, ratio)}" if len(fair) else "never reached"
            right = f"{shown(near, ratio)}, {shown(near, 'tpr')}" if len(near) else "never reached"
            counts = [f"{len(rows)} of {len(frames)}" for rows in (fair, near)]
            print(
                f"| {intervention} | {left} | {counts[0]} | {right} | {counts[1]} | {np.mean(volumes):.3f} |"
            )
        everything = pd.concat(frames).dropna(subset=[f"test_{ratio}"])
        moved = spearmanr(everything["rate_ratio"], everything[f"test_{ratio}"])[0]
        print(f"rank correlation of this ratio with the training set's ratio of positive rates: {moved:.2f}")


def overview(tables):
    """Print what each intervention has at the line, and how much its frontier covers, all tables in one."""
    names = next(iter(tables.values()))[0]["intervention"].unique()
    cells = {
        "The highest TPR at a ratio of 0.8: TPR, ratio (splits, if not all)": at_the_line,
        "Hypervolume": covered,
    }
    for title, cell in cells.items():
        print(f"\n{title}\n\n| | | {' | '.join(names)} |")
        print("|---" * (len(names) + 2) + "|")
        for table, frames in tables.items():
            for ratio, shown_ratio in RATIOS.items():
                row = [cell(frames, name, ratio) for name in names]
                print(f"| {table} | {shown_ratio} | {' | '.join(row)} |")


def covered(frames, intervention, ratio):
    return f"{np.mean([chosen(frame, intervention, ratio)[2] for frame in frames]):.3f}"


def at_the_line(frames, intervention, ratio):
    fair = pd.concat([chosen(frame, intervention, ratio)[0] for frame in frames])
    if not len(fair):
        return "never"
    count = "" if len(fair) == len(frames) else f" ({len(fair)})"
    return f"{fair['test_tpr'].mean():.3f}, {fair[f'test_{ratio}'].mean():.2f}{count}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    names = ["give_me_some_credit", "adult", "acs_income"]
    parser.add_argument("--names", nargs="+", choices=names, default=names)
    parser.add_argument("--settings", type=int, default=33)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="directory for every model's figures")
    arguments = parser.parse_args()
    if not arguments.data:
        parser.error("--data is needed: this is about real data")
    warnings.simplefilter("ignore")
    tables = {}
    for name in arguments.names:
        start = time.perf_counter()
        X, y, z = real_table(arguments.data, name, arguments.rows)
        frames = [landscape(X, y, z, seed, arguments) for seed in range(arguments.splits)]
        tables[name] = frames
        report(name, frames)
        print(
            f"\n{name}: {sum(map(len, frames)):,} models in {time.perf_counter() - start:.0f} s", flush=True
        )
        if arguments.keep is not None:
            pd.concat(frames, keys=range(len(frames)), names=["split"]).to_parquet(
                arguments.keep / f"{name}.parquet"
            )
    overview(tables)


if __name__ == "__main__":
    main()
