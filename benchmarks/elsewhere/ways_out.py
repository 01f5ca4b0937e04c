"""Whether Aequitas and AIF360 find in our predictions what we find.

    python benchmarks/elsewhere/ways_out.py --aequitas aequitas/bin/python --aif360 aif360/bin/python

The heads of aequitas_rates.py and aif360_rates.py say how to make their environments. fairlearn
installs beside us, and is among the tests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from fado import Reweigher
from fado.metrics import by_group, predictions_frame, selection_rate_ratio

HERE = Path(__file__).parent
RATES = ["selection_rate", "tpr", "fpr", "fnr"]


def make_rows(n_rows: int, seed: int):
    """Make scores that rate the old too high; a twentieth of the sexes is not known."""
    rng = np.random.default_rng(seed)
    old, y_true = rng.random(n_rows) < 0.3, rng.random(n_rows) < 0.2
    scores = rng.normal(size=n_rows) + 1.5 * y_true + 0.4 * old
    sex = np.where(rng.random(n_rows) < 0.05, "(missing)", rng.choice(["f", "m"], size=n_rows))
    return y_true, scores, {"old": old, "sex": sex}


def rates_by_aequitas(python, y_true, scores, attributes, folder):
    """Compare rates of all groups; give the largest difference."""
    given, made = folder / "predictions.csv", folder / "rates.csv"
    predictions_frame(y_true, scores, sensitive_features=attributes).to_csv(given, index=False)
    subprocess.run([python, HERE / "aequitas_rates.py", given, made], check=True)
    theirs = pd.read_csv(made, keep_default_na=False, dtype={"group": "str"})
    furthest = 0.0
    for name, values in attributes.items():
        ours = by_group(y_true, scores, sensitive_features={name: values})[RATES]
        own = theirs[theirs["attribute"] == name].set_index("group")[RATES].astype("float64").loc[ours.index]
        furthest = max(furthest, float((own - ours).abs().to_numpy().max()))
        print(f"{name}: {len(ours)} groups, false-positive rates", own["fpr"].round(4).to_dict())
    return furthest


def ratios_by_aif360(python, y_true, scores, attributes, folder):
    """Compare the ratio of selection rates and the weights of reweighing; give the largest difference."""
    given, made = folder / "of_two.csv", folder / "found.csv"
    old = {"old": np.where(attributes["old"], "old", "young")}
    frame = predictions_frame(y_true, scores, sensitive_features=old)
    frame.to_csv(given, index=False)
    quiet = os.environ | {"PYTHONWARNINGS": "ignore"}
    subprocess.run(
        [python, HERE / "aif360_rates.py", given, made], check=True, capture_output=True, env=quiet
    )
    theirs = pd.read_csv(made)
    ratio = selection_rate_ratio(frame["label_value"], frame["score"], sensitive_features=frame["old"])
    weights = Reweigher().fit(frame[["score"]], frame["label_value"], sensitive_features=frame["old"])
    print(f"AIF360: ratio of selection rates {theirs['ratio'][0]:.4f}, ours {ratio:.4f}")
    return max(abs(theirs["ratio"][0] - ratio), np.abs(theirs["weight"] - weights.sample_weight_).max())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--aequitas", metavar="PYTHON", help="an interpreter that has it")
    parser.add_argument("--aif360", metavar="PYTHON", help="an interpreter that has it")
    parser.add_argument("--rows", type=int, default=5000)
    arguments = parser.parse_args()
    if not (arguments.aequitas or arguments.aif360):
        parser.error("there is nothing to compare with: name --aequitas, --aif360 or both")
    y_true, scores, attributes = make_rows(arguments.rows, seed=0)
    furthest = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        for python, compare in (
            (arguments.aequitas, rates_by_aequitas),
            (arguments.aif360, ratios_by_aif360),
        ):
            if python:
                furthest = max(furthest, compare(python, y_true, scores, attributes, Path(temporary)))
    print(f"furthest from ours: {furthest:.1e}")
    sys.exit(bool(furthest > 1e-9))


if __name__ == "__main__":
    main()
