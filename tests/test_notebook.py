"""A notebook, executed: what it shows of our objects, and its progress bars."""

import html

import nbformat
import pytest
from nbclient import NotebookClient

SETUP = """
import sys, warnings
warnings.simplefilter("error")
import numpy as np, pandas as pd
from lightgbm import LGBMClassifier
from fado import AimedEstimator, OutOfBagEntropy, explore, find_frontier
from fado.experiment import Experiment
rng = np.random.default_rng(0)
n = 3000
sex = pd.Series(rng.choice(["f", "<b>m</b>"], n), name="sex")
X = pd.DataFrame({"debts": rng.normal(size=n) + (sex == "f"), "town": rng.choice(["a", "b"], n)})
y = X["debts"] + (X["town"] == "a") + rng.normal(size=n) > 1.5
z = {"<i>sex</i>": sex}
few = LGBMClassifier(n_estimators=10, num_leaves=5)
"""
CELLS = {
    "setup": SETUP,
    "bar": "valuator = OutOfBagEntropy(few, n_bags=5, random_state=0, progress=True)\n"
    "valuator.fit(X, y, sensitive_features=z);",
    "valuation": "valuator.valuation_",
    "explore": "explore(X, y, sensitive_features=z, valuation=valuator.valuation_)",
    "search": "frontier = find_frontier(\n"
    "    X, y, sensitive_features=z, estimator=few, max_fits=5, progress=True\n)",
    "frontier": "frontier",
    "results": "frontier.results",
    "model": "model = frontier.closest(0.8)\nmodel",
    "card": "model.card()",
    "check": "model.check(X, y, z)",
    "aimed": "aimed = AimedEstimator(few, at_least=0.3, max_fits=4, random_state=0)\n"
    "aimed.fit(X, y, sensitive_features=z)",
    "path": "aimed.path_",
    "text bar": 'sys.modules["ipywidgets"] = None\nvaluator.fit(X, y, sensitive_features=z);',
    "experiment": """
Experiment({
    "data": {"generator": "account_fraud", "rows": 999, "target": "fraud_bool", "protected": "income>=0.5"},
    "split": {"method": "random", "train": 0.6, "test": 0.4},
    "interventions": {"rps": False, "rw": False},
    "models": {"count": 1, "space": {"n_estimators": 5}},
}).run("store", n_jobs=1, progress=True)""",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What every cell gives, by the cell's name; a cell that fails ends it all."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    NotebookClient(notebook, kernel_name="python3", timeout=120, resources=where).execute()
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}


def shown(outputs, kind="text/html"):
    """The one result of a cell."""
    (result,) = (output for output in outputs if output.output_type == "execute_result")
    return result.data[kind]


def printed(outputs):
    return "".join(output.text for output in outputs if output.output_type == "stream")


def test_nothing_is_said_on_stderr(outputs):
    loud = {name for name, cell in outputs.items() for one in cell if one.get("name") == "stderr"}
    assert loud == set()


FRONTIER = [f"<th>{name}</th>" for name in ("intervention", "validation tpr", "test fpr_ratio")]
FRONTIER += ["<td>aimed</td>"]
TOLD = {
    "valuation": ["<b>Valuation</b> of 3,000 rows", "&lt;i&gt;sex&lt;/i&gt;"],
    "frontier": ["Frontier of", *FRONTIER],
    "results": ["Results of", *FRONTIER],
    "check": ["fpr_ratio 0.", "<td>tpr</td>", "<th>95 % interval, low</th>"],
    "aimed": ["AimedEstimator"],  # as scikit-learn shows its own
    "path": ["<th>chosen</th>"],
}


@pytest.mark.parametrize("cell", TOLD)
def test_what_is_fitted_or_measured_shows_as_a_table(outputs, cell):
    page = shown(outputs[cell])
    assert [text for text in TOLD[cell] if text not in page] == []
    assert "<i>sex" not in page


def test_a_card_shows_as_the_markdown_that_it_is(outputs):
    text = shown(outputs["card"], "text/markdown")
    assert text.startswith("# Model card\n\n- Purpose: not stated\n")
    assert "\\<i\\>sex" in text


@pytest.mark.parametrize(("cell", "title"), [("explore", "Exploration"), ("model", "Model card")])
def test_pages_show_in_a_frame_that_keeps_to_itself(outputs, cell, title):
    frame = shown(outputs[cell])
    assert frame.startswith('<iframe sandbox="allow-scripts" srcdoc="')
    page = html.unescape(frame.split('srcdoc="')[1].split('"')[0])
    assert "default-src 'none'" in page
    assert f"<title>{title}" in page
    assert "<i>sex" not in page


@pytest.mark.parametrize("cell", ["bar", "search"])
def test_progress_is_a_bar_of_widgets(outputs, cell):
    views = [output.data for output in outputs[cell] if output.output_type == "display_data"]
    assert any("application/vnd.jupyter.widget-view+json" in view for view in views)
    assert all("fits" in view["text/plain"] for view in views)


def test_progress_is_text_without_widgets_and_from_the_process_of_an_experiment(outputs):
    assert "fits:   0%|" in printed(outputs["text bar"])
    assert "fits: 1 of 1 done, 0 failed" in printed(outputs["experiment"])
    assert "Results of 1 models (1 done)" in shown(outputs["experiment"])
