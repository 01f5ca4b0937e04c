"""What it costs to tell what rows do to a model, against the plain training of the same models.

    python benchmarks/influence.py [--rows 1000000] [--columns 30] [--trees 100] [--repeats 1]

Both sides train the same five models, each on four fifths of the rows, on all cores: the plain one by
`LGBMClassifier.fit` and `predict_proba` of the fold left out, one model after the other with as many threads
as there are cores; ours by `TreeInfluence`, which also gives every row its effects on two metrics. Each side
runs in a process of its own, which reports the most memory that it held. Linux and macOS only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np
from lightgbm import LGBMClassifier

from _data import rare_positives
from _growing import GrowingTime
from fado import TreeInfluence

FOLDS = 5


def plain(X, y, z, trees):
    """Train and score every fold."""
    fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
    with GrowingTime() as growing:
        for number in range(FOLDS):
            model = LGBMClassifier(n_estimators=trees, verbose=-1, n_jobs=os.cpu_count())
            model.fit(X[fold != number], y[fold != number])
            model.predict_proba(X[fold == number])
    return growing.seconds


def ours(X, y, z, trees, form):
    """Value every row; give the time of growing trees, spread over the workers."""
    with GrowingTime() as growing:
        TreeInfluence(LGBMClassifier(n_estimators=trees), form=form, random_state=0).fit(
            X, y, sensitive_features={"z": z}
        )
    return growing.seconds / os.cpu_count()


def measure(side, rows, columns, trees):
    """Run one side in this process."""
    X, y, z = rare_positives(rows, columns)
    before = peak()
    start = time.perf_counter()
    grown = plain(X, y, z, trees) if side == "plain" else ours(X, y, z, trees, side)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "growing": grown, "before": before, "peak": peak()}))


def peak():
    """Give the most memory that this process has held, in GB."""
    unit = 1e9 if sys.platform == "darwin" else 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--side", choices=["plain", "direct", "backward"])
    given = parser.parse_args()
    if given.side:
        measure(given.side, given.rows, given.columns, given.trees)
        return
    best = {}
    for _ in range(given.repeats):
        for side in ("plain", "direct", "backward"):
            command = [sys.executable, __file__, "--side", side]
            for name in ("rows", "columns", "trees"):
                command += [f"--{name}", str(getattr(given, name))]
            told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            if side not in best or told["seconds"] < best[side]["seconds"]:
                best[side] = told
    print(f"{given.rows:,} x {given.columns}, {FOLDS} models of {given.trees} trees, {os.cpu_count()} cores")
    print(f"{'':<22}{'seconds':>9}{'to plain':>10}{'to growing':>12}{'GB':>7}{'GB of data':>12}")
    for side, told in best.items():
        name = "plain training" if side == "plain" else f"influence, {side}"
        ratio, limit = told["seconds"] / best["plain"]["seconds"], told["seconds"] / told["growing"]
        print(
            f"{name:<22}{told['seconds']:>9.1f}{ratio:>9.2f}x{limit:>11.2f}x{told['peak']:>7.2f}"
            f"{told['before']:>12.2f}"
        )


if __name__ == "__main__":
    main()
