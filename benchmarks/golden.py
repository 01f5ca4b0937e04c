"""Whether a change of the code changes a number: computes a golden set and compares it to the last bit.

    python benchmarks/golden.py write FILE.npz      # with the earlier code
    python benchmarks/golden.py compare FILE.npz    # with the present code: exit 1 if anything differs

The set is made with the public surface alone, so that the same script runs on both codes: generated data,
values of three small tables (entropies, effects, Shapley values, online, of new rows, from files), utilities,
training sets and weights in memory and from files, a reweighed model, metrics, aimed models, queries, made
rows, an explore page's content, two experiments with the metrics of their fits, and a frontier. NaN
equals NaN; a changed type, shape or sign of a zero is a difference. Both
sides must run on one machine with the same libraries.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from lightgbm import LGBMClassifier
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fado
from fado import (
    AimedEstimator,
    CobbDouglasUtility,
    DataShapley,
    DifferenceUtility,
    InBagEntropy,
    KNNShapley,
    LinearUtility,
    OnlineEntropy,
    OutOfBagEntropy,
    RandomPrevalenceSampler,
    ReweighedEstimator,
    Reweigher,
    TreeInfluence,
    UtilityAwareOverSampler,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    explore,
    find_frontier,
    reweigh_files,
    sample_files,
    value_files,
)
from fado.active import UtilityQuery
from fado.aim import trade_off
from fado.datasets import make_account_fraud, protected_from, temporal_split
from fado.experiment import Experiment
from fado.metrics import (
    by_group,
    evaluate,
    fnr_ratio,
    fpr_ratio,
    hypervolume,
    pareto_frontier,
    selection_rate_ratio,
    threshold_at_fpr,
    tpr_at_fpr,
    tpr_ratio,
)

UTILITIES = {"linear": LinearUtility, "difference": DifferenceUtility, "cobb-douglas": CobbDouglasUtility}
RATIOS = {"fpr": fpr_ratio, "fnr": fnr_ratio, "tpr": tpr_ratio, "selection_rate": selection_rate_ratio}
VARIANTS = ("base", "I", "II", "III", "IV", "V")
PARTS = ("values", "standard_error", "counts", "agreement")


class Table(NamedTuple):
    """Features, labels of two classes, and the protected attributes.

    `valued` are the attributes that are valued, `groups` those that make groups, `numbers` the features in a
    form that LightGBM itself takes.
    """

    X: Any
    y: Any
    valued: Any
    groups: Any
    numbers: Any
    kinds: dict[str, str] | None = None


def numeric_table():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(600, 6))
    X[:, 5] = rng.integers(0, 8, size=600)
    z = (X[:, 1] + rng.normal(size=600) > 0.3).astype(int)
    y = (X[:, 0] + 0.7 * z + 0.5 * X[:, 2] * X[:, 3] + rng.normal(size=600) > 1).astype(int)
    return Table(X, y, z, z, X)


def mixed_table():
    rng = np.random.default_rng(12)
    n = 800
    X = pd.DataFrame(
        {
            "amount": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(size=n)),
            "visits": rng.integers(0, 30, size=n),
            "city": rng.choice(["Lisbon", "Porto", "Faro", "Braga"], size=n),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], size=n), ["low", "mid", "high"]),
            "member": rng.random(n) < 0.4,
        }
    )
    origin = rng.choice(["north", "south", "islands"], size=n, p=[0.5, 0.35, 0.15]).astype(object)
    signal = X["amount"].fillna(1) + (X["city"] == "Porto") + 0.05 * X["visits"] + X["member"]
    y = np.where(signal + (origin == "north") + rng.normal(size=n) > 3.5, "yes", "no")
    origin[rng.random(n) < 0.05] = None
    veteran = X["member"] ^ (rng.random(n) < 0.3)
    groups = pd.DataFrame({"origin": origin, "veteran": veteran})
    return Table(X, y, groups, groups, X.astype({"city": "category"}))


def fraud_table():
    frame = make_account_fraud(3000, random_state=1)
    older = (frame["customer_age"] >= 50).to_numpy()
    X = pa.Table.from_pandas(frame.drop(columns="fraud_bool"), preserve_index=False)
    valued = {"older": older, "income": frame["income"].to_numpy()}
    numbers = frame.drop(columns="fraud_bool").select_dtypes("number")
    return Table(X, frame["fraud_bool"].to_numpy(), valued, older, numbers, {"income": "continuous"})


def datasets():
    golden = {}
    for variant in VARIANTS:
        frame = make_account_fraud(1000, variant, random_state=5)
        golden[variant] = pd.util.hash_pandas_object(frame).to_numpy()
    for expression in ("customer_age>=50", "source == INTERNET", "income < 0.3", "month"):
        golden[expression] = numbers_or_text(protected_from(frame, expression))
    for name, part in zip(("train", "test"), temporal_split(frame), strict=True):
        golden[name] = part.index.to_numpy()
    return golden


def valuations(tables):
    """Value every table by both algorithms, and the numeric one in other ways, too.

    Five bags of a fifth of the rows score every row once; only larger ones give standard errors.
    """
    X, y, z = tables["numeric"][:3]
    three = np.digitize(X[:, 0] + X[:, 4], [-0.8, 0.8])
    continuous = X[:, 0] + X[:, 2] * X[:, 3]
    rows = [(name, table.X, table.y, table.valued, {"kinds": table.kinds}) for name, table in tables.items()]
    by_name = {"z_exclude": ["visits"], "z_sees_target": False}
    rows += [
        ("by name", tables["mixed"].X, tables["mixed"].y, ["member", "grade"], by_name),
        ("three classes", X, three, z, {}),
        ("continuous", X, continuous, z, {}),
        ("sklearn", X, y, z, {"estimators": [LogisticRegression(), DecisionTreeClassifier(max_depth=4)]}),
        ("lightgbm", X, y, z, {"estimators": LGBMClassifier(n_estimators=10, colsample_bytree=0.5)}),
        ("sparse", sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)), y, z, {}),
    ]
    for name, features, target, protected, settings in rows:
        shared = settings | {"random_state": 3}
        for algorithm, valuator in (
            ("oob", OutOfBagEntropy(n_bags=5, **shared)),
            ("oob of halves", OutOfBagEntropy(n_bags=5, unseen_fraction=0.5, **shared)),
            ("inbag", InBagEntropy(**shared)),
        ):
            valuator.fit(features, target, sensitive_features=protected)
            yield f"{name}/{algorithm}", valuator.valuation_


def effects(tables):
    """Value rows by their effects and by Shapley values, with and without validation rows, and new rows."""
    X, y, z = tables["numeric"][:3]
    some, rest = slice(0, 400), slice(400, None)
    validation = X[rest], y[rest], z[rest]
    small = LGBMClassifier(n_estimators=15, num_leaves=7, n_jobs=1, verbosity=-1)
    valuators = {
        "influence": TreeInfluence(small, max_fpr=0.2, random_state=3, n_jobs=1),
        "influence, moved": TreeInfluence(small, fairness="tpr_ratio", max_fpr=0.2, random_state=3, n_jobs=1),
        "knn": KNNShapley(5, random_state=3, n_jobs=1),
        "games": DataShapley(LogisticRegression(), max_fits=600, max_fpr=0.2, random_state=3, n_jobs=1),
    }
    for name, valuator in valuators.items():
        n = 60 if name == "games" else 400
        for kind, apart in (("folds", None), ("validation", validation)):
            valuator.fit(X[:n], y[:n], sensitive_features=z[:n], validation=apart)
            yield f"{name}/{kind}", valuator.valuation_
    mixed = tables["mixed"]
    yield (
        "knn/mixed",
        KNNShapley(3, random_state=3, n_jobs=1)
        .fit(mixed.X, mixed.y, sensitive_features=mixed.valued)
        .valuation_,
    )
    kept = OutOfBagEntropy(n_bags=5, keep_models=True, random_state=3).fit(
        X[some], y[some], sensitive_features=z[some]
    )
    yield "new rows/labelled", kept.value(X[rest], y[rest], sensitive_features=z[rest])
    yield "new rows/unlabelled", kept.value(X[rest])
    online = OnlineEntropy(window=300, random_state=3)
    for batch in range(3):
        rows = slice(200 * batch, 200 * (batch + 1))
        yield f"online/{batch}", online.value(X[rows], y[rows], sensitive_features=z[rows])
        online.learn(X[rows], y[rows], sensitive_features=z[rows])


def from_files(tables):
    """Value, sample and reweigh a table in three files; every row is learnt from."""
    table = tables["mixed"]
    frame = table.X.assign(
        bought=table.y, origin=table.groups["origin"], weight=1.0 + np.arange(len(table.y)) % 3
    )
    golden, given = {}, {"target": "bought", "protected": ["origin", "member"]}
    with tempfile.TemporaryDirectory() as directory:
        for part, rows in enumerate((slice(0, 300), slice(300, 310), slice(310, None))):
            frame[rows].to_parquet(Path(directory) / f"{part}.parquet")
        values = Path(directory) / "values"
        values.mkdir()
        paths = str(Path(directory) / "*.parquet")
        for name, settings in {
            "plain": {"unseen_fraction": 0.5},
            "weighted": {"weight": "weight", "unseen_fraction": 0.5},
        }.items():
            found = value_files(paths, **given, out=values / name, n_bags=6, random_state=3, **settings)
            golden |= under(name, parts_of(found))
        changes = {
            "uaps": (sample_files, UtilityAwarePrevalenceSampler(LinearUtility(0.3), random_state=7)),
            "rps": (sample_files, RandomPrevalenceSampler(random_state=7)),
            "uar": (reweigh_files, UtilityAwareReweigher(LinearUtility(0.3))),
            "rw": (reweigh_files, Reweigher()),
        }
        for name, (change, intervention) in changes.items():
            out = Path(directory) / f"_{name}.parquet"
            change(paths, **given, values=values / "plain", intervention=intervention, out=out)
            golden |= under(name, {col: numbers_or_text(own) for col, own in pd.read_parquet(out).items()})
    return golden


def aims(tables):
    """Aim in the three ways, and tell what every line costs without a fit."""
    X, y, z = tables["numeric"][:3]
    small = LGBMClassifier(n_estimators=12, num_leaves=5, n_jobs=1, verbosity=-1)
    golden = {}
    for by in ("scores", "student", "weights"):
        for confidence in (None, 0.9):
            model = AimedEstimator(
                small, by=by, max_fpr=0.2, confidence=confidence, max_fits=6, random_state=3, n_jobs=1
            )
            model.fit(X, y, sensitive_features=z)
            golden[f"{by}/{confidence}/probabilities"] = model.predict_proba(X)
            golden[f"{by}/{confidence}/decisions"] = model.predict(X)
            golden[f"{by}/{confidence}/reached"] = np.array([model.reached_, model.threshold_], dtype=float)
    values = OutOfBagEntropy(n_bags=5, keep_probabilities=True, random_state=3).fit(
        X, y, sensitive_features=z
    )
    found = trade_off(values.valuation_, y, sensitive_features=z, max_fpr=0.2)
    return golden | under("trade-off", {name: numbers_or_text(column) for name, column in found.items()})


def chosen_and_made(tables):
    """Query a pool, make rows, and gather what the explore page shows."""
    X, y, z = tables["numeric"][:3]
    known = OutOfBagEntropy(n_bags=5, keep_models=True, random_state=3).fit(
        X[:300], y[:300], sensitive_features=z[:300]
    )
    golden = {
        "query/plain": UtilityQuery(known).query(X[300:], 40),
        "query/diverse": UtilityQuery(known, diversity=0.5).query(X[300:], 40),
        "query/shares": UtilityQuery(known, group_shares={0: 0.5, 1: 0.5}).query(
            X[300:], 40, sensitive_features=z[300:]
        ),
    }
    table = tables["mixed"]
    values = (
        OutOfBagEntropy(n_bags=5, random_state=3)
        .fit(table.X, table.y, sensitive_features=table.groups)
        .valuation_
    )
    maker = UtilityAwareOverSampler(LinearUtility(0.3), random_state=3)
    made, labels = maker.fit_resample(table.X, table.y, sensitive_features=table.groups, valuation=values)
    golden |= under("made", {name: numbers_or_text(column) for name, column in made.items()})
    golden["made/labels"] = numbers_or_text(pd.Series(labels))
    effect = TreeInfluence(
        LGBMClassifier(n_estimators=10, n_jobs=1, verbosity=-1), max_fpr=0.2, random_state=3, n_jobs=1
    )
    for name, valuation in (
        ("entropy", known.valuation_),
        ("effects", effect.fit(X[:300], y[:300], sensitive_features=z[:300]).valuation_),
    ):
        page = explore(
            X[:300], y[:300], sensitive_features=z[:300], valuation=valuation, retrain=12, n_jobs=1
        )
        shown = json.dumps(page.to_dict(), sort_keys=True, default=str)
        golden[f"explore/{name}"] = np.array(hashlib.sha256(shown.encode()).hexdigest())
    return golden


def searched():
    """Search a frontier of generated fraud; the frame without its times."""
    frame = make_account_fraud(3000, "II", random_state=2)
    older = (frame["customer_age"] >= 50).rename("older")
    X = frame.drop(columns=["fraud_bool", "customer_age", "month"])
    found = find_frontier(
        X, frame["fraud_bool"], sensitive_features=older, max_fits=6, max_fpr=0.2, random_state=1, n_jobs=1
    ).frame
    return {
        name: numbers_or_text(column)
        for name, column in found.items()
        if "seconds" not in name and name != "error"
    }


def parts_of(valuation):
    golden = {
        f"{part}/{column}": values.to_numpy()
        for part in PARTS
        for column, values in getattr(valuation, part).items()
    }
    about = {name: value for name, value in valuation.metadata.items() if name != "versions"}
    return golden | {"metadata": np.array(json.dumps(about, sort_keys=True))}


def utilities(valuation):
    return {
        f"{name}/{alpha}": utility(alpha)(valuation)
        for name, utility in UTILITIES.items()
        for alpha in (0.0, 0.3, 1.0)
    }


def samples(table, valuation):
    golden = {}
    for strength in (1.0, 0.4):
        samplers = {"random": RandomPrevalenceSampler(strength=strength, random_state=7)}
        for name, utility in UTILITIES.items():
            samplers[name] = UtilityAwarePrevalenceSampler(utility(0.3), strength=strength, random_state=7)
        for name, sampler in samplers.items():
            sampler.fit_resample(table.X, table.y, sensitive_features=table.groups, valuation=valuation)
            golden[f"{name}/{strength}"] = sampler.sample_indices_
    return golden


def weights(table, valuation):
    reweighers = {
        "kamiran-calders": Reweigher(),
        "none": UtilityAwareReweigher(DifferenceUtility(0.7), scaling="none", negative="clip"),
        "corrected": UtilityAwareReweigher(floor=0.3, prevalence_correction=1.5),
        "not normalised": UtilityAwareReweigher(floor=0.3, prevalence_correction=1.5, normalize=False),
    }
    reweighers |= {
        f"minmax/{name}": UtilityAwareReweigher(utility(0.3)) for name, utility in UTILITIES.items()
    }
    for reweigher in reweighers.values():
        reweigher.fit(table.X, table.y, sensitive_features=table.groups, valuation=valuation)
    return {name: reweigher.sample_weight_ for name, reweigher in reweighers.items()}


def probabilities(table):
    """Train on the first half of the rows, score all."""
    model = ReweighedEstimator(LGBMClassifier(n_estimators=5, n_jobs=1, verbosity=-1), Reweigher())
    X, y, z = (part[: len(table.y) // 2] for part in (table.numbers, table.y, table.groups))
    return model.fit(X, y, sensitive_features=z).predict_proba(table.numbers)


def metrics(table, scores):
    y, groups = table.y, {"sensitive_features": table.groups}
    golden = {}
    for max_fpr in (0.05, 0.2):
        threshold = threshold_at_fpr(y, scores, max_fpr)
        golden[f"threshold/{max_fpr}"] = threshold
        golden[f"tpr/{max_fpr}"] = tpr_at_fpr(y, scores, max_fpr)
        for name, ratio in RATIOS.items():
            golden[f"{name}_ratio/{max_fpr}"] = ratio(y, scores >= threshold, **groups)
        for given in (None, 0.3):
            found = evaluate(y, scores, max_fpr=max_fpr, n_boot=50, random_state=0, threshold=given, **groups)
            golden |= {f"evaluate/{max_fpr}/{given}/{name}": value for name, value in found.items()}
    golden = {name: np.float64(value) for name, value in golden.items()}
    shown = by_group(y, scores >= threshold, **groups).reset_index(drop=True)
    return golden | under("by group", {name: numbers_or_text(column) for name, column in shown.items()})


def frontiers():
    points = np.random.default_rng(13).random((60, 3)).round(1)
    points[::7, 1] = np.nan
    return {
        "pareto of two": pareto_frontier(points[:, :2]),
        "pareto of three": pareto_frontier(points),
        "hypervolume": np.float64(hypervolume(points[:, :2])),
        "hypervolume above": np.float64(hypervolume(points[:, :2], (0.2, 0.3))),
    }


def configuration(split, space, threshold):
    alphas = [0.0, 0.5, 1.0]
    return {
        "seed": 4,
        "data": {
            "generator": "account_fraud",
            "rows": 4000,
            "target": "fraud_bool",
            "protected": "customer_age>=50",
        },
        "split": split,
        "valuation": {"algorithms": ["oob", "inbag"], "bags": 5},
        "interventions": {
            "none": True,
            "rps": True,
            "rw": True,
            "uaps": {"utilities": list(UTILITIES), "alphas": alphas, "strengths": [1.0, 0.5]},
            "uar": {
                "utilities": ["linear", "difference"],
                "alphas": alphas,
                "scalings": ["minmax", "none"],
                "negative": "clip",
            },
            "corrected_uar": {"floors": [0.1], "alphas": [0.5], "prevalence_corrections": [1.0, 1.5]},
        },
        "models": {"count": 2, "space": space},
        "evaluation": {"bootstrap": 20, "threshold": threshold},
    }


def experiments():
    by_chance = {"method": "random", "train": 0.5, "validation": 0.2, "test": 0.3}
    by_month = {"method": "column", "column": "month", "train": [0, 1, 2, 3, 4, 5], "test": [6, 7]}
    sampled_rows = {
        "boosting_type": "goss",
        "n_estimators": {"log_uniform": [10, 30]},
        "learning_rate": {"choices": [0.2, 0.4]},
    }
    drawn_columns = {
        "n_estimators": {"log_uniform": [5, 20]},
        "colsample_bytree": {"choices": [0.4, 0.8]},
        "num_leaves": {"log_uniform": [5, 31]},
    }
    return {
        "random split": configuration(by_chance, sampled_rows, "validation"),
        "split by month": configuration(by_month, drawn_columns, "test"),
    }


def results_of(config):
    """Run an experiment, and give its frame by column."""
    with tempfile.TemporaryDirectory() as store:
        frame = Experiment(config).run(store).frame
    return {
        f"frame/{name}": numbers_or_text(column)
        for name, column in frame.items()
        if name != "error"  # said in words, which may change
    }


def numbers_or_text(column):
    """Give a column as floats, if it holds numbers, else as text, missing values as such."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.array(["<missing>" if pd.isna(value) else str(value) for value in column])


