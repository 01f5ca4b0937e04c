"""Ratios and weights by AIF360, for ways_out.py, which calls this in an environment of AIF360's own.

    python -m venv aif360
    aif360/bin/pip install aif360
    aif360/bin/python benchmarks/elsewhere/aif360_rates.py PREDICTIONS.csv FOUND.csv

Tried with AIF360 0.6.1. The predictions are those of `fado.metrics.predictions_frame`, of one attribute with
two groups. Written are the ratio of selection rates and the weight of each row by Kamiran and Calders.
"""

import sys

import pandas as pd
from aif360.sklearn.metrics import disparate_impact_ratio
from aif360.sklearn.preprocessing import Reweighing


def main(given, made):
    predictions = pd.read_csv(given, keep_default_na=False)
    (attribute,) = (name for name in predictions if name not in ("score", "label_value"))
    rows = predictions.set_index(attribute)
    last = sorted(set(rows.index))[-1]
    ratio = disparate_impact_ratio(rows["label_value"], rows["score"], prot_attr=attribute, priv_group=last)
    _, weights = Reweighing(attribute).fit_transform(rows[["score"]], rows["label_value"])
    pd.DataFrame({"ratio": min(ratio, 1 / ratio), "weight": weights}).to_csv(made, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
