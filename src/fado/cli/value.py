"""`fado value`: value every row of a table.

With newly trained models, in memory or in parts; with saved models; or from a file of values.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from typer import Option

from fado._storage import remove_abandoned
from fado.cli import _options as opt

if TYPE_CHECKING:
    from fado.cli._inputs import Inputs
    from fado.valuation import Valuation, ValuationModels

DEFAULT = "oob"
_USELESS = {  # the option of a setting, and why a valuator may not have it
    "fairness": ("--ratio", "measures no ratio"),
    "performance": ("--performance", "measures no performance"),
    "n_bags": ("--bags", "has no bags"),
    "z_exclude": ("--exclude", "has no models of attributes"),
}


def value(
    data: opt.Data,
    *,
    out: opt.OutInParts,
    target: Annotated[str | None, opt.TARGET] = None,
    protected: Annotated[list[str] | None, opt.PROTECTED] = None,
    unknown: opt.Unknown = None,
    positive: opt.Positive = None,
    valuator: Annotated[
        str,
        Option(
            metavar="oob|inbag|influence|data-shapley|knn-shapley",
            help="oob: how uncertain models are about rows that they were not trained on. inbag: about "
            "rows that they were trained on. The others: the effect of a row on a model. Or the name "
            "of a registered valuator.",
        ),
    ] = DEFAULT,
    ratio: Annotated[
        Literal["fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"] | None,
        Option(
            show_default="fpr_ratio",
            help="For effects: the ratio between groups that a row's value for a protected attribute "
            "measures.",
        ),
    ] = None,
    performance: Annotated[
        Literal["tpr_at_fpr", "log_loss", "accuracy"] | None,
        Option(
            show_default="the valuator's own",
            help="For effects: the performance metric that a row's value for the target measures.",
        ),
    ] = None,
    exclude: opt.Exclude = None,
    drop: opt.Drop = None,
    keep_ids: opt.KeepIds = False,
    bags: opt.Bags = None,
    weight: opt.Weight = None,
    groups: Annotated[
        str | None,
        Option(
            metavar="COL",
            help="A column of groups of rows, such as a person's id: a bag contains all rows of a group or "
            "none. It is not a feature.",
        ),
    ] = None,
    group_names: opt.GroupNames = None,
    from_: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="FILE",
            help="Take values from this CSV or Parquet file instead of computing them. It needs a line per "
            "row of DATA, in the same order, a column 'y' and one named like each attribute, or 'v_y' "
            "and 'v_z'.",
        ),
    ] = None,
    models: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="For oob and inbag: a directory to save the models to. If it already contains models, "
            "these value the rows, which must be new rows; `--target` and `--protected` are then not "
            "needed.",
        ),
    ] = None,
    keep_probabilities: Annotated[
        bool,
        Option(
            "--keep-probabilities",
            help="For oob, and a target with classes: also write the predicted probabilities of labels and "
            "groups, to a Parquet file.",
        ),
    ] = False,
    memory: opt.Memory = None,
    train_rows: Annotated[
        int | None,
        Option(
            show_default="as many as fit into memory, at most 400,000",
            help="For a table that is read in parts: how many rows the models of each bag are trained on.",
        ),
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only print how the table would be read.")] = False,
    dask: opt.Dask = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
) -> None:
    """Value every row: how uncertain models are about it, or its effect on a model and its fairness."""
    from fado.cli._inputs import given_options, is_beyond_memory, names_several

    settings = {"fairness": ratio, "performance": performance, "n_bags": bags, "z_exclude": exclude}
    of_columns = {"--drop": drop, "--keep-ids": keep_ids, "--exclude": exclude, "--groups": groups}
    of_models = {
        "--valuator": None if valuator == DEFAULT else valuator,
        "--ratio": ratio,
        "--performance": performance,
        "--keep-probabilities": keep_probabilities,
    }
    trained = {**of_models, "--bags": bags, **of_columns}
    in_parts = names_several(data) or dry_run or any(each is not None for each in (memory, train_rows, dask))
    if models is not None and from_ is None and not in_parts and _has_models(models):
        remove_abandoned(models)
        trained |= {"--positive": positive, "--weight": weight, "--group-names": group_names, "--seed": seed}
        if given := given_options(trained):
            raise ValueError(
                f"{str(models)!r} contains models, so nothing is trained: leave out {given}, or name another "
                "directory with `--models` to save new models to."
            )
        _value_new_rows(data, models, out, target, protected or [], unknown, jobs)
        return
    if target is None or not protected:
        lacking = "--target" if target is None else "--protected"
        raise ValueError(f"Missing option '{lacking}': only saved models do not need it.")
    columns: dict[str, Any] = {"target": target, "protected": protected, "unknown": unknown}
    columns |= {"positive": positive, "weight": weight, "group_names": group_names}
    useless = given_options(of_models | {"--from": from_, "--models": models})
    if in_parts or (not useless and out.suffix.lower() != ".csv" and is_beyond_memory(data, "Valuing")):
        if useless:
            raise ValueError(
                f"A table that is read in parts is valued by out-of-bag entropy: leave out {useless}, or "
                "value one file in memory, without `--memory`, `--train-rows`, `--dry-run` and `--dask`."
            )
        sizes = {"memory": memory, "train_rows": train_rows, "n_bags": bags or 10, "n_jobs": jobs}
        more = {"drop": drop, "keep_ids": keep_ids, "exclude": exclude, "groups": groups}
        _value_files(data, out, columns, {**more, **sizes}, seed, dask, dry_run)
    elif from_ is not None:
        if given := given_options(trained | {"--models": models, "--jobs": jobs}):
            raise ValueError(f"`--from` reads values and fits no models: leave out {given}.")
        _take_values(data, out, from_, columns)
    else:
        columns |= {"drop": drop, "keep_ids": keep_ids, "groups": groups}
        _train(valuator, data, out, columns, settings, models, keep_probabilities, seed, jobs)


def _train(
    name: str,
    data: Path,
    out: Path,
    columns: Mapping[str, Any],
    settings: Mapping[str, Any],
    models: Path | None,
    keep_probabilities: bool,
    seed: int,
    jobs: int | None,
) -> None:
    """Value the rows of a table in memory with newly trained models."""
    from fado.cli._inputs import read_inputs, save_values
    from fado.cli._outputs import check_output, print_effects, print_lines, print_meanings, print_settings
    from fado.valuation import make_valuator

    taken = _check_taken(name, settings)
    if keep_probabilities:
        if "keep_probabilities" not in taken:
            raise ValueError(
                f"`--keep-probabilities` is for `--valuator {DEFAULT}`, not for {name!r}: leave it out."
            )
        if out.suffix.lower() == ".csv":
            raise ValueError("`--keep-probabilities` needs a .parquet file: a CSV file cannot store them.")
    check_output(out, [data])
    if models is not None:
        _check_keeps_models(name, models, out)
    inputs = read_inputs(data, **columns)
    given = {setting: option for setting, option in settings.items() if option is not None}
    given["z_exclude"] = inputs.hidden_columns(settings["z_exclude"])
    flags = {"keep_models": models is not None, "keep_probabilities": keep_probabilities}
    given |= {flag: True for flag, wanted in flags.items() if wanted}
    valuator = make_valuator(name, **given, random_state=seed, n_jobs=jobs, progress=True)
    valuator.fit(
        inputs.features,
        _binary_target(inputs) if "fairness" in taken else inputs.target,
        sensitive_features=inputs.labelled,
        unknown=inputs.unknown,
        sample_weight=inputs.weight,
        groups=inputs.groups,
    )
    valuation = valuator.valuation_
    are_effects = not all(scale.is_unit for scale in valuation.scales.values())
    written = valuation
    if are_effects and out.suffix.lower() == ".csv":  # which stores only the values
        written = type(valuation).from_values({each: valuation[each] for each in valuation.variables})
    save_values(written, out, inputs.name, inputs.target)
    if models is not None:  # last, since saved models refuse the table that they were trained on
        valuator.models_.save(models)
    if are_effects:
        print_effects(inputs, valuation)
        print_meanings(valuation, weighted=inputs.weight is not None)
    else:
        _print_quartiles(inputs, valuation, getattr(valuator, "excluded_columns_", {}))
    agreed = [
        f"{row['rank_agreement']:.2f} for {'the target' if row['column'] == 'y' else row['column']}"
        for row in valuation.stability().to_dict("records")
    ]
    if agreed:
        print_lines(
            f"Expected rank correlation with another run, from the standard errors: {', '.join(agreed)}."
        )
    if inputs.unseen:
        print(f"Columns that are not features: {', '.join(inputs.unseen)}")
    if models is not None:
        print(f"Models saved to {models}: {_counted(valuator.models_)}")
    attributes = {"ratio": "fairness", "performance": "performance", "max-fpr": "max_fpr", "bags": "n_bags"}
    print_settings(
        {
            "valuator": name,
            **{option: getattr(valuator, attribute, None) for option, attribute in attributes.items()},
            "positive": inputs.positive,
            "weight": columns["weight"],
            "groups": columns["groups"],
            "seed": seed,
        }
    )
    print(f"Values of {inputs.n_rows:,} rows written to {out}")


def _check_taken(name: str, settings: Mapping[str, Any]) -> Sequence[str]:
    """Refuse, before anything is read, settings that a valuator does not have; list those that it has."""
    from fado.valuation import make_valuator, valuator_names

    if name not in valuator_names():
        raise ValueError(f"`--valuator` must be {' or '.join(map(repr, valuator_names()))}, got {name!r}.")
    taken = list(inspect.signature(type(make_valuator(name))).parameters)
    for setting, (option, why) in _USELESS.items():
        if settings[setting] not in (None, []) and setting not in taken:
            raise ValueError(f"`{option}` is not for `--valuator {name}`, which {why}: leave it out.")
    return taken


def _check_keeps_models(name: str, directory: Path, out: Path) -> None:
    """Refuse, before any work, a valuator without models, and a directory that cannot store them."""
    from fado.cli._outputs import check_apart, check_writable
    from fado.valuation import InBagEntropy, OutOfBagEntropy, make_valuator

    if not isinstance(make_valuator(name), OutOfBagEntropy | InBagEntropy):
        raise ValueError(f"`--models` is for `--valuator oob` or `inbag`, not for {name!r}: leave it out.")
    check_writable(directory.resolve().parent)
    check_apart(out, directory, "`--models`")


def _binary_target(inputs: Inputs) -> Any:
    """Give the target with the larger of two labels as the positive one; unchanged if it has none.

    A target with missing labels is also unchanged, so that the valuator refuses it.
    """
    labels = inputs.labels
    if labels.positive is None or (labels.codes < 0).any():
        return inputs.target
    return inputs.target if (len(labels.classes), labels.positive) == (2, 1) else labels.is_positive


def _print_quartiles(inputs: Inputs, valuation: Valuation, excluded: Mapping[str, Sequence[str]]) -> None:
    """Print, for each attribute, every group's share, positive rate and quartiles of values."""
    from fado.cli._outputs import in_shown_order, print_table
    from fado.tabular import group_rows
    from fado.valuation import known_quantiles

    positives, weights = inputs.positives, inputs.weights
    rates = ["positive"] if positives is not None else []
    quantiles = [f"{which}\n{share}" for which in ("v_y", "v_z") for share in ("25%", "50%", "75%")]
    header = ["group", "rows", "share", *rates, *quantiles]
    for attribute in inputs.attributes:
        name = attribute.name
        groups = group_rows([attribute], quarters=True)
        rows = []
        for code in in_shown_order(groups, [attribute]):
            members = groups.codes == code
            total = weights[members].sum()
            line = [groups.titles[code], int(members.sum()), float(total / weights.sum())]
            if positives is not None:
                line.append(float(weights[members & positives].sum() / total) if total > 0 else np.nan)
            for which in ("y", name):
                line += known_quantiles(valuation[which][members], [0.25, 0.5, 0.75])
            rows.append(line)
        print_table(f"Protected attribute {name}", header, rows)
        print(f"Columns hidden from the models of {name}: {', '.join(excluded.get(name, [])) or 'none'}")