def golden_set():
    tables = {"numeric": numeric_table(), "mixed": mixed_table(), "fraud": fraud_table()}
    golden = under("datasets", datasets()) | under("metrics", frontiers())
    for name, valuation in valuations(tables):
        golden |= under(f"valuation/{name}", parts_of(valuation))
        table, algorithm = name.split("/")
        if table in tables:
            golden |= under(f"utility/{name}", utilities(valuation))
        if table in tables and algorithm == "oob":
            golden |= under(f"sample/{table}", samples(tables[table], valuation))
            golden |= under(f"weights/{table}", weights(tables[table], valuation))
    for name, table in tables.items():
        predicted = probabilities(table)
        golden[f"probabilities/{name}"] = predicted
        golden |= under(f"metrics/{name}", metrics(table, predicted[:, 1]))
    for name, valuation in effects(tables):
        golden |= under(f"valuation/{name}", parts_of(valuation))
    golden |= under("files", from_files(tables)) | under("aim", aims(tables))
    golden |= under("chosen", chosen_and_made(tables)) | under("frontier", searched())
    for name, config in experiments().items():
        golden |= under(f"experiment/{name}", results_of(config))
    return golden


def under(place, arrays):
    return {f"{place}/{name}": np.asarray(array) for name, array in arrays.items()}


