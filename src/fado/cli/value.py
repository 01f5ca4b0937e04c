"""`fado value`: value every row of a table."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from fado._messages import list_names
from fado.cli._effects import print_effects, print_lines, print_meanings
from fado.cli._elsewhere import read_elsewhere
from fado.cli._errors import in_sentences
from fado.cli._inputs import Inputs, read_inputs
from fado.cli._new_rows import check_room_for_models, models_stand_in, print_kept_models, value_new_rows
from fado.cli._options import (
    Bags,
    Drop,
    Exclude,
    GroupNames,
    Jobs,
    Performance,
    Positive,
    ProtectedIfTrained,
    Ratio,
    SeedIfTrained,
    TargetIfTrained,
    Weight,
)
from fado.cli._parts import DataOrParts, OutOrParts, is_beyond_memory, names_several
from fado.cli._summary import in_shown_order, print_settings, print_table
from fado.cli._tables import check_output
from fado.cli._value_files import DaskOfParts, DryRun, Memory, TrainRows, value_by_files
from fado.cli._values import save_values
from fado.tabular import group_rows
from fado.valuation import InBagEntropy, OutOfBagEntropy, Valuation, make_valuator, valuator_names

__all__ = ["value"]

ENTROPY = "entropy"  # the method whose algorithms are "oob" and "inbag"
_USELESS = {  # the option of a setting, and why a valuator may not take it
    "fairness": ("--ratio", "measures no ratio"),
    "performance": ("--performance", "measures no performance"),
    "n_bags": ("--bags", "has no bags"),
    "z_exclude": ("--exclude", "has no models of attributes"),
}


@in_sentences
def value(
    data: DataOrParts,
    out: OutOrParts,
    target: TargetIfTrained = None,
    protected: ProtectedIfTrained = None,
    positive: Positive = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="entropy|influence|knn-shapley|data-shapley",
            show_default=ENTROPY,
            help="entropy: how unsure models are of a row. The others: what a row does to a model. Or the "
            "name of a registered method.",
        ),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="oob|inbag",
            show_default="oob",
            help="For entropy: oob (models value rows that they have not seen), inbag (rows that they have "
            "seen), or the name of a registered algorithm.",
        ),
    ] = None,
    ratio: Ratio = None,
    performance: Performance = None,
    exclude: Exclude = None,
    drop: Drop = None,
    bags: Bags = None,
    weight: Weight = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="A column: rows of the same entry, such as those of one person, are in or out of a bag "
            "together. No model sees it.",
        ),
    ] = None,
    group_names: GroupNames = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Take values from this CSV or Parquet file, instead of computing them. It has a column 'y' "
            "and one named like each attribute; or 'v_y' and 'v_z'.",
        ),
    ] = None,
    from_id: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="A column of row ids, in DATA and in the file of `--from`, by which rows are matched; by "
            "position if not given.",
        ),
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="For entropy: a directory to keep the models in. If it holds models, these value the rows, "
            "which must be new to them; `--target` and `--protected` are then not needed.",
        ),
    ] = None,
    keep_probabilities: Annotated[
        bool,
        typer.Option(
            "--keep-probabilities",
            help="For entropy, oob, and a target of classes: write the predicted probabilities of labels and "
            "groups beside the values, to a Parquet file.",
        ),
    ] = False,
    memory: Memory = None,
    train_rows: TrainRows = None,
    dry_run: DryRun = False,
    dask: DaskOfParts = None,
    seed: SeedIfTrained = None,
    jobs: Jobs = None,
) -> None:
    """Value every row: how unsure models are of it, or what it does to a model and its fairness."""
    trained = {
        "--method": method,
        "--algorithm": algorithm,
        "--ratio": ratio,
        "--performance": performance,
        "--exclude": exclude,
        "--drop": drop,
        "--bags": bags,
        "--groups": groups,
        "--keep-probabilities": keep_probabilities or None,
    }
    in_parts = names_several(data) or dry_run or any(own is not None for own in (memory, train_rows, dask))
    if models is not None and from_file is None and models_stand_in(models) and not in_parts:
        others = {
            "--positive": positive,
            "--weight": weight,
            "--group-names": group_names,
            "--from-id": from_id,
            "--seed": seed,
        }
        value_new_rows(
            data, models, out, target=target, protected=protected or [], jobs=jobs, training=trained | others
        )
        return
    if target is None or not protected:
        lacking = "--target" if target is None else "--protected"
        raise ValueError(f"Missing option '{lacking}': only models that were kept go without it.")
    useless = {
        "--method": None if method == ENTROPY else method,
        "--algorithm": None if algorithm == "oob" else algorithm,
        "--ratio": ratio,
        "--performance": performance,
        "--groups": groups,
        "--from": from_file,
        "--from-id": from_id,
        "--models": models,
        "--keep-probabilities": keep_probabilities or None,
    }
    could_be = not any(useless.values()) and out.suffix.lower() != ".csv"
    if in_parts or (could_be and is_beyond_memory(data, "Valuing")):
        value_by_files(
            data,
            out,
            target=target,
            protected=protected,
            positive=positive,
            group_names=group_names,
            memory=memory,
            train_rows=train_rows,
            dry_run=dry_run,
            dask=dask,
            settings={
                "drop": drop,
                "exclude": exclude,
                "weight": weight,
                "n_bags": bags or 10,
                "random_state": seed or 0,
                "n_jobs": jobs,
            },
            useless=useless,
        )
        return
    if from_file is not None:
        _check_nothing_is_fitted(trained | {"--models": models, "--jobs": jobs})
        check_output(out, [data, from_file])
        inputs = read_inputs(
            data, target, protected, positive=positive, weight=weight, group_names=group_names
        )
        valuation = read_elsewhere(from_file, inputs.table, list(inputs.protected), from_id)
        save_values(valuation, out, inputs.name, inputs.target)
        print_effects(inputs, valuation)
        print_lines("Values as given: the higher, the more a row is worth.")
        settings = {"from": from_file, "from-id": from_id, "positive": inputs.positive, "weight": weight}
    else:
        if from_id is not None:
            raise ValueError("`--from-id` is for `--from`: name the file of values, or leave it out.")
        name = _valuator_named(method, algorithm)
        metrics = {"fairness": ratio, "performance": performance}
        taken = _check_taken(name, method, {**metrics, "n_bags": bags, "z_exclude": exclude})
        if keep_probabilities:
            _check_keeps_probabilities(name, taken, out)
        check_output(out, [data])
        if models is not None:
            _check_keeps_models(name)
            check_room_for_models(models, out)
        inputs = read_inputs(
            data,
            target,
            protected,
            positive=positive,
            drop=drop,
            weight=weight,
            groups=groups,
            group_names=group_names,
        )
        valuator = make_valuator(
            name,
            **{setting: own for setting, own in {**metrics, "n_bags": bags}.items() if own is not None},
            **({} if models is None else {"keep_models": True}),
            **({"keep_probabilities": True} if keep_probabilities else {}),
            z_exclude=inputs.hidden_columns(exclude or []),
            random_state=seed or 0,
            n_jobs=jobs,
            progress=True,
        )
        valuator.fit(
            inputs.features,
            _binary_target(inputs) if "fairness" in taken else inputs.target,
            sensitive_features=inputs.labelled,
            sample_weight=inputs.weight,
            groups=inputs.groups,
        )
        valuation = valuator.valuation_
        save_values(_writable(valuation, out), out, inputs.name, inputs.target)
        if models is not None:  # last, for models that are there refuse the table that they learnt from
            valuator.models_.save(models)
        if all(scale.is_unit for scale in valuation.scales.values()):
            _print_summary(inputs, valuation, getattr(valuator, "excluded_columns_", {}))
        else:
            print_effects(inputs, valuation)
            print_meanings(valuation, weighted=weight is not None)
        _print_stability(valuation)
        if inputs.unseen:
            print(f"Columns that no model saw: {', '.join(inputs.unseen)}")
        if models is not None:
            print_kept_models(valuator.models_, models)
        settings = {
            "algorithm" if method in (None, ENTROPY) else "method": name,
            "ratio": getattr(valuator, "fairness", None),
            "performance": getattr(valuator, "performance", None),
            "max-fpr": getattr(valuator, "max_fpr", None),
            "bags": getattr(valuator, "n_bags", None),
            "positive": inputs.positive,
            "weight": weight,
            "groups": groups,
            "seed": seed or 0,
        }
    print_settings(settings)
    print(f"Values of {inputs.n_rows:,} rows written to {out}")


def _check_nothing_is_fitted(options: Mapping[str, Any]) -> None:
    given = [f"`{option}`" for option, own in options.items() if own not in (None, [])]
    if given:
        raise ValueError(
            f"`--from` takes values as they are and fits nothing: leave out {list_names(given)}."
        )


def _valuator_named(method: str | None, algorithm: str | None) -> str:
    """Give the name under which a method, or an algorithm of entropy's, is registered."""
    if method is None or method == ENTROPY:
        return "oob" if algorithm is None else algorithm
    if algorithm is not None:
        raise ValueError(
            f"`--algorithm {algorithm}` is for `--method {ENTROPY}`, not for `--method {method}`: leave one "
            "out."
        )
    known = [ENTROPY, *valuator_names()]
    if method not in known:
        raise ValueError(f"`--method` must be {' or '.join(map(repr, known))}, got {method!r}.")
    return method


