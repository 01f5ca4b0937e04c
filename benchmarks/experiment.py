"""How many fits a second the experiment makes, against the plain loop and against growing trees alone.

    python benchmarks/experiment.py [--rows 200000] [--models 8] [--repeats 2]

The rival is `LGBMClassifier(n_jobs=2).fit` and `predict_proba` per model, on the same rows, weights and
parameters; with joblib, two one-thread fits side by side, too. The limit is the time inside the boosters'
updates, spread over the workers: what growing the trees alone would take. The experiment's time holds
everything that a run does: starting workers, reading, binning, training sets, fits, metrics, the store;
`threads` is a run in this process, whose growing is timed. Scores are compared with those of the one-thread
fits, as GOSS draws other rows for another number of threads.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from lightgbm import LGBMClassifier

from _data import rare_positives
from _growing import GrowingTime
from fado.experiment import Experiment
from fado.experiment._data import read_data
from fado.experiment._training import Trainer
from fado.experiment._trial import Trial

WORKERS = 2


def table_of(path, models):
    return {
        "data": {"path": str(path), "target": "y", "protected": "z", "drop": ["z"]},
        "split": {"method": "column", "column": "part", "train": [0], "test": [1]},
        "interventions": {"rps": False},
        "models": {
            "count": models,
            "space": {
                "boosting_type": "goss",
                "n_estimators": {"log_uniform": [20, 300]},
                "num_leaves": {"log_uniform": [10, 100]},
                "min_child_samples": {"log_uniform": [5, 300]},
                "max_depth": {"log_uniform": [2, 20]},
                "learning_rate": {"log_uniform": [0.02, 0.5]},
            },
        },
    }


def one_fit(X, y, weights, parameters, X_test, n_jobs):
    model = LGBMClassifier(**parameters, n_jobs=n_jobs, verbosity=-1).fit(X, y, sample_weight=weights)
    return model.predict_proba(X_test)[:, 1]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=int, default=200_000, help="of the training part; the test part has a third"
    )
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    n_train = arguments.rows
    X, y, z = rare_positives(n_train + n_train // 3)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    part = (np.arange(len(y)) >= n_train).astype(int)
    folder = Path(tempfile.mkdtemp())
    frame.assign(y=y, z=z, part=part).to_parquet(folder / "data.parquet")
    experiment = Experiment(table_of(folder / "data.parquet", arguments.models))
    models = experiment.plan.models
    train, test = frame[part == 0], frame[part == 1]
    trainer = Trainer(read_data(experiment.config), experiment.config)
    weights = trainer.training_set(Trial("RW")).weights
    jobs = [(own, model) for own in (None, weights) for model in models]
    Parallel(WORKERS)(delayed(abs)(1) for _ in range(WORKERS))  # start the processes before the clock
    times = {"loop": [], "joblib": [], "fado": [], "threads": [], "growing": []}
    for repeat in range(arguments.repeats):
        start = time.perf_counter()
        for own, model in jobs:
            one_fit(train, y[part == 0], own, model, test, WORKERS)
        times["loop"].append(time.perf_counter() - start)
        start = time.perf_counter()
        side_by_side = (delayed(one_fit)(train, y[part == 0], own, model, test, 1) for own, model in jobs)
        expected = Parallel(WORKERS)(side_by_side)
        times["joblib"].append(time.perf_counter() - start)
        start = time.perf_counter()
        experiment.run(folder / f"store{repeat}", n_jobs=WORKERS)
        times["fado"].append(time.perf_counter() - start)
        with GrowingTime() as growing:
            start = time.perf_counter()
            experiment.run(folder / f"threads{repeat}", n_jobs=WORKERS, isolated=False)
            times["threads"].append(time.perf_counter() - start)
        times["growing"].append(growing.seconds / WORKERS)
    recipes = [Trial("none")] * arguments.models + [Trial("RW")] * arguments.models
    worst = max(
        np.abs(trainer.scores(replace(recipe, parameters=model)) - scores).max()
        for recipe, (_, model), scores in zip(recipes, jobs, expected, strict=True)
    )
    best = {name: min(values) for name, values in times.items()}
    over = min(f / g for f, g in zip(times["threads"], times["growing"], strict=True))
    print(f"{n_train:,} x {X.shape[1]}, {len(jobs)} fits of 20 to 300 trees, {WORKERS} workers")
    for name in ("loop", "joblib", "fado", "threads"):
        print(f"{name:7} {best[name]:8.2f} s  {len(jobs) / best[name]:6.2f} fits per second")
    print(f"faster than the plain loop {best['loop'] / best['fado']:.2f}x")
    print(f"faster than joblib {best['joblib'] / best['fado']:.2f}x")
    print(f"over the time of growing alone {over:.2f}x; largest difference of a score {worst:.1e}")


if __name__ == "__main__":
    main()
