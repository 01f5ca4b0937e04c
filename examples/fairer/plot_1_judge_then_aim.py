"""
Judge the untouched model, then aim
===================================

Older applicants' honest applications are refused more often than others'. Weights bring the ratio of
false-positive rates to 0.8.
"""

# %%
# Half of the rows teach, a quarter judges, a quarter is for the end.
import altair as alt
import numpy as np
from lightgbm import LGBMClassifier

from fado import AimedEstimator
from fado.datasets import make_account_fraud
from fado.metrics import evaluate

X = make_account_fraud(20_000, variant="II", random_state=0).drop(columns="month")
y, old = X.pop("fraud_bool"), X["customer_age"] >= 50
part = np.random.default_rng(0).choice(["train", "judge", "test"], size=len(X), p=[0.5, 0.25, 0.25])
train, judge, test = (part == name for name in ("train", "judge", "test"))

# %%
# ``path_`` has a row for every fit. The first is the classifier as it is.
classifier = LGBMClassifier(n_estimators=50, learning_rate=0.05, num_leaves=15, verbosity=-1)
model = AimedEstimator(classifier, ratio="fpr_ratio", at_least=0.8, max_fpr=0.05, random_state=0)
model.fit(X[train], y[train], sensitive_features=old[train], judge=(X[judge], y[judge], old[judge]))
print(model.path_[["strength", "tpr", "ratio", "reached"]].round(3))

# %%
# The way it went, on the rows that judge. The dashed line is the one that was asked for.
path = model.path_.assign(fit=range(len(model.path_)))
axes = alt.Chart(path).encode(
    x=alt.X("ratio", title="ratio of false-positive rates", scale=alt.Scale(domain=[0, 1])),
    y=alt.Y("tpr", title="true-positive rate", scale=alt.Scale(zero=False)),
)
line = alt.Chart().mark_rule(strokeDash=[4, 4]).encode(x=alt.datum(0.8))
points = axes.mark_point(filled=True, size=90).encode(color=alt.Color("reached:N", title="line reached"))
numbers = axes.mark_text(dy=-12).encode(text="fit")
chart = alt.layer(line, points, numbers).properties(width=420, height=260)
chart

# %%
# Rows that had no part in anything have the last word. No group is needed to decide, only to judge.
scores = model.predict_proba(X[test])[:, 1]
judged = evaluate(y[test], scores, sensitive_features=old[test], max_fpr=0.05, n_boot=200, random_state=0)
print({name: round(judged[name], 2) for name in ("tpr", "fpr_ratio", "fpr_ratio_low", "fpr_ratio_high")})
