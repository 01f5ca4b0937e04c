import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest

from fado.datasets import make_account_fraud
from fado.datasets._baf import CATEGORIES, COLUMNS, EXTRA_COLUMNS, NUMBERS
from fado.datasets._fraud import VARIANTS, cell_shares

ROWS = 200_000
# Share of the minority in percent; fraud rates of majority and minority in percent, by range of months.
PUBLISHED = {
    "base": (23, {(0, 7): (0.9, 1.8)}),
    "I": (10, {(0, 7): (1.1, 1.1)}),
    "II": (50, {(0, 7): (0.4, 1.9)}),
    "III": (50, {(0, 7): (1.1, 1.1)}),
    "IV": (50, {(0, 5): (0.3, 1.7), (6, 7): (1.5, 1.5)}),
    "V": (50, {(0, 7): (1.1, 1.1)}),
}
RANGES = {
    "income": (0.1, 0.9),
    "name_email_similarity": (0, 1),
    "prev_address_months_count": (-1, 383),
    "current_address_months_count": (-1, 428),
    "customer_age": (10, 90),
    "days_since_request": (0, 78),
    "intended_balcon_amount": (-15.5, 113),
    "zip_count_4w": (1, 6700),
    "velocity_6h": (-170, 16700),
    "velocity_24h": (1300, 9500),
    "velocity_4w": (2825, 6995),
    "bank_branch_count_8w": (0, 2385),
    "date_of_birth_distinct_emails_4w": (0, 39),
    "credit_risk_score": (-170, 389),
    "bank_months_count": (-1, 32),
    "proposed_credit_limit": (190, 2100),
    "session_length_in_minutes": (-1, 86),
    "device_distinct_emails_8w": (-1, 2),
    "device_fraud_count": (0, 0),
    "month": (0, 7),
}


@cache
def generated(variant="base", seed=0):
    return make_account_fraud(ROWS, variant=variant, random_state=seed)


def percent(flags):
    return 100 * np.mean(flags)


@pytest.mark.parametrize("seed", [0, 1, 20_000])
@pytest.mark.parametrize("variant", PUBLISHED)
def test_group_shares_and_fraud_rates_are_the_published_ones(variant, seed):
    frame = make_account_fraud(ROWS, variant=variant, random_state=seed)
    older = frame["customer_age"] >= 50
    share, rates = PUBLISHED[variant]
    assert percent(older) == pytest.approx(share, abs=0.01)
    for months, (majority, minority) in rates.items():
        period = frame["month"].between(*months)
        assert percent(frame["fraud_bool"][period & ~older]) == pytest.approx(majority, abs=0.02)
        assert percent(frame["fraud_bool"][period & older]) == pytest.approx(minority, abs=0.02)


@pytest.mark.parametrize("rows", [10_000, 30_000, 34_567])
@pytest.mark.parametrize("variant", PUBLISHED)
def test_every_cell_holds_its_share_in_whole_chunks_and_nearly_in_between(variant, rows):
    frame = make_account_fraud(rows, variant=variant, random_state=3)
    older = frame["customer_age"] >= 50
    counts = np.zeros((8, 2, 2))
    np.add.at(counts, (frame["month"], older.astype(int), frame["fraud_bool"]), 1)
    slack = 3 if rows % 10_000 == 0 else 100
    assert np.abs(counts - rows * cell_shares(VARIANTS[variant])).max() <= slack


def test_months_have_their_shares_and_fraud_rises_at_the_end():
    frame = generated()
    shares = frame["month"].value_counts(normalize=True).sort_index()
    assert shares.to_numpy() == pytest.approx(
        [0.132, 0.128, 0.137, 0.15, 0.128, 0.12, 0.108, 0.097], abs=1e-4
    )
    rates = frame.groupby("month")["fraud_bool"].mean()
    assert rates.between(0.0085, 0.015).all()
    assert rates.nlargest(2).index.tolist() == [7, 6]


