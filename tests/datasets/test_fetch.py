"""The public income tables, from small files of the same form and from a stand-in for OpenML."""

import gzip
import os
import re
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest

from fado.datasets import fetch_acs_income, fetch_adult

# Made-up people, in UCI's form.
UCI = """\
39, State-gov, 11111, Bachelors, 13, Never-married, Sales, Unmarried, White, Male, 100, 0, 30, Canada, <=50K
52, ?, 22222, HS-grad, 9, Married-civ-spouse, ?, Husband, White, Male, 0, 0, 45, ?, >50K
28, Private, 33333, Masters, 14, Married-civ-spouse, Sales, Wife, Black, Female, 0, 0, 20, Cuba, <=50K
"""
UCI_TEST = "|1x3 Cross validator\n" + UCI.replace("50K\n", "50K.\n") + "\n"
NAMES = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)
FEATURES = ["age", "workclass", "education", "education_num", "marital_status", "occupation", "relationship"]
FEATURES += ["capital_gain", "capital_loss", "hours_per_week", "native_country"]
CODES = ["White", "Black", "American Indian", "Alaska Native", "American Indian or Alaska Native"]


def acs(**changed):
    columns = {
        "AGEP": [20, 41, 27],
        "COW": [1, 7, 4],
        "SCHL": [16, 18, 21],
        "MAR": [5, 1, 1],
        "OCCP": [8740, 810, 2320],
        "POBP": [42, 6, 41],
        "RELP": [0, 1, 0],
        "WKHP": [35, 30, 45],
        "SEX": [1, 2, 2],
        "RAC1P": [1, 6, 2],
        "ST": [1, 1, 2],
        "PINCP": [12_000, 50_000, 50_001],
    }
    return pd.DataFrame(columns | changed)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def adult(tmp_path):
    return write(tmp_path / "adult.data", UCI)


def test_ucis_file_has_no_header_and_question_marks_are_missing(adult):
    X, y, groups = fetch_adult(adult)
    assert X.columns.tolist() == FEATURES
    assert X["age"].tolist() == [39, 52, 28]
    assert X["age"].dtype == np.int64
    assert X["workclass"].dtype == "category"
    assert X["workclass"].cat.categories.tolist() == ["Private", "State-gov"]
    assert X.isna().sum().to_dict() == dict.fromkeys(FEATURES, 0) | {
        "workclass": 1,
        "occupation": 1,
        "native_country": 1,
    }
    assert (y.name, y.dtype, y.tolist()) == ("over_50k", bool, [False, True, False])
    assert groups.to_dict("list") == {"sex": ["Male", "Male", "Female"], "race": ["White", "White", "Black"]}
    assert (groups.dtypes == "category").all()


def test_ucis_test_file_has_a_comment_and_full_stops_and_is_joined_to_the_other(adult, tmp_path):
    test = write(tmp_path / "adult.test", UCI_TEST)
    X, y, groups = fetch_adult([adult, str(test)])
    assert y.tolist() == [False, True, False] * 2
    assert X.index.tolist() == groups.index.tolist() == list(range(6))
    for table, one in zip(fetch_adult(test), fetch_adult(adult), strict=True):
        assert table.equals(one)


@pytest.mark.parametrize(
    "header",
    [
        NAMES,
        NAMES.replace("-", "."),
        NAMES.replace("-", "_").replace("income", "class"),
        NAMES.replace("education-num", "educational-num").replace(",sex", ",gender"),
        NAMES.upper(),
    ],
)
@pytest.mark.parametrize("name", ["adult.csv", "adult.csv.gz", "adult.parquet"])
def test_files_with_a_header_in_any_of_its_forms(adult, tmp_path, header, name):
    path, text = tmp_path / name, f"{header}\n{UCI}".replace(", ", ",")
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        write(path, "\ufeff" + text)
    if name.endswith(".parquet"):
        frame = pd.read_csv(path, encoding="utf-8-sig")
        frame.assign(split="train").to_parquet(path)
    for table, one in zip(fetch_adult(path), fetch_adult(adult), strict=True):
        assert table.equals(one)


def test_protected_columns_are_features_only_if_asked(adult):
    X, _, groups = fetch_adult(adult, keep_protected=True)
    assert X.columns.tolist() == [*FEATURES, "sex", "race"]
    assert X["sex"].equals(groups["sex"])


