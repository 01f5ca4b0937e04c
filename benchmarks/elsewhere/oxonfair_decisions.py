"""Decisions by OxonFair, for benchmarks/aim.py, which calls this in an environment of OxonFair's own.

    python -m venv oxonfair
    oxonfair/bin/pip install oxonfair
    oxonfair/bin/python benchmarks/elsewhere/oxonfair_decisions.py IN.npz OUT.npz

Written for OxonFair 0.3. It moves scores by the groups that a model infers: each row by its likely group,
with a class of doubt (threshold 2/3) or without (0), or by the probabilities of all groups (not fast).
"""

import sys
import time

import numpy as np
from oxonfair import FairPredictor
from oxonfair import group_metrics as gm

WAYS = ({"threshold": 2 / 3}, {"threshold": 0}, {"use_fast": False})


def main(given, made):
    with np.load(given) as loaded:
        arrays = dict(loaded)
    n_labels = arrays["labels_validation"].shape[1]
    validation, population = (
        np.column_stack([arrays[f"labels_{part}"], arrays[f"groups_{part}"]])
        for part in ("validation", "population")
    )
    start = time.process_time()
    doubt = (arrays["groups_validation"].max(axis=1) < WAYS[0]["threshold"]).any()
    ways = WAYS if doubt else WAYS[1:]  # an empty class of doubt raises an error
    predictors = [_fitted(validation, n_labels, arrays, settings) for settings in ways]
    seconds = time.process_time() - start
    decided = {
        part: [np.asarray(one.predict({"data": rows, "target": rows[:, 0]})) for one in predictors]
        for part, rows in (("validation", validation), ("population", population))
    }
    np.savez(made, seconds=seconds, **decided)


def _fitted(rows, n_labels, arrays, settings):
    """Ask for the most true positives within the budget and above the line."""
    predictor = FairPredictor(
        lambda data: data[:, :n_labels].copy(),
        {"data": rows, "target": arrays["y"]},
        groups=arrays["z"],
        inferred_groups=lambda data: data[:, n_labels:],
        **settings,
    )
    budget = [(gm.false_pos_rate, float(arrays["budget"]), "<")]
    line = float(arrays["line"])
    return predictor.fit(gm.recall, gm.false_pos_rate.min_ratio, line, additional_constraints=budget)


if __name__ == "__main__":
    main(*sys.argv[1:])
