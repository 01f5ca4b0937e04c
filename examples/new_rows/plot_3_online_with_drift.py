"""
Rows in batches, and drift
==========================

``OnlineEntropy`` values a batch before its labels are known, learns from it afterwards, and warns if rows
change.
"""

# %%
# Loans by month. In month 6 the rule by which people pay late is reversed.
import warnings

import altair as alt
import numpy as np
import pandas as pd

from fado import OnlineEntropy


def loans(month, n=600):
    """Make the loans of a month."""
    rng = np.random.default_rng(month)
    older = rng.random(n) < 0.3
    X = pd.DataFrame({"income": rng.lognormal(3, 0.4, n), "debt": rng.lognormal(2, 0.6, n)})
    X["years"] = rng.gamma(np.where(older, 6, 3))
    late = X["debt"] / X["income"] * rng.lognormal(0, 0.5, n) > 0.4
    return X, late ^ (month >= 6), {"age": np.where(older, "50 and over", "under 50")}


# %%
# Every month: value the rows, and learn when the labels are known.
online = OnlineEntropy(random_state=0)
for month in range(1, 9):
    X, late, age = loans(month)
    valuation = online.value(X)
    with warnings.catch_warnings(record=True, action="always") as caught:
        online.learn(X, late, sensitive_features=age)
    for warning in caught:
        print(f"month {month}: {warning.message}")
        online.forget(len(X))  # earlier rows no longer hold

# %%
# The loss of the models on each month's labels, and the loss that they expected.
loss = online.drift_.query("variable == 'y'")[["batch", "loss", "expected"]]
chart = (
    alt.Chart(loss.rename(columns={"loss": "measured"}).melt("batch", var_name="loss"))
    .mark_line(point=True)
    .encode(
        x=alt.X("batch:O", title="month", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title="mean loss"),
        color=alt.Color("loss:N", sort=["measured", "expected"]),
    )
    .properties(width=420, height=240, title="Drift in month 6: the loss is far above the expected one")
)
chart
