"""What came of the trials of a store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from fado.experiment.search import PENDING, Outcome
from fado.experiment.store._keys import Keys
from fado.experiment.store._ledger import DONE, FAILED
from fado.experiment.store._store import Store
from fado.experiment.store._trials import StoredTrial

__all__ = ["IMPOSSIBLE", "fit_key_of", "read_outcomes"]

IMPOSSIBLE = "no training set"

Metrics = dict[str, float] | None


def read_outcomes(
    store: Store, trials: Sequence[StoredTrial], known: dict[str, Metrics] | None = None
) -> list[Outcome]:
    """Say what became of trials.

    Parameters
    ----------
    store : Store
        Holds them.
    trials : sequence of StoredTrial
        The trials, in order.
    known : dict, optional
        The metrics of fits that were read before, by key, None of one whose file is damaged; what is read is
        added.
    """
    keys, known = Keys(store.about), {} if known is None else known
    return [_outcome(store, stored, keys, known) for stored in trials]


def fit_key_of(store: Store, stored: StoredTrial, keys: Keys) -> str | None:
    """Give the key of a trial's fit; None while it has no training set."""
    made = store.get("set", stored.set_key)
    if made is None or made.state == FAILED:
        return None
    return keys.fit(json.loads(made.text)["digest"], stored.trial.parameters)


def _outcome(store: Store, stored: StoredTrial, keys: Keys, known: dict[str, Metrics]) -> Outcome:
    trial, made, key = stored.trial, store.get("set", stored.set_key), fit_key_of(store, stored, keys)
    if made is None:
        return Outcome(trial)
    if key is None:
        return Outcome(trial, IMPOSSIBLE, error=made.text)
    rows, record = json.loads(made.text)["rows"], store.get("fit", key)
    if record is None:
        return Outcome(trial, training_rows=rows)
    if record.state == FAILED:
        return Outcome(trial, FAILED, training_rows=rows, error=record.text)
    if key not in known:
        known[key] = store.load_fit(key)
    if known[key] is None:
        damaged = "the file of this fit is damaged: run the experiment again"
        return Outcome(trial, PENDING, training_rows=rows, error=damaged)
    kept = store.get("scores", key) is not None
    scores = partial(store.load_chosen_scores, key) if kept else None
    return Outcome(trial, DONE, known[key], scores, rows)
