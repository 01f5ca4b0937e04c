"""`fado predict`: scores and decisions of a saved model, and a check of the rows and of its line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import numpy.typing as npt
from typer import Argument, Option

from fado.cli import _options as opt

if TYPE_CHECKING:
    from fado.cli._inputs import Inputs
    from fado.models import Check, ChosenModel

DRIFTED, MISSED, OVER_BUDGET, UNSURE = 4, 1, 5, 3  # exit codes, the first that applies; 2 is bad input


def predict(
    model: Annotated[Path, Argument(metavar="DIR", help="The directory of a saved model.")],
    data: opt.Data,
    *,
    out: opt.Out,
    target: Annotated[
        str | None,
        Option(metavar='COL|"COL>=9"', help="The column of true labels, or a comparison, to check the line."),
    ] = None,
    protected: Annotated[
        list[str] | None,
        Option(
            metavar='COL|"COL>=50"',
            help="A protected attribute to check the line: a column or a comparison. May be repeated.",
        ),
    ] = None,
    unknown: Annotated[
        list[str] | None,
        Option(
            metavar="VALUE",
            show_default="those that the model was fitted with",
            help="A value of the columns of `--protected` that means that a row's group is not known. May "
            "be repeated.",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        Option(
            metavar="LABEL",
            help="The positive label of `--target`, if its labels differ from those of the model.",
        ),
    ] = None,
    group_names: opt.GroupNames = None,
    json: Annotated[Path | None, Option(metavar="FILE", help="Write the check to a .json file.")] = None,
    history: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Save the check in this directory as DATE.json, and print a table of all checks there.",
        ),
    ] = None,
    date: Annotated[
        str | None,
        Option(metavar="DAY", show_default="today", help="The date of the rows, such as 2026-05-31."),
    ] = None,
    fail_if_drifted: Annotated[
        bool, Option("--fail-if-drifted", help="Exit with code 4 if the rows drifted.")
    ] = False,
    fail_if_below: Annotated[
        bool, Option("--fail-if-below", help="Exit with code 1 if a ratio is below its line beyond doubt.")
    ] = False,
    fail_if_over_budget: Annotated[
        bool, Option("--fail-if-over-budget", help="Exit with code 5 if the budget is exceeded beyond doubt.")
    ] = False,
    fail_if_unsure: Annotated[
        bool, Option("--fail-if-unsure", help="Exit with code 3 if there are too few rows to decide.")
    ] = False,
    allow_none: Annotated[
        bool,
        Option("--allow-none", help="Do not exit with code 4 because no row, or every row, is selected."),
    ] = False,
) -> None:
    """Score rows with a saved model and decide; check columns, what is selected and, with labels, the line.

    Exit codes, of which the first that applies is given:
    2: bad input; nothing is written.
    4: no row or every row is selected (unless `--allow-none`).
    4: columns, or the share selected, differ from the model's rows (with `--fail-if-drifted`).
    1: a ratio is below its line beyond doubt (with `--fail-if-below`).
    5: the budget is exceeded beyond doubt (with `--fail-if-over-budget`).
    3: too few rows to decide (with `--fail-if-unsure`).
    0: otherwise.
    """
    import pyarrow as pa

    from fado.cli._inputs import given_options, read_inputs
    from fado.cli._outputs import check_apart, check_output, check_writable, print_table, write_table
    from fado.models import check_trend, load_model
    from fado.tabular import read_table

    if (target is None) is not (not protected):
        raise ValueError(
            "`--target` and `--protected` must be given together: a ratio needs labels and groups."
        )
    if positive is not None and target is None:
        raise ValueError("`--positive` names a label of `--target`: give both.")
    if unknown and not protected:
        raise ValueError("`--unknown` names values of `--protected`: give both.")
    if group_names and not protected:
        raise ValueError("`--group-names` names groups of `--protected`: give both.")
    if target is None and (fail_if_below or fail_if_unsure):
        given = {"--fail-if-below": fail_if_below, "--fail-if-unsure": fail_if_unsure}
        raise ValueError(f"{given_options(given)} needs labels: give `--target` and `--protected` too.")
    check_output(out, [data])
    check_apart(out, model, "the model")
    if json is not None:
        check_output(json, [data], [".json"], "--json")
    if history is not None and history.exists() and not history.is_dir():
        raise ValueError(f"`--history` {str(history)!r} is a file: name a directory.")
    for path in filter(None, (json, history)):
        check_writable(path.parent)
        if path.resolve().is_relative_to(model.resolve()):
            raise ValueError(f"{str(path)!r} is in the directory of the model: name another place.")
    if history is not None and history.exists():
        check_trend(history)  # a file that is no check is refused before anything is written
    chosen = load_model(model)
    if target is None and fail_if_over_budget and chosen.facts_.budget.kind == "fpr":
        raise ValueError(
            f"`--fail-if-over-budget` needs labels for {chosen.facts_.budget}: give `--target` and "
            "`--protected` too."
        )
    if target is not None and protected:
        unknown = unknown or list(chosen.facts_.unknown)
        inputs = read_inputs(
            *(data, target, protected),
            positive=positive,
            group_names=group_names,
            unknown=unknown,
            keep_ids=None,
        )
        labels = inputs.target if positive is None else _labels_of_model(inputs, chosen)
        features = inputs.features
        check = chosen.check(features, labels, inputs.protected, unknown=unknown, date=date)
    else:
        features = read_table(data)
        check = chosen.check(features, date=date)
    scores = chosen.score_rows(features)
    write_table(pa.table({"score": scores, "decision": chosen.decide(scores)}), out)
    selection = check.selection
    expected = ""
    if selection["expected"] is not None:
        expected = f" {100 * selection['expected']:.3g} % were expected."
    print(
        f"{selection['selected']:,} of {len(scores):,} rows ({100 * selection['share']:.3g} %) are predicted "
        f"{chosen.labels[1]!r}: their score is at least {chosen.threshold_:.6g}.{expected}"
    )
    if check.groups:
        rows = [
            [name, *(check.metrics.get(f"{name}{end}", float("nan")) for end in ("", "_low", "_high"))]
            for name in check.metrics
            if name != "threshold" and not name.endswith(("_low", "_high"))
        ]
        title = f"At this threshold, with {100 * check.level:g} % intervals"
        print_table(title, ["metric", "value", "low", "high"], rows)
    print(check.sentence)
    if check.budget_kept is not None:
        kept = "kept" if check.budget_kept else "exceeded"
        print(f"The budget ({chosen.facts_.budget}) is {kept} on these rows.")
    for note in check.notes:
        print(f"Note: {note}")
    print(f"Scores and decisions of {len(scores):,} rows written to {out}")
    if json is not None:
        check.write_json(json)
        print(f"The check of {check.date} written to {json}")
    if history is not None:
        history.mkdir(exist_ok=True)
        check.write_json(history / f"{check.date}.json")
        header = ["date", "rows", "ratio", "value", "low", "high", "verdict", "budget used", "drifted"]
        nights = check_trend(history)
        nights["drifted"] = nights["drifted"].map(lambda names: ", ".join(names) or "-")
        named = [name.replace(" ", "_") for name in header]
        print_table(f"All checks in {history}", header, nights[named].to_numpy(dtype=object).tolist())
    reasons = {
        DRIFTED: _drift(check, allow_none=allow_none, fail_if_drifted=fail_if_drifted),
        MISSED: fail_if_below and check.held is False and "a ratio is below its line",
        OVER_BUDGET: fail_if_over_budget and check.over_budget and "the budget is exceeded",
        UNSURE: fail_if_unsure and check.held is None and "there are too few rows to decide",
    }
    for code, reason in reasons.items():
        if reason:
            print(f"Exit code {code}: {reason}.")
            raise SystemExit(code)


def _drift(check: Check, *, allow_none: bool, fail_if_drifted: bool) -> str:
    """Return why the rows are not like those that the model was made on; empty if that is no failure."""
    seen = check.selection
    if seen["selected"] in (0, seen["rows"]) and not allow_none:
        which = "no row is" if seen["selected"] == 0 else "every row is"
        known = seen["expected"] is not None
        expected = f" of {seen['rows']:,}, {100 * seen['expected']:.3g} % were expected" if known else ""
        return f"{which} selected{expected}; are the columns in other units? `--allow-none` accepts this"
    drifted = [*map(repr, check.drifted), *(["the share selected"] if seen["drifted"] else [])]
    return f"{', '.join(drifted)} drifted" if drifted and fail_if_drifted else ""


def _labels_of_model(inputs: Inputs, chosen: ChosenModel) -> npt.NDArray[np.object_]:
    """Give the labels with the names of the model, matched by the positive one."""
    if len(inputs.labels.classes) > 2:
        raise ValueError(
            f"`--target` {inputs.name!r} has {len(inputs.labels.classes)} labels, and the model decides "
            "between two: keep the rows of two labels."
        )
    if (inputs.labels.codes < 0).any():
        raise ValueError(f"`--target` {inputs.name!r} is missing in some rows: drop those rows first.")
    named = np.array(chosen.labels, dtype=object)
    return named[inputs.labels.is_positive.astype(np.intp)]
