"""What every test and every running example shares."""

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version

import pytest

from fado._compat import OLD_NEWS

# The site's own code needs Sphinx, and what Sphinx writes repeats what is tested where it stands.
collect_ignore = [
    "docs/conf.py",
    "docs/_ext",
    "docs/_build",
    "docs/auto_examples",
    "docs/api",
    "docs/tutorial",
]

REGISTRIES = {
    "fado.valuation._base": "_CLASSES",
    "fado.utility": "_CLASSES",
    "fado.interventions._registry": "_ENTRIES",
}

# What the oldest versions say of each other (`tests/oldest.txt`); the newest never say it.
IGNORED = [
    f"ignore:{OLD_NEWS}:FutureWarning",
    "ignore:'force_all_finite' was renamed to 'ensure_all_finite':FutureWarning",  # LightGBM's own checks
]


def pytest_configure(config: pytest.Config) -> None:
    """Let the old versions talk to each other, where they are installed."""
    if version("lightgbm").startswith("4.5."):
        for line in IGNORED:
            config.addinivalue_line("filterwarnings", line)


@pytest.fixture(autouse=True)
def registries_stay_as_they_are() -> Iterator[None]:
    """Take out again what a test or an example registers."""
    import_module("fado.interventions")  # registers ours, utilities and valuators on its way
    before = {name: dict(getattr(sys.modules[name], own)) for name, own in REGISTRIES.items()}
    yield
    for name, entries in before.items():
        registry = getattr(sys.modules[name], REGISTRIES[name])
        registry.clear()
        registry.update(entries)
