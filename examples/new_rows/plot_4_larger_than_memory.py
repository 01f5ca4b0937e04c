"""
More rows than memory
=====================

``value_files`` reads a table in files part by part, within a bound of memory, and writes values as it goes.
"""

# %%
# A folder with a file for every month. Real ones may be a thousand times as large.
from pathlib import Path
from tempfile import TemporaryDirectory

import altair as alt
import pandas as pd

import fado
from fado.datasets import make_account_fraud
from fado.valuation import plan_files

folder = TemporaryDirectory()
months = Path(folder.name) / "months"
months.mkdir()
for month, rows in make_account_fraud(12_000, random_state=0).groupby("month"):
    rows.to_parquet(months / f"{month}.parquet", index=False)

# %%
# What will be done, and what it takes.
asked = {"target": "fraud_bool", "protected": "customer_age>=50", "drop": ["month"], "memory": "1GB"}
print(plan_files(months, n_jobs=1, **asked))

# %%
# Killed at any moment, it goes on when it is called again. A column of values is read when it is asked for.
valuation = fado.value_files(months, out=Path(folder.name) / "values", n_jobs=1, **asked)
values = pd.DataFrame({name: valuation[name] for name in valuation.variables})
folder.cleanup()

# %%
chart = (
    alt.Chart(values.sample(4_000, random_state=0).melt(var_name="variable", value_name="entropy"))
    .mark_bar()
    .encode(x=alt.X("entropy:Q", bin=alt.Bin(maxbins=40)), y=alt.Y("count()", title="rows"))
    .properties(width=240, height=200)
    .facet(column="variable:N")
)
chart
