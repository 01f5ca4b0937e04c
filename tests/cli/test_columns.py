"""What commands say about columns before the first fit, and the ids that they leave out."""

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import run

from fado import load_model

N = 600
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "account": [f"secret{j:04d}" for j in range(N)],
        "number": RNG.permutation(N) + 5_000,
        "income": RNG.normal(size=N),
        "share": [f"{j % 7} %" for j in range(N)],
        "sex": RNG.choice(["f", "m"], N),
    }
)
FRAME["default"] = (FRAME["income"] + (FRAME["sex"] == "f") + RNG.normal(size=N) > 0).astype(int)
ROLES = ["--target", "default", "--protected", "sex"]
FINDINGS = [
    "id: 'account' (1), 'number' (1): left out of the features; `--keep-ids` takes them back.",
    "number as text: 'share' (1): turn it into numbers.",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("columns") / "data.parquet"
    FRAME.to_parquet(path)
    return path


@pytest.fixture(scope="module")
def model(data):
    out = data.parent / "model"
    words = ["aim", data, *ROLES, "--out", out, "--max-fpr", 0.2, "--at-least", 0.05, "--jobs", 1]
    return out, run(*words).stderr.splitlines()


def test_findings_come_first_and_estimators_do_not_repeat_them(model):
    out, told = model
    assert told[:2] == FINDINGS
    assert not [line for line in told if "learn little" in line]
    assert list(load_model(out).feature_names_in_) == ["income", "share", "sex"]


def test_a_model_scores_rows_with_and_without_the_columns_that_were_left_out(model, tmp_path):
    found = []
    for name, frame in (("with", FRAME), ("without", FRAME.drop(columns=["account", "number"]))):
        frame.to_parquet(tmp_path / f"{name}.parquet")
        done = run("predict", model[0], tmp_path / f"{name}.parquet", "--out", tmp_path / f"{name}.csv")
        assert "id:" not in done.stderr
        found.append(pd.read_csv(tmp_path / f"{name}.csv"))
    pd.testing.assert_frame_equal(*found)


def test_ids_are_kept_on_request(data, tmp_path):
    out = tmp_path / "v.parquet"
    done = run("value", data, *ROLES, "--bags", 5, "--out", out, "--keep-ids")
    assert (
        done.stderr.splitlines()[0]
        == "id: 'account' (1), 'number' (1): leave it out: no other row has these entries."
    )
    assert "not features" not in done.stdout
    done = run("value", data, *ROLES, "--bags", 5, "--out", out)
    assert "Columns that are not features: account, number" in done.stdout


def test_the_first_rows_of_a_table_in_parts_tell_too(data, tmp_path):
    words = ["value", data, *ROLES, "--out", tmp_path / "v", "--memory", "500MB", "--bags", 5]
    done = run(*words)
    assert done.stderr.splitlines()[:2] == FINDINGS
    assert run(*words).stdout == done.stdout  # a run that is resumed leaves out the same


def test_an_experiment_leaves_ids_out(data, tmp_path):
    config = tmp_path / "run.toml"
    config.write_text(
        f"""
        [data]
        path = {str(data)!r}
        target = "default"
        protected = ["sex"]
        [split]
        method = "random"
        train = 0.5
        validation = 0.25
        test = 0.25
        [interventions]
        rw = true
        [models]
        count = 1
        space = {{ n_estimators = 5 }}
        """
    )
    words = ["experiment", "run", config, "--store", tmp_path / "store", "--jobs", 1]
    assert run(*words).stderr.splitlines()[:2] == FINDINGS
    assert "another" in run(*words, "--keep-ids", code=2).stderr
