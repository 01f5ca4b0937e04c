"""`fado sample` and `fado reweigh` of directories, patterns, and files within a bound on memory."""

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import run

from fado import Valuation
from fado.cli import _inputs

N = 600
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"id": np.arange(N), "sex": RNG.choice(["f", "m"], N), "age": RNG.integers(18, 90, N)})
FRAME["hired"] = np.where(RNG.random(N) < np.where(FRAME["sex"] == "f", 0.2, 0.5), "yes", "no")
FRAME["survey"] = RNG.choice([0.5, 1.0, 2.0], N)
VALUATION = Valuation.from_probabilities(RNG.random(N), {"sex": RNG.random(N), "age>=50": RNG.random(N)})
ASKED = ("--target", "hired", "--protected", "sex", "--protected", "age >= 50")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "parts").mkdir()
    FRAME.to_parquet(folder / "all.parquet", index=False)
    for part in range(3):
        rows = FRAME.iloc[part * 200 : (part + 1) * 200]
        rows.to_parquet(folder / "parts" / f"{part}.parquet", index=False)
    VALUATION.save(folder / "values.parquet")
    return folder


def without_place(printed):
    return printed.rsplit(" written to ", 1)[0]


@pytest.mark.parametrize("data", [["parts"], ["parts/*.parquet"], ["all.parquet", "--memory", "1GB"]])
@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("sample", ()),
        (
            "sample",
            ("--positive", "no", "--weight", "survey", "--strength", 0.5, "--utility", "cobb-douglas"),
        ),
        ("reweigh", ("--positive", "no")),
        ("reweigh", ("--intervention", "corrected_uar", "--floor", 0.1, "--weight", "survey")),
    ],
)
def test_the_same_is_printed_and_written_as_in_memory(files, tmp_path, data, command, more):
    asked = (*ASKED, "--values", files / "values.parquet", "--alpha", 0.5, *more, "--out")
    whole = run(command, files / "all.parquet", *asked, tmp_path / "memory.parquet")
    parts = run(command, files / data[0], *data[1:], *asked, tmp_path / "parts.parquet")
    assert without_place(parts.stdout) == without_place(whole.stdout)
    one, other = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("memory", "parts"))
    pd.testing.assert_frame_equal(one, other, rtol=1e-12)


@pytest.mark.parametrize(("command", "method", "rows"), [("sample", "rps", None), ("reweigh", "rw", 600)])
def test_methods_without_values_go_part_by_part_too(files, tmp_path, command, method, rows):
    result = run(command, files / "parts", *ASKED, intervention=method, out=tmp_path / "out")
    assert f"Settings: intervention {method}" in result.stdout
    assert "positive yes, seed 0." in " ".join(result.stdout.split())
    found = pd.concat([pd.read_parquet(path) for path in (tmp_path / "out").iterdir()])
    assert rows is None or len(found) == rows
    assert f"{len(found):,} of 600 rows written" in result.stdout or rows


def test_values_of_a_directory_serve_both_forms(files, tmp_path):
    settings = ("--drop", "id", "--drop", "survey", "--bags", 5, "--train-rows", 200)
    run("value", files / "parts", *ASKED, *settings, "--out", tmp_path / "values")
    asked = (*ASKED, "--values", tmp_path / "values", "--alpha", 0.5, "--out")
    for data, out in (("all.parquet", "memory.parquet"), ("parts", "parts.parquet")):
        run("reweigh", files / data, *asked, tmp_path / out)
    one, other = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("memory", "parts"))
    np.testing.assert_allclose(one["weight"], other["weight"], rtol=1e-12)


def test_a_file_beyond_memory_is_read_part_by_part_with_a_sentence(files, tmp_path, monkeypatch):
    monkeypatch.setattr(_inputs, "free_memory", lambda: 20_000)
    asked = (*ASKED, "--intervention", "rps", "--memory")
    plain = run("sample", files / "all.parquet", *asked[:-1], "--out", tmp_path / "s.parquet")
    assert "Sampling" in plain.stderr
    assert "it is read in parts, as with `--memory`" in " ".join(plain.stderr.split())


@pytest.mark.parametrize(
    ("command", "more", "sentence"),
    [
        ("sample", "--out s.csv", "`--out` must be a directory, or end in .parquet"),
        ("sample", "--out s --memory 2MB", "`--memory` of 2.0 MB is too small"),
        ("sample", "--out s --protected id", "none of 'id', which `--protected` asks for"),
        ("reweigh", "--out s --positive maybe", "must be one of the labels 'no' and 'yes'"),
        ("reweigh", "--out s --values none", "There is no file or directory"),
        (
            "reweigh",
            "--out w.parquet --intervention fairlearn_grid",
            "FairlearnGrid needs all rows in memory",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(files, tmp_path, monkeypatch, command, more, sentence):
    monkeypatch.chdir(tmp_path)
    values = {} if "fairlearn" in more else {"values": files / "values.parquet", "alpha": 0.5}
    result = run(command, files / "parts", *ASKED, *more.split(), **values, code=2)
    assert sentence in " ".join(result.stderr.split())
    assert not list(tmp_path.iterdir())


RANDOM = {"protected": "sex", "intervention": "rps", "memory": "1GB"}


@pytest.mark.parametrize(("labels", "text"), [([0, 1], "0"), ([0.5, 1.5], "0.5"), ([False, True], "False")])
def test_positive_labels_are_found_before_a_row_is_read(tmp_path, labels, text):
    FRAME.assign(hired=np.where(FRAME["hired"] == "no", *labels)).to_parquet(tmp_path / "t.parquet")
    out = tmp_path / "_s.parquet"
    result = run("sample", f"{tmp_path}/*", **RANDOM, target="hired", positive=text, out=out)
    assert f"positive {labels[0]}, seed 0" in " ".join(result.stdout.split())


@pytest.mark.parametrize("target", ["hired", "n"])
def test_a_positive_label_that_is_no_number_is_refused(tmp_path, target):
    FRAME.assign(hired=FRAME["hired"] == "no", n=1).to_parquet(tmp_path / "t.parquet")
    options = {"target": target, "positive": "yes", "out": tmp_path / "s.parquet", "code": 2}
    result = run("sample", tmp_path / "t.parquet", **RANDOM, **options)
    assert "`--positive yes` is not a label of the target" in result.stderr
