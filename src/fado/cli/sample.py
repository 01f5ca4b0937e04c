"""`fado sample` and `fado reweigh`: drop or weigh rows, with options for every registered intervention."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from fado._messages import list_names
from fado.cli._options import SETTINGS, command, described

if TYPE_CHECKING:
    from fado.interventions import Entry, Setting

INTERVENED = (  # what `fado sample` and `fado reweigh` share
    *("target", "protected", "unknown", "positive", "keep_ids", "weight", "group_names"),
    *("values", "alpha", "utility", "min_group_size", "memory"),
)
CHANGES = {"sample": "rows", "reweigh": "weights"}
DEFAULT_UTILITY = "linear"
_FIXES = {"values": "`fado value` writes them", "alpha": "set the weight of performance, 0 to 1"}
_SHOWN_OTHERWISE = ("utility", "valuator", "pos_label", "random_state")
Make = Callable[[Any, Any], Any]  # an intervention, of a utility and a positive label


@command(*INTERVENED, *SETTINGS["sample"], in_parts=True)
def sample(
    data: Path, *, out: Path, intervention: Literal["rps", "uaps"] = "uaps", seed: int = 0, **asked: Any
) -> None:
    """Equalise the positive rates of groups by dropping negatives, by default those with the lowest utility.

    Parameters
    ----------
    intervention : choice
        The intervention.
    """
    intervene("sample", data, out, intervention, seed=seed, **asked)


@command(*INTERVENED, *SETTINGS["reweigh"], in_parts=True)
def reweigh(
    data: Path,
    *,
    out: Path,
    intervention: Literal["rw", "uar", "corrected_uar", "fairlearn_grid"] = "uar",
    seed: int = 0,
    **asked: Any,
) -> None:
    """Weight rows by their utility, to equalise the positive rates of groups, or both; see --intervention.

    Parameters
    ----------
    intervention : choice
        The intervention.
    """
    intervene("reweigh", data, out, intervention, seed=seed, **asked)


def offer_interventions(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of registered interventions to a command, if there may be others than ours."""
    if "fado.interventions" not in sys.modules and not entry_points(group="fado.plugins"):
        return function
    from fado.utility import utility_names

    entries = entries_of(function.__name__)
    signature = inspect.signature(function)
    parameters = dict(signature.parameters)
    kind: Any
    choices = {"intervention": Literal[tuple(entries)], "utility": Literal[utility_names()] | None}
    for name, kind in choices.items():
        option = parameters[name].annotation.__metadata__[0]
        parameters[name] = parameters[name].replace(annotation=Annotated[kind, option])
    settings: dict[str, list[Setting]] = {}
    for entry in entries.values():
        for own in entry.settings:
            settings.setdefault(own.name, []).append(own)
    for name, owns in settings.items():
        if name in parameters and name not in SETTINGS[function.__name__]:
            raise ValueError(
                f"An intervention has a setting named {name!r}, which is already an option of `fado "
                f"{function.__name__}`: give it another name."
            )
        words = tuple(dict.fromkeys(word for own in owns for word in own.choices))
        kind = Literal[words] | None if words else float | None
        parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        shown = _default_shown(name, entries)
        parameters[name] = described(parameter, owns[0].help, name[0].upper(), shown)

    @functools.wraps(function)
    def run(**given: Any) -> Any:
        return function(**given)

    run.__signature__ = signature.replace(parameters=list(parameters.values()))  # type: ignore[attr-defined]
    return run


def entries_of(name: str) -> dict[str, Entry]:
    """Give the interventions of a command by key."""
    from fado.interventions import intervention_entries

    return {
        entry.key: entry
        for entry in intervention_entries()
        if entry.kind.changes == CHANGES[name] and entry.key != "none"
    }


def _default_shown(setting: str, entries: Mapping[str, Entry]) -> str:
    """Give the default of a setting, by intervention if they differ."""
    defaults = {}
    for entry in entries.values():
        if _takes(entry, setting):
            own = {each.name: each.default for each in entry.settings}
            known = inspect.signature(entry.kind).parameters
            defaults[entry.key] = own[setting] if setting in own else known[setting].default
    if len(set(defaults.values())) == 1:
        return str(next(iter(defaults.values())))
    return ", ".join(f"{default} for {key}" for key, default in defaults.items())


