"""
What are next month's rows worth?
=================================

Models that are kept value rows that were not there, before their labels are known.
"""

# %%
# Six months teach, the seventh is new.
import altair as alt
import pandas as pd

from fado import OutOfBagEntropy
from fado.datasets import make_account_fraud

frame = make_account_fraud(10_000, random_state=0)
y, old = frame["fraud_bool"], frame["customer_age"] >= 50
X = frame.drop(columns=["fraud_bool", "month"])
learnt, new = frame["month"] < 6, frame["month"] == 6
valuator = OutOfBagEntropy(z_exclude=["customer_age"], keep_models=True, random_state=0)
valuator.fit(X[learnt], y[learnt], sensitive_features={"old": old[learnt]})
valuation = valuator.value(X[new])
print(valuator.models_)

# %%
# Where the new rows' doubt comes from: noise that no model could lift, or models that disagree.
told = pd.DataFrame({"entropy": valuation["old"], "epistemic part": valuation.epistemic["old"]})
chart = (
    alt.Chart(told)
    .mark_point(opacity=0.4, size=15)
    .encode(
        x=alt.X("entropy", title="entropy of the group"),
        y=alt.Y("epistemic part", title="part in which models disagree"),
    )
    .properties(width=420, height=260)
)
chart

# %%
# Once labels have come, the agreement tells which of them nobody saw coming.
labelled = valuator.value(X[new], y[new], sensitive_features={"old": old[new]})
print(y[labelled.agreement["y"].nsmallest(5).index])
