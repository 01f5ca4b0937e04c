"""
Adult, audited by sex and race
==============================

Real data: the decisions of the tutorial's aimed model about 12,842 people of the US census of 1994. It was
aimed at equal false-positive rates of women and men. What did it do by race?
"""

# %%
# The counts are from :doc:`the tutorial </tutorial_adult>`: people who earn at most 50,000
# dollars and those who earn more, not selected and selected. An audit needs no more than that.
import altair as alt
import pandas as pd

from fado.metrics import audit

columns = ["sex", "race", "less", "less, selected", "more", "more, selected"]
counts = pd.DataFrame(
    [
        ["Female", "Amer-Indian-Eskimo", 40, 1, 0, 2],
        ["Female", "Asian-Pac-Islander", 111, 5, 8, 5],
        ["Female", "Black", 553, 21, 11, 27],
        ["Female", "Other", 35, 0, 0, 3],
        ["Female", "White", 2909, 148, 112, 308],
        ["Male", "Amer-Indian-Eskimo", 60, 2, 4, 4],
        ["Male", "Asian-Pac-Islander", 156, 17, 26, 56],
        ["Male", "Black", 470, 14, 58, 60],
        ["Male", "Other", 57, 1, 3, 3],
        ["Male", "White", 4875, 259, 975, 1443],
    ],
    columns=columns,
)
long = counts.melt(columns[:2], columns[2:], "kind", "people")
people = long.loc[long.index.repeat(long["people"])]
earns_more, selected = people["kind"].str.startswith("more"), people["kind"].str.endswith("selected")
report = audit(earns_more, selected, sensitive_features=people[["sex", "race"]])

# %%
# Which two groups make each ratio of false-positive rates.
ratios = report.ratios.query("ratio == 'fpr_ratio'")
print(ratios[["attribute", "value", "low", "high", "lowest", "highest"]].round(2).to_string(index=False))

# %%
# False-positive rates of single attributes, with 95 % intervals. Those of the small groups are wide: more
# people are needed to say how much their rates differ.
shown = report.frame.query("attribute != 'sex and race'")
axes = alt.Chart(shown).encode(
    y=alt.Y("group", title=None, sort=None), color=alt.Color("attribute", legend=None)
)
bars = axes.mark_rule(size=3).encode(x=alt.X("fpr_low", title="false-positive rate"), x2="fpr_high")
points = axes.mark_point(filled=True, size=90, opacity=1).encode(x="fpr")
title = "False-positive rates of the aimed model by sex and race"
chart = alt.layer(bars, points).properties(title=title, width=380, height=180)
chart
