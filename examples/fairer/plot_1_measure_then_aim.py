"""
Measure the untouched model, then aim
=====================================

Honest applicants of 50 and over are refused more often than younger ones. ``AimedEstimator`` changes
decisions until the lower of the two false-positive rates is at least 0.8 of the higher one.
"""

# %%
# Half of the rows are for training, the other half is the test set. Age defines the groups. It is not a
# feature.
import altair as alt
from lightgbm import LGBMClassifier

from fado import AimedEstimator
from fado.datasets import make_account_fraud

X = make_account_fraud(40_000, variant="II", random_state=0).drop(columns="month")
y = X.pop("fraud_bool")
age = (X.pop("customer_age") >= 50).map({True: "50 and over", False: "under 50"}).rename("age")
train, test = slice(0, 20_000), slice(20_000, None)

# %%
# ``path_`` is the whole trade-off. The first row is the classifier without a change. All figures are on rows
# that the models were not trained on.
classifier = LGBMClassifier(n_estimators=40, num_leaves=8, verbosity=-1)
model = AimedEstimator(classifier, ratio="fpr_ratio", at_least=0.8, max_fpr=0.05, random_state=0)
model.fit(X[train], y[train], sensitive_features=age[train])
path = model.path_[["tpr", "ratio", "low", "reached", "chosen"]].round(2)
print(path[path["chosen"] | (path.index % 5 == 0)])

# %%
# The rates of both groups on test data, before and after.
kept = model.to_model(test=(X[test], y[test], age[test]))
rates = kept.rates_.query("part == 'test'")
names = {"fpr": "refused though honest (FPR)", "tpr": "refused frauds (TPR)"}
shown = rates.melt("group", [f"{rate}_{when}" for rate in names for when in ("before", "after")])
shown[["rate", "model"]] = shown["variable"].str.split("_", expand=True)
shown["rate"] = shown["rate"].map(names)
print(rates.drop(columns="part").round(3).to_string(index=False))

# %%
# False-positive rates become similar. True-positive rates hardly change.
chart = (
    alt.Chart(shown)
    .mark_bar()
    .encode(
        x=alt.X("model", sort=["before", "after"], title=None, axis=alt.Axis(labelAngle=0)),
        xOffset="group",
        y=alt.Y("value:Q", title="rate", axis=alt.Axis(format="%")),
        color=alt.Color("group", title="age"),
    )
    .properties(width=200, height=220)
    .facet(alt.Facet("rate", title=None), columns=2)
    .resolve_scale(y="independent")
    .properties(title="Rates by age on test data, before and after aiming")
)
chart
