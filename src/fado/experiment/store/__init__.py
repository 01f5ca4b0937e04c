"""What is done: a directory with a ledger and one immutable file per result."""

from fado.experiment.store._content import FORMAT
from fado.experiment.store._differences import differences
from fado.experiment.store._keys import Keys
from fado.experiment.store._ledger import DONE, FAILED, Record
from fado.experiment.store._outcomes import IMPOSSIBLE, fit_key_of, read_outcomes
from fado.experiment.store._store import RUNNING, Store
from fado.experiment.store._trials import StoredTrial, proposed_trials, read_trials, write_trials

__all__ = [
    "DONE",
    "FAILED",
    "FORMAT",
    "IMPOSSIBLE",
    "RUNNING",
    "Keys",
    "Record",
    "Store",
    "StoredTrial",
    "differences",
    "fit_key_of",
    "proposed_trials",
    "read_outcomes",
    "read_trials",
    "write_trials",
]
