"""Which small models rank rows most faithfully per second.

    python benchmarks/default_models.py --data DIR [--names adult give_me_some_credit ...]

Faithful means: Spearman correlation of 10-bag values with converged ones of the models that predict unseen
rows best (_converged.py), the mean over `--seeds`. Time is that of all fits, in one thread. All but the
default itself keep their pace, whatever there is to learn, and see columns as `LGBMClassifier().fit` would.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from lightgbm import LGBMClassifier
from scipy.stats import spearmanr
from sklearn.base import clone

from _converged import converged_values
from _data import TABLES, data_argument, real_table
from fado import OutOfBagEntropy
from fado.engine import default_estimators


def candidates(n_columns):
    """Name the models to try: the default one, and others that differ from it in one thing or two."""
    default = default_estimators(n_columns)[0]

    def but(**changed):
        return clone(default).set_params(**changed)

    return {
        "LGBMClassifier()": LGBMClassifier(),
        "fado's default": None,
        "as fast in any case": default,
        "35 trees": but(n_estimators=35),
        "55 trees": but(n_estimators=55),
        "40 trees of 32 leaves": but(n_estimators=40, num_leaves=32),
        "32 leaves": but(num_leaves=32),
        "any depth": but(max_depth=-1),
        "depth 6": but(max_depth=6),
        "all columns": but(colsample_bytree=1.0),
        "40 % of the columns": but(colsample_bytree=0.4),
        "80 % of the columns": but(colsample_bytree=0.8),
        "columns drawn per node": but(colsample_bytree=1.0, colsample_bynode=0.5),
        "learning rate 0.14": but(learning_rate=0.14),
        "learning rate 0.2": but(learning_rate=0.2),
        "learning rate 0.35": but(learning_rate=0.35),
        "penalty 1": but(reg_lambda=1.0),
        "penalty 4": but(reg_lambda=4.0),
        "pruned": but(min_split_gain=2.0),
        "half of the rows": but(subsample=0.5, subsample_freq=1),
        "GOSS": but(boosting_type="goss"),
        "63 bins": but(max_bin=63),
        "255 bins": but(max_bin=255),
        "1,023 bins": but(max_bin=1023),
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
        for label, estimator in candidates(table[0].shape[1]).items():
            done = [values_of(table, estimator, seed) for seed in range(arguments.seeds)]
            took = min(took for _, took in done)
            unit = unit or took
            rank = np.mean([ranks(values, converged) for values, _ in done], axis=0)
            print(f"{label:34} | {unit / took:27.2f}x | {rank[0]:.4f} | {rank[1]:.4f} | {rank.mean():.4f}")


if __name__ == "__main__":
    main()
