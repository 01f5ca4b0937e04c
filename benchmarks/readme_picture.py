"""The README's pictures: models of Adult by ratio and true-positive rate, and the values of its rows.

python benchmarks/readme_picture.py --data DIR [--out docs/images]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from _data import data_argument, real_table
from fado import OutOfBagEntropy, find_frontier

BINS = 40
UNIT = 620  # pixels from 0 to 1, on both axes of the frontier
TPR = (0.5, 0.75)
COLOURS = ["#D55E00", "#0072B2", "#000000"]  # of Okabe and Ito, who chose them for colour-blind readers
SHAPES = ["circle", "cross", "diamond"]


def plane(valuation, sex):
    """Count the rows in every cell of the plane of values, per sex."""
    cells = []
    for name in ("Female", "Male"):
        members = sex == name
        counts, _, _ = np.histogram2d(
            valuation["y"][members], valuation["sex"][members], bins=BINS, range=[[0, 1], [0, 1]]
        )
        x, y = np.nonzero(counts)
        cells.append(
            pd.DataFrame(
                {
                    "sex": f"{name}: {members.sum():,} rows",
                    "x": x / BINS,
                    "x2": (x + 1) / BINS,
                    "y": y / BINS,
                    "y2": (y + 1) / BINS,
                    "share": counts[x, y] / members.sum(),
                }
            )
        )
    return pd.concat(cells)


def draw_values(directory):
    """Draw every row of Adult by its two values."""
    frame = pd.read_parquet(directory / "adult.parquet").drop(columns="split")
    y = frame.pop("income")
    valuation = OutOfBagEntropy(random_state=0).fit(frame, y, sensitive_features="sex").valuation_
    return (
        alt.Chart(plane(valuation, frame["sex"].to_numpy()))
        .mark_rect()
        .encode(
            x=alt.X("x:Q", title="v_y: uncertainty about income", scale=alt.Scale(domain=[0, 1])),
            x2="x2:Q",
            y=alt.Y("y:Q", title="v_z: uncertainty about sex", scale=alt.Scale(domain=[0, 1])),
            y2="y2:Q",
            color=alt.Color(
                "share:Q",
                title="share of group",
                scale=alt.Scale(type="log", scheme="viridis"),
                legend=alt.Legend(format=".2%"),
            ),
        )
        .properties(width=300, height=300)
        .facet(alt.Facet("sex:N", title=None))
        .properties(title="Rows of Adult by their two values")
    )


def draw_frontier(directory):
    """Draw models of Adult by their figures on test data, untouched and aimed; print the selected one."""
    X, y, male = real_table(directory, "adult")
    frontier = find_frontier(X, y, sensitive_features={"sex": np.where(male, "male", "female")}, max_fits=60)
    print(frontier)
    chosen = frontier.closest(0.8)
    test = chosen.facts_.measured["test"]
    print({name: round(own, 3) for name, own in test.items()}, "reached:", chosen.reached_)
    whole = frontier.frame[~frontier.frame["cost"].between(0, 1, inclusive="neither")]
    names = ["untouched", "aimed", "selected on validation data"]
    points = pd.DataFrame(
        {
            "models": whole["intervention"].replace({"none": "untouched"}),
            "ratio": whole["test_fpr_ratio"],
            "tpr": whole["test_tpr"],
        }
    )
    print(points.groupby("models").agg({"ratio": ["min", "max"], "tpr": ["min", "mean", "max"]}).round(3))
    marked = pd.DataFrame(
        {
            "models": [names[2]],
            "ratio": [test["fpr_ratio"]],
            "low": [test["fpr_ratio_low"]],
            "high": [test["fpr_ratio_high"]],
            "tpr": [test["tpr"]],
        }
    )
    tenths = alt.Axis(values=[step / 10 for step in range(11)], format=".1f")
    axes = {
        "x": alt.X(
            "ratio:Q", title="ratio of false-positive rates", scale=alt.Scale(domain=[0, 1]), axis=tenths
        ),
        "y": alt.Y(
            "tpr:Q",
            title=["true-positive rate", f"(axis from {TPR[0]} to {TPR[1]})"],
            scale=alt.Scale(domain=TPR),
        ),
        "color": alt.Color("models:N", scale=alt.Scale(domain=names, range=COLOURS), title=None),
        "shape": alt.Shape("models:N", scale=alt.Scale(domain=names, range=SHAPES), title=None),
    }
    legend = {"orient": "top", "symbolOpacity": 1}
    axes["color"].legend = axes["shape"].legend = alt.Legend(**legend)
    marks = alt.Chart(points).mark_point(filled=True, size=30, opacity=0.5).encode(**axes)
    kept = alt.Chart(marked).mark_point(filled=True, size=200, opacity=1).encode(**axes)
    interval = alt.Chart(marked).mark_rule(size=2).encode(x="low:Q", x2="high:Q", y="tpr:Q")
    asked = alt.Chart(pd.DataFrame({"ratio": [0.8], "tpr": [TPR[0]], "text": ["asked for: 0.8"]}))
    line = asked.mark_rule(strokeDash=[5, 4]).encode(x="ratio:Q")
    label = asked.mark_text(align="right", dx=-6, dy=-8).encode(x="ratio:Q", y=axes["y"], text="text")
    return (line + label + marks + interval + kept).properties(
        width=UNIT,
        height=UNIT * (TPR[1] - TPR[0]),  # a step of 0.1 is as long upwards as sideways
        title="Adult: women and men, at a false-positive rate of 5 %, on test data",
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    draw_frontier(arguments.data).save(arguments.out / "frontier_adult.png", scale_factor=1.5)
    draw_values(arguments.data).save(arguments.out / "values_adult.png", scale_factor=1.5)


if __name__ == "__main__":
    main()
