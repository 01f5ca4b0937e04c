"""
Positive rates before and after sampling
========================================

``UtilityAwarePrevalenceSampler`` drops negatives of least utility from groups of a low positive rate, until
the rates match. Positives all stay.
"""

# %%
# Older applicants commit fraud more often in these data.
import altair as alt
import pandas as pd

from fado import LinearUtility, OutOfBagEntropy, UtilityAwarePrevalenceSampler
from fado.datasets import make_account_fraud

X = make_account_fraud(10_000, random_state=0).drop(columns="month")
y, old = X.pop("fraud_bool"), (X["customer_age"] >= 50).rename("old")
valuator = OutOfBagEntropy(z_exclude=["customer_age"], random_state=0)
valuation = valuator.fit(X, y, sensitive_features=old).valuation_

# %%
# ``strength`` goes a part of the way: 0 leaves the rates, 1 makes them equal.
found = []
for strength in (0.0, 0.25, 0.5, 0.75, 1.0):
    sampler = UtilityAwarePrevalenceSampler(LinearUtility(alpha=0.5), strength=strength, random_state=0)
    rows = sampler.fit(X, y, sensitive_features=old, valuation=valuation).sample_indices_
    rates = y.iloc[rows].groupby(old.iloc[rows]).mean()
    for group, rate in rates.items():
        name = "50 or older" if group else "under 50"
        found.append({"strength": strength, "group": name, "positive rate": rate, "rows kept": len(rows)})
found = pd.DataFrame(found)
print(found.pivot_table(index=["strength", "rows kept"], columns="group", values="positive rate").round(4))

# %%
chart = (
    alt.Chart(found)
    .mark_line(point=True)
    .encode(x="strength:Q", y=alt.Y("positive rate:Q", axis=alt.Axis(format=".1%")), color="group:N")
    .properties(width=420, height=260)
)
chart
