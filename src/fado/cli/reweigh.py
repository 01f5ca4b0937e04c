"""`fado reweigh`: weigh rows, by default by their utility."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from fado.cli._before_after import print_before_after
from fado.cli._change_files import change_files, is_in_parts
from fado.cli._errors import in_sentences
from fado.cli._inputs import read_inputs
from fado.cli._methods import apply_method, ask_for
from fado.cli._options import (
    Alpha,
    GroupNames,
    MinGroupSize,
    Positive,
    Protected,
    Seed,
    Target,
    ValuesIfUsed,
    Weight,
)
from fado.cli._parts import DataOrParts, MemoryOfParts, OutOrParts
from fado.cli._summary import print_settings
from fado.cli._tables import check_output, write_table

__all__ = ["reweigh"]


@in_sentences
def reweigh(
    data: DataOrParts,
    target: Target,
    protected: Protected,
    out: OutOrParts,
    method: str = "uar",
    values: ValuesIfUsed = None,
    alpha: Alpha = None,
    utility: str | None = None,
    positive: Positive = None,
    weight: Weight = None,
    group_names: GroupNames = None,
    min_group_size: MinGroupSize = None,
    memory: MemoryOfParts = None,
    seed: Seed = 0,
    **settings: Any,
) -> None:
    """Weigh every row by its utility, for equal positive rates of groups, or both; see --method."""
    asked = ask_for(
        method,
        "weights",
        settings,
        values=values,
        alpha=alpha,
        utility=utility,
        min_group_size=min_group_size,
        seed=seed,
    )
    named: dict[str, Any] = {
        "target": target,
        "protected": protected,
        "positive": positive,
        "weight": weight,
        "group_names": group_names,
    }
    hint = "" if weight is None else f"; train a model with these times {weight!r}"
    if is_in_parts(data, out, values, memory, "Reweighing"):
        change = change_files(asked, data, out, memory=memory, **named)
        print(f"Weights of {change.n_rows:,} rows written to {out}{hint}")
        return
    check_output(out, [data] if values is None else [data, values])
    inputs = read_inputs(data, **named)
    done = apply_method(asked, inputs)
    chosen = done.chosen
    factors = np.zeros(inputs.n_rows)
    factors[chosen.rows] = 1.0 if chosen.weights is None else chosen.weights
    columns = {"weight": factors}
    if chosen.labels is not None:
        columns["positive"] = np.zeros(inputs.n_rows, dtype=bool)
        columns["positive"][chosen.rows] = chosen.labels
        hint += "; this method changes labels: train a model on those in the column 'positive'"
    write_table(pa.table(columns), out)
    print_before_after(inputs, factors, done.min_group_size)
    print_settings(done.settings)
    print(f"Weights of {inputs.n_rows:,} rows written to {out}{hint}")