def _take_values(data: Path, out: Path, from_file: Path, columns: Mapping[str, Any]) -> None:
    """Take the values of the rows from a file of another program."""
    from fado.cli._inputs import read_elsewhere, read_inputs, save_values
    from fado.cli._outputs import check_output, print_effects, print_lines, print_settings

    check_output(out, [data, from_file])
    inputs = read_inputs(data, **columns, keep_ids=None)
    valuation = read_elsewhere(from_file, inputs.table, list(inputs.protected))
    save_values(valuation, out, inputs.name, inputs.target)
    print_effects(inputs, valuation)
    print_lines("Values from a file: a higher value means that a row is worth more.")
    print_settings({"from": from_file, "positive": inputs.positive, "weight": columns["weight"]})
    print(f"Values of {inputs.n_rows:,} rows written to {out}")


def _value_files(
    data: Path,
    out: Path,
    columns: Mapping[str, Any],
    settings: dict[str, Any],
    seed: int,
    dask: str | None,
    dry_run: bool,
) -> None:
    """Value a table that is read in parts: print the plan, value the rows, and print a summary."""
    from fado.cli._columns import columns_to_drop
    from fado.cli._inputs import read_group_names
    from fado.cli._outputs import print_settings, print_table
    from fado.tabular import TARGET, check_group_names, label_named, open_source, read_roles
    from fado.valuation import plan_files, summarise_files, value_files

    target, protected, positive = columns["target"], columns["protected"], columns["positive"]
    source, names = open_source(data), read_group_names(columns["group_names"], protected)
    roles = read_roles(source.schema, target, protected, group_names=names, features=False)
    check_group_names(source, roles)
    settings |= {"target": target, "protected": list(protected)}
    settings |= {"weight": columns["weight"], "unknown": columns["unknown"]}
    settings["drop"] = columns_to_drop(data, settings.pop("keep_ids"), **settings)
    print(plan_files(data, **settings), flush=True)
    if dry_run:
        return
    valuation = value_files(data, out=out, client=dask, progress=True, random_state=seed, **settings)
    classes = valuation.provenance.variables[TARGET].classes or ()
    label = None if positive is None else label_named(classes, positive, "--positive")
    excluded = valuation.provenance.excluded_columns or {}
    written = {attribute.name: attribute for attribute in roles.attributes}
    for name, lines in summarise_files(out, label).items():
        has_rates = any(line.positive is not None for line in lines)
        rows = []
        for line in lines:
            rate = [np.nan if line.positive is None else line.positive] if has_rates else []
            rows.append(
                [written[name].called(line.title), line.n_rows, line.share, *rate, line.mean_y, line.mean_z]
            )
        rates = ["positive"] if has_rates else []
        header = ["group", "rows", "share", *rates, "v_y\nmean", "v_z\nmean"]
        print_table(f"Protected attribute {name}", header, rows)
        print(f"Columns hidden from the models of {name}: {', '.join(excluded.get(name, ())) or 'none'}")
    made = valuation.metadata
    print(f"Models were trained on {made['train_rows']:,} of {made['n_rows']:,} rows per bag.")
    sizes = {"bags": made["n_bags"], "train-rows": made["train_rows"]}
    print_settings({"valuator": DEFAULT, **sizes, "weight": columns["weight"], "seed": made["seed"]})
    print(f"Values of {len(valuation):,} rows written to {out}")


