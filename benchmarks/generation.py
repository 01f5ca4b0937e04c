"""What made rows are worth: like real ones, far from any of them, and useful to a model.

    python benchmarks/generation.py --data DIR [--names ...] [--rows 20000] [--splits 3] [--parts ...]

How settings came about: a first look at prototypes, on Adult, Give Me Some Credit and generated fraud, chose
the form (trees of the parent's label alone, the table's order of columns, no Gibbs sweep); "settings"
then chose, on Adult and Credit, how much is kept of a parent and how many rows a leaf has. ACS Income and
Diabetes 130 had no part in any choice: they validation.

Every split holds a quarter of the rows out. Figures are means over splits; those of models are of one
LightGBM model of 100 trees, the same for all, at a false-positive rate of 5 % on held-out rows.

- "settings": a whole table of made rows (AUC and TPR of a model that learns from it alone, AUC of telling its
  rows from held-out ones, 5 % quantile of the distance to the nearest training row over that of held-out
  rows, copies), for several settings.
- "likeness": the same figures of the chosen settings, beside a model that learns from the real rows.
- "training": TPR and ratios after interventions, without errors: "parents" tells how much chance is in them.
- "parents": rows made of parents drawn evenly, by utilities of several alphas, or repeated, and no rows:
  differences from the first with their standard errors, over five splits other than the first three. Splits
  share rows, so that errors are rather larger than told.
- "time": rows of 100,000 x 20 made, beside the time of valuing that table, in one run.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd

from _data import data_argument, real_table, text_as_categories
from _generation_report import checking_estimator, generation_report, train_and_score
from fado import LinearUtility, OutOfBagEntropy, UtilityAwareOverSampler
from fado.aim import AimedEstimator
from fado.datasets import make_account_fraud
from fado.generation import _making
from fado.interventions import RandomPrevalenceSampler, Reweigher, UtilityAwarePrevalenceSampler
from fado.metrics import evaluate
from fado.tabular import Table, group_rows, read_problem, take_rows

CHOSEN_ON = ["adult", "give_me_some_credit"]
OTHERS = ["acs_income", "diabetes130", "account_fraud"]
PARTS = ["settings", "likeness", "training", "parents", "time"]
HELD_OUT = 0.25
METRICS = ("tpr", "fpr_ratio", "fnr_ratio", "selection_rate_ratio")
SETTINGS = [(0.0, 10), (0.5, 5), (0.5, 10), (0.5, 20), (0.8, 10)]  # kept, rows in a leaf
PARENTS = {
    "drawn evenly": (lambda valuation: np.ones(len(valuation)), {}),
    "alpha 0": (LinearUtility(0.0), {}),
    "alpha 0.5": (LinearUtility(0.5), {}),
    "alpha 1": (LinearUtility(1.0), {}),
    "alpha 0.5, repeated": (LinearUtility(0.5), {"method": "repeat"}),
    "no rows": (None, {"strength": 0.0}),
}
FRESH = range(3, 8)  # splits of "parents"


def table(arguments, name):
    if name != "account_fraud":
        return real_table(arguments.data, name, arguments.rows)
    frame = make_account_fraud(2 * arguments.rows, random_state=0)  # positives are rare
    y, z = frame.pop("fraud_bool").to_numpy(int), (frame.pop("customer_age") >= 50).to_numpy(int)
    return text_as_categories(frame.drop(columns="month")), y, z


def split(X, y, z, seed):
    order = np.random.default_rng(seed).permutation(len(y))
    cut = int((1 - HELD_OUT) * len(y))
    return [(X.iloc[rows].reset_index(drop=True), y[rows], z[rows]) for rows in (order[:cut], order[cut:])]


def likeness(parts, seed):
    """Flatten the report on a whole table of made rows."""
    report = generation_report(*parts[0], validation=parts[1], random_state=seed)
    real, made = report["trained_on_real"], report["trained_on_made"]
    return {
        "AUC, real": real["auc"],
        "AUC, made": made["auc"],
        "TPR, real": real["tpr"],
        "TPR, made": made["tpr"],
        "told apart": report["told_apart"],
        "distance, median": report["distances"]["ratio"]["median"],
        "distance, 5 %": report["distances"]["ratio"]["lowest_twentieth"],
        "copies, made": report["copies"]["made"],
        "copies, held out": report["copies"]["held_out"],
    }


def training(parts, seed):
    """Measure the same model after every intervention."""
    problem, validated = (read_problem(*part) for part in parts)
    X, y, z = parts[0]
    valuation = OutOfBagEntropy(random_state=seed).fit(X, y, sensitive_features=z).valuation_
    sampler = UtilityAwareOverSampler(random_state=seed)
    return pd.DataFrame(compare_interventions(problem, validated, valuation, sampler))


def compare_interventions(training, validated, valuation, sampler):
    """Train the same model after every intervention; give its rows, and `METRICS` on validation data."""
    lines = []
    z = {own.name: own.labels for own in validated.protected}
    settings = {
        "sensitive_features": z,
        "max_fpr": 0.05,
        "min_group_size": sampler.min_group_size,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # already shown when the rows were generated
        for name, rows, scores in all_scores(training, validated, valuation, sampler):
            figures = evaluate(validated.labels.is_positive, scores, **settings)
            own = {metric: figures[metric] for metric in METRICS}
            lines.append({"intervention": name, "rows": rows, **own})
    return lines


def all_scores(training, validated, valuation, sampler):
    """Give every intervention's name, number of rows, and scores of the validation rows."""
    utility, n_jobs = sampler.utility, sampler.n_jobs
    settings = {name: getattr(sampler, name) for name in ("strength", "min_group_size", "random_state")}
    X, y, seed = training.table.source, training.labels.is_positive, settings["random_state"]
    z = {own.name: group_rows([own]).codes for own in training.protected}
    given = {"X": X, "y": y, "sensitive_features": z}
    valued = given | {"valuation": valuation}

    def trained(source, positive, weights=None):
        table = Table.from_input(source)
        scores = train_and_score(table, positive, validated.table, weights=weights, seed=seed)
        return int(table.n_rows), scores

    yield "none", *trained(X, y)
    for name, intervention in {
        "RPS": RandomPrevalenceSampler(**settings),
        "UAPS": UtilityAwarePrevalenceSampler(utility, **settings),
        "RW": Reweigher(min_group_size=settings["min_group_size"]),
    }.items():
        chosen = intervention.fit(**(valued if intervention.uses_values else given)).training_set_
        yield name, *trained(take_rows(X, chosen.rows), y[chosen.rows], chosen.weights)
    for method in ("repeat", "trees"):
        maker = UtilityAwareOverSampler(utility, method=method, n_jobs=n_jobs, **settings)
        yield f"made ({method})", *trained(*maker.fit_resample(**valued))
    if len(maker.parents_):
        tables, positive = smoted(training, validated, maker.parents_, seed)
        yield "SMOTENC", len(positive), train_and_score(tables[0], positive, tables[1], seed=seed)
    aimed = AimedEstimator(
        checking_estimator(),
        max_fpr=0.05,
        min_group_size=settings["min_group_size"],
        random_state=seed,
        n_jobs=n_jobs,
    )
    yield "aimed scores", len(y), aimed.fit(**given).predict_proba(validated.table.source)[:, 1]


