"""Measure whether rows that were not there get the values that they would have got, and the time that takes.

    python benchmarks/new_rows.py [--data DIR] [--rows 100000] [--new 1000000] [--tables adult] [--bags 10]

Agreement, fixed before the first run: of each table (the first 100,000 rows of a shuffle at most) a fifth is
held out at random, by seed 0. `OutOfBagEntropy(keep_models=True, random_state=0)` with all other settings as
they are learns from the rest and values the fifth, once with the labels `y` given and once without. These
values are compared, by Spearman's rank correlation over the fifth, with those that the same rows get out of
bag when `OutOfBagEntropy(random_state=0)` is given the whole table. An out-of-bag value rests on two models
of ten bags on average, so it has noise of its own: the ceiling is the correlation, over the same rows, of two
such runs over the whole table, with seeds 0 and 1. `--bags` gives all sides other than ten bags: with more,
the ceiling rises. Four tables were fixed too, and are the default; those by race were added after the first
run.

Time: models of 100,000 generated rows with 30 columns value `--new` others, with and without labels; pure is
what the same boosters take to predict them from one matrix. Both are CPU seconds of one thread, so that other
work on the machine counts little. Without labels a model that sees them is asked once per label.
"""

from __future__ import annotations

import argparse
import time

import lightgbm
import numpy as np
from scipy.stats import spearmanr

from _data import TABLES, data_argument, rare_positives, real_table
from fado import OutOfBagEntropy

FIXED = ("adult", "give_me_some_credit", "acs_income", "diabetes130")
HELD_OUT = 0.2


def agreement(directory, name, rows, n_bags):
    """Give the rank correlations of one table, per variable: with labels, without, and of two seeds."""
    X, y, z = real_table(directory, name, rows)
    held_out = np.random.default_rng(0).permutation(len(y)) < HELD_OUT * len(y)
    valuator = OutOfBagEntropy(n_bags=n_bags, keep_models=True, random_state=0)
    valuator.fit(X[~held_out], y[~held_out], sensitive_features={"z": z[~held_out]})
    given = valuator.value(X[held_out], y[held_out])
    unknown = valuator.value(X[held_out])
    whole = []
    for seed in (0, 1):
        other = OutOfBagEntropy(n_bags=n_bags, random_state=seed).fit(X, y, sensitive_features={"z": z})
        whole.append(other.valuation_[held_out])
    return {
        variable: [
            spearmanr(own[variable], whole[0][variable]).statistic for own in (given, unknown, whole[1])
        ]
        for variable in ("y", "z")
    }


def seconds_of(function):
    """Time one call, by the work that it does."""
    start = time.process_time()
    function()
    return time.process_time() - start


def cost(n_new):
    """Time values of new rows, and the plain predictions of the same boosters."""
    X, y, z = rare_positives(100_000)
    X_new, y_new, _ = rare_positives(n_new, seed=1)
    valuator = OutOfBagEntropy(keep_models=True, random_state=0).fit(X, y, sensitive_features={"z": z})
    print(f"{n_new:,} new rows, {valuator.models_.n_models} models, one thread")
    print(f"{'':<16}{'seconds':>9}{'pure':>9}{'over pure':>11}")
    matrix = np.column_stack([X_new, y_new])
    boosters = {
        own.variable.name: [lightgbm.Booster(model_str=model.scorer.text) for model in own.models]
        for own in valuator.models_.kept
    }
    pure = {
        name: seconds_of(lambda own=own: [booster.predict(matrix, num_threads=1) for booster in own])
        for name, own in boosters.items()
    }
    for what, labels, times in (("with labels", y_new, 1), ("without labels", None, 2)):
        ours = seconds_of(lambda labels=labels: valuator.models_.value(X_new, labels, n_jobs=1))
        plain = pure["y"] + times * pure["z"]
        print(f"{what:<16}{ours:>9.1f}{plain:>9.1f}{ours / plain:>10.2f}x")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--bags", type=int, default=10)
    parser.add_argument("--new", type=int, default=1_000_000, help="0 leaves the time out")
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=FIXED)
    given = parser.parse_args()
    if given.data is not None and given.tables:
        print(f"{'':<22}{'':<5}{'with y':>8}{'without':>9}{'ceiling':>9}")
        for name in given.tables:
            for variable, found in agreement(given.data, name, given.rows, given.bags).items():
                print(f"{name:<22}v_{variable:<3}" + "{:>8.3f}{:>9.3f}{:>9.3f}".format(*found), flush=True)
    if given.new:
        cost(given.new)


if __name__ == "__main__":
    main()
