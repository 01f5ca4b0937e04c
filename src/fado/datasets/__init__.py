"""Data to try things on: generated account fraud, the public BAF suite, Adult and ACS Income."""

from typing import TYPE_CHECKING, Any

from fado.datasets._baf import load_baf
from fado.datasets._fetch import fetch_acs_income, fetch_adult
from fado.datasets._fraud import make_account_fraud, temporal_split

if TYPE_CHECKING:
    from fado.tabular import protected_from

__all__ = [
    "fetch_acs_income",
    "fetch_adult",
    "load_baf",
    "make_account_fraud",
    "protected_from",
    "temporal_split",
]


def __getattr__(name: str) -> Any:
    if name != "protected_from":  # it alone needs more than numpy and pandas
        raise AttributeError(f"module 'fado.datasets' has no attribute {name!r}")
    from fado.tabular import protected_from

    return protected_from
