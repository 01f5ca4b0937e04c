"""
Compare interventions in an experiment
======================================

The same models are trained after every intervention, each with a false-positive rate of 5 %. RPS and RW are
random prevalence sampling and reweighing. UAPS and UAR do the same with the values of rows.
"""

# %%
# A store keeps every result. If the run is killed, the next run continues it.
from tempfile import TemporaryDirectory

import altair as alt

from fado.experiment import Experiment

experiment = Experiment(
    {
        "data": {
            "generator": "account_fraud",
            "rows": 20_000,
            "variant": "II",
            **{"target": "fraud_bool", "protected": "customer_age>=50"},
            "drop": ["month", "customer_age"],  # age defines the groups and is not a feature
        },
        "split": {"method": "random", "train": 0.5, "validation": 0.25, "test": 0.25},
        "valuation": {"bags": 5},
        "interventions": {"uar": {"alphas": [0.5]}, "uaps": {"alphas": [0.5]}, "aimed": True},
        "models": {"count": 6, "space": {"n_estimators": {"log_uniform": [10, 40]}, "num_leaves": 7}},
    }
)
with TemporaryDirectory() as folder:
    results = experiment.run(f"{folder}/store", n_jobs=1)
print(results)

# %%
# For each intervention, validation data select the model with the highest true-positive rate among those with
# a ratio of at least 0.8. An intervention without such a model is not in the table.
chosen = results.select("fpr_ratio", at_least=0.8)
print(
    chosen[["intervention", "validation_fpr_ratio", "test_tpr", "test_fpr_ratio"]]
    .round(3)
    .to_string(index=False)
)

# %%
# Every model by its ratio on test data. Diamonds are the selected models; colour is the true-positive rate.
encoding = {
    "x": alt.X("test_fpr_ratio", title="ratio of false-positive rates", scale=alt.Scale(domain=[0, 1])),
    "y": alt.Y("intervention", title=None),
    "color": alt.Color("test_tpr", title="true-positive rate", scale=alt.Scale(scheme="viridis")),
}
line = alt.Chart().mark_rule(strokeDash=[4, 4]).encode(x=alt.datum(0.8))
models = alt.Chart(results.frame).mark_tick(thickness=3, size=22).encode(**encoding)
diamond = {"shape": "diamond", "filled": True, "size": 220, "opacity": 1, "stroke": "black"}
selected = alt.Chart(chosen).mark_point(**diamond).encode(**encoding)
title = "Models after each intervention, on test data"
chart = alt.layer(line, models, selected).properties(width=420, height=220, title=title)
chart
