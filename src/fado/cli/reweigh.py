"""`fado reweigh`: weigh rows by their utility."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import pyarrow as pa
import typer

from fado.cli._before_after import print_before_after
from fado.cli._errors import in_sentences
from fado.cli._inputs import read_inputs
from fado.cli._options import Alpha, Data, Out, Positive, Protected, Target, Utility, UtilityName, Values
from fado.cli._summary import positives_of
from fado.cli._tables import check_output, write_table
from fado.cli._utilities import utility_of
from fado.cli._values import load_values

__all__ = ["reweigh"]


class Scaling(StrEnum):
    """The two scalings."""

    minmax = "minmax"
    none = "none"


@in_sentences
def reweigh(
    data: Data,
    values: Values,
    target: Target,
    protected: Protected,
    alpha: Alpha,
    out: Out,
    utility: Utility = UtilityName.linear,
    scaling: Annotated[
        Scaling, typer.Option(help="Scale utilities to [0, 1], or take them as they are.")
    ] = Scaling.minmax,
    floor: Annotated[
        float,
        typer.Option(metavar="F", help="Weight of the least useful row, 0 to 1; the most useful has 1."),
    ] = 0.0,
    correction: Annotated[
        float, typer.Option(metavar="C", help="Power of the correction; 1 makes the groups' rates equal.")
    ] = 0.0,
    positive: Positive = None,
) -> None:
    """Weigh every row by its utility, and as far as is wanted for equal positive rates."""
    from fado import UtilityAwareReweigher  # slow to import, and other commands need none

    check_output(out, [data, values])
    inputs = read_inputs(data, target, protected)
    valuation = load_values(values, target, inputs.target)
    positives = positives_of(inputs.target.to_pandas(), positive)
    reweigher = UtilityAwareReweigher(
        utility_of(utility, alpha, inputs.protected, valuation),
        scaling=scaling.value,
        floor=floor,
        prevalence_correction=correction,
    )
    reweigher.fit(inputs.features, inputs.target, sensitive_features=inputs.protected, valuation=valuation)
    weights = reweigher.sample_weight_
    write_table(pa.table({"weight": weights}), out)
    print_before_after(inputs.protected, positives, weights)
    print(f"Weights of {len(weights):,} rows written to {out}")
