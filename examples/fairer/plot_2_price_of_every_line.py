"""
The price of every line
=======================

``find_frontier`` finds models for every line in so many fits, and keeps the best of them.
"""

# %%
# Sixteen fits of small LightGBM models. Age makes the groups, and is no feature.
from fado import find_frontier
from fado.datasets import make_account_fraud

X = make_account_fraud(20_000, variant="II", random_state=0).drop(columns="month")
y, old = X.pop("fraud_bool"), X.pop("customer_age") >= 50
space = {"n_estimators": [30, 60], "num_leaves": [7, 15], "learning_rate": 0.1}
frontier = find_frontier(
    X, y, sensitive_features=old, ratio="fpr_ratio", max_fits=16, space=space, random_state=0
)
print(frontier)

# %%
# Every model by its ratio and its true-positive rate on test rows.
chart = frontier.results.plot("fpr_ratio")
chart

# %%
# The best model above 0.8. Validation rows chose it, test rows had no part in that.
best = frontier.best(at_least=0.8)
for part, measured in best.facts_.measured.items():
    print(f"{part}: TPR {measured['tpr']:.2f}, ratio {measured['fpr_ratio']:.2f}")