def smoted(training, validated, parents, seed):
    """Generate as many rows of the same cells with SMOTENC, from a table without missing entries."""
    from imblearn.over_sampling import SMOTE, SMOTEN, SMOTENC

    cells = training.groups.codes * 2 + training.labels.is_positive
    wanted = np.bincount(np.r_[cells, cells[parents]])
    smallest = np.bincount(cells)[np.unique(cells[parents])].min()
    frames = filled(training.table, validated.table)
    levelled = [j for j, column in enumerate(training.table.columns) if column.levels is not None]
    shared = {
        "sampling_strategy": {int(cell): int(wanted[cell]) for cell in np.unique(cells[parents])},
        "k_neighbors": int(min(5, smallest - 1)),
        "random_state": seed,
    }
    made, own = frames[0], cells
    if smallest > 1:
        kind = SMOTEN if len(levelled) == training.table.n_columns else SMOTE
        mixed = levelled and kind is SMOTE
        sampler = SMOTENC(levelled, **shared) if mixed else kind(**shared)
        made, own = sampler.fit_resample(frames[0], cells)
    positive = np.asarray(own) % 2 == 1
    return (Table.from_input(made), Table.from_input(frames[1])), positive


def filled(*tables):
    """Fill missing numbers with the median of the first table, and missing levels with a new level."""
    frames = [
        pd.DataFrame({j: column.to_pandas() for j, column in enumerate(table.columns)}) for table in tables
    ]
    numbers = [j for j, column in enumerate(tables[0].columns) if column.levels is None]
    usual = dict.fromkeys(frames[0], "(missing)") | frames[0][numbers].median().fillna(0.0).to_dict()
    return [frame.fillna(usual).set_axis(tables[0].names, axis=1) for frame in frames]


