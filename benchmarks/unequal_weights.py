"""Rows of very unequal weights, as of a two-phase sample: the budget in the population.

    python benchmarks/unequal_weights.py --data DIR [--names adult fraud]

Rules, written before the tables that judge were read: about 12,000 rows of a table are drawn with known
probabilities, those that a crude screening picked (40 % of the rows, more often positives) a hundred times as
likely as the others, and weigh one over their probability. All rows that were not drawn are the population,
each weighted by one over its probability of that. Adult and generated fraud are there to choose on, ACS
Income by sex and credit to judge. LightGBM with 50 trees of 15 leaves; `at_least=0.8`, 5 % false positives.
Printed are the mean false-positive rate in the population and the share of draws in which it is at most 1.15
times the budget:

- baseline model: fitted again on all rows, at the weighted threshold of five folds;
- always moved: `AimedEstimator`, whose threshold moves when models are fitted again, whatever rows weigh;
- aimed: `AimedEstimator` as it is: the threshold stays if the effective number of rows is below a half.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from lightgbm import LGBMClassifier

from _aim_tables import read_table
from _data import data_argument
from fado import AimedEstimator
from fado.aim import _choose

NAMES = {"adult": "choose", "fraud": "choose", "sex": "judge", "credit": "judge"}
SCREENED, SAMPLE, TIMES = 0.4, 12_000, 100
BUDGET, SPARE = 0.05, 1.15
MOST_ROWS = 60_000  # of the population's negatives


def draw(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows by their probability; return which were drawn, and every row's probability."""
    crude = np.random.default_rng(5).normal(size=len(y)) + y
    often = min(0.5, SAMPLE / (SCREENED * len(y)))
    chance = np.where(crude > np.quantile(crude, 1 - SCREENED), often, often / TIMES)
    return np.random.default_rng([seed, 1]).random(len(y)) < chance, chance


def main() -> None:
    """Print a line per table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument("--names", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--draws", type=int, default=8)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = ("baseline model", "always moved", "aimed")
    print(f"| table | to | rows | {' | '.join(f'{way}: mean, kept' for way in ways)} |")
    print("|---" * (3 + len(ways)) + "|")
    for name in asked.names:
        X, y, z = read_table(Path(asked.data or "."), name)
        rates: dict[str, list[float]] = {way: [] for way in ways}
        for seed in range(asked.draws):
            drawn, chance = draw(y, seed)
            others = np.flatnonzero(~drawn & (y == 0))
            others = np.random.default_rng([seed, 2]).permutation(others)[:MOST_ROWS]
            rows = X[drawn].reset_index(drop=True), y[drawn]
            fit = {"sensitive_features": z[drawn], "sample_weight": 1 / chance[drawn]}
            trees = LGBMClassifier(n_estimators=50, num_leaves=15, n_jobs=1, verbosity=-1)
            model = AimedEstimator(trees, random_state=seed, n_jobs=1)
            for least, way in ((0.0, "always moved"), (0.5, "aimed")):
                _choose.LEAST_EVEN = least
                decided = {way: model.fit(*rows, **fit).predict(X.iloc[others])}
                if way == "aimed":
                    at = model.path_["threshold"][0]
                    baseline = trees.fit(*rows, sample_weight=fit["sample_weight"])
                    decided["baseline model"] = baseline.predict_proba(X.iloc[others])[:, 1] >= at
                for each, own in decided.items():
                    rates[each].append(float(np.average(own, weights=1 / (1 - chance[others]))))
        shown = (
            f"{100 * np.mean(own):.1f} %, {np.mean(np.array(own) <= SPARE * BUDGET):.0%}"
            for own in rates.values()
        )
        print(f"| {name} | {NAMES[name]} | {drawn.sum():,} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
