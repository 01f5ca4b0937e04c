"""The README's picture: what the values of Adult look like.

python benchmarks/readme_picture.py --data DIR [--out docs/images/values_adult.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from _data import data_argument
from fado import OutOfBagEntropy

BINS = 40


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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_argument(parser)
    parser.add_argument("--out", type=Path, default=Path("docs/images/values_adult.png"))
    arguments = parser.parse_args()
    frame = pd.read_parquet(arguments.data / "adult.parquet").drop(columns="split")
    y = frame.pop("income")
    valuation = OutOfBagEntropy(random_state=0).fit(frame, y, sensitive_features="sex").valuation_
    chart = (
        alt.Chart(plane(valuation, frame["sex"].to_numpy()))
        .mark_rect()
        .encode(
            x=alt.X("x:Q", title="v_y: how unsure models are of income", scale=alt.Scale(domain=[0, 1])),
            x2="x2:Q",
            y=alt.Y("y:Q", title="v_z: how unsure they are of sex", scale=alt.Scale(domain=[0, 1])),
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
        .properties(title="Every row of Adult, by what a model could still learn from it")
    )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    chart.save(arguments.out, scale_factor=1.5)


if __name__ == "__main__":
    main()
