"""`fado sample` and `fado reweigh`: drop or weight rows, with options for every registered intervention."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from typer import Option

from fado._messages import list_names
from fado.cli import _options as opt

if TYPE_CHECKING:
    from fado.interventions import Entry

CHANGES = {"sample": "rows", "reweigh": "weights"}
# settings of the built-in interventions, whose registry takes long to import
SETTINGS = {
    "sample": ("strength",),
    "reweigh": ("scaling", "negative", "floor", "prevalence_correction", "constraint", "point"),
}
_FIXES = {"values": "`fado value` writes them", "alpha": "set the weight of performance, 0 to 1"}
_SHOWN_OTHERWISE = ("utility", "valuator", "pos_label", "random_state")
Make = Callable[[Any, Any], Any]  # an intervention, of a utility and a positive label


def sample(
    data: opt.Data,
    *,
    out: opt.OutInParts,
    target: opt.Target,
    protected: opt.Protected,
    unknown: opt.Unknown = None,
    positive: opt.Positive = None,
    keep_ids: opt.KeepIds = False,
    weight: opt.Weight = None,
    group_names: opt.GroupNames = None,
    values: opt.Values = None,
    alpha: Annotated[float | None, opt.ALPHA] = None,
    utility: opt.Utility = None,
    min_group_size: opt.MinGroupSize = opt.MIN_GROUP_SIZE,
    memory: opt.Memory = None,
    strength: Annotated[
        float | None,
        Option(show_default="1.0", help="How far groups' rates move to the highest rate, 0 to 1."),
    ] = None,
    intervention: Annotated[Literal["rps", "uaps"], Option(help="The intervention.")] = "uaps",
    seed: opt.Seed = 0,
    **of_plug_ins: Any,
) -> None:
    """Equalise the positive rates of groups by dropping negatives, by default those of lowest utility."""
    columns: dict[str, Any] = {
        "target": target,
        "protected": protected,
        "unknown": unknown,
        "positive": positive,
    }
    columns |= {"keep_ids": keep_ids, "weight": weight, "group_names": group_names}
    request: dict[str, Any] = {
        "values": values,
        "alpha": alpha,
        "utility": utility,
        "strength": strength,
        **of_plug_ins,
    }
    _intervene("sample", intervention, data, out, columns, request, min_group_size, memory, seed)


def reweigh(
    data: opt.Data,
    *,
    out: opt.OutInParts,
    target: opt.Target,
    protected: opt.Protected,
    unknown: opt.Unknown = None,
    positive: opt.Positive = None,
    keep_ids: opt.KeepIds = False,
    weight: opt.Weight = None,
    group_names: opt.GroupNames = None,
    values: opt.Values = None,
    alpha: Annotated[float | None, opt.ALPHA] = None,
    utility: opt.Utility = None,
    min_group_size: opt.MinGroupSize = opt.MIN_GROUP_SIZE,
    memory: opt.Memory = None,
    scaling: Annotated[
        Literal["minmax", "none"] | None,
        Option(show_default="minmax", help="minmax scales utilities to [0, 1]; none takes them as they are."),
    ] = None,
    negative: Annotated[
        Literal["raise", "clip"] | None,
        Option(
            show_default="raise",
            help="Without scaling, negative utilities are an error (raise) or a weight of 0 (clip).",
        ),
    ] = None,
    floor: Annotated[
        float | None,
        Option(
            show_default="0.0", help="Weight of the least useful row over that of the most useful, 0 to 1."
        ),
    ] = None,
    prevalence_correction: Annotated[
        float | None,
        Option(
            show_default="0.0 for uar, 1.0 for corrected_uar",
            help="Power of the correction of rates: 0 for none, 1 for equal rates.",
        ),
    ] = None,
    constraint: Annotated[
        Literal["FalsePositiveRateParity", "DemographicParity", "TruePositiveRateParity", "EqualizedOdds"]
        | None,
        Option(show_default="FalsePositiveRateParity", help="What fairlearn makes equal between groups."),
    ] = None,
    point: Annotated[
        float | None, Option(show_default="0.5", help="The place on fairlearn's grid of multipliers, 0 to 1.")
    ] = None,
    intervention: Annotated[
        Literal["rw", "uar", "corrected_uar", "fairlearn_grid"], Option(help="The intervention.")
    ] = "uar",
    seed: opt.Seed = 0,
    **of_plug_ins: Any,
) -> None:
    """Weight rows by their utility, to equalise the positive rates of groups, or both; see --intervention."""
    columns: dict[str, Any] = {
        "target": target,
        "protected": protected,
        "unknown": unknown,
        "positive": positive,
    }
    columns |= {"keep_ids": keep_ids, "weight": weight, "group_names": group_names}
    request: dict[str, Any] = {"values": values, "alpha": alpha, "utility": utility}
    request |= {"scaling": scaling, "negative": negative, "floor": floor, "point": point}
    request |= {"prevalence_correction": prevalence_correction, "constraint": constraint, **of_plug_ins}
    _intervene("reweigh", intervention, data, out, columns, request, min_group_size, memory, seed)


def signature_with_plug_ins(function: Callable[..., Any]) -> inspect.Signature:
    """Give the signature of a command, with the options of interventions that are not built in."""
    signature = inspect.signature(function, eval_str=True)
    parameters = {name: each for name, each in signature.parameters.items() if name != "of_plug_ins"}
    if "fado.interventions" in sys.modules or entry_points(group="fado.plugins"):
        from fado.utility import utility_names

        command = function.__name__
        kind: Any
        entries = entries_of(command)
        choices = {"intervention": Literal[tuple(entries)], "utility": Literal[utility_names()] | None}
        for name, kind in choices.items():
            option = parameters[name].annotation.__metadata__[0]
            parameters[name] = parameters[name].replace(annotation=Annotated[kind, option])
        for setting in (setting for entry in entries.values() for setting in entry.settings):
            if setting.name in SETTINGS[command]:
                continue
            if setting.name in signature.parameters:
                raise ValueError(
                    f"An intervention has a setting named {setting.name!r}, which is already an option of "
                    f"`fado {command}`: give it another name."
                )
            kind = Literal[tuple(setting.choices)] | None if setting.choices else float | None
            option = Option(help=setting.help, show_default=str(setting.default))
            parameters[setting.name] = inspect.Parameter(
                setting.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
            )
    return signature.replace(parameters=list(parameters.values()))


def entries_of(command: str) -> dict[str, Entry]:
    """Give the interventions of a command by key."""
    from fado.interventions import intervention_entries

    return {
        entry.key: entry
        for entry in intervention_entries()
        if entry.kind.changes == CHANGES[command] and entry.key != "none"
    }


def _takes(entry: Entry, setting: str) -> bool:
    """Say whether an intervention has a setting that is not fixed."""
    if any(each.name == setting for each in entry.settings):
        return True
    return setting in inspect.signature(entry.kind).parameters and setting not in entry.fixed


def _intervene(
    command: str,
    intervention: str,
    data: Path,
    out: Path,
    columns: dict[str, Any],
    request: dict[str, Any],
    min_group_size: int,
    memory: str | None,
    seed: int,
) -> None:
    """Apply an intervention to a table, in memory or in parts; write the result and print a summary."""
    from fado.cli._inputs import is_beyond_memory, names_several
    from fado.cli._outputs import print_settings

    entry = entries_of(command)[intervention]
    _check_options(entry, request, min_group_size)
    values, alpha = request.pop("values"), request.pop("alpha")
    utility = request.pop("utility") or "linear"
    settings = {setting.name: setting.default for setting in entry.settings}
    settings |= {name: given for name, given in request.items() if given is not None}

    def make(combined: Any, label: Any) -> Any:
        of_rows = {} if combined is None else {"utility": combined}
        if "pos_label" in inspect.signature(entry.kind).parameters:
            of_rows["pos_label"] = label
        return entry.make(random_state=seed, min_group_size=min_group_size, **settings, **of_rows)

    is_csv = any(path is not None and path.suffix.lower() == ".csv" for path in (out, values))
    doing = "Sampling" if command == "sample" else "Reweighing"
    about_values = {} if alpha is None else {"utility": utility, "alpha": alpha}
    if names_several(data) or memory is not None or (not is_csv and is_beyond_memory(data, doing)):
        change, made = _change_files(command, data, out, make, memory, values, about_values, columns)
        label, n_rows, n_after, relabels = change.positive, change.n_rows, change.n_rows_after, False
    else:
        inputs, chosen, made = _change_table(entry, data, out, make, values, about_values, columns)
        label, n_rows, n_after = inputs.positive, inputs.n_rows, len(chosen.rows)
        relabels = chosen.labels is not None
    shown = {
        name.replace("_", "-"): value
        for name, value in made.get_params(deep=False).items()
        if name not in _SHOWN_OTHERWISE
    }
    print_settings({"intervention": entry.key, **about_values, **shown, "positive": label, "seed": seed})
    if command == "sample":
        print(f"{n_after:,} of {n_rows:,} rows written to {out}")
        return
    weight = columns["weight"]
    hint = "" if weight is None else f"; train a model with these weights times {weight!r}"
    if relabels:
        hint += "; this intervention changes labels: train a model on the column 'positive'"
    print(f"Weights of {n_rows:,} rows written to {out}{hint}")


def _check_options(entry: Entry, request: Mapping[str, Any], min_group_size: int) -> None:
    """Refuse, before anything is read, options that an intervention does not have."""
    named = f"`--intervention {entry.key}`"
    given = [name for name, option in request.items() if option is not None]
    about_values = [name for name in ("values", "alpha", "utility") if name in given]
    if entry.uses_values:
        for name, fix in _FIXES.items():
            if name not in given:
                raise ValueError(f"Missing option '--{name}': {named} uses values; {fix}.")
    elif about_values:
        raise ValueError(f"{named} uses no values: leave out {_flags(about_values)}.")
    settings = [name for name in request if name not in ("values", "alpha", "utility")]
    taken = [name for name in settings if _takes(entry, name)]
    for name in settings:
        if name in given and name not in taken:
            has = _flags(taken) or "no settings"
            raise ValueError(f"{_flags([name])} is not for {named}, which has {has}: leave it out.")
    if min_group_size != opt.MIN_GROUP_SIZE and not _takes(entry, "min_group_size"):
        raise ValueError(
            f"`--min-group-size` is not for {named}, which treats all groups alike: leave it out."
        )


def _flags(names: Sequence[str]) -> str:
    return list_names([f"`--{name.replace('_', '-')}`" for name in names])


def _change_table(
    entry: Entry,
    data: Path,
    out: Path,
    make: Make,
    values: Path | None,
    about_values: Mapping[str, Any],
    columns: Mapping[str, Any],
) -> tuple[Any, Any, Any]:
    """Apply an intervention in memory; return the inputs, the training set and the intervention."""
    import pyarrow as pa

    from fado.cli._inputs import load_values, read_inputs, utility_of
    from fado.cli._outputs import check_output, print_before_after, write_table
    from fado.tabular import take_rows

    check_output(out, [data] if values is None else [data, values])
    inputs = read_inputs(data, **columns)
    valuation = combined = None
    if values is not None:
        valuation = load_values(values, inputs)
        combined = utility_of([*inputs.protected], valuation, **about_values)
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
        written = {"weight": factors}
        if chosen.labels is not None:
            written["positive"] = np.zeros(inputs.n_rows, dtype=bool)
            written["positive"][chosen.rows] = chosen.labels
        write_table(pa.table(written), out)
    print_before_after(inputs, factors, getattr(made, "min_group_size", 0))
    return inputs, chosen, made


def _change_files(
    command: str,
    data: Path,
    out: Path,
    make: Make,
    memory: str | None,
    values: Path | None,
    about_values: Mapping[str, Any],
    columns: dict[str, Any],
) -> tuple[Any, Any]:
    """Apply an intervention in parts; return the change and the intervention."""
    from fado.cli._inputs import read_group_names
    from fado.cli._outputs import print_changes
    from fado.interventions import reweigh_files, sample_files
    from fado.tabular import open_source, read_roles
    from fado.utility import utility_class

    schema = open_source(data).schema
    weight = columns["weight"]
    roles = read_roles(schema, columns["target"], columns["protected"], weight=weight, features=False)
    names = roles.names[1:]
    positive = columns["positive"]
    label = None if positive is None else _label(schema, roles.target, positive)
    combined = None
    if about_values:
        combined = utility_class(about_values["utility"])(alpha=about_values["alpha"]).over(names)
    made = make(combined, label)
    settings = {name: columns[name] for name in ("target", "protected", "unknown", "weight")}
    settings |= {"group_names": read_group_names(columns["group_names"], columns["protected"])}
    settings |= {"out": out, "values": values, "intervention": made, "memory": memory, "progress": True}
    if command == "sample":
        change = sample_files(data, **settings)
    else:
        change = reweigh_files(data, positive=label, **settings)
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
