"""`fado value` of directories, patterns, and files within a bound on memory."""

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import run

import fado
from fado import OutOfBagEntropy, Valuation
from fado.cli import _inputs
from fado.datasets import protected_from

N = 900
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "id": np.arange(N),
        "age": RNG.integers(18, 90, N),
        "income": RNG.lognormal(size=N),
        "sex": RNG.choice(["f", "m"], N),
    }
)
FRAME["default"] = (FRAME["income"] + RNG.normal(size=N) < 0.6).map({True: "yes", False: "no"})
ASKED = ("--target", "default", "--protected", "sex", "--protected", "age >= 50", "--drop", "id", "--bags", 5)
SETTINGS = {"target": "default", "protected": ["sex", "age >= 50"], "drop": ["id"], "n_bags": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for part in range(3):
        FRAME.iloc[part * 300 : (part + 1) * 300].to_parquet(folder / f"{part}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def values(folder, tmp_path_factory):
    return fado.value_files(folder, out=tmp_path_factory.mktemp("values") / "v", memory="500MB", **SETTINGS)


@pytest.mark.parametrize("what", ["", "*.parquet"])
def test_a_directory_or_a_pattern_is_valued_part_by_part(folder, values, tmp_path, what):
    result = run("value", folder / what, *ASKED, "--out", tmp_path / "v")
    assert result.stdout.startswith("Rows:           900 in 3 files, 3 columns that models see")
    assert "Values of 900 rows written to" in result.stdout
    assert "Columns hidden from the models of age>=50: age" in result.stdout
    assert "Settings: valuator oob, bags 5" in result.stdout
    found = Valuation.load(tmp_path / "v")
    assert (found["y"] == values["y"]).all()
    assert (found["age>=50"] == values["age>=50"]).all()


def test_the_summary_shows_rates_and_means_by_group(folder, values, tmp_path):
    result = run(
        "value", folder, *ASKED, "--positive", "no", "--memory", "1GB", "--out", tmp_path / "v.parquet"
    )
    women = (FRAME["sex"] == "f").to_numpy()
    rate = (FRAME["default"] == "no")[women].mean()
    row = next(line.split() for line in result.stdout.splitlines() if line.split()[:1] == ["f"])
    means = [values[name][women].mean() for name in ("y", "sex")]
    assert row[1:] == [str(women.sum()), *(f"{own:.3f}" for own in (women.mean(), rate, *means))]
    assert [path.name for path in tmp_path.iterdir()] == ["v.parquet"]


def test_a_dry_run_prints_the_plan_and_writes_nothing(folder, tmp_path):
    result = run(
        "value", folder / "0.parquet", *ASKED, "--dry-run", "--train-rows", 100, "--out", tmp_path / "v"
    )
    assert "100 per bag at most, 5 bags, 3 variables" in result.stdout
    assert "Values of" not in result.stdout
    assert not list(tmp_path.iterdir())


def test_a_plain_file_is_valued_in_memory_as_ever(folder, tmp_path):
    run("value", folder / "0.parquet", *ASKED, "--out", tmp_path / "v.parquet")
    part = FRAME.iloc[:300]
    z = {"sex": part["sex"], "age>=50": protected_from(part, "age>=50")}
    exclude = {"sex": ["sex"], "age>=50": ["age"]}
    valuator = OutOfBagEntropy(n_bags=5, z_exclude=exclude, random_state=0)
    valuator.fit(part.drop(columns=["id", "default"]), part["default"], sensitive_features=z)
    found = Valuation.load(tmp_path / "v.parquet")
    assert (found["y"] == valuator.valuation_["y"]).all()
    assert "train_rows" not in found.metadata


def test_a_file_beyond_memory_is_read_part_by_part_with_a_sentence(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(_inputs, "free_memory", lambda: 20_000)
    result = run("value", folder / "0.parquet", *ASKED, "--out", tmp_path / "v.parquet")
    assert "and 20 KB are free: it is read in parts, as with `--memory`." in result.stderr
    assert Valuation.load(tmp_path / "v.parquet").metadata["n_rows"] == 300


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--valuator", "influence"), "is valued by out-of-bag entropy: leave out `--valuator`"),
        (("--valuator", "inbag", "--keep-probabilities"), "leave out `--valuator`, `--keep-probabilities`"),
        (("--groups", "nothing"), "`--groups` names 'nothing'"),
        (("--memory", "4"), "`--memory` must be a size with its unit"),
        (("--train-rows", "0"), "`--train-rows` must be at least 1"),
        (("--exclude", "nothing"), "`--exclude` names 'nothing'"),
        (("--bags", "3"), "must be at least 1 for every row to be out of bag once"),
    ],
)
def test_bad_input_ends_in_a_sentence(folder, tmp_path, more, sentence):
    assert sentence in run("value", folder, *ASKED, "--out", tmp_path / "v", *more, code=2).stderr
    assert not list(tmp_path.iterdir())


def test_parts_go_to_the_cluster_that_is_named(folder, tmp_path, monkeypatch):
    asked = {}

    def value_files(*paths, client, **settings):
        asked.update(settings, client=client)
        return fado.value_files(*paths, **settings)

    monkeypatch.setattr("fado.valuation.value_files", value_files)
    run("value", folder, *ASKED, "--dask", "tcp://here:1", "--seed", 3, "--out", tmp_path / "v")
    assert (asked["client"], asked["random_state"]) == ("tcp://here:1", 3)
