"""
How sure is a ratio?
====================

On a few thousand rows a ratio has a wide interval. ``evaluate`` computes it. ``by_group`` shows the rates of
each group.
"""

# %%
# One model, measured on more and more rows that it was not trained on.
import altair as alt
import pandas as pd
from lightgbm import LGBMClassifier

from fado.datasets import make_account_fraud
from fado.metrics import by_group, evaluate

X = make_account_fraud(60_000, random_state=0).drop(columns="month")
y = X.pop("fraud_bool")
age = (X.pop("customer_age") >= 50).map({True: "50 and over", False: "under 50"}).rename("age")
X = X.select_dtypes("number")
train = slice(0, 20_000)
model = LGBMClassifier(n_estimators=40, num_leaves=8, verbosity=-1).fit(X[train], y[train])
scores = model.predict_proba(X)[:, 1]

found = []
for n_rows in (5_000, 10_000, 20_000, 40_000):
    rows = slice(20_000, 20_000 + n_rows)
    metrics = evaluate(y[rows], scores[rows], sensitive_features=age[rows], n_boot=200, random_state=0)
    found.append({"rows": f"{n_rows:,}", "order": n_rows, **metrics})
found = pd.DataFrame(found)

# %%
# The bars are 95 % intervals. The dashed line is a ratio of 0.8.
axes = alt.Chart(found).encode(
    x=alt.X("rows:O", sort=alt.SortField("order"), title="test rows", axis=alt.Axis(labelAngle=0))
)
limits = alt.Scale(domain=[0, 1])
bars = axes.mark_rule(size=3).encode(
    y=alt.Y("fpr_ratio_low", title="ratio of false-positive rates", scale=limits), y2="fpr_ratio_high"
)
points = axes.mark_point(filled=True, size=90, opacity=1).encode(y="fpr_ratio")
line = alt.Chart().mark_rule(strokeDash=[4, 4]).encode(y=alt.datum(0.8))
chart = alt.layer(line, bars, points).properties(
    width=420, height=260, title="The same model's ratio, with its 95 % interval, on more and more rows"
)
chart

# %%
# The rates of each group on all test rows, with a false-positive rate of 5 % in total.
rates = by_group(y[20_000:], scores[20_000:], sensitive_features=age[20_000:], max_fpr=0.05)
print(rates[["rows", "fpr", "fpr_low", "fpr_high", "tpr", "tpr_low", "tpr_high"]].round(3).to_string())
