"""The package imports without scikit-activeml, and says how to get it."""

import subprocess
import sys

import pytest

import fado.active

WITHOUT = """
import sys
sys.modules["skactiveml"] = None
import fado.active
from fado.active import UtilityQuery
assert "UtilitySampling" in dir(fado.active)
assert "lightgbm" not in sys.modules
try:
    fado.active.UtilitySampling
except ModuleNotFoundError as error:
    print(error)
"""


def test_without_scikit_activeml():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "UtilitySampling needs scikit-activeml: install it with `pip install 'fado-ml[active]'`.\n"
    )


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match=r"module 'fado.active' has no attribute 'Utility'"):
        fado.active.Utility  # noqa: B018
