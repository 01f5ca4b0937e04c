"""Rows that come in batches, and what is learnt of them."""

from itertools import pairwise

import numpy as np
import pandas as pd

from fado import OnlineEntropy


def make_rows(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    X["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], n_rows))
    y = np.where(X["a"] + rng.normal(size=n_rows) > 0, "yes", "no")
    z = np.where(X["b"] + rng.normal(size=n_rows) > 0.5, "old", "young")
    return X, y, z


def numbers_of(rows, *columns):
    """The same rows with some columns, a plain array if none are named."""
    return (rows[0][list(columns)] if columns else rows[0][["a", "b", "c"]].to_numpy()), *rows[1:]


def part(rows, start, stop):
    return tuple(each[start:stop] for each in rows)


def learn(online, rows):
    """Learn a batch of features, labels, groups and, maybe, weights."""
    X, y, z, *weights = rows
    return online.learn(X, y, sensitive_features={"age": z}, sample_weight=weights[0] if weights else None)


def make_online(**settings):
    return OnlineEntropy(**({"n_bags": 5, "random_state": 0} | settings))


def learn_on(online, rows, *ends):
    """Learn the rows between each end and the next."""
    for start, stop in pairwise(ends):
        learn(online, part(rows, start, stop))
    return online


def stream(rows, *ends, **settings):
    """Learn rows up to each end, batch by batch."""
    return learn_on(make_online(**settings), rows, 0, *ends)
