"""
Which labels may be wrong?
==========================

An entropy does not depend on a row's own label. The *agreement* does: it is the probability that models
give to the label, and the models were not trained on the row.
"""

# %%
# Loans. One label in twenty is flipped.
import altair as alt
import numpy as np
import pandas as pd
from sklearn.metrics import precision_recall_curve

from fado import OutOfBagEntropy

rng = np.random.default_rng(0)
n = 6_000
X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["debt", "income", "years", "savings"])
sex = np.where(X["years"] + rng.normal(size=n) > 0, "women", "men")
truth = 2 * X["debt"] - X["income"] + 0.5 * rng.normal(size=n) > 0.5
wrong = rng.random(n) < 0.05
valuation = OutOfBagEntropy(random_state=0).fit(X, truth ^ wrong, sensitive_features={"sex": sex}).valuation_

# %%
# Inspect the rows with the lowest agreement first. How many of them are wrong?
curves = []
for name, score in {"agreement": 1 - valuation.label_probability["y"], "entropy": valuation["y"]}.items():
    precision, recall, _ = precision_recall_curve(wrong, score)
    curve = pd.DataFrame({"precision": precision, "recall": recall, "sorted by": name})
    curves.append(curve[curve["recall"] > 0.02][:: n // 300])
chart = (
    alt.Chart(pd.concat(curves))
    .mark_line()
    .encode(
        x=alt.X("recall", title="share of the wrong labels that are found (recall)"),
        y=alt.Y(
            "precision", title="share of inspected labels that are wrong", scale=alt.Scale(domain=[0, 1])
        ),
        color="sorted by",
    )
    .properties(width=420, height=260, title="Agreement finds wrong labels, entropy does not")
)
chart