def _check_taken(name: str, method: str | None, given: Mapping[str, Any]) -> Sequence[str]:
    """Refuse, before anything is read, settings that a valuator has no use for; list those that it takes."""
    taken = list(inspect.signature(type(make_valuator(name))).parameters)
    is_entropy = method in (None, ENTROPY)
    shown = ENTROPY if is_entropy and name in ("oob", "inbag") else name
    for setting, (option, why) in _USELESS.items():
        ignored = setting == "n_bags" and is_entropy  # as in bag has always done
        if given[setting] not in (None, []) and setting not in taken and not ignored:
            raise ValueError(f"`{option}` is not for `--method {shown}`, which {why}: leave it out.")
    return taken


def _check_keeps_models(name: str) -> None:
    if not isinstance(make_valuator(name), OutOfBagEntropy | InBagEntropy):
        raise ValueError(f"`--models` is for `--method {ENTROPY}`, not for {name!r}: leave it out.")


def _check_keeps_probabilities(name: str, taken: Sequence[str], out: Path) -> None:
    if "keep_probabilities" not in taken:
        raise ValueError(f"`--keep-probabilities` is for `--algorithm oob`, not for {name!r}: leave it out.")
    if out.suffix.lower() == ".csv":
        raise ValueError("`--keep-probabilities` needs a file that ends in .parquet: a CSV file holds none.")