@pytest.mark.parametrize("variant", PUBLISHED)
def test_columns_and_types(variant):
    frame = make_account_fraud(10, variant=variant, random_state=0)
    extra = EXTRA_COLUMNS if variant in ("III", "V") else ()
    assert tuple(frame.columns) == COLUMNS + extra
    assert frame.index.equals(pd.RangeIndex(10))
    for name in set(frame.columns) - set(CATEGORIES):
        assert frame[name].dtype == (np.float64 if name in NUMBERS else np.int64)
    assert {name: tuple(frame[name].cat.categories) for name in CATEGORIES} == CATEGORIES


def test_every_column_stays_in_its_range_and_steps_and_uses_them():
    frame = generated()
    assert not frame.isna().any(axis=None)
    for name, (low, high) in RANGES.items():
        assert frame[name].between(low, high).all(), name
        assert frame[name].max() >= low + 0.6 * (high - low), name
    for name in set(COLUMNS) - set(RANGES) - set(CATEGORIES):
        assert set(frame[name]) == {0, 1}, name
    for name, categories in CATEGORIES.items():
        assert set(frame[name]) == set(categories), name
    assert sorted(frame["income"].unique()) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert sorted(frame["customer_age"].unique()) == list(range(10, 100, 10))
    assert sorted(frame["device_distinct_emails_8w"].unique()) == [-1, 0, 1, 2]
    assert set(frame["proposed_credit_limit"]) >= {200, 500, 1000, 1500, 2000}


def test_missing_values_are_negative():
    frame = generated()
    months = ("prev_address_months_count", "current_address_months_count", "bank_months_count")
    columns = (*months, "session_length_in_minutes", "device_distinct_emails_8w")
    lost = {name: percent(frame[name] == -1) for name in columns}
    assert all(frame[name].loc[frame[name] < 0].eq(-1).all() for name in columns)
    assert min(lost.values()) > 0
    assert lost["prev_address_months_count"] == pytest.approx(72, abs=2)
    assert lost["bank_months_count"] == pytest.approx(25, abs=2)
    # Amounts are negative unless one is transferred, and never 0.
    assert percent(frame["intended_balcon_amount"] < 0) == pytest.approx(74, abs=2)
    assert (frame["intended_balcon_amount"] != 0).all()
    assert frame["session_length_in_minutes"].loc[lambda minutes: minutes != -1].gt(0).all()


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ("customer_age", "current_address_months_count", 0.2, 0.5),
        ("customer_age", "credit_risk_score", 0.08, 0.4),
        ("customer_age", "phone_home_valid", 0.2, 0.5),
        ("customer_age", "proposed_credit_limit", 0.08, 0.4),
        ("customer_age", "date_of_birth_distinct_emails_4w", -0.6, -0.3),
        ("credit_risk_score", "proposed_credit_limit", 0.5, 0.8),
        ("income", "credit_risk_score", 0.15, 0.5),
        ("month", "velocity_4w", -0.95, -0.7),
    ],
)
def test_columns_go_together_as_one_would_expect(first, second, low, high):
    assert low < generated()[first].corr(generated()[second]) < high


@pytest.mark.parametrize(
    ("column", "value", "low", "high"),
    [
        ("housing_status", "BA", 2.5, 5),
        ("device_os", "windows", 2, 4),
        ("keep_alive_session", 0, 1.3, 2.5),
        ("has_other_cards", 1, 0.3, 0.9),
        ("phone_home_valid", 1, 0.4, 1.0),
        ("device_distinct_emails_8w", 2, 5, 15),
    ],
)
def test_fraud_is_more_or_less_common_where_one_would_expect_and_in_combinations(column, value, low, high):
    frame = generated()
    fraud = frame["fraud_bool"]
    assert low < percent(fraud[frame[column] == value]) < high
    well_off, no_history = frame["proposed_credit_limit"] >= 1500, frame["bank_months_count"] == -1
    apart = percent(fraud[well_off & ~no_history]) + percent(fraud[~well_off & no_history])
    # Two separate effects would at most add up.
    assert percent(fraud[well_off & no_history]) > 1.5 * apart