@pytest.mark.parametrize("name", ["acs.csv", "acs.parquet"])
def test_acs_income_is_compared_and_its_codes_are_named(tmp_path, name):
    path = tmp_path / name
    (acs().astype(float).to_csv(path, index=False) if name == "acs.csv" else acs().to_parquet(path))
    X, y, groups = fetch_acs_income(path)
    features = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP"]
    assert X.columns.tolist() == features
    both = [*features, "sex", "race"]
    assert fetch_acs_income(path, keep_protected=True)[0].columns.tolist() == both
    assert X["AGEP"].tolist() == [20, 41, 27]
    assert X["OCCP"].cat.categories.tolist() == [810, 2320, 8740]
    assert (y.name, y.tolist()) == ("over_50k", [False, False, True])
    assert groups["sex"].tolist() == ["Male", "Female", "Female"]
    acs(PINCP=[0, 1, 1], RAC1P=[0, 5, 1]).to_parquet(tmp_path / "zero.parquet")  # labels, codes from 0
    _, labels, others = fetch_acs_income(tmp_path / "zero.parquet")
    assert labels.tolist() == [False, True, True]
    for race in (groups["race"], others["race"]):
        assert race.tolist() == ["White", "Asian", "Black"]
        assert race.cat.categories[:5].tolist() == CODES


class OpenML:
    """Stands for `sklearn.datasets.fetch_openml`."""

    def __init__(self, frame):
        self.frame, self.asked = frame, None

    def __call__(self, **asked):
        self.asked = asked
        if isinstance(self.frame, Exception):
            raise self.frame
        return SimpleNamespace(frame=self.frame)


def test_tables_are_downloaded_from_openml(adult, monkeypatch, tmp_path):
    frame = pd.read_csv(adult, header=None, names=NAMES.split(","), skipinitialspace=True, na_values="?")
    text = frame.select_dtypes(exclude="number").columns
    frame = frame.astype(dict.fromkeys(text, "category")).rename(columns={"income": "class"})
    there = OpenML(frame)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", there)
    for table, one in zip(fetch_adult(data_home=tmp_path), fetch_adult(adult), strict=True):
        assert table.equals(one)
    assert there.asked == {"data_id": 1590, "data_home": str(tmp_path), "as_frame": True, "parser": "auto"}
    there.frame = acs().astype(float)
    assert fetch_acs_income()[1].tolist() == [False, False, True]
    assert (there.asked["data_id"], there.asked["data_home"]) == (43141, None)


@pytest.mark.parametrize(
    ("fetch", "elsewhere"), [(fetch_adult, "'adult.data' and 'adult.test'"), (fetch_acs_income, "folktables")]
)
def test_without_a_network_the_error_says_what_to_get(monkeypatch, fetch, elsewhere):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", OpenML(URLError("no route")))
    with pytest.raises(ConnectionError, match=rf"could not be downloaded.*no route.*{elsewhere}.*`path`\.$"):
        fetch()


@pytest.mark.parametrize(
    ("name", "text", "error", "sentence"),
    [
        ("none.csv", None, FileNotFoundError, "got '.*none.csv'; there is no such file"),
        ("adult.xlsx", UCI, ValueError, r"must end in .csv, .csv.gz, .data, .test or .parquet"),
        ("adult.csv", "", ValueError, "must name a readable file of the Adult data"),
        ("adult.parquet", UCI, ValueError, "must name a readable file of the Adult data"),
        ("adult.csv", NAMES + "\n", ValueError, "which has none"),
        ("adult.csv", "age,sex\n1,Male\n", ValueError, r"without 'workclass', .* and \d more\."),
        ("adult.data", UCI.replace(">50K", "rich"), ValueError, "column 'income', got 'rich' at row 1 of 3"),
        ("adult.data", UCI.replace("52,", "old,"), ValueError, "whole number in column 'age', got 'old'"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, name, text, error, sentence):
    if text is not None:
        write(tmp_path / name, text)
    with pytest.raises(error, match=sentence):
        fetch_adult(tmp_path / name)


def test_other_bad_input(tmp_path):
    with pytest.raises(ValueError, match="got an empty list"):
        fetch_adult([])
    acs(RAC1P=[1, 10, 2]).to_parquet(tmp_path / "acs.parquet")
    with pytest.raises(ValueError, match="a code from 1 to 9 in column 'RAC1P', got 10 at row 1 of 3"):
        fetch_acs_income(tmp_path / "acs.parquet")
    acs(AGEP=[20, None, 27]).to_parquet(tmp_path / "acs.parquet")
    with pytest.raises(ValueError, match="a whole number in column 'AGEP', got nan at row 1 of 3"):
        fetch_acs_income(tmp_path / "acs.parquet")


@pytest.mark.skipif("FADO_ADULT" not in os.environ, reason="FADO_ADULT names a file of the real data")
def test_the_real_table():
    X, y, groups = fetch_adult(re.split(os.pathsep, os.environ["FADO_ADULT"]))
    assert X.shape == (48_842, 11)
    assert int(y.sum()) == 11_687
    assert groups["sex"].value_counts().to_dict() == {"Male": 32_650, "Female": 16_192}
