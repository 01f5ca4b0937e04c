"""
Positive rates before and after sampling
========================================

``UtilityAwarePrevalenceSampler`` drops negatives of low utility from groups with a low positive rate, until
the rates are equal. It keeps all positives.
"""

# %%
# In these data, older applicants commit fraud more often.
import altair as alt
import pandas as pd

from fado import LinearUtility, OutOfBagEntropy, UtilityAwarePrevalenceSampler
from fado.datasets import make_account_fraud

X = make_account_fraud(10_000, random_state=0).drop(columns="month")
y = X.pop("fraud_bool")
age = (X["customer_age"] >= 50).map({True: "50 and over", False: "under 50"}).rename("age")
valuator = OutOfBagEntropy(z_exclude=["customer_age"], random_state=0)
valuation = valuator.fit(X, y, sensitive_features=age).valuation_

# %%
# A ``strength`` of 0 leaves the rates as they are. A strength of 1 makes them equal.
found = []
for strength in (0.0, 0.25, 0.5, 0.75, 1.0):
    sampler = UtilityAwarePrevalenceSampler(LinearUtility(alpha=0.5), strength=strength, random_state=0)
    rows = sampler.fit(X, y, sensitive_features=age, valuation=valuation).sample_indices_
    for group, rate in y.iloc[rows].groupby(age.iloc[rows]).mean().items():
        found.append({"strength": strength, "age": group, "rate": rate, "rows kept": len(rows)})
found = pd.DataFrame(found)
print(found.pivot_table(index=["strength", "rows kept"], columns="age", values="rate").round(4))

# %%
chart = (
    alt.Chart(found)
    .mark_line(point=True)
    .encode(
        x="strength:Q", y=alt.Y("rate:Q", title="positive rate", axis=alt.Axis(format=".1%")), color="age:N"
    )
    .properties(width=420, height=260, title="Positive rates in the sampled training set")
)
chart
