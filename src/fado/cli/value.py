"""`fado value`: value every row of a table.

With newly trained models, in memory or in parts; with saved models; or from a file of values.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fado._storage import remove_abandoned
from fado.cli._options import command

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


@command(in_parts=True)
def value(
    data: Path,
    *,
    out: Path,
    target: str | None = None,
    protected: list[str] | None = None,
    unknown: list[str] | None = None,
    positive: str | None = None,
    valuator: str | None = None,
    ratio: Literal["fpr_ratio", "fnr_ratio", "tpr_ratio", "selection_rate_ratio"] | None = None,
    performance: Literal["tpr_at_fpr", "log_loss", "accuracy"] | None = None,
    exclude: list[str] | None = None,
    drop: list[str] | None = None,
    keep_ids: bool = False,
    bags: int | None = None,
    weight: str | None = None,
    groups: str | None = None,
    group_names: list[str] | None = None,
    from_: Path | None = None,
    models: Path | None = None,
    keep_probabilities: bool = False,
    memory: str | None = None,
    train_rows: int | None = None,
    dry_run: bool = False,
    dask: str | None = None,
    seed: int | None = None,
    jobs: int | None = None,
) -> None:
    """Value every row: how uncertain models are about it, or its effect on a model and its fairness.

    Parameters
    ----------
    valuator : oob|inbag|influence|data-shapley|knn-shapley, default=oob
        oob: how uncertain models are about rows that they were not trained on. inbag: about rows that they
        were trained on. The others: the effect of a row on a model. Or the name of a registered valuator.
    ratio : choice, default=fpr_ratio
        For valuators of effects: the ratio between groups that a row's value for a protected attribute
        measures.
    performance : choice, default=the valuator's own
        For valuators of effects: the performance metric that a row's value for the target measures.
    groups : COL
        A column of groups of rows, such as a person's id: a bag contains all rows of a group or none. It is
        not a feature.
    from_ : FILE
        Take values from this CSV or Parquet file instead of computing them. It needs a line per row of DATA,
        in the same order, a column 'y' and one named like each attribute, or 'v_y' and 'v_z'.
    models : DIR
        For oob and inbag: a directory to save the models to. If it already contains models, these value the
        rows, which must be new rows; `--target` and `--protected` are then not needed.
    keep_probabilities : flag
        For oob, and a target with classes: also write the predicted probabilities of labels and groups, to a
        Parquet file.
    memory : SIZE, default=three quarters of the free memory
        Read the table in parts, and use at most this much memory, such as 4GB. Run the same command again to
        resume a stopped run.
    train_rows : N, default=as many as fit into memory, at most 400,000
        For a table that is read in parts: how many rows the models of each bag are trained on.
    dry_run : flag
        Only print how the table would be read.
    dask : ADDRESS
        For a table that is read in parts: the scheduler of a Dask cluster that fits the models and scores the
        parts; its workers must have access to the same files.
    """
    from fado.cli._inputs import given_options, is_beyond_memory, names_several

    of_valuator = {"fairness": ratio, "performance": performance, "n_bags": bags, "z_exclude": exclude}
    trained = {
        "--valuator": valuator,
        "--drop": drop,
        "--keep-ids": keep_ids,
        **{option: of_valuator[setting] for setting, (option, _) in _USELESS.items()},
        "--groups": groups,
        "--keep-probabilities": keep_probabilities,
    }
    named: dict[str, Any] = {"positive": positive, "weight": weight, "group_names": group_names}
    in_parts = names_several(data) or dry_run or any(own is not None for own in (memory, train_rows, dask))
    if models is not None and from_ is None and _stand_in(models) and not in_parts:
        remove_abandoned(models)
        trained |= {f"--{name.replace('_', '-')}": own for name, own in named.items()}
        trained |= {"--seed": seed}
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
    named |= {"target": target, "protected": protected, "unknown": unknown}
    for_memory = {
        **trained,
        **{"--valuator": None if valuator == DEFAULT else valuator},
        **dict.fromkeys(("--drop", "--keep-ids", "--exclude", "--bags", "--groups")),  # valid for both
        **{"--from": from_, "--models": models},
    }
    useless = given_options(for_memory)
    if in_parts or (not useless and out.suffix.lower() != ".csv" and is_beyond_memory(data, "Valuing")):
        if useless:
            raise ValueError(
                f"A table that is read in parts is valued by out-of-bag entropy: leave out {useless}, or "
                "value one file in memory, without `--memory`, `--train-rows`, `--dry-run` and `--dask`."
            )
        sizes = {"memory": memory, "train_rows": train_rows, "n_bags": bags or 10, "n_jobs": jobs}
        columns = {"drop": drop, "keep_ids": keep_ids, "exclude": exclude, "groups": groups}
        _value_files(data, out, named, {**columns, **sizes}, seed or 0, dask, dry_run)
    elif from_ is not None:
        if given := given_options(trained | {"--models": models, "--jobs": jobs}):
            raise ValueError(f"`--from` reads values and fits no models: leave out {given}.")
        _take_values(data, out, from_, named)
    else:
        _train(
            valuator or DEFAULT,
            data,
            out,
            {**named, "drop": drop, "keep_ids": keep_ids, "groups": groups},
            of_valuator,
            models,
            keep_probabilities=keep_probabilities,
            seed=seed or 0,
            jobs=jobs,
        )


def _train(
    name: str,
    data: Path,
    out: Path,
    named: Mapping[str, Any],
    settings: Mapping[str, Any],
    models: Path | None,
    *,
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
    inputs = read_inputs(data, **named)
    given = {setting: own for setting, own in settings.items() if own is not None}
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
        written = type(valuation).from_values({own: valuation[own] for own in valuation.variables})
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
            **{option: getattr(valuator, own, None) for option, own in attributes.items()},
            "positive": inputs.positive,
            "weight": named["weight"],
            "groups": named["groups"],
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


def _take_values(data: Path, out: Path, from_file: Path, named: Mapping[str, Any]) -> None:
    """Take the values of the rows from a file of another program."""
    from fado.cli._inputs import read_elsewhere, read_inputs, save_values
    from fado.cli._outputs import check_output, print_effects, print_lines, print_settings

    check_output(out, [data, from_file])
    inputs = read_inputs(data, **named, keep_ids=None)
    valuation = read_elsewhere(from_file, inputs.table, list(inputs.protected))
    save_values(valuation, out, inputs.name, inputs.target)
    print_effects(inputs, valuation)
    print_lines("Values from a file: a higher value means that a row is worth more.")
    print_settings({"from": from_file, "positive": inputs.positive, "weight": named["weight"]})
    print(f"Values of {inputs.n_rows:,} rows written to {out}")


def _value_files(
    data: Path,
    out: Path,
    named: Mapping[str, Any],
    settings: dict[str, Any],
    seed: int,
    dask: str | None,
    dry_run: bool,
) -> None:
    """Value a table that is read in parts: print the plan, value the rows, and print a summary."""
    from fado.cli._columns import columns_to_drop
    from fado.cli._inputs import read_group_names
    from fado.cli._outputs import print_settings, print_table
    from fado.tabular import TARGET, label_named, open_source
    from fado.valuation import plan_files, summarise_files, value_files
    from fado.valuation.large import check_group_names, name_roles

    target, protected, positive = named["target"], named["protected"], named["positive"]
    source, names = open_source(data), read_group_names(named["group_names"], protected)
    roles = name_roles(source.schema, target, protected, group_names=names)
    check_group_names(source, roles)
    settings |= {"target": target, "protected": list(protected), "weight": named["weight"]}
    settings |= {"unknown": named["unknown"]}
    settings["drop"] = columns_to_drop(data, settings.pop("keep_ids"), **settings)
    print(plan_files(data, **settings), flush=True)
    if dry_run:
        return
    valuation = value_files(data, out=out, client=dask, progress=True, random_state=seed, **settings)
    classes = valuation.provenance.variables[TARGET].classes or ()
    label = None if positive is None else label_named(classes, positive, "--positive")
    excluded, written = (
        valuation.provenance.excluded_columns or {},
        {own.name: own for own in roles.attributes},
    )
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
    told = valuation.metadata
    print(f"Models were trained on {told['train_rows']:,} of {told['n_rows']:,} rows per bag.")
    sizes = {"bags": told["n_bags"], "train-rows": told["train_rows"]}
    print_settings({"valuator": DEFAULT, **sizes, "weight": named["weight"], "seed": told["seed"]})
    print(f"Values of {len(valuation):,} rows written to {out}")


def _stand_in(directory: Path) -> bool:
    """Say whether models are to be read from a directory: it exists and is not empty."""
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
    learnt = {own.variable.name: own.variable.classes for own in models.kept}
    values = tuple(unknown or models.provenance.unknown or ())
    attributes = {  # with the labels of the models: booleans, if from Python
        own.name: own.entries(table) if True in learnt.get(own.name, ()) else own.groups(table)
        for text in protected
        for own in [replace(Expression.of(table.column_names, text, "protected"), unknown=values)]
    }
    valuation = models.value(table, labels, attributes or None, unknown=unknown, n_jobs=jobs, progress=True)
    if written is None or labels is None:
        valuation.save(out)
    else:
        save_values(valuation, out, written.name, labels)
    rows = []
    for name, count in models.n_models.items():
        fields = [valuation.field(field, name) for field in ("epistemic", "label_probability")]
        means = [np.nan if np.isnan(own).all() else float(np.nanmean(own)) for own in fields]
        rows.append([name, count, *known_quantiles(valuation[name], [0.25, 0.5, 0.75]), *means])
    header = ["variable", "models", "v\n25%", "v\n50%", "v\n75%", "epistemic\nmean", "agreement\nmean"]
    print_table("New rows", header, rows)
    print(f"Values of models that were trained on {models.n_rows:,} rows: {_counted(models)}.")
    if labels is None and any(own.variable.sees_target for own in models.kept):
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
