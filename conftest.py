"""What every test and every running example shares."""

import sys
from collections.abc import Iterator
from importlib import import_module

import pytest

# The site's own code needs Sphinx, and what Sphinx writes repeats what is tested where it stands.
collect_ignore = ["docs/conf.py", "docs/_ext", "docs/_build", "docs/auto_examples", "docs/api"]

REGISTRIES = {
    "fado.valuation._registry": "_CLASSES",
    "fado.utility._registry": "_CLASSES",
    "fado.interventions._registry": "_ENTRIES",
}


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
