"""Measure how far values agree with values made again: by group, over seeds and bags.

    python benchmarks/stability.py --data DIR [--rows 10000]

Fixed before the first run: 10,000 rows of Adult, drawn with seed 0, by sex and by race, neither of which is a
feature; and of Give Me Some Credit, by age below 40 or not, without the age. Values are those of
`OutOfBagEntropy(random_state=0)`, all other settings as they are. "estimated" is `stability()` without a fit,
to be held against "seeds", three others; the other two columns are `stability(X, y)`. Each cell has the rank
agreement and the top overlap.
"""

from __future__ import annotations

import argparse

import pandas as pd

from _data import data_argument, text_as_categories
from fado import OutOfBagEntropy

TABLES = {
    "adult": ("income", {">50K"}, {"sex": lambda own: own, "race": lambda own: own}),
    "give_me_some_credit": (
        "SeriousDlqin2yrs",
        {1},
        {"age": lambda own: (own < 40).map({True: "below 40", False: "40 and over"})},
    ),
}


def measured(directory, name, rows):
    """Give the agreement of one table, a line per column and group."""
    target, positive, attributes = TABLES[name]
    frame = pd.read_parquet(directory / f"{name}.parquet").sample(rows, random_state=0)
    frame = text_as_categories(frame.reset_index(drop=True).drop(columns="split", errors="ignore"))
    y = frame.pop(target).isin(positive)
    z = pd.DataFrame({attribute: group(frame.pop(attribute)) for attribute, group in attributes.items()})
    values = OutOfBagEntropy(random_state=0).fit(frame, y, sensitive_features=z).valuation_
    estimated = values.stability(sensitive_features=z).assign(variation="estimated")
    found = pd.concat([estimated, values.stability(frame, y, sensitive_features=z)])
    figures = [f"{row.rank_agreement:.3f} / {row.top_overlap:.2f}" for row in found.itertuples()]
    wide = found.assign(figures=figures).pivot(
        index=["column", "group", "rows"], columns="variation", values="figures"
    )
    order = pd.MultiIndex.from_frame(estimated[["column", "group", "rows"]])
    return wide.loc[order, ["estimated", "seeds", "bags"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data_argument(parser)
    parser.add_argument("--rows", type=int, default=10_000)
    given = parser.parse_args()
    if given.data is None:
        parser.error("it needs the tables: name their directory by --data")
    for name in TABLES:
        print(f"{name}, {given.rows:,} rows")
        print(measured(given.data, name, given.rows).to_string(), flush=True)


if __name__ == "__main__":
    main()
