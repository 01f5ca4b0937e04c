"""`fado explore`: one page that shows which rows carry the bias."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fado.cli._errors import in_sentences
from fado.cli._inputs import read_inputs
from fado.cli._options import Data, Drop, MinGroupSize, Positive, Protected, Seed, Target, Values
from fado.cli._tables import check_output
from fado.cli._values import load_values
from fado.tabular import MIN_GROUP_SIZE

__all__ = ["explore"]

_UNITS = {"percent": (100, " %"), "times": (1, " x"), "number": (1, "")}


@in_sentences
def explore(
    data: Data,
    values: Values,
    target: Target,
    protected: Protected,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the page; ends in .html.")],
    positive: Positive = None,
    drop: Drop = None,
    show_rows: Annotated[
        bool, typer.Option("--show-rows", help="Show what the most suspicious rows hold.")
    ] = False,
    min_group_size: MinGroupSize = None,
    seed: Seed = 0,
) -> None:
    """Write a page that shows which rows carry the bias, and what could be done about it."""
    from fado import explore as explored  # slow to import, and other commands need none

    check_output(out, [data, values], (".html", ".htm"))
    inputs = read_inputs(data, target, protected, positive=positive, drop=drop or [])
    found = explored(
        inputs.features,
        inputs.target.to_pandas().rename(target),
        sensitive_features=inputs.protected,
        valuation=load_values(values, target, inputs.target),
        pos_label=inputs.positive,
        min_group_size=MIN_GROUP_SIZE if min_group_size is None else min_group_size,
        show_rows=show_rows,
        random_state=seed,
    )
    found.write_html(out)
    for attribute in found.to_dict()["attributes"]:
        print(f"Protected attribute {attribute['name']}")
        if attribute["left_out"]:
            print(f"  {attribute['left_out']}")
        for bias in attribute["biases"]:
            print(f"  {bias['name']}{_size(bias)}: {bias['sentence']}")
        print(f"  Columns: {attribute['columns']['sentence']}")
    print("In brackets: 95 % intervals.")
    print(f"Page written to {out}")


def _size(bias: Mapping[str, Any]) -> str:
    """Give a bias's number and its interval as the page's heading does; nothing if it is not known."""
    head = bias.get("turning") or bias
    if head["number"] is None:
        return ""
    factor, unit = _UNITS[head["format"]]
    if unit == " %" and bias["id"] == "prevalence":  # a gap between two shares
        unit = " p.p."
    number, low, high = (f"{factor * head[key]:.3g}" for key in ("number", "low", "high"))
    return f" {number}{unit} [{low}, {high}]"
