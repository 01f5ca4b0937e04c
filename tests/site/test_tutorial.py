"""The tutorial: page, notebook and pictures come from one source; with the data at hand, its figures hold."""

import ast
import importlib.util
import json
import os
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PICTURE = re.compile(r"^!\[([^\]]+)\]\((images/tutorial/[\w.]+)\)\n\n\*([^*]+)\*$", re.MULTILINE)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")


def load_build():
    spec = importlib.util.spec_from_file_location("tutorial_build", ROOT / "docs" / "tutorial" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = load_build()
CELLS = build.read_cells(build.SOURCE.read_text(encoding="utf-8"))
NOTEBOOK = json.loads(build.NOTEBOOK.read_text(encoding="utf-8"))
OUTPUTS = build.outputs_of(NOTEBOOK)
PAGE = build.PAGE.read_text(encoding="utf-8")


def test_a_script_is_read_as_cells():
    text = '"""For readers."""\n# %% [markdown]\n# # Title\n#\n# Text.\n'
    text += '# %% picture="a.png" height=90\nx = 1\nx\n'
    assert build.read_cells(text) == [
        build.Cell("markdown", "# Title\n\nText."),
        build.Cell("code", "x = 1\nx", "a.png", 90),
    ]


def test_page_and_notebook_come_from_the_source():
    nbformat.validate(nbformat.from_dict(NOTEBOOK))
    assert build.notebook(CELLS, OUTPUTS) == NOTEBOOK
    assert build.page(CELLS, OUTPUTS) == PAGE
    outputs = [output for cell in OUTPUTS for output in cell if "image/png" not in output.get("data", {})]
    assert str(ROOT) not in json.dumps(outputs)  # no folder of the machine


def test_pictures_are_those_of_the_notebook_and_say_what_they_show():
    found = build.pictures_of(CELLS, OUTPUTS)
    assert set(found) == {cell.picture for cell in CELLS if cell.picture}
    assert set(found) == {path.name for path in build.PICTURES.iterdir()}
    assert all((build.PICTURES / name).read_bytes() == picture for name, picture in found.items())
    shown = PICTURE.findall(PAGE)
    assert len(shown) >= 6
    assert {Path(path).name for _, path, _ in shown} == set(found)
    for alternative, _, caption in shown:
        assert len(alternative.split()) >= 12
        assert len(caption.split()) >= 8


def test_every_section_says_what_was_learnt():
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:-1]
    assert len(sections) == 9
    for section in sections:
        assert section.rstrip().splitlines()[-1] != ""
        assert section.rstrip().rpartition("\n\n")[2].startswith("**What we learnt:**"), section[:30]


def numbers(table):
    return [float(number.replace(",", "")) for number in NUMBER.findall(table)]


def tables(outputs):
    data = [output.get("data", {}) for own in outputs for output in own]
    return [one["text/markdown"] for one in data if "text/markdown" in one]


@pytest.mark.skipif("FADO_ADULT" not in os.environ, reason="FADO_ADULT names a file of the Adult data")
def test_the_figures_are_those_of_the_code():
    outputs, names = build.run(CELLS, os.environ["FADO_ADULT"].split(os.pathsep), draw=False)
    assert len(tables(outputs)) == len(tables(OUTPUTS)) >= 10
    for now, then in zip(tables(outputs), tables(OUTPUTS), strict=True):
        assert now.splitlines()[0] == then.splitlines()[0]
        assert numbers(now) == pytest.approx(numbers(then), rel=0.1, abs=0.1), then
    counts = build.count_decisions(names)
    assert counts["rows"].sum() == 12_842


def rows_of(name):
    """Give the counts that a script of the gallery holds."""
    tree = ast.parse((ROOT / "examples" / "fairer" / f"{name}.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    (call,) = [call for call in calls if getattr(call.func, "attr", "") == "DataFrame"]
    return ast.literal_eval(call.args[0])


def test_the_gallery_has_the_counts_of_the_tutorial():
    counts = pd.read_csv(build.COUNTS)
    assert counts["rows"].sum() == 12_842
    found = []
    for model in ("plain", "aimed"):
        cells = counts.groupby(["sex", "over_50k", model])["rows"].sum().unstack()
        found += [
            [sex, label, model, *row] for (sex, label), row in zip(cells.index, cells.to_numpy(), strict=True)
        ]
    assert rows_of("plot_5_adult_before_and_after") == found
    cells = counts.groupby(["sex", "race", "over_50k", "aimed"])["rows"].sum().unstack([2, 3], fill_value=0)
    cells = cells[[(False, False), (False, True), (True, False), (True, True)]]
    found = [[sex, race, *row] for (sex, race), row in zip(cells.index, cells.to_numpy(), strict=True)]
    assert rows_of("plot_6_adult_audit") == found
