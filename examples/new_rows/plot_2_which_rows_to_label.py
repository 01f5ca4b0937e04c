"""
Which rows to label next?
=========================

``UtilityQuery`` selects the rows of a pool with the highest utility. It can also keep similar rows apart.
"""

# %%
# 600 loans are finished, 4,000 applicants wait.
import altair as alt
import numpy as np
import pandas as pd

from fado import LinearUtility, OutOfBagEntropy
from fado.active import UtilityQuery

rng = np.random.default_rng(0)
frame = pd.DataFrame(rng.normal(size=(4_600, 2)), columns=["score", "wage"])
sex = pd.Series(np.where(frame["wage"] + rng.normal(size=4_600) > 1, "women", "men"), name="sex")
default = frame["score"] + 0.5 * (sex == "women") + 0.5 * rng.normal(size=4_600) > 1.2
known, pool = slice(0, 600), frame[600:].reset_index(drop=True)
valuator = OutOfBagEntropy(keep_models=True, random_state=0)
valuator.fit(frame[known], default[known], sensitive_features=sex[known])

# %%
# A batch of 100 rows, first by utility alone, then with some distance between the rows.
pool["by utility"] = pool["with diversity"] = "no"
for name, diversity in {"by utility": 0.0, "with diversity": 0.5}.items():
    query = UtilityQuery(valuator, LinearUtility(alpha=0.75), diversity=diversity)
    pool.loc[query.query(pool[["score", "wage"]], n=100), name] = "yes"

# %%
# Models are uncertain where the two classes meet, at a score of about 1.
shown = pool.melt(["score", "wage"], var_name="batch", value_name="selected").sort_values("selected")
alt.data_transformers.disable_max_rows()
chart = (
    alt.Chart(shown)
    .mark_point(filled=True, size=14)
    .encode(
        x="score:Q",
        y="wage:Q",
        color=alt.Color("selected:N", scale=alt.Scale(domain=["no", "yes"], range=["#d5d9de", "#D55E00"])),
    )
    .properties(width=260, height=260)
    .facet(column=alt.Column("batch:N", title=None))
    .properties(title="100 of 4,000 rows that are selected for labelling")
)
chart
