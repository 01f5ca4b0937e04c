"""How hard the generated account-opening fraud data are, next to what was published for the BAF suite.

Trains LightGBM models with random settings on months 0 to 5 of every variant and measures them on months
6 and 7: true-positive rate at a false-positive rate of 5 %, and predictive equality, the lower of the two
age groups' false-positive rates over the higher. Prints medians over the models.

    python benchmarks/account_fraud.py --rows 200000 --models 20

The space of settings is that of the published baselines, but for the number of trees, which ends at 500
instead of 10,000 so that the table takes minutes.
"""

import argparse
import time

import lightgbm
import numpy as np

from fado.datasets import make_account_fraud, temporal_split

MAX_FPR = 0.05
WIDTHS = (8, 11, 14, 14, 12, 14, 14, 9)
# Medians of the published baselines: (true-positive rate, predictive equality); "-": no figure to hold to.
PUBLISHED = {
    "base": ("0.45 to 0.56", "0.30 to 0.47"),
    "I": ("-", "around 0.85"),
    "II": ("-", "around 0.13"),
    "III": ("around 0.7", "-"),
    "IV": ("-", "-"),
    "V": ("-", "-"),
}


def main():
    arguments = parse_arguments()
    print(f"{arguments.rows:,} rows, {arguments.models} LightGBM models per variant, seed {arguments.seed}")
    print_row("", "TPR at", "5 % FPR", "", "predictive", "equality", "", "")
    print_row("variant", *("median", "quartiles", "published") * 2, "seconds")
    for variant in arguments.variants:
        start = time.perf_counter()
        frame = make_account_fraud(arguments.rows, variant=variant, random_state=arguments.seed)
        rates, equalities = zip(*measure_models(frame, arguments.models, arguments.seed), strict=True)
        published_rate, published_equality = PUBLISHED[variant]
        seconds = f"{time.perf_counter() - start:.0f}"
        row = (*summary(rates), published_rate, *summary(equalities), published_equality)
        print_row(variant, *row, seconds)


def print_row(*cells):
    print("".join(f"{text:>{width}}" for text, width in zip(cells, WIDTHS, strict=True)), flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--variants", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    return parser.parse_args()


def summary(values):
    low, median, high = np.percentile(values, [25, 50, 75])
    return f"{median:.2f}", f"{low:.2f} to {high:.2f}"


def measure_models(frame, n_models, seed):
    """Train every model once and give (true-positive rate, predictive equality) for each."""
    train, test = temporal_split(frame)
    data = lightgbm.Dataset(
        train.drop(columns="fraud_bool"),
        train["fraud_bool"],
        params={"feature_pre_filter": False, "verbosity": -1},
    )
    features, fraud = test.drop(columns="fraud_bool"), test["fraud_bool"].to_numpy() == 1
    older = test["customer_age"].to_numpy() >= 50
    return [
        measure(lightgbm.train(settings, data, num_boost_round=trees).predict(features), fraud, older)
        for settings, trees in random_settings(n_models, seed)
    ]


def random_settings(n_models, seed):
    rng = np.random.default_rng(seed)
    for _ in range(n_models):
        settings = {
            "objective": "binary",
            "data_sample_strategy": str(rng.choice(["bagging", "goss"])),
            "learning_rate": log_uniform(rng, 0.02, 0.1),
            "num_leaves": round(log_uniform(rng, 10, 100)),
            "max_depth": int(rng.integers(3, 31)),
            "min_data_in_leaf": round(log_uniform(rng, 5, 200)),
            "seed": int(rng.integers(2**31)),
            "num_threads": 1,
            "verbosity": -1,
        }
        yield settings, round(log_uniform(rng, 20, 500))


def log_uniform(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def measure(scores, fraud, older):
    honest = np.sort(scores[~fraud])
    # The first honest score that may no longer be flagged; flag what lies above it.
    limit = honest[honest.size - int(MAX_FPR * honest.size) - 1]
    flagged = scores > limit
    rates = [flagged[~fraud & group].mean() for group in (older, ~older)]
    return flagged[fraud].mean(), min(rates) / max(rates)


if __name__ == "__main__":
    main()
