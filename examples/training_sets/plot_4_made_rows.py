"""
Rows that are made
==================

Where a group has few positives, ``UtilityAwareOverSampler`` makes more, entry by entry, from rows of the
same label.
"""

# %%
# Positives are made in the group of the lower rate until the rates match.
import altair as alt
import numpy as np
import pandas as pd

from fado import OutOfBagEntropy, UtilityAwareOverSampler
from fado.datasets import make_account_fraud

frame = make_account_fraud(8_000, random_state=0)
y, old = frame["fraud_bool"], (frame["customer_age"] >= 50).rename("old")
X = frame[["customer_age", "income", "credit_risk_score", "name_email_similarity", "housing_status"]]
valuator = OutOfBagEntropy(z_exclude=["customer_age"], random_state=0)
sampler = UtilityAwareOverSampler(valuator=valuator, random_state=0)
X2, y2 = sampler.fit_resample(X, y, sensitive_features=old)
made, old2 = sampler.synthetic_, sampler.sensitive_features_
print(f"{made.sum()} rows made")
print(pd.DataFrame({"before": y.groupby(old).mean(), "after": y2.groupby(old2).mean()}).round(4))

# %%
# Do they look like real ones? Frauds of applicants under 50, as they are and as they are made.
frauds = X2[(y2 == 1) & ~old2].assign(row=np.where(made, "made", "real")[(y2 == 1) & ~old2])
chart = (
    alt.Chart(frauds)
    .transform_density(
        "credit_risk_score", groupby=["row"], as_=["credit_risk_score", "density"], extent=[-150, 400]
    )
    .mark_area(opacity=0.45)
    .encode(x="credit_risk_score:Q", y=alt.Y("density:Q", stack=None), color="row:N")
    .properties(width=420, height=240)
)
chart
