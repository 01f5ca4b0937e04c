"""
A small experiment: the landscape of interventions
==================================================

The same models after every intervention, at a false-positive rate of 5 %.
"""

# %%
# A store keeps every result. Killed at any moment, a run goes on where it was.
from tempfile import TemporaryDirectory

from fado.experiment import Experiment

experiment = Experiment(
    {
        "data": {
            "generator": "account_fraud",
            "rows": 16_000,
            "variant": "II",
            "target": "fraud_bool",
            "protected": "customer_age>=50",
            "drop": ["month", "customer_age"],  # age makes the groups, and is no feature
        },
        "split": {"method": "random", "train": 0.6, "validation": 0.2, "test": 0.2},
        "valuation": {"bags": 5},
        "interventions": {"uar": {"alphas": [0.5]}, "uaps": {"alphas": [0.5]}, "aimed": True},
        "models": {"count": 3, "space": {"n_estimators": {"log_uniform": [10, 40]}, "num_leaves": 7}},
    }
)
with TemporaryDirectory() as folder:
    results = experiment.run(f"{folder}/store", n_jobs=1)
print(results)

# %%
# Models by their ratio of false-positive rates and their true-positive rate. The frontier is what none beats.
chart = results.plot("fpr_ratio")
chart

# %%
# Per intervention: the best model above the line, chosen on validation rows and told by test rows.
chosen = results.select("fpr_ratio", at_least=0.8)
print(
    chosen[["intervention", "validation_tpr", "test_tpr", "test_fpr_ratio"]].round(3).to_string(index=False)
)
