"""`fado sample`: drop the negatives of least utility from groups with a low positive rate."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from fado.cli._before_after import print_before_after
from fado.cli._errors import in_sentences
from fado.cli._inputs import read_inputs
from fado.cli._options import (
    Alpha,
    Data,
    Out,
    Positive,
    Protected,
    Seed,
    Target,
    Utility,
    UtilityName,
    Values,
)
from fado.cli._summary import positives_of
from fado.cli._tables import check_output, write_table
from fado.cli._utilities import utility_of
from fado.cli._values import load_values

__all__ = ["sample"]


@in_sentences
def sample(
    data: Data,
    values: Values,
    target: Target,
    protected: Protected,
    alpha: Alpha,
    out: Out,
    utility: Utility = UtilityName.linear,
    strength: Annotated[
        float, typer.Option(metavar="S", help="How far rates move to the highest group's, 0 to 1.")
    ] = 1.0,
    positive: Positive = None,
    seed: Seed = 0,
) -> None:
    """Match the groups' positive rates by dropping the negatives of least utility."""
    from fado import UtilityAwarePrevalenceSampler  # slow to import, and other commands need none

    check_output(out, [data, values])
    inputs = read_inputs(data, target, protected)
    valuation = load_values(values, target, inputs.target)
    positives = positives_of(inputs.target.to_pandas(), positive)
    sampler = UtilityAwarePrevalenceSampler(
        utility_of(utility, alpha, inputs.protected, valuation),
        strength=strength,
        pos_label=None if positives is None else inputs.target[int(np.argmax(positives))].as_py(),
        random_state=seed,
    )
    sampler.fit(inputs.features, inputs.target, sensitive_features=inputs.protected, valuation=valuation)
    kept = sampler.sample_indices_
    write_table(inputs.table.take(pa.array(kept)), out)
    print_before_after(inputs.protected, positives, np.isin(np.arange(inputs.table.num_rows), kept))
    print(f"{len(kept):,} of {inputs.table.num_rows:,} rows written to {out}")
