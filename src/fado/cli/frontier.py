"""`fado frontier`: the best model above the line, as a directory that `fado predict` reads."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from fado.cli._app import stopping
from fado.cli._options import AIMED, MIN_GROUP_SIZE, command


@command(*AIMED)
def frontier(
    data: Path,
    *,
    out: Path,
    confidence: float | None = None,
    max_fits: int = 60,
    test_fraction: float | None = None,
    min_group_size: int = MIN_GROUP_SIZE,
    store: Path | None = None,
    dossier: Path | None = None,
    seed: int = 0,
    jobs: int | None = None,
    dask: str | None = None,
    **asked: Any,
) -> None:
    """Find the best model whose ratios between groups reach their lines, and write it with its card.

    Parameters
    ----------
    out : DIR
        The directory to write the model, its card and a chart of all models to.
    max_fits : N
        How many whole fits the search may cost.
    test_fraction : F, default=0.2
        The share of the rows that is kept apart as test rows.
    store : DIR
        Keep the search in this directory; run again to resume it.
    dossier : FILE
        Also write a dossier of alternatives: the best untouched model beside models of nearly equal
        performance, and what was searched (.html or .json).
    """
    from fado.cli._inputs import read_aimed, rows_of, target_of
    from fado.cli._outputs import check_apart, check_output, print_card, print_seen_sources
    from fado.experiment import find_frontier
    from fado.models import LANDSCAPE, write_model

    if store is not None:
        check_apart(out, store, "`--store`")
    if dossier is not None:
        check_output(dossier, [data], (".html", ".json"), "--dossier")
    lines, budget, parts = read_aimed(data, out, confidence=confidence, test_fraction=test_fraction, **asked)
    train = parts["train"]
    with nullcontext() if store is None else stopping(store):
        found = find_frontier(
            train.features,
            target_of(train),
            sensitive_features=train.protected,
            ratio=lines if len(lines) > 1 else next(iter(lines)),
            max_fits=max_fits,
            budget=budget,
            validation=rows_of(parts.get("validation")),
            test=rows_of(parts.get("test")) or (0.2 if test_fraction is None else test_fraction),
            pos_label=train.positive,
            sample_weight=train.weight,
            min_group_size=min_group_size,
            store=store,
            random_state=seed,
            n_jobs=jobs,
            client=dask,
            progress=True,
        )
    model = found.closest(lines, confidence)
    if model is None:
        raise ValueError(
            f"No model can be compared by {' and '.join(lines)}: the groups have too few rows of a label, or "
            "no model tells rows apart."
        )
    write_model(model, out, landscape=lambda path: found.report(path, lines))
    if dossier is not None:
        found.dossier(dossier)
    print(found)
    print_card(model)
    print_seen_sources(train)
    print(f"The model and its card (card.md, card.html): {out}")
    print(f"The landscape, to choose from: {out / LANDSCAPE}")
    if dossier is not None:
        print(f"The dossier of alternatives: {dossier}")
    print(f"Scores of other rows: fado predict {out} OTHER --out scores.parquet")
