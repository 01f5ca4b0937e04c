"""
One family of weights
=====================

``floor`` and ``prevalence_correction`` join weights by utility to those of Kamiran and Calders.
"""

# %%
# Loans on which older people default less often.
import altair as alt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from fado import InBagEntropy, LinearUtility, UtilityAwareReweigher

rng = np.random.default_rng(0)
n = 3_000
age = pd.Series(rng.choice(["under 50", "50 or over"], size=n, p=[0.7, 0.3]), name="age")
older = age == "50 or over"
X = pd.DataFrame({"debts": rng.normal(size=n), "years at address": rng.normal(size=n) + 2 * older})
default = pd.Series(rng.random(n) < 1 / (1 + np.exp(1.0 - X["debts"] + 1.5 * older)))
valuation = InBagEntropy(LogisticRegression()).fit(X, default, sensitive_features=age).valuation_

# %%
# A correction of 0 leaves the rates as utilities make them, 1 makes them equal, more goes beyond.
found = []
for floor in (0.0, 0.5, 1.0):
    for correction in np.linspace(0, 2, 9):
        reweigher = UtilityAwareReweigher(LinearUtility(0.5), floor=floor, prevalence_correction=correction)
        weights = reweigher.fit(X, default, sensitive_features=age, valuation=valuation).sample_weight_
        for group in age.unique():
            own = (age == group).to_numpy()
            rate = np.average(default[own], weights=weights[own])
            found.append({"floor": floor, "correction": correction, "group": group, "rate": rate})

# %%
# Where a floor is 1, utilities play no part: at a correction of 1 that is ``Reweigher``.
chart = (
    alt.Chart(pd.DataFrame(found))
    .mark_line(point=True)
    .encode(x="correction:Q", y=alt.Y("rate:Q", title="weighted positive rate"), color="group:N")
    .properties(width=200, height=220)
    .facet(column=alt.Column("floor:N"))
)
chart
