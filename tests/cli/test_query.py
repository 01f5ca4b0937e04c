"""`fado query`, as a user runs it."""

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import refusal, run

from fado import LinearUtility, OutOfBagEntropy
from fado.active import UtilityQuery

RNG = np.random.default_rng(0)
N = 700
FRAME = pd.DataFrame(
    {
        "income": RNG.normal(size=N).round(3),
        "debt": RNG.normal(size=N).round(3),
        "job": RNG.choice(["clerk", "cook"], N),
        "age": RNG.integers(18, 90, N),
    }
)
FRAME["sex"] = np.where(FRAME["debt"] + RNG.normal(size=N) > 0.5, "Female", "Male")
FRAME["default"] = (FRAME["income"] + 0.5 * RNG.normal(size=N) > 0).astype(int)
LABELLED, POOL = FRAME[:300].reset_index(drop=True), FRAME[300:].reset_index(drop=True)
FEATURES = ["income", "debt", "job", "age", "sex"]


@pytest.fixture
def files(tmp_path):
    LABELLED.to_csv(tmp_path / "labelled.csv", index=False)
    POOL.to_parquet(tmp_path / "pool.parquet")
    POOL.drop(columns=["default", "sex"]).to_csv(tmp_path / "blind.csv", index=False)
    return tmp_path


def query(files, *more, pool="pool.parquet", out="chosen.parquet", protected=("sex",), n=40, code=0):
    options = {"target": "default", "protected": protected, "bags": 5, "jobs": 1, "n": n}
    return run("query", files / "labelled.csv", files / pool, *more, **options, out=files / out, code=code)


def fitted(features):
    exclude = {"sex": ["sex"]} if "sex" in features else None
    valuator = OutOfBagEntropy(n_bags=5, z_exclude=exclude, random_state=0, keep_models=True)
    return valuator.fit(LABELLED[features], LABELLED["default"], sensitive_features={"sex": LABELLED["sex"]})


@pytest.mark.parametrize(
    ("more", "utility", "settings"),
    [
        ([], LinearUtility(0.75), {}),
        (["--alpha", 0.5], LinearUtility(0.5), {}),
        (["--shares", "Female=0.5"], LinearUtility(0.75), {"group_shares": {"Female": 0.5}}),
        (["--shares", "Female=30"], LinearUtility(0.75), {"group_shares": {"Female": 30}}),
        (["--shares", "equal"], LinearUtility(0.75), {"group_shares": "equal"}),
        (["--diversity", 0.5], LinearUtility(0.75), {"diversity": 0.5}),
    ],
    ids=["plain", "alpha", "share", "quotas", "equal", "diversity"],
)  # fmt: skip
def test_rows_equal_the_librarys(files, more, utility, settings):
    result = query(files, *more)
    chosen = pd.read_parquet(files / "chosen.parquet")
    strategy = UtilityQuery(fitted(FEATURES), utility, **settings)
    rows = strategy.query(POOL[FEATURES], n=40, sensitive_features={"sex": POOL["sex"]})
    assert chosen["position"].tolist() == rows.tolist()
    pd.testing.assert_frame_equal(chosen[POOL.columns], POOL.iloc[rows].reset_index(drop=True))
    np.testing.assert_allclose(chosen["utility"], strategy.utilities_[rows])
    for name, column in (("y", "v_y"), ("sex", "v_sex")):
        np.testing.assert_allclose(chosen[column], strategy.valuation_[name][rows])
    assert "40 of 400 rows written" in result.stdout
    for label, count in strategy.group_counts_.items():
        assert any(line.split()[:2] == [label, str(count)] for line in result.stdout.splitlines())


def test_a_pool_without_the_attribute(files):
    result = query(files, pool="blind.csv", out="chosen.csv")
    assert "Features that the pool does not have, and that no model used: sex" in result.stdout
    strategy = UtilityQuery(fitted(FEATURES[:4]), LinearUtility(0.75))
    rows = strategy.query(POOL[FEATURES[:4]], n=40)
    chosen = pd.read_csv(files / "chosen.csv")
    assert chosen["position"].tolist() == rows.tolist()
    assert chosen.columns.tolist() == [*FEATURES[:4], "position", "utility", "v_y", "v_sex"]


def test_shares_of_two_attributes(files):
    both = ("sex", "age>=50")
    query(files, "--shares", "Female & age>=50=10", protected=both)
    chosen = pd.read_parquet(files / "chosen.parquet")
    assert ((chosen["age"] >= 50) & (chosen["sex"] == "Female")).sum() == 10
    query(files, "--shares", "age >= 50=10", pool="blind.csv", protected=both)
    assert (pd.read_parquet(files / "chosen.parquet")["age"] >= 50).sum() == 10


def test_labels_of_the_pool_are_not_looked_at(files):
    POOL.assign(default=1 - POOL["default"]).to_parquet(files / "flipped.parquet")
    first, second = (
        query(files, pool=pool) and pd.read_parquet(files / "chosen.parquet")["position"].tolist()
        for pool in ("pool.parquet", "flipped.parquet")
    )
    assert first == second


def test_a_quota_beyond_the_pool_is_a_warning(files):
    few = POOL[(POOL["sex"] == "Male") | (POOL.index < 20)]
    few.to_parquet(files / "few.parquet")
    result = query(files, "--shares", "Female=30", pool="few.parquet")
    told = f"of 'Female' ({(few['sex'] == 'Female').sum()} of 30)"
    assert f"warning: The pool has less than `--shares` ask for {told}" in result.stderr


@pytest.mark.parametrize(
    ("more", "settings", "says"),
    [
        ([], {"n": 0}, "`--n` must be at least 1, got 0."),
        (["--shares", "Female=0.5"], {"pool": "blind.csv"}, "`--shares` needs the groups of the pool"),
        (["--alpha", 2], {}, "`--alpha` must be in [0, 1], got 2"),
        (["--diversity", -1], {}, "`--diversity` must be in [0, 1], got -1"),
        (["--shares", "Female"], {}, "`--shares` must be like Female=0.5 or Female=250"),
        (["--shares", "Female=many"], {}, "`--shares` must be like Female=0.5 or Female=250"),
        (["--shares", "Female=0.5", "--shares", "Female=0.2"], {}, "`--shares` names 'Female' twice"),
        (["--shares", "female=0.5"], {}, "names 'female', which is not a group; did you mean 'Female'"),
        (["--exclude", "jobs"], {}, "`--exclude` names 'jobs': there is no column 'jobs'"),
        ([], {"out": "chosen.txt"}, "`--out` must end in .csv or .parquet"),
        ([], {"pool": "nowhere.csv"}, "There is no file"),
        ([], {"pool": "strange.csv"}, "The pool has none of the features"),
        ([], {"pool": "twice.csv"}, "The pool has a column 'position', 'utility', which the result"),
        ([], {"pool": "empty.csv"}, "has no rows"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_a_sentence(files, more, settings, says):
    pd.DataFrame({"other": [1, 2]}).to_csv(files / "strange.csv", index=False)
    POOL[:5].assign(position=1, utility=2).to_csv(files / "twice.csv", index=False)
    POOL[:0].to_csv(files / "empty.csv", index=False)
    assert says in refusal(query(files, *more, **settings, code=2))
    assert not (files / "chosen.parquet").exists()
