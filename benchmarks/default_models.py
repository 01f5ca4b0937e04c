"""Which small models rank rows most faithfully per second.

    python benchmarks/default_models.py --data DIR [--names adult give_me_some_credit ...]

Faithful means: Spearman correlation of 10-bag values with converged ones of the models that predict unseen
rows best (_converged.py), the mean over `--seeds`. Time is that of all fits, in one thread. All but the
default itself grow a fixed number of trees.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from lightgbm import LGBMClassifier
from scipy.stats import spearmanr

from _converged import converged_values
from _data import TABLES, data_argument, real_table
from fado import OutOfBagEntropy
from fado.engine._lightgbm import default_estimators


def small(*size, **more):
    """Make the default classifier, changed in one thing or two; size: learning rate, trees, leaves."""
    named = dict(zip(("learning_rate", "n_estimators", "num_leaves"), size, strict=False))
    return default_estimators(n_columns=10)[0].set_params(**named, **more)


CANDIDATES = {
    "LGBMClassifier()": LGBMClassifier(),
    "fado's default": None,
    "its most trees in any case": small(),
    "all columns": small(colsample_bytree=1.0),
    "0.18 x 45, 24 leaves, all columns": small(0.18, 45, 24, colsample_bytree=1.0),
    "half of the columns": small(colsample_bytree=0.5),
    "columns drawn per node": small(colsample_bytree=1.0, colsample_bynode=0.7),
    "31 leaves": small(num_leaves=31),
    "63 leaves": small(num_leaves=63),
    "depth 6": small(max_depth=6),
    "0.2 x 40": small(0.2, 40),
    "0.28 x 30": small(0.28, 30),
    "0.3 x 25": small(0.3, 25),
    "0.3 x 30, 15 leaves": small(0.3, 30, 15),
    "penalty 1": small(reg_lambda=1.0),
    "penalty 10": small(reg_lambda=10.0),
    "pruned": small(min_split_gain=2.0),
    "half of the rows": small(subsample=0.5, subsample_freq=1),
    "GOSS": small(boosting_type="goss"),
    "63 bins": small(max_bin=63),
}


def values_of(table, estimator, seed):
    X, y, z = table
    start = time.perf_counter()
    valuator = OutOfBagEntropy(estimator, random_state=seed, n_jobs=1)
    valuation = valuator.fit(X, y, sensitive_features=z).valuation_
    return np.array([valuation["y"], valuation["z"]]), time.perf_counter() - start


def ranks(values, converged):
    return [spearmanr(*pair)[0] for pair in zip(values, converged, strict=True)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument("--names", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if not arguments.data:
        parser.error("--data is needed: the models are chosen on real data")
    for name in arguments.names:
        table = real_table(arguments.data, name, arguments.rows)
        converged, models = converged_values(*table)
        print(f"\n{name}, {len(table[1]):,} rows; converged: {models[0]} for y, {models[1]} for z")
        print(f"{'model':34} | faster than LGBMClassifier() | rank y | rank z |   mean")
        unit = None
        for label, estimator in CANDIDATES.items():
            done = [values_of(table, estimator, seed) for seed in range(arguments.seeds)]
            took = min(took for _, took in done)
            unit = unit or took
            rank = np.mean([ranks(values, converged) for values, _ in done], axis=0)
            print(f"{label:34} | {unit / took:27.2f}x | {rank[0]:.4f} | {rank[1]:.4f} | {rank.mean():.4f}")


if __name__ == "__main__":
    main()
