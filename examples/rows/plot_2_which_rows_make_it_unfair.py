"""
Which rows make the model unfair?
=================================

``TreeInfluence`` says what each row does to a LightGBM model: by how much its weight moves the true-positive
rate and the ratio between groups.
"""

# %%
# Removing rows changes the ratio by about minus the sum of their values.
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
seen = explore(X, y, sensitive_features={"old": old}, valuation=effects, retrain=0)
chart = seen.chart("effects")
chart

# %%
# Slices of the table whose removal would raise the ratio most.
found = seen.effects("old")
print(found["slices"].head(3).to_string())

# %%
# What is foretold as more and more of the most harmful rows go. Sums hold for few rows; beyond a ratio of 1
# the other group leads.
chart_of_removal = seen.chart("removal")
chart_of_removal
