"""Account-opening fraud data: a generator, a loader for the public BAF suite, and what splits them."""

from fado.datasets._account_fraud import make_account_fraud
from fado.datasets._baf import load_baf
from fado.datasets._protected import protected_from
from fado.datasets._split import temporal_split

__all__ = ["load_baf", "make_account_fraud", "protected_from", "temporal_split"]
