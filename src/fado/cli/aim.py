"""`fado aim`: one model whose decisions bring ratios between groups to their lines, with its card."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fado.cli._options import AIMED, MIN_GROUP_SIZE, command

if TYPE_CHECKING:
    from fado.cli._inputs import Inputs


@command(*AIMED)
def aim(
    data: Path,
    *,
    out: Path,
    confidence: float | None = None,
    by: Literal["scores", "student", "weights"] = "scores",
    attributes: Literal["crossed", "each"] = "crossed",
    test_fraction: float | None = None,
    min_group_size: int = MIN_GROUP_SIZE,
    seed: int = 0,
    jobs: int | None = None,
    **asked: Any,
) -> None:
    """Train a LightGBM model whose ratios between groups reach their lines, and write it with its card.

    Parameters
    ----------
    out : DIR
        The directory to write the model and its card to.
    by : choice
        What is handed over: models of label and groups, combined; one model that learnt their scores; or one
        that was trained with weights.
    attributes : choice
        Whether groups are combinations of the attributes, or each has its own.
    test_fraction : F, default=no test rows
        The share of the rows that is kept apart as test rows.
    """
    from lightgbm import LGBMClassifier

    from fado.aim import AimedEstimator
    from fado.cli._inputs import read_aimed, rows_of, target_of
    from fado.cli._outputs import print_card, print_seen_sources
    from fado.models import write_model

    lines, budget, parts = read_aimed(data, out, confidence=confidence, test_fraction=test_fraction, **asked)
    if test_fraction is not None:
        parts |= _test_rows(parts["train"], test_fraction, seed)
    train = parts["train"]
    model = AimedEstimator(
        LGBMClassifier(random_state=seed, verbosity=-1),
        ratio=lines,
        confidence=confidence,
        by=by,
        attributes=attributes,
        min_group_size=min_group_size,
        random_state=seed,
        budget=budget,
        pos_label=train.positive,
        n_jobs=jobs,
    )
    model.fit(
        train.features,
        target_of(train),
        sensitive_features=train.protected,
        validation=rows_of(parts.get("validation")),
        sample_weight=train.weight,
    )
    chosen = model.to_model(test=rows_of(parts.get("test")))
    write_model(chosen, out)
    print(f"Aimed at {' and '.join(lines)} by {by}, in {model.n_fits_} fits on {train.n_rows:,} rows")
    print_card(chosen)
    tested = parts["test"].n_rows if "test" in parts else 5_000
    chance = model.chance_on(tested)
    if not math.isnan(chance):
        shown = "the line" if len(lines) == 1 else "all lines"
        print(f"{tested:,} fresh rows show {shown} with a probability of about {chance:.2f}.")
    print_seen_sources(train)
    print(f"The model and its card (card.md, card.html): {out}")
    print(f"Scores of other rows: fado predict {out} OTHER --out scores.parquet")


def _test_rows(inputs: Inputs, share: float, seed: int) -> dict[str, Inputs]:
    """Set a share of the rows apart, of every label and group alike."""
    from fado.cli._inputs import take_inputs
    from fado.tabular import deal_rows

    if not 0 < share < 1:
        raise ValueError(f"`--test-fraction` must be in (0, 1), got {share}.")
    cells = inputs.labels.codes.astype(np.int64)
    for own in inputs.protected.values():
        codes = own.astype("category").cat.codes.to_numpy()
        cells = cells * (int(codes.max()) + 2) + codes + 1
    dealt = deal_rows(
        np.unique(cells, return_inverse=True)[1], [1 - share, share], np.random.default_rng([seed, 4])
    )
    return {
        name: take_inputs(inputs, np.flatnonzero(dealt == part))
        for part, name in enumerate(("train", "test"))
    }
