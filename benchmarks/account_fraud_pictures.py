"""Draw the pictures of docs/datasets.md from generated data.

python benchmarks/account_fraud_pictures.py
"""

from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from fado.datasets import make_account_fraud

IMAGES = Path(__file__).parents[1] / "docs" / "images"
VARIANTS = ["base", "I", "II", "III", "IV", "V"]
GROUPS = ["under 50", "50 and older"]
LABELS = ["honest", "fraud"]
# Two colours that stay apart for every kind of colour vision.
COLOURS = ["#0072B2", "#D55E00"]
ROWS = 200_000


def main():
    IMAGES.mkdir(exist_ok=True)
    frames = {variant: make_account_fraud(ROWS, variant=variant, random_state=0) for variant in VARIANTS}
    save(variants_picture(frames), "account_fraud_variants.png")
    save(separability_picture(frames), "account_fraud_separability.png")


def save(chart, name):
    chart.configure_view(stroke="#dddddd").configure_axis(grid=False).save(IMAGES / name, scale_factor=1.5)
    print(IMAGES / name)


def variants_picture(frames):
    """Draw group sizes over fraud rates by month, one column per variant."""
    months = pd.concat([rates_by_month(frame).assign(variant=name) for name, frame in frames.items()])
    sizes = months.groupby(["variant", "group"], as_index=False)["rows"].sum()
    sizes["share"] = 100 * sizes["rows"] / ROWS
    colour = alt.Color("group:N", scale=alt.Scale(domain=GROUPS, range=COLOURS), title="age")
    facet = alt.Column("variant:N", sort=VARIANTS, title=None)
    bars = (
        alt.Chart(sizes, width=90, height=70)
        .mark_bar()
        .encode(
            alt.X("share:Q", title="rows, %", scale=alt.Scale(domain=[0, 100])),
            alt.Y("group:N", sort=GROUPS, title=None, axis=None),
            colour,
            column=alt.Column("variant:N", sort=VARIANTS, title=None, header=alt.Header(labelFontSize=14)),
        )
    )
    lines = (
        alt.Chart(months, width=90, height=150)
        .mark_line(point=True)
        .encode(
            alt.X("month:O", title="month", axis=alt.Axis(labelAngle=0)),
            alt.Y("rate:Q", title="fraud rate, %", scale=alt.Scale(domain=[0, 2.6])),
            colour,
            column=facet.header(labels=False),
        )
    )
    return alt.vconcat(bars, lines)


def rates_by_month(frame):
    group = np.where(frame["customer_age"] >= 50, *reversed(GROUPS))
    table = frame.groupby([group, "month"])["fraud_bool"].agg(["mean", "size"]).reset_index()
    table.columns = ["group", "month", "rate", "rows"]
    return table.assign(rate=100 * table["rate"])


def separability_picture(frames):
    """Draw the distributions of x1 + x2 for honest and fraudulent applications."""
    heights = pd.concat(
        [
            sum_heights(part).assign(group=group, part=f"{variant}, months {period}")
            for variant in ("III", "V")
            for (group, period), part in parts(frames[variant])
        ]
    )
    return (
        alt.Chart(heights, width=130, height=90)
        .mark_area(opacity=0.55, interpolate="monotone")
        .encode(
            alt.X("sum:Q", title="x1 + x2"),
            alt.Y("height:Q", title=None, axis=None, stack=None),
            alt.Color("label:N", scale=alt.Scale(domain=LABELS, range=COLOURS), title=None),
            column=alt.Column("part:N", title=None, header=alt.Header(labelFontSize=12)),
            row=alt.Row("group:N", sort=GROUPS, title=None, header=alt.Header(labelFontSize=12)),
        )
    )


def parts(frame):
    group = np.where(frame["customer_age"] >= 50, *reversed(GROUPS))
    period = np.where(frame["month"] < 6, "0 to 5", "6 and 7")
    return frame.groupby([group, period])


def sum_heights(frame):
    """Give the height of the distribution of x1 + x2 for each label."""
    edges = np.arange(-5, 10, 0.75)
    tables = []
    for value, label in enumerate(LABELS):
        total = (frame["x1"] + frame["x2"])[frame["fraud_bool"] == value]
        height, _ = np.histogram(total, edges, density=True)
        tables.append(pd.DataFrame({"sum": (edges[:-1] + edges[1:]) / 2, "height": height, "label": label}))
    return pd.concat(tables)


if __name__ == "__main__":
    main()
