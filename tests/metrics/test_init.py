import subprocess
import sys
from pathlib import Path

import fado.metrics

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


def test_every_public_name_is_there_and_described():
    assert sorted(fado.metrics.__all__) == fado.metrics.__all__
    for name in fado.metrics.__all__:
        assert ">>>" in getattr(fado.metrics, name).__doc__
