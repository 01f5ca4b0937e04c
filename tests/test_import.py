import subprocess
import sys

HEAVY = ("lightgbm", "pandas", "sklearn", "scipy", "pyarrow", "polars", "typer")


def test_importing_fado_imports_nothing_heavy():
    code = f"import fado, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
