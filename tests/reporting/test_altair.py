import sys

import pytest

from fado.reporting._altair import load_altair


def test_without_altair_charts_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ModuleNotFoundError, match=r"Charts need Altair: .* 'fado-ml\[plot\]'"):
        load_altair()
