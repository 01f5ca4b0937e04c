"""`fado query`: select the rows of a pool to label next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from typer import Argument, Option

from fado._checks import MOST_ROWS, check_count, check_share
from fado._messages import list_names
from fado.cli import _options as opt

if TYPE_CHECKING:
    from fado.active import UtilityQuery
    from fado.cli._inputs import Inputs

DEFAULT_ALPHA = 0.75  # as in `fado.active`, which takes long to import


def query(
    labelled: Annotated[
        Path, Argument(metavar="LABELLED", help="The labelled rows: a .csv or .parquet file.")
    ],
    pool: Annotated[
        Path,
        Argument(
            metavar="POOL",
            help="The unlabelled rows to select from: a .csv or .parquet file. Labels in it are ignored.",
        ),
    ],
    *,
    out: opt.Out,
    n: Annotated[int, Option(help="How many rows to select.")],
    target: opt.Target,
    protected: opt.Protected,
    unknown: opt.Unknown = None,
    drop: opt.Drop = None,
    keep_ids: opt.KeepIds = False,
    group_names: opt.GroupNames = None,
    alpha: Annotated[float, opt.ALPHA] = DEFAULT_ALPHA,
    shares: Annotated[
        list[str] | None,
        Option(
            metavar="GROUP=SHARE|equal|pool",
            help="How many of the selected rows belong to a group: a share ('Female=0.5') or a number of "
            "rows ('Female=250'). Join groups of several attributes with &. May be repeated; the "
            "remaining rows are selected by utility from the other groups. 'equal' selects the same "
            "number from each group, 'pool' in proportion to the pool.",
        ),
    ] = None,
    diversity: Annotated[
        float,
        Option(
            help="Weight of the differences between selected rows versus their utility, 0 to 1. Above 0, "
            "near-duplicates are left out."
        ),
    ] = 0.0,
    exclude: opt.Exclude = None,
    bags: opt.Bags = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
) -> None:
    """Select the rows of a pool whose labels would help a model and its fairness most."""
    import pyarrow as pa

    from fado.active import UtilityQuery
    from fado.cli._inputs import read_inputs
    from fado.cli._outputs import check_output, print_settings, write_table
    from fado.tabular import read_table
    from fado.utility import LinearUtility
    from fado.valuation import OutOfBagEntropy

    utility = LinearUtility(alpha)
    check_share("diversity", diversity)
    check_count("n", n, 1, MOST_ROWS)
    given_shares = _read_shares(shares or [])
    check_output(out, [labelled, pool])
    columns: dict[str, Any] = {
        "unknown": unknown,
        "drop": drop,
        "keep_ids": keep_ids,
        "group_names": group_names,
    }
    inputs = read_inputs(labelled, target, protected, **columns)
    group_shares = _of_groups(given_shares, inputs)
    rows = read_table(pool)
    twice = [name for name in _added(list(inputs.protected)) if name in rows.column_names]
    if twice:
        raise ValueError(
            f"The pool has a column {list_names(list(map(repr, twice)))}, which the result also needs: "
            "rename it."
        )
    attributes = {  # those whose columns the pool has
        name: expression.groups(rows)
        for name, expression in inputs.expressions.items()
        if set(expression.sources) <= set(rows.column_names)
    }
    if group_shares is not None and not attributes:
        raise ValueError(
            "`--shares` needs the groups of the pool, which has no column of a protected attribute: add one, "
            "or leave out `--shares`."
        )
    seen = [name for name in inputs.features.column_names if name in rows.column_names]
    if not seen:
        raise ValueError("The pool has none of the features: check the names of its columns.")
    settings: dict[str, Any] = {} if bags is None else {"n_bags": bags}
    valuator = OutOfBagEntropy(
        z_exclude=inputs.hidden_columns(exclude, seen),
        random_state=seed,
        n_jobs=jobs,
        progress=True,
        keep_models=True,
        **settings,
    )
    features = inputs.features.select(seen)
    valuator.fit(features, inputs.target, sensitive_features=inputs.protected, unknown=inputs.unknown)
    strategy = UtilityQuery(valuator, utility, group_shares=group_shares, diversity=diversity)
    chosen = strategy.query(rows.select(seen), n, sensitive_features=attributes or None)
    valuation = strategy.valuation_
    numbers = [strategy.utilities_, *(valuation[name] for name in valuation.variables)]
    table = rows.take(pa.array(chosen))
    for name, column in zip(
        _added(valuation.protected), [chosen, *(number[chosen] for number in numbers)], strict=True
    ):
        table = table.append_column(name, pa.array(column))
    write_table(table, out)
    _print_summary(strategy, chosen)
    lacking = [name for name in inputs.features.column_names if name not in seen]
    if lacking:
        print(f"Features that the pool does not have, and that no model used: {', '.join(lacking)}")
    print_settings(
        {
            "alpha": alpha,
            "n": n,
            "shares": " ".join(shares) if shares else None,
            "diversity": diversity,
            "bags": valuator.n_bags,
            "seed": seed,
        }
    )
    print(f"{len(chosen):,} of {rows.num_rows:,} rows written to {out}, the best first")


def _read_shares(shares: Sequence[str]) -> Any:
    """Read the shares: a word, or groups and numbers."""
    if not shares:
        return None
    if len(shares) == 1 and shares[0] in ("equal", "pool"):
        return shares[0]
    read: dict[Any, float] = {}
    for text in shares:
        label, equals, number = text.rpartition("=")
        label = label.strip()
        try:
            share = float(number) if "." in number or "e" in number.lower() else int(number)
        except ValueError:
            equals = ""
        if not equals or not label:
            raise ValueError(
                f"`--shares` must be like Female=0.5 or Female=250, or 'equal' or 'pool', got {text!r}."
            )
        if label in read:
            raise ValueError(f"`--shares` names {label!r} twice: name each group once.")
        read[label] = share
    return read


def _of_groups(shares: Any, inputs: Inputs) -> Any:
    """Separate groups of several attributes, joined by '&'; the name of a group may contain it."""
    if not isinstance(shares, dict):
        return shares
    labels = [str(label) for attribute in inputs.attributes for label in attribute.classes]
    called = {"".join(label.split()): label for label in labels}
    read: dict[Any, float] = {}
    for label, share in shares.items():
        listed = [label] if "".join(label.split()) in called else label.split("&")
        parts = tuple(called.get("".join(part.split()), part.strip()) for part in listed)
        if not all(parts) or parts in read:
            raise ValueError(f"`--shares` must name each group once, by labels joined by '&', got {label!r}.")
        read[parts] = share
    return {parts if len(parts) > 1 else parts[0]: share for parts, share in read.items()}


def _added(attributes: Sequence[str]) -> list[str]:
    return ["position", "utility", "v_y", *(f"v_{name}" for name in attributes)]


def _print_summary(strategy: UtilityQuery, chosen: Any) -> None:
    from fado.cli._outputs import print_table

    rows = []
    for label, count in strategy.group_counts_.items():
        title = " & ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        rows.append([title, count, count / len(chosen)])
    if rows:
        print_table("Groups of the selected rows", ["group", "rows", "share"], rows)
    of_chosen, of_pool = strategy.utilities_[chosen].mean(), np.nanmean(strategy.utilities_)
    print(f"Mean utility of the selected rows: {of_chosen:.3f}; of the pool: {of_pool:.3f}")
