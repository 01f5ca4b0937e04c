import subprocess
import sys

import pytest

from fado._altair import load_altair

HEAVY = ("lightgbm", "pandas", "sklearn", "scipy", "pyarrow", "polars", "typer")


def test_importing_fado_imports_nothing_heavy():
    code = f"import fado, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_altair_charts_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ModuleNotFoundError, match=r"Charts need Altair: .* 'fado-ml\[plot\]'"):
        load_altair()
