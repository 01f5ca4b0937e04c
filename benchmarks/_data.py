"""The tables that benchmarks run on: generated ones, and real ones from a directory the user names."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd


def data_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("FADO_DATA"),
        help="directory of adult.parquet, give_me_some_credit.parquet, acs_income.parquet, ...; "
        "without it (or FADO_DATA), the parts that need real data are left out",
    )


def rare_positives(n_rows: int, n_columns: int = 30, seed: int = 0):
    """Make a table as in fraud detection: 1.5 % positives, a third of the columns coarse."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    coarse = n_columns // 3
    X[:, -coarse:] = rng.integers(0, 20, size=(n_rows, coarse))
    signal = X[:, 0] + 0.8 * X[:, 1] * X[:, 2] + 0.1 * X[:, -1] + rng.normal(size=n_rows)
    y = (signal > np.quantile(signal, 0.985)).astype(int)
    z = (X[:, 3] + 0.1 * X[:, -2] + rng.normal(size=n_rows) > 1.5).astype(int)
    return X, y, z


# File, target and its positive values, group: what the default models were chosen on.
TABLES = {
    "adult": ("adult", "income", {">50K"}, "sex", {"Male"}),
    "give_me_some_credit": ("give_me_some_credit", "SeriousDlqin2yrs", {1}, "age", range(40)),
    "acs_income": ("acs_income", "PINCP", {1}, "SEX", {1}),
    "diabetes130": ("diabetes130", "readmitted", {"<30"}, "gender", {"Male"}),
    "adult by race": ("adult", "income", {">50K"}, "race", {"White"}),
    "acs_income by race": ("acs_income", "PINCP", {1}, "RAC1P", {1}),
    "diabetes130 by race": ("diabetes130", "readmitted", {"<30", ">30"}, "race", {"Caucasian"}),
}


def real_table(directory: Path, name: str, rows: int | None = None):
    """Read features (text as categories), target and group."""
    file, target, positive, attribute, group = TABLES[name]
    frame = pd.read_parquet(directory / f"{file}.parquet")
    if rows is not None and rows < len(frame):
        frame = frame.sample(rows, random_state=0)
    frame = frame.reset_index(drop=True).drop(
        columns=["split", "encounter_id", "patient_nbr"], errors="ignore"
    )
    y, z = frame.pop(target).isin(positive), frame.pop(attribute).isin(group)
    return text_as_categories(frame), y.to_numpy(int), z.to_numpy(int)


def text_as_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Turn text into categories, which LightGBM takes as they are."""
    text = frame.select_dtypes(exclude=["number", "bool"]).columns
    return frame.astype(dict.fromkeys(text, "category"))
