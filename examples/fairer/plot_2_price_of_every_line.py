"""
The price of every line
=======================

A line is the smallest ratio that you accept. ``find_frontier`` searches once, and then has a model for every
line.
"""

# %%
# Small LightGBM models, at most 16 fits. Age defines the groups. It is not a feature.
import altair as alt
import numpy as np
import pandas as pd

from fado import find_frontier
from fado.datasets import make_account_fraud

X = make_account_fraud(40_000, variant="II", random_state=0).drop(columns="month")
y = X.pop("fraud_bool")
age = (X.pop("customer_age") >= 50).map({True: "50 and over", False: "under 50"}).rename("age")
space = {"n_estimators": [30, 60], "num_leaves": [7, 15], "learning_rate": 0.1}
frontier = find_frontier(X, y, sensitive_features=age, max_fits=16, space=space, random_state=0)
print(frontier)

# %%
# For every line: the model with the highest true-positive rate whose ratio reaches it on validation data.
rows = []
for line in np.arange(0.5, 1.0, 0.05):
    reached = frontier.frame[frontier.frame["validation_fpr_ratio"] >= line]
    best = reached.loc[reached["validation_tpr"].idxmax()]
    for data in ("validation", "test"):
        rows.append(
            {"line": line, "data": data, "TPR": best[f"{data}_tpr"], "ratio": best[f"{data}_fpr_ratio"]}
        )
found = pd.DataFrame(rows)
print(found.pivot_table(index="line", columns="data", values=["TPR", "ratio"]).round(2))

# %%
# Validation data selected the models, so they reach every line there. On test data, ratios may be above or
# below the line (dashed). The true-positive rate hardly falls.
axes = alt.Chart(found).encode(
    x=alt.X("line", title="line: the ratio asked for", scale=alt.Scale(zero=False))
)
measured = {"price": ("TPR", "true-positive rate"), "kept": ("ratio", "ratio of false-positive rates")}
price, kept = (
    axes.mark_line(point=True)
    .encode(y=alt.Y(name, title=title, scale=alt.Scale(domain=[0, 1])), color="data")
    .properties(width=250, height=240)
    for name, title in measured.values()
)
diagonal = axes.mark_line(strokeDash=[4, 4], color="gray").encode(y=alt.Y("line"))
chart = (price | (diagonal + kept)).properties(
    title="What each line costs, and whether it holds on test data"
)
chart

# %%
# ``best`` trains the model for a line again, and returns it with its threshold and its card.
print(frontier.best(at_least=0.8))
