"""Which small models rank rows most faithfully per second.

    python benchmarks/default_models.py --data DIR [--names adult give_me_some_credit ...]

Faithful means: Spearman correlation of 10-bag values with the mean of three converged valuations, 50 bags
each, of default, of slow and of strongly regularised deep LightGBM models. Time is that of all fits, in one
thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from lightgbm import LGBMClassifier
from scipy.stats import spearmanr

from _data import TABLES, data_argument, real_table
from fado import OutOfBagEntropy
from fado.engine._lightgbm import DEFAULT_PARAMETERS

REFERENCES = [
    {},
    {"n_estimators": 250, "learning_rate": 0.03, "min_child_samples": 50, "colsample_bytree": 0.7},
    {
        "n_estimators": 150,
        "learning_rate": 0.05,
        "num_leaves": 63,
        "min_child_samples": 100,
        "reg_lambda": 5.0,
    },
]
COARSE = {"max_bin": 63, "subsample_for_bin": 50_000}


def small(learning_rate, n_estimators, num_leaves, reg_lambda=3.0, **more):
    """Name the parameters; without a penalty, a class of a few rows upsets boosting."""
    return {
        "learning_rate": learning_rate,
        "n_estimators": n_estimators,
        "num_leaves": num_leaves,
        "reg_lambda": reg_lambda,
    } | more


CANDIDATES = {
    "LGBMClassifier()": {},
    "fado's default": DEFAULT_PARAMETERS,
    "0.2 x 50, 20 leaves, penalty 1": small(0.2, 50, 20, 1.0),
    "0.2 x 50, 20 leaves": small(0.2, 50, 20),
    "0.18 x 50, 20 leaves": small(0.18, 50, 20),
    "0.15 x 60, 20 leaves": small(0.15, 60, 20),
    "0.15 x 50, 31 leaves": small(0.15, 50, 31),
    "0.15 x 45, 24 leaves": small(0.15, 45, 24),
    "0.25 x 40, 15 leaves, 63 bins": small(0.25, 40, 15, **COARSE),
    "0.3 x 20, 7 leaves": small(0.3, 20, 7),
    "0.2 x 50, 20 leaves, pruned": small(0.2, 50, 20, min_split_gain=2.0),
    "0.2 x 50, 20 leaves, half of the columns": small(0.2, 50, 20, colsample_bytree=0.5),
    "0.2 x 50, 20 leaves, half of the rows": small(0.2, 50, 20, subsample=0.5, subsample_freq=1),
    "0.2 x 50, 20 leaves, GOSS": small(0.2, 50, 20, boosting_type="goss"),
}


def values_of(table, parameters, n_bags, seed, n_jobs):
    X, y, z = table
    estimator = LGBMClassifier(random_state=0, **parameters)
    start = time.perf_counter()
    valuator = OutOfBagEntropy(estimator, n_bags=n_bags, random_state=seed, n_jobs=n_jobs)
    valuation = valuator.fit(X, y, sensitive_features=z).valuation_
    return np.array([valuation["y"], valuation["z"]]), time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument("--names", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--rows", type=int, default=60_000)
    arguments = parser.parse_args()
    if not arguments.data:
        parser.error("--data is needed: the models are chosen on real data")
    for name in arguments.names:
        table = real_table(arguments.data, name, arguments.rows)
        converged = np.mean([values_of(table, r, 50, 1, None)[0] for r in REFERENCES], axis=0)
        print(f"\n{name}, {len(table[1]):,} rows")
        print(f"{'model':40} | time against LGBMClassifier() | rank y | rank z |   mean")
        unit = None
        for label, parameters in CANDIDATES.items():
            values, took = values_of(table, parameters, 10, 0, 1)
            unit = unit or took
            rank = [spearmanr(a, b)[0] for a, b in zip(values, converged, strict=True)]
            print(f"{label:40} | {took / unit:29.2f} | {rank[0]:.4f} | {rank[1]:.4f} | {np.mean(rank):.4f}")


if __name__ == "__main__":
    main()
