"""
Shapley values of neighbours
============================

``KNNShapley`` computes exactly what each row contributes to a nearest-neighbour model. Most rows with a
wrong label have negative values.
"""

# %%
# Two clouds of points. One label in ten is wrong.
import altair as alt
import numpy as np
import pandas as pd

from fado import KNNShapley

rng = np.random.default_rng(0)
truth = rng.random(600) < 0.5
X = pd.DataFrame(rng.normal(size=(600, 2)) + 1.5 * truth[:, None], columns=["income", "savings"])
group = np.where(rng.random(600) < 0.4, "a", "b")
wrong = rng.random(600) < 0.1
y = truth ^ wrong

# %%
# Each row is valued by rows of other folds.
valuator = KNNShapley(n_neighbors=5, random_state=0)
valuation = valuator.fit(X, y, sensitive_features={"group": group}).valuation_
points = X.assign(value=valuation["y"], label=np.where(wrong, "wrong", "right"))
print(points.groupby("label")["value"].describe().round(5))

# %%
# Dark rows harm the model, bright rows help it. Crosses are wrong labels.
limit = float(np.abs(points["value"]).quantile(0.95))
chart = (
    alt.Chart(points)
    .mark_point(filled=True, size=70, opacity=1)
    .encode(
        x="income",
        y="savings",
        shape=alt.Shape("label", scale=alt.Scale(domain=["right", "wrong"], range=["circle", "cross"])),
        color=alt.Color("value", scale=alt.Scale(scheme="viridis", domain=[-limit, limit], clamp=True)),
    )
    .properties(width=420, height=320, title="Rows by their Shapley value")
)
chart
