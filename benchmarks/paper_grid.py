"""The paper's grid on generated fraud data and on Give Me Some Credit, and what becomes of its statements.

    python benchmarks/paper_grid.py --data DIR --stores runs [--names generated credit] [--pictures DIR]

Three utilities, eleven alphas, both scalings, both algorithms, 25 LightGBM models of up to 300 trees after
each of 201 interventions: about 4,500 fits per data set, an hour or so on two cores. A run that was stopped
goes on where it was. Models are chosen on the validation part and measured on the test part; printed are
tables in Markdown, one for each of the paper's statements.
"""

from __future__ import annotations

import argparse
import tomllib
import warnings
from pathlib import Path

import pandas as pd

from _data import data_argument
from fado.experiment import Experiment
from fado.experiment._config import preset_text
from fado.metrics import hypervolume

RATIOS = {
    "fpr_ratio": "predictive equality",
    "fnr_ratio": "equality of opportunity",
    "selection_rate_ratio": "demographic parity",
}
BASELINES, OURS = ("RPS", "RW"), ("UAPS", "UAR")


def experiments(directory):
    """Take the preset, but trees that fit in an hour, and rows of their own to choose models on."""

    def paper(**sections):
        table = tomllib.loads(preset_text("paper"))
        table["models"]["space"]["n_estimators"] = {"log_uniform": [20, 300]}
        return Experiment(table | sections)

    generated = tomllib.loads(preset_text("paper"))["data"] | {"rows": 110_000}
    months = {"train": [0, 1, 2, 3], "validation": [4, 5], "test": [6, 7]}
    yield "generated", paper(data=generated, split={"method": "column", "column": "month", **months})
    if directory is not None:
        credit = {
            "path": str(directory.absolute() / "give_me_some_credit.parquet"),
            "target": "SeriousDlqin2yrs",
            "positive": 1,
            "protected": "age<40",
        }
        shares = {"train": 0.5, "validation": 0.25, "test": 0.25}
        yield "credit", paper(data=credit, split={"method": "random", **shares})


def markdown(rows):
    """Print a table; every row maps column names to cells."""
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row.values()) + " |")


def interval(row, metric):
    return f"{row[f'test_{metric}']:.3f} [{row[f'test_{metric}_low']:.3f}, {row[f'test_{metric}_high']:.3f}]"


def by_alpha(frame):
    """Statements 1 and 4: what alpha does to the models on average, against the same models untouched."""
    print("\nMeans over the models, minus those of the same models untouched (in points of 100)")
    metrics = ["tpr", *RATIOS]
    columns = [f"test_{metric}" for metric in metrics]
    untouched = frame[frame["intervention"] == "none"].set_index("model")[columns]
    rows = []
    for name in (*BASELINES, *OURS):
        own = frame[frame["intervention"] == name]
        for alpha, part in own.groupby("alpha", dropna=False):
            moved = 100 * (part.set_index("model")[columns] - untouched.loc[part["model"]])
            rows.append(
                {"intervention": name, "alpha": "" if pd.isna(alpha) else f"{alpha:.1f}"}
                | {"TPR" if m == "tpr" else RATIOS[m]: f"{moved[f'test_{m}'].mean():+.1f}" for m in metrics}
            )
    markdown(rows)


def best_alphas(frame):
    """Statement 2: the area that the models of each alpha cover, over settings of equal number."""
    print("\nHypervolume on the test part of the models of each alpha")
    own = frame[frame["intervention"].isin(OURS)]
    rows = []
    for alpha, part in own.groupby("alpha"):
        row = {"alpha": f"{alpha:.1f}"}
        for name in OURS:
            for ratio, title in RATIOS.items():
                points = part.loc[part["intervention"] == name, ["test_tpr", f"test_{ratio}"]].dropna()
                row[f"{name}, {title}"] = f"{hypervolume(points.to_numpy()):.3f}"
        rows.append(row)
    markdown(rows)


