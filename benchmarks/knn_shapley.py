"""How fast exact KNN-Shapley values come, and in how much memory, against pyDVL in the same run.

    python benchmarks/knn_shapley.py --data DIR [--rows 40000] [--validated 8000]
    python benchmarks/knn_shapley.py --data DIR --rival-python PATH [--rival-rows 10000] [--rival-validated
    2000]

The first values the rows of Adult, its columns as they are, for the target and for sex. With an interpreter
of an environment that has pyDVL, both value the same matrix of numbers for the target: one indicator per
level, all columns in standard deviations, and a little noise so that no two rows are equally far from a
third, as rivals leave these to chance. Every run has a process of its own. The time is that of the fit; the
memory is the most that the process and its children held, interpreter and libraries included, sampled ten
times a second (Linux only). pyDVL runs two processes, ours two threads.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pandas as pd

from _data import data_argument, real_table

N_NEIGHBORS = 5
WORKERS = 2

OURS_ON_TABLE = """
import sys, time, json, pandas as pd
from fado import KNNShapley
given, parts = sys.argv[1], {}
for part in ("valued", "validated"):
    frame = pd.read_parquet(f"{given}/{part}.parquet")
    parts[part] = frame, frame.pop("target").to_numpy(), {"sex": frame.pop("group").to_numpy()}
X, y, z = parts["valued"]
start = time.perf_counter()
valuator = KNNShapley(NEIGHBORS, n_jobs=WORKERS)
values = valuator.fit(X, y, sensitive_features=z, validation=parts["validated"]).valuation_
print(json.dumps({"seconds": time.perf_counter() - start, "sum": values["y"].sum()}))
"""

OURS_ON_MATRIX = """
import sys, time, json, numpy as np
from fado import KNNShapley
given = np.load(f"{sys.argv[1]}/matrix.npz")
X, y, validated_X, validated_y = (given[name] for name in ("X", "y", "validated_X", "validated_y"))
start = time.perf_counter()
validation = validated_X, validated_y, None
values = KNNShapley(NEIGHBORS, n_jobs=WORKERS).fit(X, y, validation=validation).valuation_["y"]
print(json.dumps({"seconds": time.perf_counter() - start}))
np.save(f"{sys.argv[1]}/ours.npy", values)
"""

PYDVL = """
import sys, time, json, numpy as np
from joblib import parallel_config
from pydvl.valuation import Dataset, KNNShapleyValuation
from sklearn.neighbors import KNeighborsClassifier
given = np.load(f"{sys.argv[1]}/matrix.npz")
X, y, validated_X, validated_y = (given[name] for name in ("X", "y", "validated_X", "validated_y"))
start = time.perf_counter()
model = KNeighborsClassifier(n_neighbors=NEIGHBORS)
with parallel_config(n_jobs=WORKERS):
    found = KNNShapleyValuation(model, Dataset(validated_X, validated_y), progress=False).fit(Dataset(X, y))
print(json.dumps({"seconds": time.perf_counter() - start}))
values = np.empty(len(y))
for row in found.result:
    values[row.idx] = row.value
np.save(f"{sys.argv[1]}/pydvl.npy", values)
"""


def memory_of(pid):
    """Bytes that a process and its children hold."""
    try:
        held = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, IndexError):
        return 0
    return held + sum(map(memory_of, children))


def run(python, code, directory):
    """Run code in a process of its own; give what it prints, and the most memory that it held."""
    code = code.replace("NEIGHBORS", str(N_NEIGHBORS)).replace("WORKERS", str(WORKERS))
    quiet = os.environ | {"PYTHONWARNINGS": "ignore"}  # of other libraries' own old names
    process = subprocess.Popen(
        [python, "-c", code, str(directory)], stdout=subprocess.PIPE, text=True, env=quiet
    )
    peak, done = 0, threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(0.1):
            peak = max(peak, memory_of(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        printed, _ = process.communicate()
    finally:
        done.set()
        watcher.join()
    if process.returncode:
        sys.exit(f"{python} failed with code {process.returncode}.")
    return json.loads(printed.splitlines()[-1]) | {"gigabytes": peak / 1e9}


def told(name, result):
    print(f"{name:<22}{result['seconds']:8.1f} s{result['gigabytes']:8.2f} GB", flush=True)


def as_matrix(frame, n_valued, generator):
    """Turn a table into numbers that vary by 1 over the valued rows, which come first."""
    numbers = pd.get_dummies(frame, dummy_na=True, dtype=float).to_numpy()
    numbers = numbers[:, numbers[:n_valued].std(axis=0) > 0]
    numbers = numbers / numbers[:n_valued].std(axis=0) + generator.normal(scale=1e-3, size=numbers.shape)
    return numbers / numbers[:n_valued].std(axis=0)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument("--rows", type=int, default=40_000, help="rows of Adult to value")
    parser.add_argument("--validated", type=int, default=8_000, help="validation rows of Adult")
    parser.add_argument("--rival-python", help="an interpreter of an environment that has pyDVL")
    parser.add_argument("--rival-rows", type=int, default=10_000, help="rows that both value")
    parser.add_argument("--rival-validated", type=int, default=2_000, help="validation rows of both")
    options = parser.parse_args()
    if options.data is None:
        parser.error("there is nothing to measure without --data")
    X, y, z = real_table(Path(options.data), "adult")
    generator = np.random.default_rng(0)
    order = generator.permutation(len(X))
    with tempfile.TemporaryDirectory() as directory:
        parts = {"valued": order[: options.rows], "validated": order[options.rows :][: options.validated]}
        for name, rows in parts.items():
            frame = X.iloc[rows].assign(target=y[rows], group=z[rows]).reset_index(drop=True)
            frame.to_parquet(Path(directory) / f"{name}.parquet")
        print(f"Adult, {len(parts['valued']):,} rows, {len(parts['validated']):,} for validation, sex too:")
        result = run(sys.executable, OURS_ON_TABLE, directory)
        told("fado", result)
        print(f"values of the target add up to {result['sum']:.4f}, the accuracy of the votes")
        if not options.rival_python:
            return
        valued, validated = (
            order[: options.rival_rows],
            order[options.rival_rows :][: options.rival_validated],
        )
        matrix = as_matrix(X.iloc[np.concatenate([valued, validated])], len(valued), generator)
        np.savez(
            Path(directory) / "matrix.npz",
            X=matrix[: len(valued)],
            y=y[valued],
            validated_X=matrix[len(valued) :],
            validated_y=y[validated],
        )
        print(f"\n{len(valued):,} rows, {len(validated):,} for validation, {matrix.shape[1]} numbers each:")
        ours = run(sys.executable, OURS_ON_MATRIX, directory)
        told("fado", ours)
        theirs = run(options.rival_python, PYDVL, directory)
        told("pyDVL", theirs)
        values = [np.load(Path(directory) / f"{name}.npy") for name in ("ours", "pydvl")]
        print(
            f"pyDVL takes {theirs['seconds'] / ours['seconds']:.1f} times as long and "
            f"{theirs['gigabytes'] / ours['gigabytes']:.1f} times the memory; values differ by "
            f"{np.abs(values[0] - values[1]).max():.1e} at most, where they spread by {values[0].std():.1e}"
        )


if __name__ == "__main__":
    main()