def _takes(entry: Entry, setting: str) -> bool:
    """Say whether an intervention has a setting that is not fixed."""
    if any(own.name == setting for own in entry.settings):
        return True
    return setting in inspect.signature(entry.kind).parameters and setting not in entry.fixed


def intervene(
    name: str,
    data: Path,
    out: Path,
    intervention: str,
    *,
    positive: str | None = None,
    keep_ids: bool = False,
    values: Path | None = None,
    alpha: float | None = None,
    utility: str | None = None,
    min_group_size: int | None = None,
    memory: str | None = None,
    seed: int = 0,
    target: str,
    protected: Sequence[str],
    unknown: Sequence[str] | None = None,
    weight: str | None = None,
    group_names: Sequence[str] | None = None,
    **settings: Any,
) -> None:
    """Apply an intervention to a table, in memory or in parts; write the result and print a summary."""
    from fado.cli._inputs import is_beyond_memory, names_several
    from fado.cli._outputs import print_settings

    entry = entries_of(name)[intervention]
    _check_options(entry, {"values": values, "alpha": alpha, "utility": utility}, min_group_size, settings)
    utility = utility or DEFAULT_UTILITY
    given = {own.name: own.default for own in entry.settings}
    given |= {name: own for name, own in settings.items() if own is not None}

    def make(combined: Any, label: Any) -> Any:
        own = {} if combined is None else {"utility": combined}
        if "pos_label" in inspect.signature(entry.kind).parameters:
            own["pos_label"] = label
        return entry.make(random_state=seed, min_group_size=min_group_size, **given, **own)

    named = {"target": target, "protected": protected, "unknown": unknown}
    named |= {"weight": weight, "group_names": group_names}
    endings = {path.suffix.lower() for path in (out, values) if path is not None}
    doing = "Sampling" if name == "sample" else "Reweighing"
    asked = {"positive": positive, "values": values, "alpha": alpha, "utility": utility}
    if names_several(data) or memory is not None or (".csv" not in endings and is_beyond_memory(data, doing)):
        change, made = _change_files(name, data, out, make, memory, asked, named)
        label, n_rows, n_after, relabels = change.positive, change.n_rows, change.n_rows_after, False
    else:
        inputs, chosen, made = _change_table(entry, data, out, make, asked, {**named, "keep_ids": keep_ids})
        label, n_rows, n_after = inputs.positive, inputs.n_rows, len(chosen.rows)
        relabels = chosen.labels is not None
    about_values = {} if alpha is None else {"utility": utility, "alpha": alpha}
    own = {
        name.replace("_", "-"): value
        for name, value in made.get_params(deep=False).items()
        if name not in _SHOWN_OTHERWISE
    }
    print_settings({"intervention": entry.key, **about_values, **own, "positive": label, "seed": seed})
    if name == "sample":
        print(f"{n_after:,} of {n_rows:,} rows written to {out}")
        return
    hint = "" if weight is None else f"; train a model with these weights times {weight!r}"
    if relabels:
        hint += "; this intervention changes labels: train a model on the column 'positive'"
    print(f"Weights of {n_rows:,} rows written to {out}{hint}")


def _check_options(
    entry: Entry, about_values: Mapping[str, Any], min_group_size: int | None, settings: Mapping[str, Any]
) -> None:
    """Refuse, before anything is read, options that an intervention does not have."""
    asked = f"`--intervention {entry.key}`"
    given = [name for name, option in about_values.items() if option is not None]
    if entry.uses_values:
        for name, fix in _FIXES.items():
            if name not in given:
                raise ValueError(f"Missing option '--{name}': {asked} uses values; {fix}.")
    elif given:
        raise ValueError(f"{asked} uses no values: leave out {_flags(given)}.")
    taken = [name for name in settings if _takes(entry, name)]
    for name, option in settings.items():
        if option is not None and name not in taken:
            has = _flags(taken) or "no settings"
            raise ValueError(f"{_flags([name])} is not for {asked}, which has {has}: leave it out.")
    if min_group_size is not None and not _takes(entry, "min_group_size"):
        raise ValueError(
            f"`--min-group-size` is not for {asked}, which treats all groups alike: leave it out."
        )


