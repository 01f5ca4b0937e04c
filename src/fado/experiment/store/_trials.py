"""The trials of a store: what was proposed, in order, each with its settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from fado.experiment.config import config_from
from fado.experiment.search import GridProposer, Trial, key_of
from fado.experiment.store._content import is_number
from fado.experiment.store._keys import Keys
from fado.experiment.store._ledger import PROPOSED, Record
from fado.experiment.store._store import Store
from fado.interventions import intervention_entries

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
    """Give the trials of a store of any release, in order.

    Raises
    ------
    ValueError
        If no frame can show them: a setting that is now a number and now a text, or is a parameter as well.
    """
    trials = proposed_trials(store) or list(_trials_of_first_release(store))
    settings = _numeric_settings() | {"algorithm": False, "utility": False}
    for trial in (stored.trial for stored in trials):
        for name, value in trial.settings.items():
            numeric = settings.setdefault(name, is_number(value))
            if value is not None and is_number(value) != numeric:
                raise ValueError(
                    f"The store {str(store.path)!r} has trials with a {name!r} of {value!r}, which is "
                    f"{'no' if numeric else 'a'} number."
                )
    both = sorted(settings.keys() & {name for stored in trials for name in stored.trial.parameters})
    if both:
        raise ValueError(
            f"The store {str(store.path)!r} has trials with a parameter {both[0]!r}, which is a setting."
        )
    return trials


def _numeric_settings() -> dict[str, bool]:
    """Say of the settings of registered interventions whether they are numbers."""
    own = {"alpha": True}
    for entry in intervention_entries():
        own |= {setting.name: setting.kind != "choice" for setting in entry.settings}
        own |= {name: is_number(value) for name, value in entry.fixed.items()}
    return own


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
