"""What the system refuses is told by every command that writes: what was written, where, and why."""

import errno
import os
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fado import Valuation
from fado.cli._app import build_app

N = 400
NAMED = "--target default --protected sex"
QUICK = "--bags 5 --jobs 1"
CONFIG = """
[data]
path = "d.csv"
target = "default"
protected = "sex"
[split]
method = "random"
train = 0.5
test = 0.5
[interventions]
[models]
count = 1
space = { n_estimators = 5 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 90, N), "sex": rng.choice(["f", "m"], N)})
    frame["default"] = (rng.random(N) < np.where(frame["sex"] == "f", 0.2, 0.5)).astype(int)
    frame.to_csv(folder / "d.csv", index=False)
    Valuation.from_probabilities(rng.random(N), {"sex": rng.random(N)}).save(folder / "v.parquet")
    (folder / "c.toml").write_text(CONFIG)
    (folder / "in").mkdir()
    frame.to_parquet(folder / "in" / "p.parquet")
    for words in (
        f"frontier d.csv {NAMED} --max-fits 2 --jobs 1 --at-least 0.05 --out model",
        "experiment run c.toml --store store --jobs 1",
        f"value d.csv {NAMED} {QUICK} --models kept --out v2.parquet",
    ):
        run(folder, words)
    return folder


def run(folder, words, code=0):
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        done = CliRunner().invoke(build_app(), words.split())
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize(
    ("words", "what", "file"),
    [
        (f"value d.csv {NAMED} {QUICK} --out o.parquet", "The values", "o.parquet"),
        (f"value d.csv {NAMED} {QUICK} --out o.csv", "The values", "o.csv"),
        (f"value d.csv {NAMED} {QUICK} --models m --out o.parquet", "The values", "o.parquet"),
        ("value d.csv --models kept --out o.parquet", "The values", "o.parquet"),
        (f"value in {NAMED} {QUICK} --out parts", "The plan", "parts/_plan.json"),
        (f"sample d.csv {NAMED} --values v.parquet --alpha 0.5 --out o.csv", "The table", "o.csv"),
        (f"sample in {NAMED} --intervention rps --out o", "The rows", "o/part-00000.parquet"),
        (f"reweigh d.csv {NAMED} --intervention rw --out o.parquet", "The table", "o.parquet"),
        (f"reweigh in {NAMED} --intervention rw --out o.parquet", "The rows", "o.parquet"),
        (f"explore d.csv {NAMED} --values v.parquet --retrain 0 --out o.html", "The page", "o.html"),
        (f"generate d.csv {NAMED} --values v.parquet --jobs 1 --out o.parquet", "The table", "o.parquet"),
        (f"query d.csv d.csv {NAMED} {QUICK} --n 3 --out o.parquet", "The table", "o.parquet"),
        ("predict model d.csv --out o.parquet", "The table", "o.parquet"),
        (f"frontier d.csv {NAMED} --max-fits 2 --jobs 1 --store s --out o", "The model", "o/.*"),
        ("experiment init o.toml", "The configuration", "o.toml"),
        ("experiment report store --out o.html", "The report", "o.html"),
    ],
)
def test_what_cannot_be_written_is_named(folder, monkeypatch, words, what, file):
    def refuse(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    *_, told = run(folder, words, code=2).stderr.splitlines()
    place = rf"'({folder}/)?{file}' \(No space left on device, [\d.]+ \w+ are free\)"
    assert re.fullmatch(
        rf"error: {what} cannot be written to {place}: make room and run again[^.]*\.", told
    ), told
    assert not list(folder.rglob("*.part"))
