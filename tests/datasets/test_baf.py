import re

import numpy as np
import pandas as pd
import pytest

from fado.datasets import load_baf, make_account_fraud

FRAME = make_account_fraud(400, variant="III", random_state=0)
BASE = FRAME.drop(columns=["x1", "x2"])


def write(frame, path):
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("frame", [BASE, FRAME], ids=["base", "with x1 and x2"])
@pytest.mark.parametrize("name", ["Base.csv", "Variant III.CSV", "sample.csv.gz"])
def test_csv_comes_back_as_it_was_generated(tmp_path, frame, name):
    pd.testing.assert_frame_equal(load_baf(write(frame, tmp_path / name)), frame, rtol=1e-14)


@pytest.mark.parametrize("as_text", [False, True], ids=["categories", "text"])
def test_parquet_comes_back_as_it_was_generated(tmp_path, as_text):
    path = tmp_path / "Base.parquet"
    text = BASE.astype(dict.fromkeys(BASE.select_dtypes("category"), object))
    (text if as_text else BASE).to_parquet(path)
    pd.testing.assert_frame_equal(load_baf(str(path)), BASE)
    text.sample(50, random_state=0).to_parquet(path)  # with its index
    assert load_baf(path).index.tolist() == list(range(50))


def with_mark(path):
    path.write_bytes(b"\xef\xbb\xbf" + write(BASE, path).read_bytes())


@pytest.mark.parametrize(
    "save",
    [
        lambda path: write(BASE[sorted(BASE.columns)], path),
        lambda path: BASE.to_csv(path),
        lambda path: write(BASE.astype({"month": float, "zip_count_4w": float}), path),
        with_mark,
    ],
    ids=["other order", "row numbers", "whole numbers as decimals", "byte-order mark"],
)
def test_a_csv_file_written_otherwise_is_the_same_table(tmp_path, save):
    save(tmp_path / "Base.csv")
    pd.testing.assert_frame_equal(load_baf(tmp_path / "Base.csv"), BASE, rtol=1e-14)


def test_missing_values_can_become_nan(tmp_path):
    columns = ["prev_address_months_count", "current_address_months_count", "bank_months_count"]
    columns += ["intended_balcon_amount", "session_length_in_minutes", "device_distinct_emails_8w"]
    path = write(BASE, tmp_path / "Base.csv")
    kept, turned = load_baf(path), load_baf(path, missing_as_nan=True)
    for name in columns:
        negative = BASE[name] < 0
        assert (kept[name] < 0).equals(negative)
        assert turned[name].isna().equals(negative)
        assert turned[name].dtype == np.float64
    others = BASE.columns.difference(columns)
    pd.testing.assert_frame_equal(turned[others], kept[others])
    # A score and a velocity may well be negative.
    assert (BASE["credit_risk_score"] < 0).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[["income", "month"]], "which has 2 of the suite's 32 columns"),
        (lambda f: f.drop(columns=["income", "month"]), r"with all columns .* without \['income', 'month'\]"),
        (lambda f: f.assign(x1=0.5), r"without \['x2'\]"),
        (
            lambda f: f.assign(score=1),
            r"with the columns of the BAF suite only, .* with \['score'\]; drop them",
        ),
        (lambda f: f.head(0), "must name a file with rows"),
        (
            lambda f: f.assign(month=8),
            r"with 8 in column 'month' at row 0 of 400, which is not one of \[0, 1, ",
        ),
        (lambda f: f.assign(customer_age=f.customer_age + 5), "in column 'customer_age' at row 0"),
        (lambda f: f.assign(fraud_bool=2), r"with 2 in column 'fraud_bool' .* not one of \[0, 1\]"),
        (lambda f: f.assign(zip_count_4w=1.5), "with 1.5 in column 'zip_count_4w' .* not a whole number"),
        (lambda f: f.assign(velocity_6h="fast"), "with 'fast' in column 'velocity_6h' .* not a number"),
        (lambda f: f.assign(velocity_6h="inf"), "with inf in column 'velocity_6h' .* not a number"),
        (
            lambda f: f.assign(source="WEB"),
            r"with 'WEB' in column 'source' .* not one of \['INTERNET', 'TELEAPP'\]",
        ),
        (
            lambda f: f.assign(income=f.income.where(f.index != 7)),
            "nothing in column 'income' at row 7 of 400",
        ),
    ],
)
def test_what_is_not_the_suite_is_refused_with_the_reason(tmp_path, change, message):
    path = write(change(BASE), tmp_path / "Base.csv")
    with pytest.raises(ValueError, match=message) as caught:
        load_baf(path)
    assert re.match(r"`path` must name .* got '.*Base\.csv'", str(caught.value))


@pytest.mark.parametrize(
    ("name", "cut", "message"),
    [
        *(("Base.csv", lambda raw, end=end: raw[:-end], "cut off") for end in (1, 2, 7, 40, 100)),
        (
            "Base.csv",
            lambda raw: raw.rsplit(b",", 2)[0] + b"\n",
            "in column 'device_fraud_count' at row 399 of 400; the file may have been cut off",
        ),
        ("Base.parquet", lambda raw: raw[:-100], "must name a readable file of the BAF suite"),
        ("Base.csv.gz", lambda raw: raw[:-100], "must name a readable file of the BAF suite"),
    ],
)
def test_a_file_cut_off_anywhere_is_refused(tmp_path, name, cut, message):
    path = tmp_path / name
    BASE.to_parquet(path) if name.endswith("parquet") else write(BASE, path)
    path.write_bytes(cut(path.read_bytes()))
    with pytest.raises(ValueError, match=message):
        load_baf(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw.decode().encode("utf-16"),
        lambda raw: raw.replace(b"INTERNET", "INTÉRNET".encode("latin-1")),
        lambda raw: raw.replace(b"INTERNET", b"\0"),
        lambda raw: raw.replace(b"\n", b"\n1,2,3" + 40 * b",4" + b"\n", 2),
        lambda raw: b"\n".join(line + b"," + line.split(b",")[1] for line in raw.splitlines()) + b"\n",
    ],
    ids=["empty", "UTF-16", "Latin-1", "NUL", "ragged", "repeated header"],
)
def test_a_damaged_csv_file_is_refused_in_one_sentence(tmp_path, damage):
    path = write(BASE, tmp_path / "Base.csv")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"^`path` must name") as caught:
        load_baf(path)
    assert "\n" not in str(caught.value)


def test_other_endings_are_refused_unread_and_what_is_not_there(tmp_path):
    BASE.to_pickle(tmp_path / "Base.pkl")
    with pytest.raises(ValueError, match=r"`path` must end in \.csv, \.csv\.gz or \.parquet, got"):
        load_baf(tmp_path / "Base.pkl")
    for path in (tmp_path, tmp_path / "Base.csv"):
        with pytest.raises(FileNotFoundError, match="there is no such file"):
            load_baf(path)
