"""What commands print about the columns before the first fit, and the ids that they leave out.

This takes long to import, so commands import it when they run.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fado._messages import list_names
from fado.columns import report_columns
from fado.tabular import Expression, Table, column_from, open_source, read_roles, target_column

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_FIRST_ROWS = 20_000  # of a table that is read in parts


def find_columns(
    features: pa.Table, target: Any, protected: Mapping[str, Any], expressions: Mapping[str, Expression]
) -> pd.DataFrame:
    """Report the features; columns that an attribute is made of do not count as revealing it."""
    table = Table.from_input(features)
    attributes = [column_from(name, groups) for name, groups in protected.items()]
    made_of = {name: expression.sources for name, expression in expressions.items()}
    return report_columns(table, target_column(target, table.n_rows), attributes, made_of)


def print_findings(findings: pd.DataFrame, *, keep_ids: bool) -> list[str]:
    """Print a line for each kind of finding; return the ids to leave out."""
    is_id = findings["finding"] == "id"
    ids = [] if keep_ids else findings["column"][is_id].tolist()
    if ids:
        findings.loc[is_id, "what to do"] = "left out of the features; `--keep-ids` takes them back"
    for (finding, fix), columns in findings.groupby(["finding", "what to do"], sort=False):
        shares = columns["measured"].map(lambda share: "" if share != share else f" ({share:.3g})")
        named = [f"{name!r}{share}" for name, share in zip(columns["column"], shares, strict=True)]
        print(f"{finding}: {list_names(named)}: {fix}.", file=sys.stderr)
    # What estimators would warn of has been said, and more.
    warnings.filterwarnings("ignore", "Models will learn little from these columns")
    return ids


def columns_to_drop(
    data: Path,
    keep_ids: bool,
    *,
    target: str,
    protected: Sequence[str],
    drop: Sequence[str] | None,
    weight: str | None = None,
    groups: str | None = None,
    **_: Any,
) -> list[str]:
    """Report the first rows of a table that is read in parts; return the columns that are no features."""
    source = open_source(data)
    roles = read_roles(source.schema, target, protected, drop=drop, weight=weight, groups=groups)
    head = next(source.rows(None, _FIRST_ROWS), source.schema.empty_table())
    expressions = {attribute.name: attribute for attribute in roles.attributes}
    protected_groups = {name: expression.groups(head) for name, expression in expressions.items()}
    read = roles.target.read(head, named=False)
    findings = find_columns(head.select(roles.features), read, protected_groups, expressions)
    return [*(drop or ()), *print_findings(findings, keep_ids=keep_ids)]