def _has_models(directory: Path) -> bool:
    """Say whether a directory exists and is not empty."""
    return directory.exists() and (not directory.is_dir() or any(directory.iterdir()))


def _value_new_rows(
    data: Path,
    directory: Path,
    out: Path,
    target: str | None,
    protected: Sequence[str],
    unknown: Sequence[str] | None,
    jobs: int | None,
) -> None:
    """Value the rows of a table with saved models; known attributes add only the agreement."""
    from fado.cli._inputs import save_values
    from fado.cli._outputs import check_apart, check_output, print_settings, print_table
    from fado.tabular import Expression, read_table
    from fado.valuation import known_quantiles, load_models

    check_output(out, [data])
    check_apart(out, directory, "`--models`")
    models = load_models(directory)
    table = read_table(data)
    written = None if target is None else Expression.of(table.column_names, target, "target")
    labels = None if written is None else written.read(table, named=False)
    if labels is not None:
        _check_other_rows(models, labels, directory)
    learnt = {kept.variable.name: kept.variable.classes for kept in models.kept}
    values = tuple(unknown or models.provenance.unknown or ())
    attributes = {}
    for text in protected:
        expression = replace(Expression.of(table.column_names, text, "protected"), unknown=values)
        has_booleans = True in learnt.get(expression.name, ())  # labels of models that were made in Python
        attributes[expression.name] = (expression.entries if has_booleans else expression.groups)(table)
    valuation = models.value(table, labels, attributes or None, unknown=unknown, n_jobs=jobs, progress=True)
    if written is None or labels is None:
        valuation.save(out)
    else:
        save_values(valuation, out, written.name, labels)
    rows = []
    for name, count in models.n_models.items():
        fields = [valuation.field(field, name) for field in ("epistemic", "label_probability")]
        means = [np.nan if np.isnan(field).all() else float(np.nanmean(field)) for field in fields]
        rows.append([name, count, *known_quantiles(valuation[name], [0.25, 0.5, 0.75]), *means])
    header = ["variable", "models", "v\n25%", "v\n50%", "v\n75%", "epistemic\nmean", "agreement\nmean"]
    print_table("New rows", header, rows)
    print(f"Values of models that were trained on {models.n_rows:,} rows: {_counted(models)}.")
    if labels is None and any(kept.variable.sees_target for kept in models.kept):
        print("Models that use the target are averaged over its predicted labels.")
    print_settings({"models": directory, "valuator": valuation.provenance.algorithm, "target": target})
    print(f"Values of {table.num_rows:,} rows written to {out}")


def _check_other_rows(models: ValuationModels, labels: Any, directory: Path) -> None:
    """Refuse the table that the models were trained on."""
    from fado.tabular import column_from, variable_from
    from fado.valuation import digest_of_target

    if len(labels) != models.n_rows:
        return
    kind = models.kept[0].variable.kind
    column = column_from("y", labels)
    if (column.levels is not None and kind == "continuous") or column.data.null_count:
        return  # refused later
    if digest_of_target(variable_from(column, kind)) == models.target_digest:
        raise ValueError(
            f"The models in {str(directory)!r} were trained on this table, so they cannot value it as new "
            "rows: delete the directory, or name another with `--models`, to train new models."
        )


def _counted(models: ValuationModels) -> str:
    return ", ".join(f"{count} of {name}" for name, count in models.n_models.items())
