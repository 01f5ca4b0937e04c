"""Rates of groups by Aequitas, for ways_out.py, which calls this in an environment of Aequitas's own.

    python -m venv aequitas
    aequitas/bin/pip install aequitas
    aequitas/bin/python benchmarks/elsewhere/aequitas_rates.py PREDICTIONS.csv RATES.csv

Aequitas 1.1 asks for pandas below 3. The predictions are those of `fado.metrics.predictions_frame`.
"""

import sys

import pandas as pd
from aequitas.group import Group

RATES = {"fpr": "fpr", "fnr": "fnr", "tpr": "tpr", "pprev": "selection_rate"}


def main(given, made):
    predictions = pd.read_csv(given, keep_default_na=False)
    attributes = [name for name in predictions if name not in ("score", "label_value")]
    predictions = predictions.astype(dict.fromkeys(attributes, "object"))
    counted, _ = Group().get_crosstabs(predictions, attr_cols=attributes)
    named = counted.rename(columns={"attribute_name": "attribute", "attribute_value": "group", **RATES})
    named[["attribute", "group", *RATES.values()]].to_csv(made, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
