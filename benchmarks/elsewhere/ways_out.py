"""Whether Aequitas finds in our predictions the rates that we find.

    python benchmarks/elsewhere/ways_out.py --aequitas aequitas/bin/python

The head of aequitas_rates.py says how to make its environment. fairlearn, MLflow and Optuna install beside
us, and are among the tests.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from fado.metrics import by_group, predictions_frame

HERE = Path(__file__).parent
RATES = ["selection_rate", "tpr", "fpr", "fnr"]


def make_rows(n_rows: int, seed: int):
    """Make scores that rate the old too high; a twentieth of the sexes is not known."""
    rng = np.random.default_rng(seed)
    old, y_true = rng.random(n_rows) < 0.3, rng.random(n_rows) < 0.2
    scores = rng.normal(size=n_rows) + 1.5 * y_true + 0.4 * old
    sex = np.where(rng.random(n_rows) < 0.05, "(missing)", rng.choice(["f", "m"], size=n_rows))
    return y_true, scores, {"old": old, "sex": sex}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--aequitas", metavar="PYTHON", required=True, help="an interpreter that has it")
    parser.add_argument("--rows", type=int, default=5000)
    arguments = parser.parse_args()
    y_true, scores, attributes = make_rows(arguments.rows, seed=0)
    with tempfile.TemporaryDirectory() as temporary:
        given, made = (Path(temporary) / name for name in ("predictions.csv", "rates.csv"))
        predictions_frame(y_true, scores, sensitive_features=attributes).to_csv(given, index=False)
        subprocess.run([arguments.aequitas, HERE / "aequitas_rates.py", given, made], check=True)
        theirs = pd.read_csv(made, keep_default_na=False, dtype={"group": "str"})
    furthest = 0.0
    for name, values in attributes.items():
        ours = by_group(y_true, scores, sensitive_features={name: values})[RATES]
        own = theirs[theirs["attribute"] == name].set_index("group")[RATES].astype("float64").loc[ours.index]
        furthest = max(furthest, float((own - ours).abs().to_numpy().max()))
        print(f"{name}: {len(ours)} groups, false-positive rates", own["fpr"].round(4).to_dict())
    print(f"furthest from ours: {furthest:.1e}")
    sys.exit(furthest > 1e-9)


if __name__ == "__main__":
    main()