def parents(parts, seed):
    """Measure the same model after rows made of parents that were drawn in several ways."""
    (X, y, z), (X_validated, y_validated, z_validated) = parts
    valuation = OutOfBagEntropy(random_state=seed).fit(X, y, sensitive_features=z).valuation_
    lines = {}
    for name, (utility, settings) in PARENTS.items():
        sampler = UtilityAwareOverSampler(utility, random_state=seed, **settings)
        X2, y2 = sampler.fit_resample(X, y, sensitive_features=z, valuation=valuation)
        validated = Table.from_input(X_validated)
        scores = train_and_score(Table.from_input(X2), y2 == 1, validated, seed=seed)
        figures = evaluate(y_validated, scores, sensitive_features=z_validated)
        lines[name] = {metric: figures[metric] for metric in ("tpr", "fpr_ratio")}
    return pd.DataFrame(lines).T


def shown(frame):
    digits = {column: 4 if "copies" in column else 0 if column == "rows" else 3 for column in frame}
    print("| | " + " | ".join(frame.columns) + " |\n|" + "---|" * (len(frame.columns) + 1))
    for name, row in frame.iterrows():
        print(f"| {name} | " + " | ".join(f"{row[own]:.{digits[own]}f}" for own in frame) + " |")
    print(flush=True)


def settings_part(arguments):
    for name in [own for own in CHOSEN_ON if own in arguments.names]:
        X, y, z = table(arguments, name)
        lines = {}
        for kept, leaf in SETTINGS:
            _making.KEPT, _making.LEAF = kept, leaf
            found = [likeness(split(X, y, z, seed), seed) for seed in range(arguments.splits)]
            lines[f"kept {kept:g}, {leaf} rows in a leaf"] = pd.DataFrame(found).mean()
        _making.KEPT, _making.LEAF = arguments.chosen
        print(f"### settings, {name}\n")
        shown(pd.DataFrame(lines).T)


def likeness_part(arguments):
    lines = {}
    for name in arguments.names:
        X, y, z = table(arguments, name)
        found = [likeness(split(X, y, z, seed), seed) for seed in range(arguments.splits)]
        lines[name] = pd.DataFrame(found).mean()
    print("### likeness\n")
    shown(pd.DataFrame(lines).T)


def training_part(arguments):
    for name in arguments.names:
        X, y, z = table(arguments, name)
        found = [training(split(X, y, z, seed), seed) for seed in range(arguments.splits)]
        print(f"### training, {name}\n")
        shown(pd.concat(found).groupby("intervention", sort=False).mean())


def parents_part(arguments):
    for name in arguments.names:
        X, y, z = table(arguments, name)
        found = [parents(split(X, y, z, seed), seed) for seed in FRESH]
        apart = [own - own.loc["drawn evenly"] for own in found]
        lines = {}
        for way in PARENTS:
            of_way = pd.DataFrame([own.loc[way] for own in apart])
            error = of_way.std() / np.sqrt(len(apart))
            mean = pd.DataFrame([own.loc[way] for own in found]).mean()
            difference = of_way.mean().add_prefix("difference, ")
            lines[way] = pd.concat([mean, difference, error.add_prefix("error, ")])
        print(f"### parents, {name}\n")
        shown(pd.DataFrame(lines).T)


def time_part(arguments):
    rng, n = np.random.default_rng(0), 100_000
    X = pd.DataFrame(
        {f"number {j}": rng.normal(size=n) for j in range(10)}
        | {f"count {j}": rng.integers(0, 60, n) for j in range(5)}
        | {f"level {j}": pd.Categorical(rng.choice(list("abcdefghijkl"), n)) for j in range(5)}
    )
    z = rng.choice(["f", "m"], n)
    y = X["number 0"] + X["count 0"] / 30 + (z == "m") + rng.normal(size=n)
    for rate in (0.5, 0.02):
        positive = (y > y.quantile(1 - rate)).to_numpy(int)
        start = time.perf_counter()
        valuation = OutOfBagEntropy(random_state=0).fit(X, positive, sensitive_features=z).valuation_
        valued = time.perf_counter() - start
        start = time.perf_counter()
        sampler = UtilityAwareOverSampler(random_state=0)
        sampler.fit_resample(X, positive, sensitive_features=z, valuation=valuation)
        made = time.perf_counter() - start
        print(
            f"100,000 x 20, {100 * rate:g} % positives: {sampler.synthetic_.sum():,} rows made in "
            f"{made:.1f} s, valued in {valued:.1f} s, ratio {made / valued:.2f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    names = CHOSEN_ON + OTHERS
    parser.add_argument("--names", nargs="+", choices=names, default=names)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--splits", type=int, default=3)
    arguments = parser.parse_args()
    if not arguments.data:
        arguments.names = ["account_fraud"]
    arguments.chosen = _making.KEPT, _making.LEAF
    warnings.simplefilter("ignore")
    for part in arguments.parts:
        start = time.perf_counter()
        globals()[f"{part}_part"](arguments)
        print(f"{part}: {time.perf_counter() - start:.0f} s\n", flush=True)


if __name__ == "__main__":
    main()
