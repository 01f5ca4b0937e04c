"""
Utilities, and what alpha does
==============================

A utility combines a row's two values into one number. This picture shows three utilities for all pairs of
values.
"""

# %%
# A grid of values, as if models had computed them.
import altair as alt
import numpy as np
import pandas as pd

from fado import CobbDouglasUtility, DifferenceUtility, LinearUtility, Valuation

steps = np.linspace(0, 1, 26)
v_y, v_z = (side.ravel() for side in np.meshgrid(steps, steps))
valuation = Valuation({"y": v_y, "age": v_z})

# %%
# With an alpha of 1, a utility is the value of the target. With an alpha of 0, it is the value of the
# group, or its negative.
tables = [
    pd.DataFrame(
        {
            "v_y": v_y,
            "v_z": v_z,
            "U": kind(alpha)(valuation),
            "alpha": f"alpha {alpha}",
            "utility": kind.__name__,
        }
    )
    for kind in (LinearUtility, CobbDouglasUtility, DifferenceUtility)
    for alpha in (0.2, 0.8)
]
chart = (
    alt.Chart(pd.concat(tables))
    .transform_calculate(x2="datum.v_y + 0.043", y2="datum.v_z + 0.043")
    .mark_rect()
    .encode(
        x=alt.X("v_y:Q", title="v_y: label", scale=alt.Scale(domain=[0, 1.04], nice=False)),
        x2="x2:Q",
        y=alt.Y("v_z:Q", title="v_z: group", scale=alt.Scale(domain=[0, 1.04], nice=False)),
        y2="y2:Q",
        color=alt.Color("U:Q", title="utility", scale=alt.Scale(scheme="viridis")),
    )
    .properties(width=150, height=150)
    .facet(column=alt.Column("utility:N", title=None), row=alt.Row("alpha:N", title=None))
    .properties(title="The utility of a row, by its two values")
)
chart
