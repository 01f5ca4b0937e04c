"""Tables in files, explored by a sample of their rows."""

import math
import re

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from tests.exploration.conftest import Case, made_up

from fado import Valuation, explore_files, value_files
from fado.datasets import protected_from
from fado.exploration._explore import share_error
from fado.tabular import row_hash

N = 2_400
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "id": np.arange(N),
        "age": RNG.integers(18, 80, N),
        "income": RNG.lognormal(size=N).round(3),
        "job": RNG.choice(["clerk", "nurse", None], N),
        "sex": RNG.choice(["f", "m", "x"], N, p=[0.45, 0.45, 0.1]),
        "weight": RNG.uniform(1, 2, N),
    }
)
FRAME["loan"] = np.where(RNG.random(N) < np.where(FRAME["sex"] == "f", 0.2, 0.4), "yes", "no")
PROTECTED = ["sex", "age >= 50"]
ASKED = {"target": "loan", "protected": PROTECTED, "drop": ["id", "weight"], "memory": "1GB"}


def write_parts(folder, frame=FRAME, n_files=3, row_group_size=250, ending="parquet"):
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        part, path = frame.iloc[rows], folder / f"part-{number}.{ending}"
        if ending == "csv":
            part.to_csv(path, index=False)
        else:
            part.to_parquet(path, index=False, row_group_size=row_group_size)
    return folder


def in_memory(frame=FRAME, *, valuation, **more):
    X = frame.drop(columns=["id", "weight", "loan"])
    z = {"sex": frame["sex"], "age>=50": protected_from(frame, "age>=50", named=True)}
    return Case(X, frame["loan"], z, valuation).seen(**more)


def sample_of(n_rows, seed=0, n_all=N):
    """The places of the rows of the smallest hashes."""
    return np.sort(np.argsort(row_hash(seed, np.arange(n_all)))[:n_rows])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("data") / "d")


