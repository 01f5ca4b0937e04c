"""
Shapley values of neighbours
============================

What is each row's fair share in a nearest-neighbour model? ``KNNShapley`` gives it exactly. Most rows
with a wrong label have negative shares.
"""

# %%
# Two clouds of points. A tenth of the labels is wrong.
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
# Every row is measured by neighbours that are not of its own fold.
valuation = (
    KNNShapley(n_neighbors=5, random_state=0).fit(X, y, sensitive_features={"group": group}).valuation_
)
points = X.assign(value=valuation["y"], label=np.where(wrong, "wrong", "right"))
print(points.groupby("label")["value"].describe().round(5))

# %%
# Blue rows help the model, red rows harm it. Crosses are wrong labels.
limit = float(np.abs(points["value"]).quantile(0.95))
chart = (
    alt.Chart(points)
    .mark_point(filled=True, size=70, opacity=1)
    .encode(
        x="income",
        y="savings",
        shape=alt.Shape("label", scale=alt.Scale(domain=["right", "wrong"], range=["circle", "cross"])),
        color=alt.Color("value", scale=alt.Scale(scheme="redblue", domain=[-limit, limit], clamp=True)),
    )
    .properties(width=420, height=320)
)
chart
