"""
How uncertain are models about each row?
========================================

``OutOfBagEntropy`` gives every row two values: how uncertain models are about its label, and about its
group. The models were not trained on the row.
"""

# %%
# Models of the group do not see the age, which defines the group.
import altair as alt
import numpy as np
import pandas as pd

from fado import OutOfBagEntropy
from fado.datasets import make_account_fraud

X = make_account_fraud(20_000, variant="II", random_state=0).drop(columns="month")
y = X.pop("fraud_bool")
age = (X["customer_age"] >= 50).map({True: "50 and over", False: "under 50"}).rename("age")
valuator = OutOfBagEntropy(z_exclude=["customer_age"], random_state=0)
valuation = valuator.fit(X, y, sensitive_features=age).valuation_
print(valuation.values.describe().round(3))

# %%
# Sort the rows by ``v_y``, the value of the label, and cut them into ten equal parts.
tenth = np.ceil(valuation.values["y"].rank(method="first") / len(X) * 10).astype(int)
found = pd.DataFrame({"tenth": tenth, "age": age, "fraud": y})
rates = found.groupby(["tenth", "age"], as_index=False)["fraud"].mean()
print(rates.pivot_table(index="tenth", columns="age", values="fraud").round(3))

# %%
# Most frauds are in the last part: models are uncertain about the rows that may be frauds, and certain
# about all others. A high value is not an error. It marks rows from which models can still learn.
chart = (
    alt.Chart(rates)
    .mark_bar()
    .encode(
        x=alt.X("tenth:O", title="tenth of the rows, by v_y", axis=alt.Axis(labelAngle=0)),
        xOffset="age",
        y=alt.Y("fraud", title="share of frauds", axis=alt.Axis(format="%")),
        color="age",
    )
    .properties(width=460, height=240, title="Frauds among rows of low (1) and high (10) uncertainty")
)
chart
