"""The public names as a strict type checker sees them from another project."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fado
from fado import __all__ as names

PROJECT = Path(__file__).parent / "project.py"


def test_a_project_that_uses_the_public_names_passes_a_strict_check(tmp_path):
    pytest.importorskip("mypy")
    # In a directory of its own, so that no settings of ours are found: the package is read as installed.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(PROJECT)]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"MYPY_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(set(names) - {"__version__"}))
def test_the_project_uses_every_public_name(name):
    assert PROJECT.read_text(encoding="utf-8").count(f"{name}") > 1


def test_the_package_says_that_it_is_typed():
    assert (Path(fado.__file__).parent / "py.typed").is_file()
