"""
Make new rows
=============

If a group has few positives, ``UtilityAwareOverSampler`` makes more. It builds them entry by entry from
rows with the same label.
"""

# %%
# Positives are made for the group with the lower rate until the rates are equal.
import altair as alt
import numpy as np
import pandas as pd

from fado import OutOfBagEntropy, UtilityAwareOverSampler
from fado.datasets import make_account_fraud

frame = make_account_fraud(8_000, random_state=0)
y = frame["fraud_bool"]
age = (frame["customer_age"] >= 50).map({True: "50 and over", False: "under 50"}).rename("age")
X = frame[["customer_age", "income", "credit_risk_score", "name_email_similarity", "housing_status"]]
valuator = OutOfBagEntropy(z_exclude=["customer_age"], random_state=0)
sampler = UtilityAwareOverSampler(valuator=valuator, random_state=0)
X2, y2 = sampler.fit_resample(X, y, sensitive_features=age)
made, age2 = sampler.synthetic_, sampler.sensitive_features_
print(f"{made.sum()} rows made")
print(pd.DataFrame({"before": y.groupby(age).mean(), "after": y2.groupby(age2).mean()}).round(4))

# %%
# Are they similar to real rows? Frauds of applicants under 50: real ones, and made ones.
young = ((y2 == 1) & (age2 == "under 50")).to_numpy()
frauds = X2[young].assign(rows=np.where(made, "made", "real")[young])
score = "credit_risk_score"
chart = (
    alt.Chart(frauds)
    .transform_density(score, groupby=["rows"], as_=[score, "density"], extent=[-150, 450])
    .mark_area(opacity=0.5)
    .encode(
        x=alt.X(f"{score}:Q", title="credit risk score"), y=alt.Y("density:Q", stack=None), color="rows:N"
    )
    .properties(width=420, height=240, title="Frauds under 50: the scores of real and of made rows")
)
chart
