"""
Adult, before and after
=======================

Real data: 12,842 people of the US census of 1994, the test set of the tutorial. A plain LightGBM model and
one that was aimed at equal false-positive rates decide who earns more than 50,000 dollars a year.
"""

# %%
# The counts are from :doc:`the tutorial </tutorial_adult>`. They are all that rates and their
# intervals need, so the table can be built again from them, one row per person.
import altair as alt
import pandas as pd

from fado.metrics import by_group, fpr_ratio

columns = ["sex", "over 50,000", "model", "not selected", "selected"]
counts = pd.DataFrame(
    [
        ["Female", False, "plain", 3763, 60],
        ["Female", True, "plain", 219, 257],
        ["Male", False, "plain", 5535, 376],
        ["Male", True, "plain", 957, 1675],
        ["Female", False, "aimed", 3648, 175],
        ["Female", True, "aimed", 131, 345],
        ["Male", False, "aimed", 5618, 293],
        ["Male", True, "aimed", 1066, 1566],
    ],
    columns=columns,
)
long = counts.melt(columns[:3], columns[3:], "decision", "people")
people = long.loc[long.index.repeat(long["people"])]

# %%
# Rates of each group, with 95 % intervals, and the ratio of the lower to the higher false-positive rate.
rates = {}
for model, own in people.groupby("model", sort=False):
    selected = (own["decision"] == "selected").astype(int)
    known = {"sensitive_features": own["sex"]}
    rates[model] = by_group(own["over 50,000"], selected, threshold=1, **known)
    print(f"{model}: ratio {fpr_ratio(own['over 50,000'], selected, **known):.2f}")
rates = pd.concat(rates, names=["model"]).reset_index()

# %%
# The aimed model has nearly equal false-positive rates. In exchange, it finds fewer of the men who earn more.
titles = {"fpr": "false-positive rate", "tpr": "true-positive rate"}
parts = [rates[["model", "group", name, f"{name}_low", f"{name}_high"]] for name in titles]
parts = [part.set_axis(["model", "group", "rate", "low", "high"], axis=1) for part in parts]
shown = pd.concat(parts, keys=titles.values(), names=["metric"]).reset_index("metric")
axes = alt.Chart(shown).encode(y=alt.Y("model", title=None, sort=None), color=alt.Color("group", title="sex"))
bars = axes.mark_rule(size=3).encode(x=alt.X("low", title=None, scale=alt.Scale(zero=True)), x2="high")
points = axes.mark_point(filled=True, size=90, opacity=1).encode(x="rate")
chart = (
    alt.layer(bars, points).properties(width=230, height=90).facet(column=alt.Column("metric", title=None))
)
chart = chart.resolve_scale(x="independent")
chart = chart.properties(title="Adult: rates of women and men on test data, before and after aiming")
chart
