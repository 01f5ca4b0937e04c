"""
Which rows to label next?
=========================

``UtilityQuery`` takes the rows of a pool that have most utility, and can keep near-copies out.
"""

# %%
# 600 loans have run, 4,000 applicants wait.
import altair as alt
import numpy as np
import pandas as pd

from fado import LinearUtility, OutOfBagEntropy
from fado.active import UtilityQuery

rng = np.random.default_rng(0)
frame = pd.DataFrame(rng.normal(size=(4_600, 2)), columns=["score", "wage"])
sex = pd.Series(np.where(frame["wage"] + rng.normal(size=4_600) > 1, "f", "m"), name="sex")
default = frame["score"] + 0.5 * (sex == "f") + 0.5 * rng.normal(size=4_600) > 1.2
known, pool = slice(0, 600), frame[600:].reset_index(drop=True)
valuator = OutOfBagEntropy(keep_models=True, random_state=0)
valuator.fit(frame[known], default[known], sensitive_features=sex[known])

# %%
# The same batch of 100 by utility alone, and with some distance between its rows.
pool["by utility"] = pool["with diversity"] = False
for name, diversity in {"by utility": 0.0, "with diversity": 0.5}.items():
    query = UtilityQuery(valuator, LinearUtility(alpha=0.75), diversity=diversity)
    pool.loc[query.query(pool[["score", "wage"]], n=100), name] = True

# %%
# Models are unsure between the two classes, at a score of about 1.
shown = pool.melt(["score", "wage"], var_name="batch", value_name="chosen").sort_values("chosen")
alt.data_transformers.disable_max_rows()
chart = (
    alt.Chart(shown)
    .mark_point(filled=True, size=14)
    .encode(
        x="score:Q",
        y="wage:Q",
        color=alt.Color("chosen:N", scale=alt.Scale(domain=[False, True], range=["#d5d9de", "#d1495b"])),
    )
    .properties(width=260, height=260)
    .facet(column="batch:N")
)
chart
