"""Recipes: each is a question that the first page lists; code that no doctest can run is run here."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier

from fado import AimedEstimator, OutOfBagEntropy, load_model

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
def test_the_recipe_of_a_cluster():
    distributed = pytest.importorskip("distributed")
    X, y, z = rows(300)
    names = {"X": X, "y": y, "z": z}
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", memory_limit=None
    ) as cluster:
        code = block("tables.md", "on_cluster")
        assert code.count("tcp://scheduler:8786") == 1
        exec(code.replace("tcp://scheduler:8786", cluster.scheduler_address), names)
        names["client"].close()
    local = OutOfBagEntropy(random_state=0).fit(X, y, sensitive_features=z).valuation_
    assert names["valuation"].values.equals(local.values)


# MLflow's tables, as the newest SQLAlchemy reads them
@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")
def test_the_recipe_of_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    X, y, z = rows(2000)
    trees = LGBMClassifier(n_estimators=5, verbosity=-1)
    aimed = AimedEstimator(trees, at_least=0.5, random_state=0)
    aimed = aimed.fit(X[:1000], y[:1000], sensitive_features=z[:1000])
    model = aimed.to_model(test=(X[1000:], y[1000:], z[1000:]))
    monkeypatch.chdir(tmp_path)
    model.save("model")
    before = mlflow.get_tracking_uri()
    try:
        exec(block("check.md", "import mlflow"), {"model": model})
        run = mlflow.last_active_run()
        there = mlflow.artifacts.download_artifacts(run_id=run.info.run_id)
    finally:
        mlflow.set_tracking_uri(before)
    assert run.data.metrics["test_fpr_ratio"] == model.facts_.measured["test"]["fpr_ratio"]
    assert {"model.json", "card.md", "card.html"} <= {path.name for path in Path(there).iterdir()}
    assert (load_model(there).predict(X) == model.predict(X)).all()


def test_the_recipe_of_cleanlab():
    pytest.importorskip("cleanlab")
    X, y, z = rows(500)
    kept = OutOfBagEntropy(keep_probabilities=True, random_state=0).fit(X, y, sensitive_features=z).valuation_
    names = {"y": y.astype(int), "train": slice(None), "kept": kept}
    exec(block("together.md", "cleanlab"), names)
    assert set(names["wrong"]) <= set(range(500))
