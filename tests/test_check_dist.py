"""What `make dist` looks for: a wheel that lacks something, or holds too much, is refused."""

import runpy
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOL = ROOT / "tools" / "check_dist.py"
if not TOOL.is_file():
    pytest.skip("a source archive has no tools", allow_module_level=True)
CHECK = runpy.run_path(str(TOOL))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def make_wheel(folder, *, without=(), beside=(), **changes):
    """A wheel of the package's file names; their content does not matter here."""
    fields = {
        "Name": PROJECT["name"],
        "Version": "0.2.0",
        "Summary": PROJECT["description"],
        "License-Expression": PROJECT["license"],
        "Requires-Python": PROJECT["requires-python"],
    } | changes
    about = [f"{name}: {value}" for name, value in fields.items()]
    about += [f"Provides-Extra: {name}" for name in PROJECT["optional-dependencies"]]
    files = (CHECK["files_below"](ROOT / "src" / "fado") - set(without)) | set(beside)
    path = folder / "fado_ml-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in (*files, "fado_ml-0.2.0.dist-info/licenses/LICENSE"):
            archive.writestr(name, "")
        archive.writestr("fado_ml-0.2.0.dist-info/METADATA", "\n".join([*about, "", "# FADO"]))
    return path


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"without": ["fado/py.typed"]}, r"The wheel lacks \['fado/py.typed'\]"),
        ({"without": ["fado/reporting/templates/page.html"]}, "The wheel lacks"),
        ({"beside": ["tests/test_house.py"]}, r"The wheel holds \['tests/test_house.py'\]"),
        ({"Requires-Python": ">=3.8"}, "The wheel's Requires-Python is '>=3.8' and not"),
    ],
)
def test_one_that_is_not_is_refused(tmp_path, changes, sentence):
    assert CHECK["check_wheel"](make_wheel(tmp_path)) == "0.2.0"  # a whole one
    with pytest.raises(CHECK["WrongError"], match=sentence):
        CHECK["check_wheel"](make_wheel(tmp_path, **changes))