def same(before, now):
    """Say whether two arrays agree to the last bit, but for how a NaN is written."""
    if before.dtype != now.dtype or before.shape != now.shape:
        return False
    if before.dtype.kind == "f":
        before, now = (np.where(np.isnan(array), np.nan, array) for array in (before, now))
    return before.tobytes() == now.tobytes()


def difference(before, now):
    """Tell two arrays apart in a few words."""
    told = f"{before.shape} {before.dtype} before, {now.shape} {now.dtype} now"
    if before.shape != now.shape:
        return told
    if "U" in (before.dtype.kind, now.dtype.kind):
        return f"{told}, {np.count_nonzero(before != now)} texts differ"
    before, now = before.astype(np.float64), now.astype(np.float64)
    apart = np.abs(before - now)[~(np.isnan(before) & np.isnan(now))]
    return f"{told}, largest difference {np.max(apart, initial=0.0):.3g}"


def compare(before, now):
    """Print what differs; give how many arrays do."""
    n_different = 0
    for name in dict.fromkeys([*before, *now]):
        if name not in now:
            told = "only before"
        elif name not in before:
            told = "only now"
        elif not same(before[name], now[name]):
            told = difference(before[name], now[name])
        else:
            continue
        n_different += 1
        print(f"{name}: {told}")
    print(f"{len(before.keys() | now.keys())} arrays, {n_different} differ")
    return n_different


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        golden = golden_set()
    print(f"computed with {Path(fado.__file__).parent} in {time.perf_counter() - start:.0f} s")
    if arguments.action == "write":
        with arguments.file.open("wb") as file:
            np.savez_compressed(file, **golden)
        print(f"{len(golden)} arrays written")
        return 0
    with np.load(arguments.file) as stored:
        before = dict(stored)
    return int(compare(before, golden) > 0)


if __name__ == "__main__":
    sys.exit(main())
