import inspect
import subprocess
import sys
from pathlib import Path

import fado.metrics
from fado.metrics import RATIO_NAMES, RATIO_TITLES
from fado.tabular import MIN_GROUP_SIZE

# The parent package is a stub here: only what `fado.metrics` itself imports is counted.
IMPORT_ALONE = """
import sys, types
parent = types.ModuleType("fado")
parent.__path__ = [{source!r}]
sys.modules["fado"] = parent
import fado.metrics
heavy = {{"sklearn", "scipy", "pandas", "narwhals", "pyarrow", "polars", "lightgbm"}}
print(sorted(heavy & set(sys.modules)))
"""


def test_import_loads_no_heavy_package():
    source = str(Path(fado.metrics.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", IMPORT_ALONE.format(source=source)], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_small_groups_are_those_of_the_other_packages():
    for function in (fado.metrics.evaluate, fado.metrics.by_group, *map(vars(fado.metrics).get, RATIO_NAMES)):
        assert inspect.signature(function).parameters["min_group_size"].default == MIN_GROUP_SIZE


def test_every_public_name_is_there_and_described():
    for name in set(fado.metrics.__all__) - {"RATIO_NAMES", "RATIO_TITLES"}:
        assert ">>>" in getattr(fado.metrics, name).__doc__


def test_the_ratios_and_their_titles():
    assert RATIO_NAMES == ("fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio")
    assert all(name in fado.metrics.__all__ for name in RATIO_NAMES)
    assert RATIO_TITLES == {
        "fpr_ratio": "Predictive equality (ratio of false-positive rates)",
        "fnr_ratio": "Equality of opportunity (ratio of false-negative rates)",
        "tpr_ratio": "Ratio of true-positive rates",
        "selection_rate_ratio": "Demographic parity (ratio of selection rates)",
    }