@pytest.fixture(scope="module")
def values(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("values") / "v"
    value_files(data, out=out, n_bags=5, random_state=2, **ASKED)
    return out


@pytest.fixture(scope="module")
def seen(data, values):
    return explore_files(data, values=values, sample_rows=600, **ASKED, retrain=0)


@pytest.mark.parametrize(
    ("rows", "of", "error"),
    [(100, 10**12, 0.098), (2_500, 10**12, 0.0196), (200_000, 10**8, 0.0021891), (75, 100, 0.0565803)],
)
def test_the_error_is_that_of_a_half_drawn_without_replacement(rows, of, error):
    assert share_error(rows, of) == pytest.approx(error, rel=1e-4)


def test_the_stated_error_covers_the_share_of_a_half_in_19_of_20_samples():
    rng, error = np.random.default_rng(0), share_error(400, 1_000)
    shares = rng.hypergeometric(500, 500, 400, size=20_000) / 400
    assert (np.abs(shares - 0.5) <= error).mean() == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("form", ["directory", "pattern", "file", "csv"])
def test_a_table_that_is_sampled_whole_is_explored_as_in_memory(data, values, tmp_path, form):
    paths = {
        "directory": lambda: data,
        "pattern": lambda: str(data / "part-*.parquet"),
        "file": lambda: write_parts(tmp_path / "one", n_files=1) / "part-0.parquet",
        "csv": lambda: write_parts(tmp_path / "csv", ending="csv"),
    }[form]()
    show_rows = form != "csv"  # whose whole numbers are shown as 33.0
    found = explore_files(paths, values=values, show_rows=show_rows, **ASKED, retrain=0)
    expected = in_memory(valuation=Valuation.load(values), show_rows=show_rows)
    assert found.to_dict() == expected.to_dict()
    assert found.to_dict()["about"]["sampled"] is None
    assert found.html() == expected.html()
    assert repr(found) == "Exploration of 2,400 rows by sex, age>=50"


def test_a_sample_is_explored_as_its_rows_are(values, seen):
    rows = sample_of(600)
    expected = in_memory(FRAME.iloc[rows], valuation=Valuation.load(values).take(rows)).to_dict()
    found = seen.to_dict()
    assert {**found["about"], "sampled": None} == expected["about"]
    for own, other in zip(found["attributes"], expected["attributes"], strict=True):
        for part in ("shown", "left_out", "biases", "values", "plane", "alpha", "columns"):
            assert own[part] == other[part]
        assert own["suspicious"]["groups"] == other["suspicious"]["groups"]
    assert repr(seen) == "Exploration of 600 sampled of 2,400 rows by sex, age>=50"


def test_the_sample_is_told_with_its_error_and_the_groups_of_all_rows(seen):
    told = seen.to_dict()["about"]["sampled"]
    assert (told["rows"], told["of"], told["seed"]) == (600, N, 0)
    assert told["error"] == pytest.approx(0.98 / math.sqrt(600) * math.sqrt(0.75))
    listed = {one["name"]: one for one in seen.to_dict()["attributes"][0]["groups"]}
    members = FRAME["sex"] == "x"
    assert listed["x"]["in_all"] == members.sum()
    assert listed["x"]["rate_in_all"] == pytest.approx((FRAME["loan"] == "yes")[members].mean())
    smallest = members.iloc[sample_of(600)].sum()
    assert told["sentence"].startswith(
        "This is a random sample of 600 of 2,400 rows. A share or a mean value has an error of at most 3.5 "
        f"percentage points (95 %); within the smallest group shown, “x” ({smallest} of the sampled rows), of"
    )


def test_pooled_groups_and_missing_labels_are_counted_in_all_files(tmp_path):
    frame = FRAME.assign(sex=np.where(np.arange(N) % 40 == 0, None, np.arange(N) % 40))
    frame["sex"] = frame["sex"].astype("string")
    listed = sample_by("sex", write_parts(tmp_path / "d", frame), tmp_path)["attributes"][0]["groups"]
    assert {one["in_all"] for one in listed} == {60}
    assert sum(one["in_all"] for one in listed) == N


def test_a_number_has_quarters_without_sizes_in_all_files(data, tmp_path):
    assert "in_all" not in sample_by("age", data, tmp_path)["attributes"][0]["groups"][0]


def sample_by(attribute, data, folder):
    """Explore half of a table by one attribute, with values that no model made."""
    values = folder / "v.parquet"
    made_up(N, [attribute]).save(values)
    settings = ASKED | {"protected": attribute, "values": values, "sample_rows": 1_200}
    return explore_files(data, **settings, retrain=0).to_dict()


def test_the_sample_depends_neither_on_files_nor_on_how_values_are_passed(values, seen, tmp_path):
    other = write_parts(tmp_path / "d", n_files=7, row_group_size=91)
    schema = pyarrow.parquet.read_schema(other / "part-0.parquet")
    pyarrow.parquet.write_table(schema.empty_table(), other / "part-9.parquet")
    asked = {**ASKED, "sample_rows": 600, "retrain": 0}
    Valuation.load(values).save(tmp_path / "v.parquet")
    lazy = Valuation.load(values)
    for given in (values, tmp_path / "v.parquet", lazy):
        assert explore_files(other, values=given, **asked).to_dict() == seen.to_dict()
    assert not any(arrays._read for arrays in lazy._arrays.values())  # no more than is needed
    another = explore_files(other, values=values, random_state=1, **asked)
    assert another.to_dict()["attributes"] != seen.to_dict()["attributes"]


@pytest.mark.filterwarnings("ignore:Models will learn little")
def test_suspicious_rows_are_named_by_their_places_in_the_whole_table(data, values):
    found = explore_files(
        data, values=values, sample_rows=600, show_rows=True, **ASKED | {"drop": []}, retrain=0
    )
    agreement = Valuation.load(values).field("label_probability", "y")
    groups = found.to_dict()["attributes"][0]["suspicious"]["rows"]
    listed = [row for group in groups for row in group["rows"]]
    assert listed
    assert {row["row"] for row in listed} <= set(sample_of(600).tolist())
    assert max(row["row"] for row in listed) > 600
    for row in listed:
        assert row["agreement"] == pytest.approx(agreement[row["row"]])
        assert dict(row["features"])["id"] == str(row["row"])
        assert row["label"] == FRAME["loan"][row["row"]]


def test_harmful_rows_have_their_places_and_sums_stand_for_all_rows(data, tmp_path):
    effects = {"y": RNG.normal(size=N), "sex": RNG.normal(size=N)}
    Valuation.from_values(effects).save(tmp_path / "v.parquet")
    asked = ASKED | {"protected": "sex", "weight": "weight", "drop": ["id"]}
    found = explore_files(data, values=tmp_path / "v.parquet", sample_rows=600, **asked, retrain=0)
    part, rows = found.to_dict()["attributes"][0]["effects"], sample_of(600)
    weights = FRAME["weight"].to_numpy()
    weighted = effects["sex"] * weights / weights[rows].mean()  # those of the sample have a mean of 1
    worst = rows[np.argsort(weighted[rows], kind="stable")[:10]]
    assert [row["row"] for row in part["rows"]] == worst.tolist()
    assert part["rows"][0]["ratio_effect"] == pytest.approx(weighted[worst[0]])
    own = FRAME.iloc[rows]
    cell = part["cells"][0]
    members = ((own["sex"] == cell["group"]) & (own["loan"] == cell["label"])).to_numpy()
    assert cell["ratio_effect"] == pytest.approx(4 * weighted[rows][members].sum())
    assert part["lead"].endswith("Sums are scaled up from the sample to all rows.")
    told = found.to_dict()["about"]["sampled"]["sentence"]
    assert ". A share has an error of at most 3.5 percentage points" in told


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"protected": ["job"]}, "`values` has no values for 'job'; it has ['sex', 'age>=50']"),
        ({"target": "job"}, "The target is missing in"),
        ({"target": "sex", "protected": "age >= 50"}, "other labels than those of 'sex', or with the rows"),
        ({"pos_label": "perhaps"}, "`pos_label` must be one of the labels 'no' and 'yes', got 'perhaps'."),
        ({"sample_rows": 0}, "`sample_rows` must be"),
        ({"min_group_size": -1}, "`min_group_size`"),
        ({"protected": []}, "There is no protected attribute to explore"),
        ({"memory": "1MB"}, r"`memory` of 1.0 MB is too small for `sample_rows=200,000`: the 250 rows that"),
        ({"values": "nowhere"}, "There is no file or directory 'nowhere'."),
        ({"values": __file__}, "`values` of a table in files must be a directory of parts or end in"),
    ],
)
def test_what_does_not_fit_is_refused(data, values, change, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        explore_files(data, **{"values": values, **ASKED, **change}, retrain=0)


@pytest.mark.parametrize(
    ("frame", "ending", "sentence"),
    [
        (FRAME.iloc[1:], "parquet", r"`values` has 2,400 rows and the table has 2,399: pass"),
        (FRAME.iloc[1:], "csv", r"`values` has 2,400 rows and the table has 2,399: pass"),
        (FRAME.iloc[::-1], "parquet", "other labels than those of 'loan', or with the rows in another order"),
    ],
)
def test_values_of_other_rows_are_refused(values, tmp_path, frame, ending, sentence):
    with pytest.raises(ValueError, match=sentence):
        explore_files(write_parts(tmp_path / "d", frame, ending=ending), values=values, **ASKED, retrain=0)


def test_labels_that_the_sample_lacks(tmp_path):
    outside = np.arange(N) == np.setdiff1d(np.arange(N), sample_of(300))[0]
    made_up(N, ["sex"]).save(tmp_path / "v.parquet")
    asked = ASKED | {"protected": "sex", "values": tmp_path / "v.parquet", "sample_rows": 300, "retrain": 0}
    frame = FRAME.assign(loan=np.where(outside, "yes", "no"))
    with pytest.raises(ValueError, match="None of the 300 sampled rows has the positive label 'yes': explor"):
        explore_files(write_parts(tmp_path / "d", frame), **asked)
    frame = FRAME.assign(loan=np.where(outside, "perhaps", FRAME["loan"]))
    found = explore_files(write_parts(tmp_path / "e", frame), **asked).to_dict()
    assert found["about"]["target"]["positive"] is None
    assert found["attributes"][0]["groups"][0]["rate_in_all"] is None


def test_the_least_bound_that_is_named_works(data, values):
    asked = {"values": values, **ASKED, "retrain": 0}
    with pytest.raises(ValueError, match="too small") as caught:
        explore_files(data, **asked | {"memory": "1MB"})
    least = re.search(r"the least that works is ([\d,]+) MB, or `sample_rows=(\d+)`\.$", str(caught.value))
    explore_files(data, **asked | {"memory": f"{least[1]}MB"})
    explore_files(data, **asked | {"memory": "1MB", "sample_rows": int(least[2])})


def test_names_of_groups_are_escaped_in_what_is_said_of_the_sample(tmp_path):
    evil = "</script><script>alert(1)</script>"
    frame = FRAME.assign(sex=FRAME["sex"].replace("x", evil))
    made_up(N, ["sex"]).save(tmp_path / "v.parquet")
    asked = ASKED | {"protected": "sex", "values": tmp_path / "v.parquet", "sample_rows": 600}
    found = explore_files(write_parts(tmp_path / "d", frame), **asked, retrain=0)
    assert evil in found.to_dict()["about"]["sampled"]["sentence"]
    assert "This is a random sample of 600 of 2,400 rows." in found.html()
    assert evil not in found.html()
    assert "<script>alert" not in found.html()
