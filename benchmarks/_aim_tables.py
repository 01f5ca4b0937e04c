"""The tables of benchmarks/aim.py: small samples are drawn from them, all other rows are the population."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from _data import text_as_categories
from fado.datasets import make_account_fraud

MOST_ROWS = 150_000  # of a population
VALIDATION = 0.25  # of a sample, for methods that need such a part
NEVER_FEATURES = ["split", "encounter_id", "patient_nbr", "month"]
RACES = [0, 1, 5, 7, 8]  # all others are one group more


@dataclass(frozen=True)
class Question:
    """What is drawn from which table, and which lines must hold."""

    shown: str
    table: str
    rows: int
    lines: tuple[tuple[str, float], ...] = (("fpr_ratio", 0.8),)


TWO = (("fpr_ratio", 0.8), ("tpr_ratio", 0.8))
MEASURED_ON = {
    "race-20": Question("ACS Income, Black or not", "race", 20_000),
    "race-40": Question("ACS Income, Black or not", "race", 40_000),
    "sex": Question("ACS Income, sex, which is a feature", "sex", 20_000),
    "diabetes": Question("Diabetes, sex", "diabetes", 30_000),
}
CHOSEN_ON = {
    "credit": Question("Give Me Some Credit, age < 40", "credit", 30_000),
    "fraud": Question("generated fraud, age >= 50", "fraud", 40_000),
    "adult": Question("Adult, sex", "adult", 16_000),
}
OF_THEIR_OWN = {
    "races": Question("ACS Income, six groups of race", "races", 60_000),
    "race-two": Question("ACS Income, Black or not, two ratios", "race", 40_000, TWO),
    "adult-two": Question("Adult, sex, two ratios", "adult", 16_000, TWO),
}
OF_FRONTIERS = {
    "sex-80": Question("ACS Income, sex, which is a feature", "sex", 80_000),
    "credit-80": Question("Give Me Some Credit, age < 40", "credit", 80_000),
}
QUESTIONS = MEASURED_ON | CHOSEN_ON | OF_THEIR_OWN | OF_FRONTIERS


@lru_cache
def read_table(directory: Path, name: str):
    """Read features (text as categories), labels and groups."""
    if name == "fraud":
        frame = make_account_fraud(240_000, variant="II", random_state=7)
        y, z = frame.pop("fraud_bool"), frame.pop("customer_age") >= 50
    elif name == "credit":
        frame = pd.read_parquet(directory / "give_me_some_credit.parquet")
        y, z = frame.pop("SeriousDlqin2yrs"), frame.pop("age") < 40
    elif name == "adult":
        frame = pd.read_parquet(directory / "adult.parquet")
        y, z = frame.pop("income") == ">50K", frame.pop("sex") == "Male"
    elif name == "diabetes":
        frame = pd.read_parquet(directory / "diabetes130.parquet")
        y, z = frame.pop("readmitted") != "NO", frame.pop("gender") == "Male"
    else:
        frame = pd.read_parquet(directory / "acs_income.parquet")
        y = frame.pop("PINCP")
        if name == "sex":
            z = frame["SEX"] == 1
        else:
            race = frame.pop("RAC1P")
            z = race == 1 if name == "race" else race.where(race.isin(RACES), 99)
    features = text_as_categories(frame.drop(columns=NEVER_FEATURES, errors="ignore"))
    return features, y.to_numpy(int), np.unique(z.to_numpy(int), return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class Draw:
    """A sample that methods learn from, and the features and groups of the population."""

    X: pd.DataFrame
    y: np.ndarray
    z: np.ndarray
    X_population: pd.DataFrame
    z_population: np.ndarray
    seed: int

    @cached_property
    def _parts(self):
        cells = 10 * self.y + self.z
        rows = np.arange(len(self.y))
        return train_test_split(rows, test_size=VALIDATION, stratify=cells, random_state=self.seed)

    def part(self, number: int):
        """Give features, labels and groups of the training (0) or the validation part (1) of the sample."""
        rows = self._parts[number]
        return self.X.iloc[rows].reset_index(drop=True), self.y[rows], self.z[rows]


@lru_cache(maxsize=1)
def draw_sample(directory: Path, question: Question, seed: int):
    """Draw without replacement; give the draw, and the labels of the population, which no method may see."""
    X, y, z = read_table(directory, question.table)
    order = np.random.default_rng(seed).permutation(len(y))
    drawn, others = order[: question.rows], order[question.rows :][:MOST_ROWS]
    sample = X.iloc[drawn].reset_index(drop=True), y[drawn], z[drawn]
    return Draw(*sample, X.iloc[others].reset_index(drop=True), z[others], seed), y[others]


def measure(decided, y, z):
    """Give the rates of decisions (or of their chances), and the groups' lowest over their highest rates."""
    groups = range(z.max() + 1)
    found = {}
    for rate, label in (("tpr", 1), ("fpr", 0)):
        own = y == label
        rates = np.array([decided[own & (z == group)].mean() for group in groups])
        found[rate] = float(decided[own].mean())
        found[f"{rate}_ratio"] = float(rates.min() / max(rates.max(), 1e-12))
    return found