def _binary_target(inputs: Inputs) -> pa.ChunkedArray | npt.NDArray[np.bool_]:
    """Give the target such that the larger of two labels is the positive one; as it is if it has none.

    A target with missing labels stays as it is too, for the valuator to refuse.
    """
    labels = inputs.labels
    if labels.positive is None or (labels.codes < 0).any():
        return inputs.target
    return inputs.target if (len(labels.classes), labels.positive) == (2, 1) else labels.is_positive


def _writable(valuation: Valuation, out: Path) -> Valuation:
    """Give what a file can hold: of effects, a CSV file holds the values alone."""
    if out.suffix.lower() != ".csv" or all(scale.is_unit for scale in valuation.scales.values()):
        return valuation
    return Valuation.from_values({name: valuation[name] for name in valuation.variables})


def _print_summary(inputs: Inputs, valuation: Valuation, excluded: dict[str, list[str]]) -> None:
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
                line += [*np.nanquantile(valuation[which][members], [0.25, 0.5, 0.75])]
            rows.append(line)
        print_table(f"Protected attribute {name}", header, rows)
        print(f"Columns left out of the models of {name}: {', '.join(excluded.get(name, [])) or 'none'}")


def _print_stability(valuation: Valuation) -> None:
    """Say how far another run would rank rows alike, if standard errors tell."""
    told = [
        f"{row['rank_agreement']:.2f} for {'the target' if row['column'] == 'y' else row['column']}"
        for row in valuation.stability().to_dict("records")
    ]
    if told:
        print_lines(
            f"Rank correlation to be expected with another run, by the standard errors: {', '.join(told)}."
        )
