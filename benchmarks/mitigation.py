"""What the interventions do on real data: chosen on validation rows, judged on test rows.

    python benchmarks/mitigation.py --data DIR [--names ...] [--settings 33] [--models 10] [--rows 100000]

Every intervention gets the same budget: `--settings` settings, each followed by the same `--models` LightGBM
models. The utility-aware ones spend it on the paper's three utilities and eleven alphas; random sampling on
strengths and seeds, reweighing on powers of its factor, and "none", which has nothing to set, on more models.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from _data import data_argument, real_table
from fado import (
    CobbDouglasUtility,
    DifferenceUtility,
    LinearUtility,
    OutOfBagEntropy,
    RandomPrevalenceSampler,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
)
from fado._frames import Table
from fado.engine._boosting import bin_columns, grown, own_scores, parameters_of, subset
from fado.engine._parallel import in_threads
from fado.engine._threads import fitting
from fado.metrics import evaluate, hypervolume, pareto_frontier

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


def interventions(X, y, z, valuation, n_settings, models):
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


def trained(X, y, parts, jobs):
    """Train every model after every intervention on shared bins; give the scores of the other rows."""
    frames = [Table.from_input(X.iloc[rows]).columns for rows in parts]
    parameters = parameters_of(LGBMClassifier(random_state=0))
    training = bin_columns(frames[0], parameters, WORKERS)
    judged = bin_columns(frames[1], parameters, WORKERS, training)
    labels = y[parts[0]]

    def fit(job, stop):
        _, _, rows, weights, parameters = job
        settings = parameters_of(LGBMClassifier(**parameters)) | {"objective": "binary"}
        weights = None if weights is None else weights[rows].astype(np.float32)
        with fitting():
            booster = grown(settings, subset(training, rows, labels[rows], weights), judged, stop)
            return own_scores(booster, training=False)

    return in_threads(fit, jobs, WORKERS)


def landscape(X, y, z, arguments):
    """Judge every model of every intervention on validation and test rows."""
    order = np.random.default_rng(arguments.seed).permutation(len(y))
    train, validation, test = np.split(order, [int(0.5 * len(y)), int(0.75 * len(y))])
    train = np.sort(train)
    valuator = OutOfBagEntropy(random_state=arguments.seed)
    valuation = valuator.fit(X.iloc[train], y[train], sensitive_features=z[train]).valuation_
    models = [model_space(arguments.models, seed) for seed in range(arguments.settings)]
    settings = interventions(X.iloc[train], y[train], z[train], valuation, arguments.settings, models)
    jobs = [
        (name, setting, rows.astype(np.int32), weights, model)
        for name, setting, rows, weights, own in settings
        for model in own
    ]
    held_out = np.concatenate([validation, test])
    found = []
    for job, scores in zip(jobs, trained(X, y, (train, held_out), jobs), strict=True):
        row = {"intervention": job[0], "setting": job[1]}
        for part, rows, own in (
            ("validation", validation, scores[: len(validation)]),
            ("test", test, scores[len(validation) :]),
        ):
            metrics = evaluate(y[rows], own, sensitive_features=z[rows], n_boot=200, random_state=0)
            row |= {f"{part}_{name}": value for name, value in metrics.items()}
        found.append(row)
    return pd.DataFrame(found)


def shown(row, metric):
    return f"{row[f'test_{metric}']:.3f} [{row[f'test_{metric}_low']:.3f}, {row[f'test_{metric}_high']:.3f}]"


def report(name, frame):
    untouched = frame.loc[frame["intervention"] == "none", "validation_tpr"].max()
    for ratio, title in RATIOS.items():
        print(f"\n{name}, {title}: test figures of the models chosen on validation rows")
        left, right = "highest TPR at a ratio of 0.8", "highest ratio within 1 p.p. of the best untouched TPR"
        print(f"{'':14} | {left:48} | {right:48} | hypervolume")
        print(f"{'':14} | {'TPR':22}   {'ratio':23} | {'ratio':22}   {'TPR':23} |")
        for intervention, own in frame.groupby("intervention", sort=False):
            own = own.dropna(subset=[f"validation_{ratio}", f"test_{ratio}"])
            fair = own[own[f"validation_{ratio}"] >= 0.8]
            near = own[own["validation_tpr"] >= untouched - 0.01]
            left = right = f"{'none':48}"
            if len(fair):
                best = fair.loc[fair["validation_tpr"].idxmax()]
                left = f"{shown(best, 'tpr'):22}   {shown(best, ratio):23}"
            if len(near):
                best = near.loc[near[f"validation_{ratio}"].idxmax()]
                right = f"{shown(best, ratio):22}   {shown(best, 'tpr'):23}"
            chosen = own[pareto_frontier(own[["validation_tpr", f"validation_{ratio}"]].to_numpy())]
            volume = hypervolume(chosen[["test_tpr", f"test_{ratio}"]].to_numpy())
            print(f"{intervention:14} | {left} | {right} | {volume:.3f}")


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
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if not arguments.data:
        parser.error("--data is needed: this is about real data")
    warnings.simplefilter("ignore")
    for name in arguments.names:
        start = time.perf_counter()
        X, y, z = real_table(arguments.data, name, arguments.rows)
        frame = landscape(X, y, z, arguments)
        report(name, frame)
        print(f"\n{name}: {len(frame):,} models in {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
