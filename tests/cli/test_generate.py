"""`fado generate`, as a user runs it."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import check_sentence, run

from fado import LinearUtility, UtilityAwareOverSampler, Valuation

N = 400
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N),
        "debt": RNG.normal(size=N).round(3),
        "sex": RNG.choice(["f", "m"], N),
        "job": pd.Categorical(RNG.choice(["a", "b"], N)),
        "when": pd.Timestamp("2020-01-01"),
    }
)
FRAME["default"] = (RNG.random(N) < np.where(FRAME["sex"] == "f", 0.2, 0.5)).astype(int)
FRAME.loc[::11, "debt"] = np.nan
VALUATION = Valuation.from_probabilities(
    RNG.random(N), {"sex": RNG.random(N), "age>=50": RNG.random(N), "sex==f & age>=50": RNG.random(N)}
)


@pytest.fixture
def files(tmp_path):
    FRAME.to_parquet(tmp_path / "data.parquet")
    VALUATION.save(tmp_path / "values.parquet")
    return tmp_path


def generate(files, *more, protected=("sex",), drop=("when",), values=True, code=0):
    options = {"values": files / "values.parquet"} if values else {}
    options |= {"target": "default", "protected": protected, "drop": drop, "jobs": 1}
    return run("generate", files / "data.parquet", *more, **options, out=files / "more.parquet", code=code)


@pytest.mark.parametrize("method", ["trees", "repeat"])
def test_rows_equal_the_librarys(files, method):
    result = generate(files, "--alpha", 0.25, "--strength", 0.5, "--seed", 3, "--method", method)
    settings = {"strength": 0.5, "random_state": 3, "method": method}
    sampler = UtilityAwareOverSampler(LinearUtility(0.25).over(["sex"]), **settings)
    X = FRAME.drop(columns=["default", "when"])
    given = {"sensitive_features": {"sex": FRAME["sex"]}, "valuation": VALUATION}
    X2, y2 = sampler.fit_resample(X, FRAME["default"], **given)
    more = pd.read_parquet(files / "more.parquet")
    assert list(more) == [*FRAME, "synthetic"]
    pd.testing.assert_frame_equal(more[:N].drop(columns="synthetic"), FRAME, check_dtype=False)
    pd.testing.assert_frame_equal(more[list(X)], X2, check_dtype=False, check_categorical=False)
    assert more["default"].tolist() == y2.tolist()
    assert more["synthetic"].tolist() == sampler.synthetic_.tolist()
    assert more["when"][N:].isna().all()
    assert more["age"].dtype == FRAME["age"].dtype
    n_made = int(sampler.synthetic_.sum())
    assert f"400 rows and {n_made} synthetic rows, marked in 'synthetic', written to" in result.stdout
    for sex in ("f", "m"):
        line = next(line.split() for line in result.stdout.splitlines() if line.strip().startswith(sex))
        parts = [FRAME["default"][FRAME["sex"] == sex], more["default"][more["sex"] == sex]]
        assert line[1:3] == [str(len(parts[0])), str(len(parts[1]) - len(parts[0]))]
        assert line[3:] == [f"{part.mean():.3f}" for part in parts]


@pytest.mark.parametrize("expression", ["age>=50", "sex==f & age>=50"])
def test_made_rows_stay_in_their_group(files, expression):
    generate(files, protected=[expression])
    more = pd.read_parquet(files / "more.parquet")
    group = (more["age"] >= 50) & (True if expression == "age>=50" else more["sex"] == "f")
    rates = more["default"].groupby(group).mean()
    assert rates.max() - rates.min() < 0.01
    assert more["synthetic"].any()


def test_an_attribute_that_no_model_sees_is_the_parents(files):
    generate(files, "--drop", "sex", "--drop", "job")
    more = pd.read_parquet(files / "more.parquet")
    assert (more["sex"][more["synthetic"]] == "f").all()
    assert more["job"][more["synthetic"]].isna().all()
    rates = more["default"].groupby(more["sex"]).mean()
    assert abs(rates["f"] - rates["m"]) < 0.01


def test_values_are_made_on_the_way(files):
    result = generate(files, values=False)
    assert "alpha 0.5" in result.stdout
    assert pd.read_parquet(files / "more.parquet")["synthetic"].any()


def test_weights_of_made_rows_are_written(files):
    FRAME.assign(survey=RNG.integers(1, 5, N)).to_parquet(files / "data.parquet")
    result = generate(files, "--weight", "survey")
    more = pd.read_parquet(files / "more.parquet")
    rates = {
        sex: np.average(part["default"], weights=part["survey"])
        for sex, part in more.groupby("sex", observed=True)
    }
    assert abs(rates["f"] - rates["m"]) < 0.01
    shown = [line.split() for line in result.stdout.splitlines() if re.match(r"  [fm] ", line)]
    assert {line[0]: line[-1] for line in shown} == {sex: f"{rate:.3f}" for sex, rate in rates.items()}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--strength", 2], r"`--strength` must be in \[0, 1\], got 2.0"),
        (["--alpha", 1.5], r"`--alpha` must be in \[0, 1\], got 1.5"),
        (["--protected", "job"], "`--values` has no values for the protected attribute 'job'"),
    ],
    ids=str,
)
def test_bad_input_ends_in_one_sentence(files, more, message):
    check_sentence(generate(files, *more, code=2), message)
    assert not (files / "more.parquet").exists()


def test_columns_that_are_in_the_way_are_named(files):
    assert "Column 'when' holds dates or times" in generate(files, drop=(), code=2).stderr
    FRAME.assign(synthetic=1).to_parquet(files / "data.parquet")
    assert "error: The table already has a column 'synthetic'" in generate(files, code=2).stderr
