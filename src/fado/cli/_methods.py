"""Interventions on a command line: `--method`, `--utility`, and an option for every setting."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fado._messages import list_names
from fado.cli._inputs import Inputs
from fado.cli._utilities import utility_of
from fado.cli._values import load_values
from fado.interventions import Entry, Setting, TrainingSet, intervention_entries
from fado.tabular import MIN_GROUP_SIZE
from fado.utility import utility_names

__all__ = [
    "Applied",
    "Asked",
    "apply_method",
    "ask_for",
    "make_method",
    "offer_methods",
    "shown_settings",
]

UNTOUCHED = "none"
FORMER = {"prevalence_correction": ("--correction",)}  # options by their names in earlier releases
DEFAULT_UTILITY = "linear"
_SHOWN_OTHERWISE = ("utility", "valuator", "pos_label", "random_state")


@dataclass(frozen=True)
class Asked:
    """A method, and what a command line says of it; None where an option was not given.

    Parameters
    ----------
    entry : Entry
        The method.
    settings : mapping
        Its own settings by their names.
    values, alpha, utility, min_group_size, seed
        The options by these names.
    """

    entry: Entry
    settings: Mapping[str, Any]
    values: Path | None
    alpha: float | None
    utility: str | None
    min_group_size: int | None
    seed: int

    @property
    def utility_name(self) -> str:
        """The utility that was named, or the one that stands for none."""
        return self.utility or DEFAULT_UTILITY


@dataclass(frozen=True)
class Applied:
    """What a method made of the rows.

    Parameters
    ----------
    chosen : TrainingSet
        The rows and their weights.
    settings : mapping
        All that the method was set to, by the names of the options.
    min_group_size : int
        Which groups it took for too small to be compared; 0 if it compares all.
    """

    chosen: TrainingSet
    settings: Mapping[str, Any]
    min_group_size: int


def offer_methods(command: Callable[..., Any], changes: str) -> Callable[..., Any]:
    """Give a command the options that follow from what is registered.

    Parameters
    ----------
    command : callable
        With the parameters `method` and `utility`, and ``**settings`` in the end.
    changes : {"rows", "weights"}
        Which interventions it offers.

    Returns
    -------
    callable
        The command, with choices for `method` and `utility`, and an option per setting.
    """
    entries = _methods(changes)
    signature = inspect.signature(command, eval_str=True)
    parameters = {name: own for name, own in signature.parameters.items() if name != "settings"}
    parameters["method"] = parameters["method"].replace(
        annotation=_choice(tuple(entries), typer.Option(help="The intervention."))
    )
    parameters["utility"] = parameters["utility"].replace(
        annotation=_choice(
            utility_names(),
            typer.Option(
                help="How a row's values combine into its utility; for methods that use values.",
                show_default=DEFAULT_UTILITY,
            ),
        )
    )
    for setting in _settings(entries):
        if setting.name in parameters:
            raise ValueError(
                f"An intervention has a setting called {setting.name!r}, which is an option of "
                f"`fado {command.__name__}` already: give it another name."
            )
        parameters[setting.name] = inspect.Parameter(
            setting.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=_option(setting, entries),
        )

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        return command(**given)

    run.__signature__ = signature.replace(parameters=list(parameters.values()))  # type: ignore[attr-defined]
    return run


def ask_for(method: str, changes: str, settings: Mapping[str, Any], **options: Any) -> Asked:
    """Find a method that a command offers, and refuse, before anything is read, what it does not take.

    Parameters
    ----------
    method : str
        The method's key.
    changes : {"rows", "weights"}
        What the command writes.
    settings : mapping
        The method's settings; None where an option was not given.
    **options
        The other fields of `Asked`.
    """
    asked = Asked(_methods(changes)[method], settings, **options)
    _check_options(asked)
    return asked


def _check_options(asked: Asked) -> None:
    entry = asked.entry
    about_values = {"values": asked.values, "alpha": asked.alpha, "utility": asked.utility}
    given = [name for name, option in about_values.items() if option is not None]
    if entry.uses_values:
        for name in ("values", "alpha"):
            if name not in given:
                raise ValueError(f"Missing option '--{name}': `--method {entry.key}` uses values.")
    elif given:
        raise ValueError(f"`--method {entry.key}` uses no values: leave out {_flags(given)}.")
    taken = [name for name in asked.settings if _takes(entry, name)]
    for name, option in asked.settings.items():
        if option is not None and name not in taken:
            has = _flags(taken) or "no settings"
            raise ValueError(
                f"`{_flag(name)}` is not for `--method {entry.key}`, which has {has}: leave it out."
            )
    if asked.min_group_size is not None and not _takes(entry, "min_group_size"):
        raise ValueError(
            f"`--min-group-size` is not for `--method {entry.key}`, which knows no small groups: leave it "
            "out."
        )


def apply_method(asked: Asked, inputs: Inputs) -> Applied:
    """Choose rows and weights."""
    valuation = combined = None
    if asked.values is not None and asked.alpha is not None:
        valuation = load_values(asked.values, inputs)
        combined = utility_of(asked.utility_name, asked.alpha, [*inputs.protected], valuation)
    intervention = make_method(asked, combined, inputs.positive)
    intervention.fit(
        inputs.features,
        inputs.target,
        sensitive_features=inputs.protected,
        valuation=valuation,
        sample_weight=inputs.weight,
    )
    chosen: TrainingSet = intervention.training_set_
    entry = asked.entry
    more_than_rows = chosen.weights is not None or chosen.labels is not None
    if chosen.parents is not None or (entry.kind.changes == "rows" and more_than_rows):
        raise ValueError(f"`--method {entry.key}` does more than this command can write: use it from Python.")
    shown = shown_settings(asked, intervention, inputs.positive)
    return Applied(chosen, shown, getattr(intervention, "min_group_size", 0))


def make_method(asked: Asked, utility: Any, positive: Any) -> Any:
    """Make the intervention; a setting that was not given is what the method says.

    Parameters
    ----------
    asked : Asked
        The method and its options.
    utility : callable or None
        What a row is worth, for a method that uses values.
    positive : label or None
        The positive label, for a method that asks.
    """
    entry, least = asked.entry, asked.min_group_size
    parameters: dict[str, Any] = {own.name: own.default for own in entry.settings}
    parameters |= {name: option for name, option in asked.settings.items() if option is not None}
    if _takes(entry, "min_group_size"):
        parameters["min_group_size"] = MIN_GROUP_SIZE if least is None else least
    if utility is not None:
        parameters["utility"] = utility
    if "pos_label" in inspect.signature(entry.kind).parameters:
        parameters["pos_label"] = positive
    return entry.make(random_state=asked.seed, **parameters)


def shown_settings(asked: Asked, intervention: Any, positive: Any) -> dict[str, Any]:
    """Give all that a method was set to, by the names of the options."""
    about_values = {} if asked.alpha is None else {"utility": asked.utility_name, "alpha": asked.alpha}
    own = {
        name.replace("_", "-"): value
        for name, value in intervention.get_params(deep=False).items()
        if name not in _SHOWN_OTHERWISE
    }
    return {"method": asked.entry.key, **about_values, **own, "positive": positive, "seed": asked.seed}


def _methods(changes: str) -> dict[str, Entry]:
    """Give the interventions that a command offers, by their keys."""
    return {
        entry.key: entry
        for entry in intervention_entries()
        if entry.kind.changes == changes and entry.key != UNTOUCHED
    }


def _settings(entries: Mapping[str, Entry]) -> list[Setting]:
    """Give the settings of all methods, each name once, with the choices of all."""
    found: dict[str, Setting] = {}
    for setting in (setting for entry in entries.values() for setting in entry.settings):
        known = found.setdefault(setting.name, setting)
        choices = tuple(dict.fromkeys((*known.choices, *setting.choices)))
        found[setting.name] = replace(known, choices=choices)
    return list(found.values())


def _takes(entry: Entry, name: str) -> bool:
    """Tell whether a method has a setting, of its entry or of its class, that it does not set itself."""
    if any(setting.name == name for setting in entry.settings):
        return True
    return name in inspect.signature(entry.kind).parameters and name not in entry.fixed


def _option(setting: Setting, entries: Mapping[str, Entry]) -> Any:
    names = [_flag(setting.name), *FORMER.get(setting.name, ())]
    shown: dict[str, Any] = {"help": setting.help, "show_default": _default_shown(setting.name, entries)}
    if setting.kind == "choice":
        return _choice(setting.choices, typer.Option(*names, **shown))
    return Annotated[float | None, typer.Option(*names, metavar=setting.name[0].upper(), **shown)]


def _choice(choices: tuple[str, ...], option: Any) -> Any:
    return Annotated[Literal[choices] | None, option]


def _default_shown(name: str, entries: Mapping[str, Entry]) -> str:
    """Say what a setting is if it is not given, by method where they differ."""
    defaults = {}
    for entry in entries.values():
        if _takes(entry, name):
            own = {setting.name: setting.default for setting in entry.settings}
            defaults[entry.key] = own.get(name, inspect.signature(entry.kind).parameters[name].default)
    if len(set(defaults.values())) == 1:
        return str(next(iter(defaults.values())))
    return ", ".join(f"{default} for {key}" for key, default in defaults.items())


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _flags(names: Sequence[str]) -> str:
    return list_names([f"`{_flag(name)}`" for name in names])
