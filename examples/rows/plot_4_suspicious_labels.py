"""
Which labels may be wrong?
==========================

An entropy does not look at a row's own label. The *agreement* does: the probability that models which have
not seen the row gave to its label.
"""

# %%
# Loans whose labels are turned round in one row of twenty.
import altair as alt
import numpy as np
import pandas as pd
from sklearn.metrics import precision_recall_curve

from fado import OutOfBagEntropy

rng = np.random.default_rng(0)
n = 6_000
X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["debt", "income", "years", "savings"])
sex = np.where(X["years"] + rng.normal(size=n) > 0, "f", "m")
truth = 2 * X["debt"] - X["income"] + 0.5 * rng.normal(size=n) > 0.5
wrong = rng.random(n) < 0.05
valuation = OutOfBagEntropy(random_state=0).fit(X, truth ^ wrong, sensitive_features={"sex": sex}).valuation_

# %%
# Rows of least agreement are looked at first. How many of them are really wrong?
curves = []
for name, score in {"agreement": 1 - valuation.agreement["y"], "entropy": valuation["y"]}.items():
    precision, recall, _ = precision_recall_curve(wrong, score)
    curves.append(pd.DataFrame({"precision": precision, "recall": recall, "sorted by": name})[:: n // 300])
chart = (
    alt.Chart(pd.concat(curves))
    .mark_line()
    .encode(
        x=alt.X("recall", title="share of the wrong labels that is found"),
        y=alt.Y("precision", title="share of the found that is wrong"),
        color="sorted by",
    )
    .properties(width=420, height=260)
)
chart
