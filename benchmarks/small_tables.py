"""Is the budget kept in the population by models of few rows? LightGBM memorises small tables.

    python benchmarks/small_tables.py --data DIR

Rules: samples of a large table; `AimedEstimator` with `at_least=0.8`, 5 % false positives and a refit on all
rows; LightGBM with its defaults and with 60 trees of 15 leaves. The figures are the mean false-positive rate
and the one that 90 % of the draws are below, on up to 30,000 rows that are not in the sample. `share 0`
always moves the threshold of the refitted models. The other shares keep it if these models spend less than
that share of the budget on rows that they have seen.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from fado import AimedEstimator
from fado.aim import _choose
from fado.datasets import fetch_acs_income, fetch_adult, make_account_fraud

MODELS = {"default": {}, "60 x 15": {"n_estimators": 60, "num_leaves": 15}}
SIZES = {
    "adult": (600, 1_500, 4_000),
    "credit": (1_500, 6_000),
    "acs_income": (600, 1_500, 6_000),
    "fraud": (3_000, 20_000),
}
LARGEST = 60_000


def read(name: str, folder: Path) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Read features, target and groups of a table."""
    if name == "fraud":
        X = make_account_fraud(LARGEST, variant="II", random_state=3).drop(columns="month")
        return X, X.pop("fraud_bool"), X.pop("customer_age") >= 50
    if name == "credit":
        X = pd.read_parquet(folder / "give_me_some_credit.parquet")
        return X, X.pop("SeriousDlqin2yrs"), X.pop("age") < 40
    fetch = {"adult": fetch_adult, "acs_income": fetch_acs_income}[name]
    X, y, groups = fetch(folder / f"{name}.parquet")
    rows = np.random.default_rng(9).permutation(len(X))[:LARGEST]
    return tuple(part.iloc[rows].reset_index(drop=True) for part in (X, y.astype(int), groups["sex"]))


def main() -> None:
    """Print a line per table, sample size and model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the Parquet files")
    parser.add_argument("--draws", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("table, rows, model: mean false-positive rate and 90 % quantile; share 0, 1/3 and 0.5")
    for name, sizes in SIZES.items():
        X, y, groups = read(name, asked.data)
        for size in sizes:
            for label, settings in MODELS.items():
                trees = LGBMClassifier(**settings, n_jobs=1, verbosity=-1)
                found: dict[float, list[float]] = {0.0: [], 1 / 3: [], 0.5: []}
                for draw in range(asked.draws):
                    rows = np.random.default_rng(100 * draw + 7).permutation(len(X))
                    sample, others = rows[:size], rows[size : size + 30_000]
                    others = others[y.iloc[others].to_numpy() == 0]
                    for share, rates in found.items():
                        _choose.LEAST_SEEN = share
                        model = AimedEstimator(trees, at_least=0.8, random_state=draw)
                        model.fit(X.iloc[sample], y.iloc[sample], sensitive_features=groups.iloc[sample])
                        rates.append(float(np.mean(model.predict(X.iloc[others]))))
                shown = (f"{np.mean(rates):.3f} {np.quantile(rates, 0.9):.3f}" for rates in found.values())
                print(f"{name}, {size:,}, {label}: {'; '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
