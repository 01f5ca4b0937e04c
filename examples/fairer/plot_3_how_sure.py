"""
How sure is a ratio?
====================

A ratio on some thousand rows has a wide interval. ``evaluate`` gives it, and ``by_group`` the
rates behind it.
"""

# %%
# One model, measured on more and more of the rows that it has not seen.
import altair as alt
import pandas as pd
from lightgbm import LGBMClassifier

from fado.datasets import make_account_fraud
from fado.metrics import by_group, evaluate

X = make_account_fraud(60_000, random_state=0).drop(columns="month")
y, old = X.pop("fraud_bool"), (X["customer_age"] >= 50).rename("50 or older")
X = X.select_dtypes("number")
train = slice(0, 20_000)
model = LGBMClassifier(n_estimators=40, num_leaves=8, verbosity=-1).fit(X[train], y[train])
scores = model.predict_proba(X)[:, 1]

found = []
for n_rows in (2_500, 5_000, 10_000, 20_000, 40_000):
    rows = slice(20_000, 20_000 + n_rows)
    validated = evaluate(y[rows], scores[rows], sensitive_features=old[rows], n_boot=200, random_state=0)
    found.append({"rows": n_rows, **validated})
found = pd.DataFrame(found)

# %%
# The bars are 95 % intervals, the dashed line is a common one to ask for.
axes = alt.Chart(found).encode(x=alt.X("rows:O", title="validation rows", axis=alt.Axis(labelAngle=0)))
bars = axes.mark_rule(size=3).encode(y=alt.Y("fpr_ratio_low", title="ratio of FPR"), y2="fpr_ratio_high")
points = axes.mark_point(filled=True, size=90).encode(y="fpr_ratio")
line = alt.Chart().mark_rule(strokeDash=[4, 4]).encode(y=alt.datum(0.8))
chart = alt.layer(line, bars, points).properties(width=420, height=260)
chart

# %%
# The rates of each group on all validation rows, at a false-positive rate of 5 %.
print(by_group(y[20_000:], scores[20_000:], sensitive_features=old[20_000:], max_fpr=0.05).round(3))
