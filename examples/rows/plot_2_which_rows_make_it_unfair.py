"""
Which rows make the model unfair?
=================================

``TreeInfluence`` estimates what each row does to a LightGBM model: how much the ratio between groups
changes if the row gets more weight. ``explore`` then trains models without the most harmful rows, and
measures the change on an untouched test set.
"""

# %%
# A row's value is an estimate. It shows where to look.
import altair as alt
from lightgbm import LGBMClassifier

from fado import TreeInfluence, explore
from fado.datasets import make_account_fraud

X = make_account_fraud(20_000, variant="II", random_state=0).drop(columns="month")
y = X.pop("fraud_bool")
age = (X.pop("customer_age") >= 50).map({True: "50 and over", False: "under 50"}).rename("age")
X = X.astype(dict.fromkeys(X.select_dtypes(exclude="number"), "category"))
classifier = LGBMClassifier(n_estimators=50, learning_rate=0.05, num_leaves=15, verbosity=-1)
effects = TreeInfluence(classifier, random_state=0).fit(X, y, sensitive_features=age).valuation_

# %%
# Sums of effects by group and label: frauds of people of 50 and over push the ratio down.
sums = effects.values.groupby([age, y.map({0: "honest", 1: "fraud"})])["age"].sum()
sums = sums.rename("effect").reset_index()
bars = (
    alt.Chart(sums)
    .mark_bar()
    .encode(
        x=alt.X("effect", title="sum of effects on the ratio of false-positive rates"),
        y=alt.Y("age", title=None),
        yOffset="fraud_bool",
        color=alt.Color("fraud_bool", title="label"),
    )
)
chart = bars.properties(width=420, height=160, title="Which rows raise the ratio, and which lower it")
chart

# %%
# The most harmful 2, 5 and 10 % of the rows are removed, at most half of those of any group and label. The
# model is trained again. The bars are 95 % intervals of the measured change. The last column is the price:
# the change of the true-positive rate.
seen = explore(X, y, sensitive_features=age, valuation=effects, estimator=classifier, retrain=60)
curve = seen.effects("age")["curve"].rename(columns={"measured_ratio_change": "change"})
curve["low"] = curve["change"] - 1.96 * curve["measured_ratio_error"]
curve["high"] = curve["change"] + 1.96 * curve["measured_ratio_error"]
print(curve[["share", "rows", "change", "low", "high", "measured_performance_change"]].round(3).to_string())
axes = alt.Chart(curve).encode(
    x=alt.X("share:O", title="rows removed", axis=alt.Axis(format=".0%", labelAngle=0))
)
ends = axes.mark_rule(size=3).encode(y=alt.Y("low", title="change of the ratio"), y2="high")
points = axes.mark_point(filled=True, size=90, opacity=1).encode(y="change")
title = "Measured change of the ratio after removing harmful rows"
chart_of_removal = (ends + points).properties(width=420, height=220, title=title)
chart_of_removal
