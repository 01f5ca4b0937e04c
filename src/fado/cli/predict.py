"""`fado predict`: scores and decisions of a saved model, and a check of its line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fado.cli._options import command

if TYPE_CHECKING:
    from fado.cli._inputs import Inputs
    from fado.models import ChosenModel

MISSED, UNSURE = 1, 3  # exit codes, if asked for; 2 is bad input


@command()
def predict(
    model: Path,
    data: Path,
    *,
    out: Path,
    target: str | None = None,
    protected: list[str] | None = None,
    positive: str | None = None,
    group_names: list[str] | None = None,
    json: Path | None = None,
    history: Path | None = None,
    date: str | None = None,
    fail_if_below: bool = False,
    fail_if_unsure: bool = False,
) -> None:
    """Score rows with a saved model and decide; with labels and groups, check whether its line is reached.

    Parameters
    ----------
    model : DIR
        The directory of a saved model.
    target : COL|"COL>=9"
        The column of true labels, or a comparison, to check the line.
    protected : COL|"COL>=50"
        A protected attribute to check the line: a column or a comparison. May be repeated.
    positive : LABEL
        The positive label of `--target`, if its labels differ from those of the model.
    json : FILE
        Write the check to a .json file.
    history : DIR
        Save the check in this directory as DATE.json, and write trend.html there with all checks by month.
    date : DAY, default=today
        The date of the rows, such as 2026-05-31.
    fail_if_below : flag
        Exit with code 1 if a ratio is below its line beyond doubt.
    fail_if_unsure : flag
        Exit with code 3 if there are too few rows to decide.
    """
    import pyarrow as pa

    from fado.cli._inputs import given_options, read_inputs
    from fado.cli._outputs import check_apart, check_output, check_writable, print_table, write_table
    from fado.models import add_check, load_model
    from fado.tabular import read_table

    if (target is None) is not (not protected):
        raise ValueError(
            "`--target` and `--protected` must be given together: a ratio needs labels and groups."
        )
    if positive is not None and target is None:
        raise ValueError("`--positive` names a label of `--target`: give both.")
    if group_names and not protected:
        raise ValueError("`--group-names` names groups of `--protected`: give both.")
    if target is None and (json or history or date or fail_if_below or fail_if_unsure):
        flags = {"--fail-if-below": fail_if_below, "--fail-if-unsure": fail_if_unsure}
        given = {"--json": json, "--history": history, "--date": date, **flags}
        raise ValueError(f"{given_options(given)} needs a check: give `--target` and `--protected` too.")
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
    chosen = load_model(model)
    inputs, check = None, None
    if target is not None and protected:
        inputs = read_inputs(
            data, target, protected, positive=positive, group_names=group_names, keep_ids=None
        )
        labels = inputs.target if positive is None else _as_told(inputs, chosen)
        check = chosen.check(inputs.features, labels, inputs.protected, date=date)
    scores = chosen.score_rows(read_table(data) if inputs is None else inputs.features)
    write_table(pa.table({"score": scores, "decision": chosen.decide(scores)}), out)
    selected = int((scores >= chosen.threshold_).sum())
    print(
        f"{selected:,} of {len(scores):,} rows ({100 * selected / len(scores):.3g} %) are predicted "
        f"{chosen.labels[1]!r}: their score is at least {chosen.threshold_:.6g}."
    )
    if check is not None:
        rows = [
            [name, *(check.metrics.get(f"{name}{end}", float("nan")) for end in ("", "_low", "_high"))]
            for name in check.metrics
            if name != "threshold" and not name.endswith(("_low", "_high"))
        ]
        title = f"At this threshold, with {100 * check.level:g} % intervals"
        print_table(title, ["metric", "value", "low", "high"], rows)
        print(check.sentence)
        kept = "kept" if check.budget_kept else "exceeded"
        print(f"The budget ({chosen.facts_.budget}) is {kept} on these rows.")
        for note in check.notes:
            print(f"Note: {note}")
    print(f"Scores and decisions of {len(scores):,} rows written to {out}")
    if check is not None:
        if json is not None:
            check.write_json(json)
            print(f"The check of {check.date} written to {json}")
        if history is not None:
            print(f"All checks in {history}: see {add_check(check, history)}")
        if fail_if_below and check.held is False:
            raise SystemExit(MISSED)
        if fail_if_unsure and check.held is None:
            raise SystemExit(UNSURE)


def _as_told(inputs: Inputs, chosen: ChosenModel) -> npt.NDArray[np.object_]:
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
