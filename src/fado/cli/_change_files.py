"""`fado sample` and `fado reweigh` of tables in files that need not fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fado.cli._before_after import print_changes
from fado.cli._inputs import read_group_names
from fado.cli._methods import Asked, make_method, shown_settings
from fado.cli._parts import is_beyond_memory, names_several
from fado.cli._summary import print_settings
from fado.interventions import FilesChange, reweigh_files, sample_files
from fado.tabular import label_named, open_source
from fado.utility import utility_class
from fado.valuation.bulk import name_roles

__all__ = ["change_files", "is_in_parts"]


def is_in_parts(data: Path, out: Path, values: Path | None, memory: str | None, doing: str) -> bool:
    """Tell whether a table is to be read part by part: as asked for, or as it must be."""
    if names_several(data) or memory is not None:
        return True
    could_be = out.suffix.lower() != ".csv" and (values is None or values.suffix.lower() != ".csv")
    return could_be and is_beyond_memory(data, doing)


def change_files(
    asked: Asked,
    data: Path,
    out: Path,
    *,
    target: str,
    protected: Sequence[str],
    positive: str | None,
    weight: str | None,
    memory: str | None,
    group_names: Sequence[str] | None,
) -> FilesChange:
    """Sample or reweigh, and print what became of the groups, and all settings.

    Parameters
    ----------
    asked : Asked
        The method and its options.
    data, out : Path
        What is read, and where to write.
    target, protected, positive, weight, memory, group_names
        The options by these names.
    """
    schema = open_source(data).schema
    roles = name_roles(schema, target, protected, weight=weight)
    names, kind = roles.names[1:], schema.field(roles.target.sources[0]).type
    label = None if positive is None else _label(kind if roles.target.is_column else pa.bool_(), positive)
    combined = None
    if asked.alpha is not None:
        combined = utility_class(asked.utility_name)(alpha=asked.alpha).over(names)
    intervention = make_method(asked, combined, label)
    arguments: dict[str, Any] = {
        "target": target,
        "protected": list(protected),
        "out": out,
        "values": asked.values,
        "intervention": intervention,
        "weight": weight,
        "memory": memory,
        "progress": True,
        "group_names": read_group_names(group_names, protected),
    }
    if asked.entry.kind.changes == "rows":
        change = sample_files(data, **arguments)
    else:
        change = reweigh_files(data, positive=label, **arguments)
    print_changes(names, change.groups, getattr(intervention, "min_group_size", 0))
    print_settings(shown_settings(asked, intervention, change.positive))
    return change


def _label(kind: pa.DataType, text: str) -> Any:
    """Give the label that a text stands for, in a column of this kind: before a row is read."""
    if pa.types.is_boolean(kind):
        return label_named([False, True], text, "--positive")
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"`--positive {text}` is not a label of the target, which holds numbers.") from None
