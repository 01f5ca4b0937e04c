"""`fado demo`, as a user runs it who has none of the extras but that of the command line."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.cli.program import rows_of_parts

from fado import load_model
from fado.experiment import Results
from fado.models import check_directory

ROWS = 4000
SMALL = f"""
import sys
from functools import partialmethod
for name in ("altair", "vl_convert", "dask", "distributed", "polars"):
    sys.modules[name] = None
from fado.cli import demo, main
from fado.experiment import Experiment
write = Experiment.write_example
def write_small(path):
    write(path)
    path.write_text(path.read_text().replace("count = 5", "count = 1").replace("[20, 100]", "[5, 10]"))
Experiment.write_example = write_small
Experiment.run = partialmethod(Experiment.run, isolated=False)
demo.ROWS, demo.FITS = {ROWS}, 12
main()
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A small demo: what it prints, and where it writes."""
    folder = tmp_path_factory.mktemp("demo")
    words = [sys.executable, "-c", SMALL, "demo", "--out", "demo"]
    process = subprocess.run(words, cwd=folder, text=True, capture_output=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout, folder / "demo"


def test_it_tells_who_wins(done):
    printed, folder = done
    assert "Best models with a selection_rate_ratio" in printed
    assert (folder / "report.html").exists()
    results = Results.load(folder / "store")
    assert (results.frame["status"] == "done").all()
    assert results.config.data.drop == ("customer_age",)


def test_it_ends_with_a_model_and_its_card(done):
    printed, folder = done
    model = load_model(folder / "model")
    facts = model.facts_
    assert (facts.protected, facts.ratio, facts.at_least) == (("customer_age>=50",), "fpr_ratio", 0.8)
    assert facts.fits <= 12
    told = f"the line is {'reached' if model.reached_ else 'missed'}"
    assert f"On validation rows, which selected the model, {told}" in printed
    shown = re.search(
        r"On test rows, which were not used to make the model, the line is .*?[:;] fpr_ratio ([0-9.]+)",
        printed,
    )
    assert float(shown[1]) == pytest.approx(facts.measured["test"]["fpr_ratio"], abs=5e-4)
    assert f"Model and card (card.md, card.html): {Path('demo', 'model')}" in printed
    assert "fpr_ratio of at least 0.8" in (folder / "model" / "card.md").read_text(encoding="utf-8")
    assert "customer_age" not in model.feature_names_in_
    assert facts.intervention == "aimed scores"  # something had to move
    months = pd.read_parquet(folder / "account_fraud.parquet")["month"]
    assert rows_of_parts(facts) == {
        "training": (months < 4).sum(),
        "validation": months.isin([4, 5]).sum(),
        "test": (months > 5).sum(),
    }


def test_its_model_scores_rows_without_the_month_that_no_model_saw(done):
    _, folder = done
    unseen = ["month", "fraud_bool", "customer_age"]
    rows = pd.read_parquet(folder / "account_fraud.parquet").drop(columns=unseen)
    scores = load_model(folder / "model").score_rows(rows)
    assert len(scores) == ROWS
    assert 0 <= scores.min() < scores.max() <= 1


def test_a_second_demo_may_replace_the_model(done):
    _, folder = done
    check_directory(folder / "model")


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        ("pandas.DataFrame.to_parquet", "account_fraud.parquet"),
        ("fado.experiment.Experiment.write_example", "experiment.toml"),
    ],
)
def test_a_demo_that_ends_early_leaves_the_files_of_the_one_before(tmp_path, monkeypatch, broken, name):
    from fado.cli.demo import _experiment, demo

    (tmp_path / name).write_text("old")
    monkeypatch.setattr(broken, lambda *given: Path(given[-1]).write_text("half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        demo(out=tmp_path) if name.endswith(".parquet") else _experiment(tmp_path / name, tmp_path / "data")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "old")]
