"""The trials of a store: what was proposed, in order, each with its settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from fado.experiment.config import config_from
from fado.experiment.search import GridProposer, Trial, key_of
from fado.experiment.store._keys import Keys
from fado.experiment.store._ledger import PROPOSED, Record
from fado.experiment.store._store import Store

__all__ = ["StoredTrial", "proposed_trials", "read_trials", "write_trials"]

KIND = "trial"


@dataclass(frozen=True)
class StoredTrial:
    """A trial, and the key of its training set."""

    trial: Trial
    set_key: str


def write_trials(store: Store, trials: Sequence[StoredTrial]) -> None:
    """Keep trials, all or none, under the next numbers; one that was lost is given its place again."""
    numbers = (number for number in count() if store.get(KIND, _key(number)) is None)
    store.write(
        [
            Record(KIND, _key(number), PROPOSED, _text(number, stored))
            for number, stored in zip(numbers, trials, strict=False)
        ]
    )


def proposed_trials(store: Store) -> list[StoredTrial]:
    """Give the trials that a store keeps, in order."""
    found = sorted(key for kind, key in store.records if kind == KIND)
    return [_stored(store.records[KIND, key].text) for key in found]


def read_trials(store: Store) -> list[StoredTrial]:
    """Give the trials of a store of any release, in order."""
    return proposed_trials(store) or list(_trials_of_first_release(store))


def _key(number: int) -> str:
    return f"{number:08}"


def _text(number: int, stored: StoredTrial) -> str:
    trial = stored.trial
    return json.dumps(
        {
            "number": number,
            "intervention": trial.intervention,
            "settings": dict(trial.settings),
            "model": trial.model,
            "parameters": dict(trial.parameters),
            "set": stored.set_key,
        }
    )


def _stored(text: str) -> StoredTrial:
    told = json.loads(text)
    trial = Trial(told["intervention"], told["settings"], told["model"], told["parameters"])
    return StoredTrial(trial, told["set"])


def _trials_of_first_release(store: Store) -> Iterator[StoredTrial]:
    """List what a store of 0.1.0, which kept no trials, was asked for: the grid of its configuration.

    It named training sets by these settings, whether or not they concern the intervention.
    """
    config = config_from(store.about["configuration"], stored=True)
    plan, identity = GridProposer.of(config), Keys(store.about).identity
    for trial in plan.ask([]):
        recipe = trial.recipe.simplest(plan.n_protected)
        named = dict.fromkeys(["algorithm", "utility", "alpha", "scaling", "strength", "floor"])
        named |= {name: value for name, value in recipe.settings.items() if name in named}
        power = recipe.settings.get("prevalence_correction")
        told = {"intervention": recipe.intervention, **named, "correction": power}
        yield StoredTrial(trial, key_of([identity, key_of(told)]))
