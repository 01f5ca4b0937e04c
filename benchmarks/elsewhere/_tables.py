"""What the three scripts share: two CSV tables in, one of values out. It needs numpy and pandas alone.

Each script runs in an environment of its own, since these libraries pin older releases than FADO asks for:
NumPy 1 among them, with which the newest pyarrow reads no Parquet.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd


@dataclass
class Rows:
    """Features on one scale, labels and groups of 0 and 1, and the rows' ids."""

    X: np.ndarray
    y: np.ndarray
    group: np.ndarray
    ids: np.ndarray


def read(description):
    """Read the command line: the rows to value and the validation rows, scaled alike."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("rows", type=Path, help="the rows to value, CSV, all columns numbers")
    parser.add_argument("validation", type=Path, help="the rows to measure effects on, CSV")
    parser.add_argument("out", type=Path, help="where the values go, CSV")
    parser.add_argument("--target", default="default", help="a column of 0 and 1")
    parser.add_argument("--attribute", default="old", help="a column of 0 and 1, which no model sees")
    parser.add_argument("--id", default="id")
    arguments = parser.parse_args()
    frames = [pd.read_csv(path) for path in (arguments.rows, arguments.validation)]
    beside = [arguments.target, arguments.attribute, arguments.id]
    features = frames[0].drop(columns=beside)
    mean, spread = features.mean(), features.std().replace(0, 1)
    rows, validation = (
        Rows(
            ((frame[features.columns] - mean) / spread).to_numpy(np.float64),
            frame[arguments.target].to_numpy(np.int64),
            frame[arguments.attribute].to_numpy(np.int64),
            frame[arguments.id].to_numpy(),
        )
        for frame in frames
    )
    return rows, validation, arguments


def write(arguments, rows, v_y, v_z):
    """Write the values, a line per row: higher must mean that the row is worth more."""
    values = pd.DataFrame({arguments.id: rows.ids, "y": v_y, arguments.attribute: v_z})
    values.to_csv(arguments.out, index=False)


def fpr_gap(y, predicted, group):
    """Give the distance between two groups' false-positive rates."""
    rates = [predicted[(y == 0) & (group == code)].mean() for code in (0, 1)]
    return float(abs(rates[0] - rates[1]))
