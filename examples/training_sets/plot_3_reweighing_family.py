"""
One family of weights
=====================

``floor`` and ``prevalence_correction`` lead from weights by utility to the weights of Kamiran and Calders.
"""

# %%
# Loans. Older people default less often.
import altair as alt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from fado import InBagEntropy, LinearUtility, UtilityAwareReweigher

rng = np.random.default_rng(0)
n = 3_000
age = pd.Series(rng.choice(["under 50", "50 and over"], size=n, p=[0.7, 0.3]), name="age")
older = age == "50 and over"
X = pd.DataFrame({"debts": rng.normal(size=n), "years at address": rng.normal(size=n) + 2 * older})
default = pd.Series(rng.random(n) < 1 / (1 + np.exp(1.0 - X["debts"] + 1.5 * older)))
valuation = InBagEntropy(LogisticRegression()).fit(X, default, sensitive_features=age).valuation_

# %%
# With a correction of 0, the utilities alone set the rates. With 1 the rates are equal. Beyond 1 the order
# of the groups changes.
found = []
for floor in (0.0, 0.5, 1.0):
    for correction in np.linspace(0, 2, 9):
        reweigher = UtilityAwareReweigher(LinearUtility(0.5), floor=floor, prevalence_correction=correction)
        weights = reweigher.fit(X, default, sensitive_features=age, valuation=valuation).sample_weight_
        for group in age.unique():
            own = (age == group).to_numpy()
            rate = np.average(default[own], weights=weights[own])
            found.append({"floor": f"floor {floor}", "correction": correction, "age": group, "rate": rate})

# %%
# With a floor of 1, utilities have no influence. With a correction of 1 as well, this is ``Reweigher``.
chart = (
    alt.Chart(pd.DataFrame(found))
    .mark_line(point=True)
    .encode(x="correction:Q", y=alt.Y("rate:Q", title="weighted positive rate"), color="age:N")
    .properties(width=180, height=220)
    .facet(column=alt.Column("floor:N", title=None))
    .properties(title="Weighted positive rates of the training set")
)
chart
