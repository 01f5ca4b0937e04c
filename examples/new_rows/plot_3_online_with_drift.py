"""
Rows in batches, and a word when they change
============================================

``OnlineEntropy`` values a batch before its labels are known, learns it after, and tells drift.
"""

# %%
# Loans by the month. In month 5 the rule by which people pay late turns round.
import warnings

import altair as alt
import numpy as np
import pandas as pd

from fado import OnlineEntropy


def loans(month, n=600):
    """Make the loans of a month."""
    rng = np.random.default_rng(month)
    old = rng.random(n) < 0.3
    X = pd.DataFrame({"income": rng.lognormal(3, 0.4, n), "debt": rng.lognormal(2, 0.6, n)})
    X["years"] = rng.gamma(np.where(old, 6, 3))
    late = X["debt"] / X["income"] * rng.lognormal(0, 0.5, n) > 0.4
    return X, late ^ (month >= 5), {"old": old}


# %%
# Month by month: value, and once the labels have come, learn.
online = OnlineEntropy(random_state=0)
for month in range(8):
    X, late, old = loans(month)
    valuation = online.value(X)
    with warnings.catch_warnings(record=True, action="always") as caught:
        online.learn(X, late, sensitive_features=old)
    for warning in caught:
        print(f"month {month}: {warning.message}")
        online.forget(len(X))  # rows from before no longer hold

# %%
# How much models doubted the labels of each batch, beside what was to be expected.
told = online.drift_.query("variable == 'y'")[["batch", "loss", "expected"]]
chart = (
    alt.Chart(told.melt("batch", var_name="doubt"))
    .mark_line(point=True)
    .encode(
        x=alt.X("batch:O", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title="mean doubt of the labels"),
        color="doubt:N",
    )
    .properties(width=420, height=240)
)
chart