def _flags(names: Sequence[str]) -> str:
    return list_names([f"`--{name.replace('_', '-')}`" for name in names])


def _change_table(
    entry: Entry, data: Path, out: Path, make: Make, asked: Mapping[str, Any], named: Mapping[str, Any]
) -> tuple[Any, Any, Any]:
    """Apply an intervention in memory; return the inputs, the training set and the intervention."""
    import pyarrow as pa

    from fado.cli._inputs import load_values, read_inputs, utility_of
    from fado.cli._outputs import check_output, print_before_after, write_table
    from fado.tabular import take_rows

    values = asked["values"]
    check_output(out, [data] if values is None else [data, values])
    inputs = read_inputs(data, positive=asked["positive"], **named)
    valuation = combined = None
    if values is not None:
        valuation = load_values(values, inputs)
        combined = utility_of(asked["utility"], asked["alpha"], [*inputs.protected], valuation)
    made = make(combined, inputs.positive).fit(
        inputs.features,
        inputs.target,
        sensitive_features=inputs.protected,
        unknown=inputs.unknown,
        valuation=valuation,
        sample_weight=inputs.weight,
    )
    chosen = made.training_set_
    more_than_rows = chosen.weights is not None or chosen.labels is not None
    if chosen.parents is not None or (entry.kind.changes == "rows" and more_than_rows):
        raise ValueError(
            f"`--intervention {entry.key}` has results that this command cannot write: use it from Python."
        )
    factors = np.zeros(inputs.n_rows)
    factors[chosen.rows] = 1.0 if chosen.weights is None else chosen.weights
    if entry.kind.changes == "rows":
        write_table(take_rows(inputs.table, chosen.rows), out)
    else:
        columns = {"weight": factors}
        if chosen.labels is not None:
            columns["positive"] = np.zeros(inputs.n_rows, dtype=bool)
            columns["positive"][chosen.rows] = chosen.labels
        write_table(pa.table(columns), out)
    print_before_after(inputs, factors, getattr(made, "min_group_size", 0))
    return inputs, chosen, made


def _change_files(
    name: str,
    data: Path,
    out: Path,
    make: Make,
    memory: str | None,
    asked: Mapping[str, Any],
    named: dict[str, Any],
) -> tuple[Any, Any]:
    """Apply an intervention in parts; return the change and the intervention."""
    from fado.cli._inputs import read_group_names
    from fado.cli._outputs import print_changes
    from fado.interventions import reweigh_files, sample_files
    from fado.tabular import open_source
    from fado.utility import utility_class
    from fado.valuation.large import name_roles

    schema = open_source(data).schema
    roles = name_roles(schema, named["target"], named["protected"], weight=named["weight"])
    names = roles.names[1:]
    positive, alpha = asked["positive"], asked["alpha"]
    label = None if positive is None else _label(schema, roles.target, positive)
    made = make(None if alpha is None else utility_class(asked["utility"])(alpha=alpha).over(names), label)
    named |= {"group_names": read_group_names(named["group_names"], named["protected"])}
    named |= {"out": out, "values": asked["values"], "intervention": made, "memory": memory, "progress": True}
    change = sample_files(data, **named) if name == "sample" else reweigh_files(data, positive=label, **named)
    print_changes(names, change.groups, getattr(made, "min_group_size", 0))
    return change, made


def _label(schema: Any, target: Any, text: str) -> Any:
    """Give the label that a text means, by the type of the target's column, before a row is read."""
    from pyarrow import types

    from fado.tabular import label_named

    kind = schema.field(target.sources[0]).type
    if not target.is_column or types.is_boolean(kind):
        return label_named([False, True], text, "--positive")
    if not (types.is_integer(kind) or types.is_floating(kind)):
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"`--positive {text}` is not a label of the target, which contains numbers."
        ) from None
