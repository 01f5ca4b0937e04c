"""
Tables larger than memory
=========================

``value_files`` reads a table from files in parts, within a limit of memory, and writes values as it goes.
Its models are trained on a sample. How large must the sample be?
"""

# %%
# A folder with one file per month. Real files may be a thousand times as large.
from pathlib import Path
from tempfile import TemporaryDirectory

import altair as alt
import pandas as pd
from scipy.stats import spearmanr

import fado
from fado.datasets import make_account_fraud
from fado.valuation import plan_files

folder = TemporaryDirectory()
months = Path(folder.name) / "months"
months.mkdir()
for month, rows in make_account_fraud(12_000, random_state=0).groupby("month"):
    rows.to_parquet(months / f"{month + 1}.parquet", index=False)

# %%
# The plan: what will be done, and in how much memory.
asked = {"target": "fraud_bool", "protected": "customer_age>=50", "drop": ["month"], "n_jobs": 1}
print(plan_files(months, memory="1GB", **asked))

# %%
# If a run is killed, the next call continues it. Here, models are trained on more and more rows.
values = {}
for train_rows in (1_500, 3_000, 6_000, 9_000, 12_000):
    out = Path(folder.name) / f"values_{train_rows}"
    valuation = fado.value_files(months, out=out, train_rows=train_rows, **asked)
    values[train_rows] = {"label": valuation["y"], "age group": valuation["customer_age>=50"]}
folder.cleanup()

# %%
# Compare the ranking of the rows with that from models of all rows. Values of the age group need fewer
# training rows than those of the label, because only 1 % of the rows are frauds.
everything = values.pop(12_000)
found = pd.DataFrame(values).T.rename_axis("rows").reset_index().melt("rows", var_name="uncertainty about")
found["correlation"] = [
    spearmanr(own, everything[name]).statistic
    for name, own in zip(found["uncertainty about"], found.pop("value"), strict=True)
]
print(found.round(3).to_string(index=False))
y = alt.Y("correlation", title="rank correlation", scale=alt.Scale(domain=[0, 1]))
axes = alt.Chart(found).encode(x=alt.X("rows", title="training rows"), y=y, color="uncertainty about")
title = "Values from a sample, compared with values from all rows"
chart = axes.mark_line(point=True).properties(width=420, height=240, title=title)
chart