def separation(frame, rows):
    """How far the means of x1 + x2 are apart, fraud against the rest, in standard deviations."""
    total = (frame["x1"] + frame["x2"])[rows] / np.sqrt(2)
    fraud = frame["fraud_bool"][rows] == 1
    return total[fraud].mean() - total[~fraud].mean()


@pytest.mark.parametrize(("variant", "late"), [("III", 2.93), ("V", 0)])
def test_x1_and_x2_tell_the_fraud_they_should(variant, late):
    frame = generated(variant)
    older, early = frame["customer_age"] >= 50, frame["month"] < 6
    assert separation(frame, ~older & early) == pytest.approx(2.93, abs=0.15)
    assert separation(frame, ~older & ~early) == pytest.approx(late, abs=0.2)
    assert separation(frame, older & early) == pytest.approx(0, abs=0.15)
    assert separation(frame, older & ~early) == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize("variant", ["base", "V"])
@pytest.mark.parametrize("rows", [1, 9_999, 10_000, 10_001, 25_000])
def test_the_first_rows_do_not_depend_on_the_number_of_rows(variant, rows):
    long = make_account_fraud(30_000, variant=variant, random_state=7)
    pd.testing.assert_frame_equal(make_account_fraud(rows, variant=variant, random_state=7), long.head(rows))


def test_a_seed_gives_the_same_table_and_another_seed_or_none_or_chunk_another():
    first, again, other = (make_account_fraud(1_000, random_state=seed) for seed in (0, 0, np.int32(6)))
    pd.testing.assert_frame_equal(first, again)
    assert not first["month"].equals(other["month"])
    for different in (other, make_account_fraud(np.int64(1_000))):
        assert (first["name_email_similarity"] != different["name_email_similarity"]).all()
    assert first["customer_age"][:3].tolist() == [40, 40, 50]  # as in every version
    assert first["name_email_similarity"][:3].round(6).tolist() == [0.587657, 0.579907, 0.898005]
    chunks = make_account_fraud(20_000, random_state=0)["name_email_similarity"]
    assert not set(chunks[:10_000]) & set(chunks[10_000:])


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_numpys_generators_serve_as_seeds(make):
    first, generator = make_account_fraud(10, random_state=make(1)), make(1)
    assert make_account_fraud(10, random_state=generator).equals(first)
    assert not make_account_fraud(10, random_state=generator).equals(first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "`n_samples` must be a positive integer, got 0."),
        ({"n_samples": 10.0}, "`n_samples` must be a positive integer, got 10.0."),
        ({"n_samples": True}, "`n_samples` must be a positive integer, got True."),
        (
            {"n_samples": 10**12},
            "`n_samples=1000000000000` would take at least 2.* TB .*: ask for fewer.",
        ),
        ({"n_samples": 10**400}, "`n_samples=10+` would take at least 1000000 TB of memory.*"),
        ({"variant": "VI"}, "`variant` must be one of 'base', 'I', 'II', 'III', 'IV', 'V', got 'VI'."),
        ({"variant": ["base"]}, r"`variant` must be one of .*, got \['base'\]."),
        (
            {"random_state": -1},
            "`random_state` must be a non-negative integer, a numpy generator or None, got -1.",
        ),
        ({"random_state": "0"}, "`random_state` must be .*, got '0'."),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        make_account_fraud(**{"n_samples": 10, **arguments})


def test_numpy_and_pandas_are_all_it_needs():
    program = """
import sys
refused = {"narwhals", "lightgbm", "sklearn", "imblearn", "pyarrow", "polars", "scipy"}
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in refused:
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import tempfile, pathlib
from fado.datasets import load_baf, make_account_fraud, temporal_split
frame = make_account_fraud(100, random_state=0)
train, test = temporal_split(frame)
path = pathlib.Path(tempfile.mkdtemp()) / "base.csv"
frame.to_csv(path, index=False)
print(len(load_baf(path)), len(train) + len(test))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "100 100\n"
