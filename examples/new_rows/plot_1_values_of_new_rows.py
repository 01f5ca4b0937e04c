"""
Value next month's rows
=======================

Models that were kept can value new rows before their labels are known.
"""

# %%
# Train on months 1 to 6. Month 7 is new.
import altair as alt
import pandas as pd

from fado import OutOfBagEntropy
from fado.datasets import make_account_fraud

frame = make_account_fraud(20_000, random_state=0)
month = frame["month"] + 1  # the data count from 0
y = frame["fraud_bool"]
age = (frame["customer_age"] >= 50).map({True: "50 and over", False: "under 50"}).rename("age")
X = frame.drop(columns=["fraud_bool", "month"])
old, new = month <= 6, month == 7
settings = {"z_exclude": ["customer_age"], "random_state": 0}
valuator = OutOfBagEntropy(keep_models=True, **settings)
valuator.fit(X[old], y[old], sensitive_features=age[old])
before = valuator.value(X[new])
print(valuator.models_)

# %%
# Later the labels are known. A full run on all seven months takes longer. Does it value the new rows alike?
seven = month <= 7
full = OutOfBagEntropy(**settings).fit(X[seven], y[seven], sensitive_features=age[seven]).valuation_
shown = pd.DataFrame({"kept models": before["age"], "full run": full.values.loc[X.index[new], "age"]})
print(f"rank correlation: {shown.corr('spearman').iloc[0, 1]:.3f}")

# %%
# Each point is a row of month 7. On the dashed line both runs agree.
axes = {"x": alt.X("kept models", title="value from kept models, without labels"), "y": "full run"}
points = alt.Chart(shown).mark_point(opacity=0.3, size=15).encode(**axes)
ends = pd.DataFrame({"kept models": [0, 1], "full run": [0, 1]})
line = alt.Chart(ends).mark_line(strokeDash=[4, 4], color="black").encode(x="kept models", y="full run")
chart = (points + line).properties(width=320, height=300, title="Uncertainty about the age group, month 7")
chart

# %%
# With labels, the agreement shows which labels were a surprise.
labelled = valuator.value(X[new], y[new], sensitive_features=age[new])
print(y[labelled.label_probability["y"].nsmallest(5).index])
