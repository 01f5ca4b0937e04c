"""Up to which size Data Shapley values are sensible, and how they compare with pyDVL's.

    python benchmarks/data_shapley.py [--rows 50 100 ...] [--fits 10000] [--rival-python PATH] [--data DIR]

The first table values generated rows, a tenth of whose labels are wrong, by a budget of fits: seconds of
processor time, the mean standard error over the standard deviation of the values, the rank correlation of two
runs with different seeds, and how well low values find the wrong labels (area under the ROC curve).

`--rival-python` is the interpreter of an environment with pyDVL: there it values 60 rows by the same game,
accuracy of a logistic regression, by as many orders of the rows. A run of ours with four times as many orders
and another seed says which of both is nearer to the truth.

`--data` is a directory with adult.parquet: 200 rows of Adult get Shapley values and distributional ones of 50
rows. Two seeds say how far values agree with themselves.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from _data import data_argument, real_table
from fado import DataShapley

VALIDATED = 1000
IN_TABLE, M = 200, 50  # of Adult
SEMIVALUES = ("shapley", ("beta", 16, 1), "banzhaf")

RIVAL = """
import json, sys, time, warnings
import numpy as np
from sklearn.linear_model import LogisticRegression
from pydvl.valuation import Dataset, MinUpdates, ModelUtility, SupervisedScorer, TMCShapleyValuation
from pydvl.valuation.samplers import NoTruncation
given = json.load(sys.stdin)
X, y, Xv, yv = (np.array(given[name]) for name in ("X", "y", "Xv", "yv"))
train, test = Dataset(X, y), Dataset(Xv, yv)
common = max(np.mean(yv == 1), np.mean(yv == 0))
model = LogisticRegression()
scorer = SupervisedScorer("accuracy", test, default=common, range=(0, 1))
utility = ModelUtility(model, scorer, show_warnings=False, catch_errors=True)
valuation = TMCShapleyValuation(
    utility, truncation=NoTruncation(), is_done=MinUpdates(given["orders"]), seed=0, progress=False
)
warnings.simplefilter("ignore")
start = time.process_time()
valuation.fit(train)
seconds = time.process_time() - start
result = valuation.result.sort(key="index") if hasattr(valuation.result, "sort") else valuation.result
values = np.empty(len(y))
values[result.indices] = result.values
print(json.dumps({"values": values.tolist(), "seconds": seconds}))
"""


def table(n_rows, seed, wrong=0.1, n_columns=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    signal = X[:, 0] + 0.8 * X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.5 * rng.normal(size=n_rows)
    flipped = rng.random(n_rows) < wrong
    return X, (signal > 0) ^ flipped, flipped


def measure(n_rows, fits, semivalue):
    X, y, flipped = table(n_rows, seed=0)
    Xv, yv, _ = table(VALIDATED, seed=1, wrong=0.0)
    runs, start = [], time.process_time()
    for seed in (0, 1):
        valuator = DataShapley(semivalue=semivalue, tolerance=1e-9, max_fits=fits, random_state=seed)
        runs.append(valuator.fit(X, y, validation=(Xv, yv, None)))
    seconds = (time.process_time() - start) / 2
    first, second = (run.valuation_["y"] for run in runs)
    error = runs[0].valuation_.field("standard_error", "y").mean() / first.std()
    found = roc_auc_score(flipped, -first)
    agreed = spearmanr(first, second)[0]
    print(
        f"{n_rows:>6} {semivalue!s:>18} {runs[0].n_fits_:>7} {seconds:>8.1f} {error:>9.2f} {agreed:>10.2f} "
        f"{found:>6.2f}",
        flush=True,
    )


def compare(python, orders, n_rows=60):
    X, y, _ = table(n_rows, seed=0)
    Xv, yv, _ = table(500, seed=1, wrong=0.0)
    y, yv = y.astype(int), yv.astype(int)

    def ours(orders, seed):
        start = time.process_time()
        valuator = DataShapley(
            LogisticRegression(),
            tolerance=1e-9,
            max_fits=1 + orders * (n_rows - 1),
            random_state=seed,
            n_jobs=1,
        )
        values = valuator.fit(X, y, validation=(Xv, yv, None)).valuation_["y"]
        return values, time.process_time() - start, valuator

    values, seconds, valuator = ours(orders, 0)
    truth, _, _ = ours(4 * orders, 1)
    n_draws = valuator.valuation_.provenance.settings["n_draws"]
    print(f"\nfado:  {n_draws} orders, {valuator.n_fits_} fits, {seconds:.1f} s of processor time")
    print(f"       correlation with a run four times as long: {np.corrcoef(values, truth)[0, 1]:.3f}")
    given = {"X": X.tolist(), "y": y.tolist(), "Xv": Xv.tolist(), "yv": yv.tolist(), "orders": n_draws}
    done = subprocess.run(
        [python, "-c", RIVAL], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"pyDVL failed: {done.stderr.strip().splitlines()[-1]}")
        return
    told = json.loads(done.stdout.strip().splitlines()[-1])
    theirs = np.array(told["values"])
    print(f"pyDVL: {n_draws} orders, {told['seconds']:.1f} s of processor time")
    print(f"       correlation with the same long run of fado's: {np.corrcoef(theirs, truth)[0, 1]:.3f}")
    print(
        f"both:  correlation {np.corrcoef(values, theirs)[0, 1]:.3f}, rank {spearmanr(values, theirs)[0]:.3f}"
    )
    print(f"       sums {values.sum():.3f} and {theirs.sum():.3f}")


def distributional(directory, fits):
    X, y, sex = real_table(directory, "adult", IN_TABLE + VALIDATED)
    validation = X[IN_TABLE:], y[IN_TABLE:], sex[IN_TABLE:]

    def told(what, first, second):
        ranks = [spearmanr(first[name], second[name])[0] for name in ("y", "sex")]
        print(f"{what:>66}: {ranks[0]:.2f} for y, {ranks[1]:.2f} for sex", flush=True)

    rows, runs = slice(IN_TABLE), {}
    for semivalue in ("shapley", ("distributional", M)):
        for seed in (0, 1):
            start = time.process_time()
            valuator = DataShapley(semivalue=semivalue, max_fits=fits, random_state=seed)
            runs[semivalue, seed] = run = valuator.fit(
                X[rows], y[rows], sensitive_features={"sex": sex[rows]}, validation=validation
            )
            seconds = time.process_time() - start
            told_of = f"{run.n_fits_} fits, precision {run.precision_:.2f}, {seconds:.0f} s"
            print(f"{semivalue}, seed {seed}: {told_of}")
        told("two seeds", *(runs[semivalue, seed].valuation_ for seed in (0, 1)))
    shapley, own = (runs[key].valuation_ for key in (("shapley", 0), (("distributional", M), 0)))
    told("Shapley and distributional", shapley, own)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="*", default=[50, 100, 200, 500, 1000, 2000])
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--semivalues", nargs="+", choices=["shapley", "beta", "banzhaf"], default=None)
    parser.add_argument("--rival-python", help="interpreter of an environment with pyDVL")
    parser.add_argument("--orders", type=int, default=50, help="of the comparison with pyDVL")
    data_argument(parser)
    arguments = parser.parse_args()
    asked = arguments.semivalues
    chosen = [
        own for own in SEMIVALUES if asked is None or (own if isinstance(own, str) else "beta") in asked
    ]
    if arguments.rows:
        print("  rows          semivalue    fits  seconds  err./std    agreed  found")
    for n_rows in arguments.rows:
        for semivalue in chosen:
            measure(n_rows, arguments.fits, semivalue)
    if arguments.rival_python:
        compare(arguments.rival_python, arguments.orders)
    if arguments.data:
        distributional(arguments.data, arguments.fits)


if __name__ == "__main__":
    main()
