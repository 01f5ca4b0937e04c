"""`fado sample`: drop rows, by default the least useful negatives of groups with a low positive rate."""

from __future__ import annotations

from typing import Any

import numpy as np

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
from fado.tabular import take_rows

__all__ = ["sample"]


@in_sentences
def sample(
    data: DataOrParts,
    target: Target,
    protected: Protected,
    out: OutOrParts,
    method: str = "uaps",
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
    """Match the groups' positive rates by dropping negatives, by default those of least utility."""
    asked = ask_for(
        method,
        "rows",
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
    if is_in_parts(data, out, values, memory, "Sampling"):
        change = change_files(asked, data, out, memory=memory, **named)
        print(f"{change.n_rows_after:,} of {change.n_rows:,} rows written to {out}")
        return
    check_output(out, [data] if values is None else [data, values])
    inputs = read_inputs(data, **named)
    done = apply_method(asked, inputs)
    kept = done.chosen.rows
    write_table(take_rows(inputs.table, kept), out)
    factors = np.isin(np.arange(inputs.n_rows), kept).astype(np.float64)
    print_before_after(inputs, factors, done.min_group_size)
    print_settings(done.settings)
    print(f"{len(kept):,} of {inputs.n_rows:,} rows written to {out}")
