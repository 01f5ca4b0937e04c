"""`fado experiment` and `fado demo`, as a user runs them."""

import re

import pandas as pd
import pytest
from typer.testing import CliRunner

from fado.cli import demo as demo_module
from fado.cli._app import build_app
from fado.experiment import Experiment, Results
from fado.experiment.run import Bench


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


@pytest.fixture
def config(tmp_path):
    """The quick example, made tiny."""
    path = tmp_path / "c.toml"
    assert run("experiment", "init", path).exit_code == 0
    text = path.read_text().replace("rows = 20_000", "rows = 2_000").replace("[20, 100]", "[2, 5]")
    path.write_text(re.sub(r"(?m)^count = 5", "count = 2", text))
    return path


def test_init_run_status_report(config, tmp_path):
    store = tmp_path / "store"
    done = run("experiment", "run", config, "--store", store, "--jobs", 1)
    assert done.exit_code == 0, done.stderr
    assert "Results of 26 models (26 done)" in done.stdout
    assert "Positive is fraud_bool = 1." in done.stdout
    assert "Best models with a fpr_ratio of at least 0.8 on the" in done.stdout
    assert "fits: 26 of 26 done, 0 failed" in done.stderr
    expected = Experiment.from_toml(config).run(tmp_path / "other", n_jobs=1)
    pd.testing.assert_frame_equal(Results.load(store).frame, expected.frame, check_exact=True)
    status = run("experiment", "status", store)
    assert "Results of 26 models (26 done)" in status.stdout
    assert "corrected UAR" in status.stdout
    report = run("experiment", "report", store, "--out", tmp_path / "r.html")
    assert report.exit_code == 0
    assert (tmp_path / "r.html").stat().st_size > 500_000


def test_a_dry_run_writes_nothing(config, tmp_path):
    result = run("experiment", "run", config, "--store", tmp_path / "s", "--dry-run")
    assert result.exit_code == 0
    assert "Experiment of 13 interventions x 2 models = 26 rows, 26 fits" in result.stdout
    assert re.search(r"The fits take about [0-9.]+ hours", result.stdout)
    assert not (tmp_path / "s").exists()


def test_failed_fits_give_code_1_and_can_be_tried_again(config, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no luck")

    with monkeypatch.context() as patched:
        patched.setattr(Bench, "scores", fail)
        failed = run("experiment", "run", config, "--store", tmp_path / "s", "--jobs", 1)
    assert failed.exit_code == 1
    assert "26 models failed; the first: RuntimeError: no luck" in failed.stderr
    again = run("experiment", "run", config, "--store", tmp_path / "s", "--jobs", 1, "--retry-failed")
    assert again.exit_code == 0


def test_errors_are_sentences(config, tmp_path):
    store = tmp_path / "s"
    for result, message in [
        (run("experiment", "init", config), "exists already"),
        (run("experiment", "init", tmp_path / "p.toml", "--preset", "slow"), "Invalid value"),
        (
            run("experiment", "run", tmp_path / "none.toml", "--store", tmp_path / "s"),
            "There is no configuration",
        ),
        (run("experiment", "run", config, "--store", tmp_path), "neither empty nor a store"),
        (
            run("experiment", "run", config, "--store", store, "--dask", "nowhere"),
            "no Dask scheduler",
        ),
        (run("experiment", "status", tmp_path), "There is no store"),
        (run("experiment", "report", tmp_path, "--out", tmp_path / "r.pdf"), r"must end in \.html"),
    ]:
        assert result.exit_code == 2
        assert re.search(message, result.stderr), result.stderr
        assert "Traceback" not in result.stderr


def test_the_demo_tells_who_wins(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_module, "ROWS", 5000)
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0, result.stderr
    assert "Results" not in result.stderr
    assert "Best models with a selection_rate_ratio" in result.stdout
    assert (tmp_path / "demo" / "report.html").exists()
    assert (Results.load(tmp_path / "demo" / "store").frame["status"] == "done").all()
