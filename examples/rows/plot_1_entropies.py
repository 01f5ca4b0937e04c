"""
What rows teach, and what they give away
========================================

Entropies of models that have not seen a row: how unsure they are of its target, and of its group.
"""

# %%
# The models of the group do not see the age, which the group is made of.
from fado import OutOfBagEntropy, explore
from fado.datasets import make_account_fraud

X = make_account_fraud(10_000, variant="II", random_state=0).drop(columns="month")
y, old = X.pop("fraud_bool"), X["customer_age"] >= 50
valuator = OutOfBagEntropy(z_exclude=["customer_age"], random_state=0)
valuation = valuator.fit(X, y, sensitive_features={"old": old}).valuation_
print(valuation.values.describe().round(3))

# %%
# The plane of both values. Rows on the right still teach something of the target, rows above do not tell
# which group they are of.
seen = explore(X, y, sensitive_features={"old": old}, valuation=valuation, retrain=0)
chart = seen.chart("plane")
chart

# %%
# How the values lie in each group and label.
chart_of_values = seen.chart("values")
chart_of_values
