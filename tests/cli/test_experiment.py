"""`fado experiment`, as a user runs it."""

import re
import warnings
from functools import partialmethod

import numpy as np
import pandas as pd
import pytest
from tests.cli.program import run

from fado.cli.experiment import print_winners
from fado.experiment import Experiment, Results
from fado.experiment._training import Trainer


@pytest.fixture
def config(tmp_path):
    """The quick example, made tiny."""
    path = tmp_path / "c.toml"
    run("experiment", "init", path)
    text = path.read_text().replace("rows = 20_000", "rows = 2_000").replace("[20, 100]", "[2, 5]")
    path.write_text(re.sub(r"(?m)^count = 5", "count = 1", text))
    return path


def test_init_run_status_report(config, tmp_path):
    store = tmp_path / "store"
    done = run("experiment", "run", config, "--store", store, "--jobs", 1)
    assert "Results of 13 models (13 done)" in done.stdout
    assert "Positive label: fraud_bool = 1." in done.stdout
    assert "Best models with a fpr_ratio of at least 0.8 on" in done.stdout
    assert "fits: 13 of 13 done, 0 failed" in done.stderr
    expected = Experiment.from_toml(config).run(tmp_path / "other", n_jobs=1, isolated=False)
    pd.testing.assert_frame_equal(Results.load(store).frame, expected.frame, check_exact=True)
    status = run("experiment", "status", store)
    assert "Results of 13 models (13 done)" in status.stdout
    assert "corrected UAR" in status.stdout
    run("experiment", "report", store, "--out", tmp_path / "r.html")
    assert "corrected UAR" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_dry_run_writes_nothing(config, tmp_path):
    result = run("experiment", "run", config, "--store", tmp_path / "s", "--dry-run")
    assert "Experiment of 13 interventions x 1 models = 13 rows, 13 fits" in result.stdout
    assert re.search(r"The fits take about [1-9][0-9]* seconds on", result.stdout)
    assert not (tmp_path / "s").exists()


def test_failed_fits_give_code_1_and_can_be_tried_again(config, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no luck")

    monkeypatch.setattr(Experiment, "run", partialmethod(Experiment.run, isolated=False))
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "scores", fail)
        failed = run("experiment", "run", config, "--store", tmp_path / "s", "--jobs", 1, code=1)
    assert "13 models failed; the first: RuntimeError: no luck" in failed.stderr
    run("experiment", "run", config, "--store", tmp_path / "s", "--jobs", 1, "--retry-failed")


def test_errors_are_sentences(config, tmp_path):
    store = tmp_path / "s"
    for words, message in [
        (("init", config), "exists already"),
        (("init", tmp_path / "p.toml", "--preset", "slow"), "Invalid value"),
        (("run", tmp_path / "none.toml", "--store", store), "There is no configuration"),
        (("run", config, "--store", tmp_path), "neither empty nor a store"),
        (("run", config, "--store", store, "--dask", "nowhere"), "no Dask scheduler"),
        (("status", tmp_path), "There is no store"),
        (("report", tmp_path, "--out", tmp_path / "r.pdf"), "must end in .html"),
    ]:
        assert message in run("experiment", *words, code=2).stderr


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """The results of a run that evaluated two attributes, one with a small group, for themselves."""
    folder = tmp_path_factory.mktemp("several")
    rng = np.random.default_rng(0)
    sex, origin = rng.choice(["f", "m"], size=3000), rng.choice(["a", "b"], size=3000)
    origin[:25] = "r"
    score = rng.normal(size=3000)
    label = rng.random(3000) < 1 / (1 + np.exp(1 - score - (sex == "m")))
    pd.DataFrame({"sex": sex, "origin": origin, "x": score, "label": label}).to_parquet(folder / "d.parquet")
    config = {
        "data": {"path": str(folder / "d.parquet"), "target": "label", "protected": ["sex", "origin"]},
        "split": {"method": "random", "train": 0.5, "validation": 0.25, "test": 0.25},
        "valuation": {"bags": 5, "models": [{"n_estimators": 5}]},
        "interventions": {
            "corrected_uar": {"alphas": [0.5], "floors": [0.1], "prevalence_corrections": [1.5]}
        },
        "models": {"count": 1, "space": {"n_estimators": 5}},
        "evaluation": {"groups": "each", "bootstrap": 20},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Experiment(config).run(folder / "store", n_jobs=1, isolated=False), folder / "store"


SETTINGS = "corrected UAR, utility linear, alpha 0.5, scaling minmax, floor 0.1, prevalence correction 1.5"


def test_winners_are_told_with_settings_intervals_and_attributes(several, capsys):
    print_winners(several[0], at_least=0.0)
    shown = capsys.readouterr().out
    assert "No model" not in shown
    first = shown[shown.index("Best models") : shown.index("fnr_ratio")].splitlines()
    (place,) = [number for number, line in enumerate(first) if line.strip().startswith(SETTINGS)]
    interval = r"[01]\.\d{3} \([01]\.\d{3} to [01]\.\d{3}\)"
    assert re.search(rf"{SETTINGS} +{interval} +{interval} +0 *$", first[place])
    assert re.fullmatch(rf" +sex +{interval} *", first[place + 1])
    assert re.fullmatch(rf" +origin +{interval} *", first[place + 2])


def test_where_nothing_reaches_the_line_the_closest_are_said_to_be(several, capsys):
    print_winners(several[0], at_least=1.1)
    shown = capsys.readouterr().out
    assert "Best models" not in shown
    title = (
        "No model has a fpr_ratio of at least 1.1 on validation data; the closest models, and their "
        "figures on test data, with a threshold that was set on test data, with 95 % intervals"
    )
    assert title in shown
    assert shown.count(SETTINGS) == 3


@pytest.mark.parametrize("width", [80, 120])
def test_a_narrow_terminal_folds_settings_and_keeps_all(several, capsys, monkeypatch, width):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    print_winners(several[0], at_least=0.0)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    table = [line for line in shown[shown.index("Best models") :].splitlines() if line.startswith(" ")]
    assert max(map(len, table)) <= width
    assert "\u2026" not in shown
    assert all(word in shown for word in SETTINGS.split())
    assert len(re.findall(r"[01]\.\d{3} \([01]\.\d{3} to [01]\.\d{3}\)", shown)) >= 3 * 4 * 3


def test_small_groups_are_told_by_status_and_winners(several, capsys):
    status = run("experiment", "status", several[1]).stdout
    print_winners(several[0])
    for text in (status, capsys.readouterr().out):
        assert re.search(
            r"not compared, small or unknown: origin='r' \(train 1\d, validation \d, test \d\)\.", text
        )


def test_a_warning_about_columns_names_the_key_of_the_configuration(tmp_path):
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 400)
    columns = {"sex": sex, "title": np.where(sex == "f", "Ms", "Mr"), "age": rng.integers(18, 80, 400)}
    pd.DataFrame(columns | {"late": rng.integers(0, 2, 400)}).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "c.toml").write_text(
        '[data]\npath = "t.csv"\ntarget = "late"\nprotected = "sex"\n'
        '[split]\nmethod = "random"\ntrain = 0.6\ntest = 0.4\n'
        "[interventions]\nrps = false\nrw = false\n[interventions.uar]\nalphas = [0.5]\n"
        "[models]\ncount = 1\nspace = { n_estimators = 2, num_leaves = 3 }\n",
        encoding="utf-8",
    )
    done = run("experiment", "run", tmp_path / "c.toml", "--store", tmp_path / "s", "--jobs", "1")
    assert "'title'" in done.stderr
    assert "name them in `data.exclude`" in done.stderr
