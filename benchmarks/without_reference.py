"""How the default models and LGBMClassifier() compare without a reference, or with LGBMClassifier() as one.

    python benchmarks/without_reference.py --data DIR [--rows 30000]

Log-loss on the rows out of bag (5 bags, the mean of two seeds: lower is better), rank correlation of the
values of two seeds (10 bags), and rank correlation with 50 bags of LGBMClassifier() itself.
"""

from __future__ import annotations

import argparse

import numpy as np
from lightgbm import LGBMClassifier
from scipy.stats import spearmanr

from _data import TABLES, data_argument, real_table
from fado import OutOfBagEntropy

RIVALS = (LGBMClassifier(), None)


def value(table, estimator, n_bags, seed):
    X, y, z = table
    valuator = OutOfBagEntropy(estimator, n_bags=n_bags, random_state=seed)
    return valuator.fit(X, y, sensitive_features=z).valuation_


def log_loss(table, estimator):
    runs = [value(table, estimator, 5, seed) for seed in (0, 1)]
    return [
        np.mean([-np.log(np.maximum(run.label_probability[name], 1e-15)).mean() for run in runs])
        for name in "yz"
    ]


def ranks(one, other):
    return [spearmanr(one[name], other[name])[0] for name in "yz"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000)
    arguments = parser.parse_args()
    if not arguments.data:
        parser.error("--data is needed")
    print("LGBMClassifier() / fado, each for y and for z")
    print(
        "data                | log-loss                     | two seeds agree          | rank: 50 bags of it"
    )
    for name in TABLES:
        table = real_table(arguments.data, name, arguments.rows)
        losses = [log_loss(table, estimator) for estimator in RIVALS]
        runs = [[value(table, estimator, 10, seed) for seed in (0, 1)] for estimator in RIVALS]
        agreeing = [ranks(*pair) for pair in runs]
        many = value(table, LGBMClassifier(), 50, 2)
        alike = [ranks(first, many) for first, _ in runs]
        cells = [
            "  ".join(f"{it:.{digits}f}/{ours:.{digits}f}" for it, ours in zip(*both, strict=True))
            for both, digits in ((losses, 4), (agreeing, 3), (alike, 3))
        ]
        print(f"{name:20}| {' | '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
