"""
Which rows make the model unfair?
=================================

``TreeInfluence`` estimates what each row does to a LightGBM model: by how much its weight moves the
true-positive rate and the ratio between groups. ``explore`` then trains models without the worst rows, and
measures on rows that had no part in the search what that changes.
"""

# %%
# A row's value is an estimate. It says where to look.
from lightgbm import LGBMClassifier

from fado import TreeInfluence, explore
from fado.datasets import make_account_fraud

X = make_account_fraud(20_000, variant="II", random_state=0).drop(columns="month")
y, old = X.pop("fraud_bool"), X["customer_age"] >= 50
X = X.astype(dict.fromkeys(X.select_dtypes(exclude="number"), "category"))
classifier = LGBMClassifier(n_estimators=50, learning_rate=0.05, num_leaves=15, verbosity=-1)
effects = TreeInfluence(classifier, random_state=0).fit(X, y, sensitive_features={"old": old}).valuation_

# %%
# Sums of effects by group and label: frauds of older applicants push the ratio down.
seen = explore(X, y, sensitive_features={"old": old}, valuation=effects, estimator=classifier, retrain=60)
chart = seen.chart("effects")
chart

# %%
# The most harmful 2, 5 and 10 % of the rows are removed, at most half of those of any group and label, and
# the model is trained again. The bars are 95 % intervals of the measured change.
chart_of_removal = seen.chart("removal")
chart_of_removal

# %%
# The same as numbers, and what the page says first.
found = seen.effects("old")
print(found["curve"].round(3).to_string())
for answer in seen.to_dict()["attributes"][0]["answers"]:
    print(f"{answer['title']}: {answer['sentence']}")