def above_the_rule(results):
    """Statement 3: who has the best true-positive rate among models that keep the 80 % rule."""
    print("\nThe highest TPR at a ratio of 0.8, chosen on validation; and how many settings reach it")
    rows = []
    for ratio, title in RATIOS.items():
        best = results.best(ratio).set_index("intervention")
        points = pd.DataFrame(results.comparable_points(ratio, "validation"), columns=["tpr", "ratio"])
        points["intervention"] = results.frame["intervention"]
        points["setting"] = results.frame.groupby(
            ["intervention", "algorithm", "utility", "alpha", "scaling"], dropna=False
        ).ngroup()
        reached = points[points["ratio"] >= 0.8].groupby(["intervention", "setting"])["tpr"].max()
        rival = max((reached[name].max() for name in BASELINES if name in reached), default=0.0)
        for name in results.interventions:
            there = name in best.index
            n_settings = points.loc[points["intervention"] == name, "setting"].nunique()
            better = (reached[name] > rival).sum() if name in reached else 0
            rows.append(
                {
                    "ratio": title,
                    "intervention": name,
                    "TPR": interval(best.loc[name], "tpr") if there else "never reached",
                    "its ratio": interval(best.loc[name], ratio) if there else "",
                    "settings": n_settings,
                    "reach 0.8": len(reached[name]) if name in reached else 0,
                    "beat the better of RPS and RW": better if name in OURS else "",
                }
            )
    markdown(rows)


def extremes(frame):
    """Statements 4 and 5: the most TPR, and the most fairness for less than a point of TPR."""
    print(
        "\nThe most TPR, and the highest ratio within 1 p.p. of the best untouched TPR: chosen on validation"
    )
    none = frame[frame["intervention"] == "none"]
    best = none.loc[none["validation_tpr"].idxmax()]
    rows = []
    for name in ("none", *BASELINES, *OURS):
        own = frame[frame["intervention"] == name]
        top = own.loc[own["validation_tpr"].idxmax()]
        near = own[own["validation_tpr"] >= best["validation_tpr"] - 0.01]
        row = {"intervention": name, "most TPR": interval(top, "tpr")}
        row["its alpha"] = "" if pd.isna(top["alpha"]) else f"{top['alpha']:.1f}"
        for ratio, title in RATIOS.items():
            fairest = near.nlargest(1, f"validation_{ratio}")
            row[title] = "none so near"
            if len(fairest):
                one = fairest.iloc[0]
                gain = 100 * (one[f"test_{ratio}"] - best[f"test_{ratio}"])
                lost = 100 * (one["test_tpr"] - best["test_tpr"])
                row[title] = f"{one[f'test_{ratio}']:.2f} ({gain:+.0f} p.p., TPR {lost:+.1f})"
        rows.append(row)
    markdown(rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument(
        "--stores", type=Path, required=True, help="directory of the stores, kept for resuming"
    )
    parser.add_argument(
        "--names", nargs="+", choices=["generated", "credit"], default=["generated", "credit"]
    )
    parser.add_argument("--pictures", type=Path, help="directory for the landscapes as PNG")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, experiment in experiments(arguments.data):
        if name not in arguments.names:
            continue
        results = experiment.run(arguments.stores / name, progress=True)
        frame = results.frame[results.frame["status"] == "done"]
        print(f"\n## {name}: {results}\n")
        markdown(results.summary)
        by_alpha(frame)
        best_alphas(frame)
        above_the_rule(results)
        extremes(frame)
        if arguments.pictures is not None:
            for ratio in RATIOS:
                for zoom in (False, True):
                    end = "_zoom" if zoom else ""
                    chart = results.plot(ratio, zoom=zoom)
                    chart.save(str(arguments.pictures / f"grid_{name}_{ratio}{end}.png"), scale_factor=1.5)
            results.report(arguments.stores / f"{name}.html")


if __name__ == "__main__":
    main()
