"""Recipes: each is a question that the first page lists; code that no doctest can run is run here."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fado import OutOfBagEntropy
from fado.experiment import Experiment

RECIPES = Path(__file__).parents[2] / "docs" / "recipes"
PAGES = sorted(page for page in RECIPES.glob("*.md") if page.name != "index.md")


def questions(page):
    return re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def block(page, text):
    """Give the block of Python, without prompts, that holds a text."""
    found = re.findall(r"```python\n(?!>>>)(.*?)```", (RECIPES / page).read_text(encoding="utf-8"), re.DOTALL)
    return next(code for code in found if text in code)


def rows(n_rows):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=list("abc"))
    return X, X["a"] + rng.normal(size=n_rows) > 1, pd.Series(rng.choice(["f", "m"], n_rows))


def test_recipes_are_questions_that_the_first_page_lists():
    listed = re.findall(r"\[([^]]+\?)\]\((\w+\.md)#", (RECIPES / "index.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted((question, page.name) for page in PAGES for question in questions(page))
    assert len(listed) >= 24


# distributed's own clean-up leaves sockets to the collector now and then
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("page", "text"), [("tables.md", "on_cluster"), ("../guide/cluster.md", "scheduler")]
)
def test_the_recipe_of_a_cluster(page, text):
    distributed = pytest.importorskip("distributed")
    X, y, z = rows(300)
    names = {"X": X, "y": y, "z": z}
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", memory_limit=None
    ) as cluster:
        code = block(page, text)
        assert code.count("tcp://scheduler:8786") == 1
        exec(code.replace("tcp://scheduler:8786", cluster.scheduler_address), names)
        names["client"].close()
    local = OutOfBagEntropy(random_state=0).fit(X, y, sensitive_features=z).valuation_
    assert names["valuation"].values.equals(local.values)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    config = {
        "data": {"generator": "account_fraud", "rows": 2000, "target": "fraud_bool"}
        | {"protected": ["customer_age>=50", "income>=0.5"]},
        "split": {"method": "random", "train": 0.6, "validation": 0.2, "test": 0.2},
        "evaluation": {"groups": "each"},
        "interventions": {"rps": False, "rw": False, "uar": {"alphas": [0.5]}},
        "models": {"count": 1, "space": {"n_estimators": 5}},
    }
    return Experiment(config).run(tmp_path_factory.mktemp("runs") / "store", n_jobs=1)


# MLflow's tables, as the newest SQLAlchemy reads them
@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")
def test_the_recipe_of_mlflow(tmp_path, monkeypatch, results):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    try:
        exec(block("check.md", "import mlflow"), {"results": results})
        runs = mlflow.MlflowClient().search_runs(["1"], order_by=["attributes.start_time"])
    finally:
        mlflow.set_tracking_uri(before)
    assert [run.data.params["intervention"] for run in runs] == results.frame["intervention"].tolist()
    for run, (_, row) in zip(runs, results.frame.iterrows(), strict=True):
        assert run.data.params["n_estimators"] == "5"
        assert run.data.metrics["test_tpr"] == row["test_tpr"]
        ratio = row["test_fpr_ratio[customer_age>=50]"]
        assert run.data.metrics["test_fpr_ratio_customer_age__50_"] == ratio


def test_the_recipe_of_optuna(tmp_path, monkeypatch, results):
    optuna = pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    names = {"results": results}
    exec(block("check.md", "import optuna"), names)
    trials = optuna.load_study(study_name=None, storage="sqlite:///trials.db").trials
    assert [trial.params["intervention"] for trial in trials] == results.frame["intervention"].tolist()
    for trial, (_, row) in zip(trials, results.frame.iterrows(), strict=True):
        assert trial.values == [row["validation_tpr"], row["validation_fpr_ratio"]]
        assert trial.params["n_estimators"] == 5


def test_the_recipe_of_cleanlab():
    pytest.importorskip("cleanlab")
    X, y, z = rows(500)
    kept = OutOfBagEntropy(keep_probabilities=True, random_state=0).fit(X, y, sensitive_features=z).valuation_
    names = {"y": y.astype(int), "train": slice(None), "kept": kept}
    exec(block("together.md", "cleanlab"), names)
    assert set(names["wrong"]) <= set(range(500))
