"""`fado explore` of directories, patterns, and files within a bound on memory."""

import numpy as np
import pandas as pd
import pytest
from tests.cli import program

import fado
from fado.exploration import Exploration

N = 3_000
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "id": np.arange(N),
        "age": RNG.integers(18, 90, N),
        "income": RNG.lognormal(size=N),
        "sex": RNG.choice(["f", "m"], N),
    }
)
FRAME["default"] = (FRAME["income"] + RNG.normal(size=N) < 0.6).astype(int)
ASKED = ("--target", "default", "--protected", "sex", "--protected", "age >= 50", "--drop", "id")
SETTINGS = {"target": "default", "protected": ["sex", "age >= 50"], "drop": ["id"]}


def run(data, values, page, *more, code=0):
    return program.run("explore", data, *ASKED, *more, values=values, out=page, code=code)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for part in range(3):
        FRAME.iloc[part * 1000 : (part + 1) * 1000].to_parquet(folder / f"{part}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def values(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("values") / "v"
    fado.value_files(folder, out=out, memory="500MB", n_bags=5, **SETTINGS)
    return out


@pytest.mark.parametrize("what", ["", "*.parquet"])
def test_the_page_is_the_librarys_and_the_sample_is_said_first(folder, values, tmp_path, what):
    page = tmp_path / "page.html"
    more = ("--sample-rows", 500, "--positive", "0", "--memory", "1GB", "--seed", 3, "--min-group-size", 5)
    result = run(folder / what, values, page, *more, "--retrain", 0)
    same = {"sample_rows": 500, "pos_label": 0, "memory": "1GB", "random_state": 3, "min_group_size": 5}
    summary = fado.explore_files(folder, values=values, retrain=0, **same, **SETTINGS).to_dict()
    steps = [attribute["answers"][-1] for attribute in summary["attributes"]]
    assert any(step["command"] for step in steps)
    for step in steps:
        step["command"] = None  # `fado aim` reads one file
    assert page.read_text(encoding="utf-8") == Exploration(summary).html()
    told = summary["about"]
    assert result.stdout.startswith(told["sampled"]["sentence"] + "\nProtected attribute sex\n")
    assert told["target"]["positive"] == "0"


def test_a_plain_file_is_explored_in_memory_with_values_in_parts(values, tmp_path):
    FRAME.to_parquet(tmp_path / "data.parquet", index=False)
    for more in ((), ("--memory", "1GB")):
        result = run(tmp_path / "data.parquet", values, tmp_path / "page.html", *more, "--retrain", 0)
        assert result.stdout.startswith("Protected attribute sex\n")


def test_values_of_a_command_in_memory_serve_as_well(folder, tmp_path):
    FRAME.to_parquet(tmp_path / "data.parquet", index=False)
    values = tmp_path / "v.parquet"
    program.run("value", tmp_path / "data.parquet", *ASKED, bags=5, out=values)
    result = run(folder, values, tmp_path / "page.html", "--sample-rows", 300)
    assert result.stdout.startswith("This is a random sample of 300 of 3,000 rows.")
    renamed = pd.read_parquet(folder).rename(columns={"default": "other"}).assign(default=FRAME["default"])
    renamed.to_parquet(tmp_path / "renamed.parquet", index=False)
    asked = ("--target", "other", "--sample-rows", 300)
    result = run(tmp_path / "renamed.parquet", values, tmp_path / "other.html", *asked, code=2)
    first, second = result.stderr.splitlines()
    assert first == "reveals target: 'default' (0.999): use it only if it is known before the target is."
    assert second.startswith("error: `--values` are for the target 'default', not for 'other': pass")


TOO_SMALL = "`--memory` of 1.0 MB is too small for `--sample-rows 200,000`: the 1,000 r"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("--retrain 5", "`--retrain` must be 0, or a number of fits from 12"),
        ("--memory 1MB", TOO_SMALL),
        ("--memory four", "`--memory` must be a size with its unit"),
        ("--sample-rows 0", "`--sample-rows` must be"),
        ("--positive 2", "`--positive 2` is not a label of the target; it has '0', '1'."),
        ("--protected income", "`--values` has no values for 'income'; it has ['sex', 'age>=50']"),
        (f"--positive 1 --values {__file__}", "`--values` of a table in files must be a direct"),
        ("--values nowhere", "There is no file or directory 'nowhere'."),
    ],
    ids=lambda case: case[:20],
)
def test_what_does_not_fit_is_one_sentence_and_no_page(folder, values, tmp_path, more, sentence):
    result = run(folder, values, tmp_path / "page.html", *more.split(), code=2)
    assert f"error: {sentence}" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
