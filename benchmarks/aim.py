"""Look for the best model whose ratio between groups is at least 0.8, at 5 % false positives, in many ways.

    python benchmarks/aim.py --data DIR --json FILE [--fairgbm fairgbm/bin/python] [--names adult ...]
    python benchmarks/aim.py --data DIR --json COVERAGE --coverage
    python benchmarks/aim.py --data DIR --json STUDY --study

The rules, fixed before the first run.

- Rows are split 60/20/20 into training, validation and test rows, by label and group, with 2 seeds (4 for
  the two small tables). A model is chosen on validation rows: the highest TPR among those whose ratio
  reaches 0.8 there. It is told by test rows, with the threshold at 5 % false positives of the test rows:
  TPR and ratio. Figures are means over the splits in which the line was reached on validation rows, and the
  number of these splits is told; "never" means none.
- Ratios: `fpr_ratio` (predictive equality) and `selection_rate_ratio` (demographic parity).
- Tables: Adult by sex, Give Me Some Credit by age < 40 and ACS Income by sex are those that settings of
  FADO were chosen on. All others judge. At most 60,000 rows each, 100,000 of the generated fraud. Each once
  without the attribute among the features (without the age, where groups are ages) and once with it.
- The pool: 5 LightGBM models drawn from the space of the experiment's quick preset, without GOSS and with
  steps of 0.3 at most. Every method may also keep an untouched model of the pool, and its fits count for
  every method. If the pool's model of the highest validation TPR reaches the line by itself, there is
  nothing to mend, and no method is run for that ratio.
- Methods, with their fits. Untouched (5). Aimed: from that best model, `AimedEstimator(judge=validation,
  max_fits=12)`, 17 at most; models of the attribute are not counted, here or for any method. Aimed with
  `confidence=0.9`, where "reached" means the bound. Reweighing: 8 powers of its factor x 5 models (45 with
  the pool). Corrected UAR: 9 settings x 5 models (50). Thresholds by group, on the scores of the pool (5):
  161 offsets between the groups' log odds. fairlearn's GridSearch of 30 multipliers around the best model
  (35). FairGBM: 8 multiplier rates x the 3 best models (29), constrained on false positives at the
  threshold where the same model of the pool has 5 %, without tolerance; it has no constraint on selection
  rates, and its models are judged by that ratio as they are. fairlearn's ThresholdOptimizer on the best
  model's validation scores, for balanced accuracy: it sets its own thresholds, so its figures are at its
  own rate of false positives, and it is not chosen.
- Thresholds by group and ThresholdOptimizer need every row's group to decide; no other method does, unless
  the attribute is among the features.

`--coverage`: over 20 splits of 80/20 of at most 30,000 rows, how often the ratio of test rows is at least 0.8
after `AimedEstimator` with rows of its own held out. `--study`: which rows to move, see _aim_looks.py. All of
it runs in one thread, and a run that was killed goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import _rivals as rivals
from _aim_looks import coverage, print_coverage, print_study, study
from _aim_tables import CHOSEN_ON, JUDGED_BY, SHOWN, SMALL, deal, read_table
from _data import data_argument
from _rivals import LINE, RATIOS
from fado._files import replacing

METHODS = {
    "untouched": "untouched",
    "aimed": "aimed",
    "aimed 0.9": "aimed, confidence 0.9",
    "reweighing": "reweighing",
    "corrected UAR": "corrected UAR",
    "grid search": "fairlearn GridSearch",
    "FairGBM": "FairGBM",
    "group thresholds": "thresholds by group",
}
N_MODELS = 5
SHARES = (0.6, 0.2, 0.2)


def run_split(split, python):
    """Run all methods on one split; give figures by ratio and method."""
    bench = rivals.Bench(split, N_MODELS)
    pool = rivals.untouched(bench)
    judged = [bench.judge(1, candidate.validation) for candidate in pool]
    order = sorted(range(len(pool)), key=lambda j: -judged[j]["tpr"])
    best = order[0]
    found = {ratio: {"best untouched": told(bench, pool[best], judged[best], ratio, 5)} for ratio in RATIOS}
    open_ratios = [ratio for ratio in RATIOS if not judged[best][ratio] >= LINE]
    if not open_ratios:
        return found
    valuation = rivals.values(bench)
    shared = {
        "untouched": [],
        "reweighing": rivals.reweighing(bench, valuation),
        "corrected UAR": rivals.corrected_uar(bench, valuation),
        "group thresholds": list(rivals.group_thresholds(bench, pool)),
    }
    if python is not None:
        three = order[:3]
        thresholds = [judged[j]["threshold"] for j in three]
        shared["FairGBM"] = rivals.fairgbm(bench, python, [bench.models[j] for j in three], thresholds)
    on_validation = {name: [bench.judge(1, one.validation) for one in own] for name, own in shared.items()}
    for ratio in open_ratios:
        own = found[ratio]
        for name, candidates in shared.items():
            fits = N_MODELS + (0 if name == "group thresholds" else len(candidates))
            own[name] = choose(bench, [*pool, *candidates], [*judged, *on_validation[name]], ratio, fits)
        candidates = rivals.grid_search(bench, ratio, bench.models[best])
        figures = [bench.judge(1, one.validation) for one in candidates]
        fits = N_MODELS + len(candidates)
        own["grid search"] = choose(bench, [*pool, *candidates], [*judged, *figures], ratio, fits)
        one, _, fits = rivals.aimed(bench, ratio, bench.models[best])
        figures = [*judged, bench.judge(1, one.validation)]
        own["aimed"] = choose(bench, [*pool, one], figures, ratio, N_MODELS + fits)
        one, reached, fits = rivals.aimed(bench, ratio, bench.models[best], confidence=0.9)
        figures = bench.judge(1, one.validation)
        own["aimed 0.9"] = told(bench, one, figures, ratio, N_MODELS + fits) | {"reached": reached}
        metrics = rivals.threshold_optimizer(bench, ratio, pool[best])
        own["ThresholdOptimizer"] = {name: metrics[name] for name in ("tpr", "fpr")} | {
            "ratio": metrics[ratio]
        }
    return found


def choose(bench, candidates, figures, ratio, fits):
    """Choose by the rule; without a candidate above the line, only the number of fits is told."""
    above = [j for j, own in enumerate(figures) if own[ratio] >= LINE]
    if not above:
        return {"reached": False, "fits": fits}
    chosen = max(above, key=lambda j: figures[j]["tpr"])
    return told(bench, candidates[chosen], figures[chosen], ratio, fits)


def told(bench, candidate, on_validation, ratio, fits):
    on_test = bench.judge(2, candidate.test)
    return {
        "reached": bool(on_validation[ratio] >= LINE),
        "fits": fits,
        "validation_tpr": on_validation["tpr"],
        "validation_ratio": on_validation[ratio],
        "tpr": on_test["tpr"],
        "ratio": on_test[ratio],
    }


def keep(path, found):
    if path is not None:
        with replacing(path, "The figures") as temporary:
            temporary.write_text(json.dumps(found, indent=1))


def key_of(name, with_attribute, seed):
    return f"{name}, {'with' if with_attribute else 'without'}, {seed}"


def run_all(arguments, found):
    for name in arguments.names:
        for with_attribute in (False, True):
            seeds = range(4 if name in SMALL else 2)
            missing = [seed for seed in seeds if key_of(name, with_attribute, seed) not in found]
            if not missing:
                continue
            X, y, z = read_table(arguments.data, name, with_attribute)
            for seed in missing:
                start = time.perf_counter()
                figures = run_split(deal(X, y, z, SHARES, seed), arguments.fairgbm)
                found[key_of(name, with_attribute, seed)] = figures
                keep(arguments.json, found)
                print(
                    f"{key_of(name, with_attribute, seed)}: {time.perf_counter() - start:.0f} s", flush=True
                )


def cell(splits):
    """Show the means of the splits that reached the line."""
    reached = [own for own in splits if own["reached"]]
    if not reached:
        return "never"
    tpr, ratio = (np.mean([own[name] for own in reached]) for name in ("tpr", "ratio"))
    count = "" if len(reached) == len(splits) else f" ({len(reached)} of {len(splits)})"
    return f"{tpr:.3f}, {ratio:.2f}{count}"


def print_tables(names, found):
    for ratio in RATIOS:
        print(f"\n`{ratio}` of test rows: TPR, ratio (splits that reached the line)\n")
        print(
            "| | attribute | best of the pool | " + " | ".join(METHODS.values()) + " | ThresholdOptimizer |"
        )
        print("|---" * (len(METHODS) + 4) + "|")
        for name in names:
            for side in ("without", "with"):
                own = [
                    figures[ratio] for key, figures in found.items() if key.startswith(f"{name}, {side}, ")
                ]
                if own:
                    print(f"| {SHOWN[name]} | {side} | " + " | ".join(row(own)) + " |")


def row(splits):
    """Give the cells of one table: the splits where something was to be mended."""
    start = [own["best untouched"] for own in splits]
    yield ", ".join(
        f"{np.mean([own[name] for own in start]):.{d}f}" for name, d in (("tpr", 3), ("ratio", 2))
    )
    mended = [own for own in splits if len(own) > 1]
    if not mended:
        yield from ["above the line", *[""] * len(METHODS)]
        return
    for method in METHODS:
        yield cell([own[method] for own in mended]) if method in mended[0] else ""
    drawn = [own["ThresholdOptimizer"] for own in mended]
    tpr, ratio, fpr = (np.mean([own[name] for own in drawn]) for name in ("tpr", "ratio", "fpr"))
    yield f"{tpr:.3f}, {ratio:.2f} at {fpr:.1%}"


def print_summary(title, names, found):
    """Hold all methods against the aimed one, over the splits where something was to be mended."""
    for ratio in RATIOS:
        splits = [
            figures[ratio]
            for key, figures in found.items()
            if key.rsplit(", ", 2)[0] in names and len(figures[ratio]) > 1
        ]
        print(f"\n{title}, `{ratio}`: {len(splits)} splits of {len(names)} tables\n")
        columns = "fits", "reached the line", "at 0.8 on test rows", "ratio there", "TPR less that of aimed"
        print(f"| | {' | '.join(columns)} |")
        print("|---" * (len(columns) + 1) + "|")
        for method, shown in METHODS.items():
            if splits and method in splits[0]:
                print(f"| {shown} | {summarised(splits, method)} |")


def summarised(splits, method):
    own = [figures[method] for figures in splits]
    reached = [one for one in own if one["reached"]]
    if not reached:
        return f"{np.mean([one['fits'] for one in own]):.0f} | 0 of {len(own)} | | |"
    pairs = [(figures[method], figures["aimed"]) for figures in splits]
    less = [one["tpr"] - aimed["tpr"] for one, aimed in pairs if one["reached"] and aimed["reached"]]
    fits, ratio = (np.mean([one[name] for one in reached]) for name in ("fits", "ratio"))
    held = np.mean([one["ratio"] >= LINE for one in reached])
    shown = f"{np.mean(less):+.3f} ({len(less)})" if less else ""
    return f"{fits:.0f} | {len(reached)} of {len(own)} | {held:.0%} | {ratio:.2f} | {shown}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    names = [*CHOSEN_ON, *JUDGED_BY]
    parser.add_argument("--names", nargs="+", choices=names, default=names)
    parser.add_argument("--json", type=Path, help="file that keeps what was found; a run goes on from it")
    parser.add_argument("--fairgbm", help="interpreter of an environment with FairGBM; without it, left out")
    parser.add_argument("--coverage", action="store_true", help="how often the line holds on unseen rows")
    parser.add_argument("--study", action="store_true", help="which cells to move")
    arguments = parser.parse_args()
    if not arguments.data:
        parser.error("--data is needed: this is about real data")
    kept = arguments.json is not None and arguments.json.exists()
    found = json.loads(arguments.json.read_text()) if kept else {}
    if arguments.coverage or arguments.study:
        look, show = (coverage, print_coverage) if arguments.coverage else (study, print_study)
        for _ in look(arguments.data, found):
            keep(arguments.json, found)
        show(found)
        return
    run_all(arguments, found)
    print_tables(arguments.names, found)
    large = [name for name in JUDGED_BY if name not in SMALL]
    print_summary("Tables that settings were chosen on", CHOSEN_ON, found)
    print_summary("Large tables that judge", large, found)
    print_summary("Small tables that judge", SMALL, found)


if __name__ == "__main__":
    main()
