"""Two closer looks of benchmarks/aim.py: how often the line holds on unseen rows, and which rows to move.

Coverage takes one model, not the best of several, and asks for 0.8 on test rows with the threshold at 5 % of
their negatives. The study trains one model with five fixed strengths for each way to weigh rows, interpolates
TPR on test rows where the ratio is 0.8, and gives the mean over three splits: both labels by half of the log
factor each, or one label by all of it; by the probability of the group (soft), or by the group itself (hard).
"""

from __future__ import annotations

import itertools
import time
import warnings

import numpy as np
from lightgbm import LGBMClassifier

import _rivals as rivals
from _aim_tables import CHOSEN_ON, SHOWN, deal, read_table
from _rivals import LINE, MAX_FPR, RATIOS
from fado import AimedEstimator
from fado.aim import cell_weights, find_memberships
from fado.metrics import evaluate
from fado.tabular import Table

ROWS = 30_000
SPLITS = 20
PARAMETERS = {"n_estimators": 60, "num_leaves": 20, "min_child_samples": 30, "learning_rate": 0.1}
STRENGTHS = (0.0, 0.75, 1.5, 2.5, 4.0)


def coverage(directory, found):
    """Fill in what is missing, one split of every table after the other."""
    tables = {name: read_table(directory, name, False, ROWS) for name in CHOSEN_ON}
    for seed, name, ratio in itertools.product(range(SPLITS), CHOSEN_ON, RATIOS):
        key = f"{name}, {ratio}, {seed}"
        if key not in found:
            split = deal(*tables[name], (0.8, 0.2), seed)
            found[key] = {str(confidence): _cover(split, ratio, confidence) for confidence in (None, 0.9)}
            yield key


def _cover(split, ratio, confidence):
    (X, y, z), (X_test, y_test, z_test) = split.part(0), split.part(1)
    start = time.perf_counter()
    model = AimedEstimator(
        LGBMClassifier(**PARAMETERS, n_jobs=1, verbosity=-1),
        ratio=ratio,
        at_least=LINE,
        max_fpr=MAX_FPR,
        confidence=confidence,
        random_state=split.seed,
        n_jobs=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sensitive_features=z)
        seconds = time.perf_counter() - start
        scores = model.predict_proba(X_test)[:, 1]
        metrics = evaluate(y_test, scores, sensitive_features=z_test, max_fpr=MAX_FPR)
    return {
        "reached": bool(model.reached_),
        "fits": len(model.path_),
        "seconds": seconds,
        "untouched": float(model.path_["ratio"][0]),
        "tpr": metrics["tpr"],
        "ratio": metrics[ratio],
    }


def print_coverage(found):
    print(
        "| | ratio | untouched | confidence | reached | at 0.8 on test rows | ratio | TPR | fits | seconds |"
    )
    print("|---" * 10 + "|")
    for name in CHOSEN_ON:
        for ratio in RATIOS:
            splits = [own for key, own in found.items() if key.startswith(f"{name}, {ratio}, ")]
            for confidence in ("None", "0.9"):
                own = [split[confidence] for split in splits]
                if own:
                    print(f"| {SHOWN[name]} | `{ratio}` | {_covered(own, confidence)} |")


def _covered(splits, confidence):
    def mean(name):
        return np.mean([own[name] for own in splits])

    held = np.mean([own["ratio"] >= LINE for own in splits])
    shown = "none" if confidence == "None" else confidence
    return (
        f"{mean('untouched'):.2f} | {shown} | {mean('reached'):.0%} | {held:.0%} | {mean('ratio'):.2f} | "
        f"{mean('tpr'):.3f} | {mean('fits'):.1f} | {mean('seconds'):.1f}"
    )


def study(directory, found):
    """Train every way with every strength."""
    for name in CHOSEN_ON:
        X, y, z = read_table(directory, name, False, ROWS)
        for seed in range(3):
            if f"study, {name}, {seed}" not in found:
                found[f"study, {name}, {seed}"] = _study_split(deal(X, y, z, (0.6, 0.2, 0.2), seed))
                yield name


def _study_split(split):
    bench = rivals.Bench(split, 1)
    X, y, z = split.part(0)
    table = Table.from_input(X)
    soft = find_memberships(table, y == 1, z.astype(np.int64), 2, seed=0, workers=1).probabilities
    hard = np.eye(2)[z]
    base = bench.judge(2, bench.candidate(bench.fit(PARAMETERS).scores).test)
    higher = _higher_group(bench, y)
    found = {}
    for kind, memberships in (("soft", soft), ("hard", hard)):
        for labels in ("both labels", "negatives", "positives"):
            path = [base]
            for strength in STRENGTHS[1:]:
                log_factors = np.where(np.arange(2) == higher, strength, 0.0)
                weights = _weigh(log_factors, memberships, y == 1, labels)
                path.append(bench.judge(2, bench.candidate(bench.fit(PARAMETERS, weights).scores).test))
            found[f"{labels}, {kind}"] = {
                ratio: _at_line([own[ratio] for own in path], [own["tpr"] for own in path])
                for ratio in RATIOS
            }
    return found


def _higher_group(bench, y):
    """Find the group of the higher positive rate."""
    z = bench.split.part(0)[2]
    return int(y[z == 1].mean() > y[z == 0].mean())


def _weigh(log_factors, memberships, positive, labels):
    """Weigh both labels as FADO does, or only one by the whole log factor."""
    if labels == "both labels":
        return cell_weights(log_factors, memberships, positive)
    moved = positive if labels == "positives" else ~positive
    return np.where(moved, cell_weights(2 * log_factors, memberships, positive), 1.0)


def _at_line(ratios, rates):
    """Interpolate the TPR where the ratio first reaches the line; None if it never does."""
    if ratios[0] >= LINE:
        return "above the line"
    for k in range(1, len(ratios)):
        if ratios[k] >= LINE:
            share = (LINE - ratios[k - 1]) / (ratios[k] - ratios[k - 1])
            return rates[k - 1] + share * (rates[k] - rates[k - 1])
    return None


def print_study(found):
    splits = {key.split(", ")[1]: [] for key in found if key.startswith("study, ")}
    for key, own in found.items():
        if key.startswith("study, "):
            splits[key.split(", ")[1]].append(own)
    for ratio in RATIOS:
        print(f"\nTPR at a `{ratio}` of 0.8 on test rows (splits that reached it)\n")
        print("| | " + " | ".join(SHOWN[name] for name in splits) + " |")
        print("|---" * (len(splits) + 1) + "|")
        for way in next(iter(splits.values()))[0]:
            print(f"| {way} | " + " | ".join(_shown(own, way, ratio) for own in splits.values()) + " |")


def _shown(splits, way, ratio):
    rates = [own[way][ratio] for own in splits if own[way][ratio] is not None]
    if "above the line" in rates:
        return "above the line"
    return f"{np.mean(rates):.3f} ({len(rates)} of {len(splits)})" if rates else "never"
