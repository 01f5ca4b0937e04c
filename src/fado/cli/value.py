"""`fado value`: value every row of a table."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from fado.cli._errors import in_sentences
from fado.cli._inputs import Inputs, columns_named, read_inputs
from fado.cli._options import Bags, Data, Drop, Exclude, Jobs, Out, Positive, Protected, Seed, Target, Weight
from fado.cli._summary import in_shown_order, print_settings, print_table
from fado.cli._tables import check_output
from fado.cli._values import save_values
from fado.tabular import group_rows
from fado.valuation import Valuation, make_valuator

__all__ = ["value"]


@in_sentences
def value(
    data: Data,
    target: Target,
    protected: Protected,
    out: Out,
    positive: Positive = None,
    exclude: Exclude = None,
    drop: Drop = None,
    algorithm: Annotated[
        str,
        typer.Option(
            metavar="oob|inbag", help="Out of bag (rows unseen by the models), in bag, or a registered one."
        ),
    ] = "oob",
    bags: Bags = 10,
    weight: Weight = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Rows that share this, like a person's, are in or out of a bag together; no model sees it.",
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Value every row: how unsure models are of the target and of each protected attribute."""
    check_output(out, [data])
    inputs = read_inputs(
        data, target, protected, positive=positive, drop=drop or [], weight=weight, groups=groups
    )
    valuator = make_valuator(
        algorithm,
        n_bags=bags,
        z_exclude=_kept_from_models(inputs, exclude or []),
        random_state=seed,
        n_jobs=jobs,
        progress=True,
    )
    valuator.fit(
        inputs.features,
        inputs.target,
        sensitive_features=inputs.protected,
        sample_weight=inputs.weight,
        groups=inputs.groups,
    )
    save_values(valuator.valuation_, out, target, inputs.target)
    _print_summary(inputs, valuator.valuation_, getattr(valuator, "excluded_columns_", {}))
    if inputs.unseen:
        print(f"Columns that no model saw: {', '.join(inputs.unseen)}")
    print_settings(
        {
            "algorithm": algorithm,
            "bags": getattr(valuator, "n_bags", None),
            "positive": inputs.positive,
            "weight": weight,
            "groups": groups,
            "seed": seed,
        }
    )
    print(f"Values of {inputs.n_rows:,} rows written to {out}")


def _kept_from_models(inputs: Inputs, exclude: list[str]) -> dict[str, list[str]]:
    """Keep from each attribute's models the columns it was made from, and what the user names."""
    there = inputs.features.column_names
    by_hand = columns_named(there, exclude, "--exclude", inputs.name)
    return {
        name: list(dict.fromkeys([*by_hand, *(source for source in sources if source in there)]))
        for name, sources in inputs.sources.items()
    }


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
