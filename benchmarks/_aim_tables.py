"""The tables of benchmarks/aim.py, with or without the protected attribute among the features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from _data import TABLES, text_as_categories
from fado.datasets import make_account_fraud
from fado.tabular import deal_rows

MOST_ROWS = 60_000
FRAUD_ROWS = 100_000
CHOSEN_ON = ("adult", "give_me_some_credit", "acs_income")
JUDGED_BY = (
    "adult by race",
    "acs_income by race",
    "diabetes130",
    "diabetes130 by race",
    "communities_crime",
    "german_credit",
    "account_fraud",
)
SMALL = ("communities_crime", "german_credit")
SHOWN = {
    "adult": "Adult, sex",
    "give_me_some_credit": "Give Me Some Credit, age < 40",
    "acs_income": "ACS Income, sex",
    "adult by race": "Adult, race",
    "acs_income by race": "ACS Income, race",
    "diabetes130": "Diabetes, sex",
    "diabetes130 by race": "Diabetes, race",
    "communities_crime": "Communities, share of Black residents",
    "german_credit": "German credit, sex",
    "account_fraud": "generated fraud, age >= 50",
}
NEVER_FEATURES = ["split", "encounter_id", "patient_nbr", "month", "communityname", "fold", "Black", "class"]


def read_table(directory: Path, name: str, with_attribute: bool, most_rows: int = MOST_ROWS):
    """Read features (text as categories), target and group."""
    frame, target, group, attributes = _read(directory, name, most_rows)
    left_out = [*NEVER_FEATURES, *([] if with_attribute else attributes)]
    features = text_as_categories(frame.drop(columns=left_out, errors="ignore"))
    return features, target.to_numpy(int), group.to_numpy(int)


def _read(directory, name, most_rows):
    """Give the rows without their target, the target, the group, and the columns that hold the group."""
    if name == "account_fraud":
        frame = make_account_fraud(FRAUD_ROWS, random_state=0)
        return frame, frame.pop("fraud_bool"), frame["customer_age"] >= 50, ["customer_age"]
    file, target, positive, attribute, group = TABLES.get(name, (name, None, None, None, None))
    frame = pd.read_parquet(directory / f"{file}.parquet")
    if most_rows < len(frame):
        frame = frame.sample(most_rows, random_state=0)
    frame = frame.reset_index(drop=True)
    if name == "communities_crime":  # the 30 % of most violence; more Black residents than in half of them
        crime, share = frame.pop("ViolentCrimesPerPop"), frame["racepctblack"]
        return frame, crime >= crime.quantile(0.7), share >= share.median(), ["racepctblack"]
    if name == "german_credit":
        return frame, frame.pop("credit") == 2, frame["sex"] == "male", ["sex", "status_sex"]
    return frame, frame.pop(target).isin(positive), frame[attribute].isin(group), [attribute]


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on, to choose by and to tell by: positions, ascending."""

    X: pd.DataFrame
    y: np.ndarray
    z: np.ndarray
    parts: tuple[np.ndarray, ...]
    seed: int

    def part(self, number: int):
        rows = self.parts[number]
        return self.X.iloc[rows], self.y[rows], self.z[rows]


def deal(X, y, z, shares, seed) -> Split:
    """Split at random; every part gets its share of every label and group."""
    dealt = deal_rows(2 * z + y, shares, np.random.default_rng([seed, 7]))
    return Split(X, y, z, tuple(np.flatnonzero(dealt == part) for part in range(len(shares))), seed)
