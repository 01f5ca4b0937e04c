"""Values of tables in files: more rows than memory."""

from fado.valuation.large._passes import part_name
from fado.valuation.large._plan import FilesPlan, ReadingCosts, memory_bound, reading_costs
from fado.valuation.large._table import (
    BLOCK_ROWS,
    Classes,
    Combinations,
    Roles,
    StoredValues,
    TablePass,
    check_comparisons,
    check_group_names,
    check_rows,
    name_roles,
    read_roles,
    with_group_names,
)
from fado.valuation.large._value_files import (
    GroupLine,
    Paths,
    check_out,
    plan_files,
    summarise_files,
    value_files,
)

__all__ = [
    "BLOCK_ROWS",
    "Classes",
    "Combinations",
    "FilesPlan",
    "GroupLine",
    "Paths",
    "ReadingCosts",
    "Roles",
    "StoredValues",
    "TablePass",
    "check_comparisons",
    "check_group_names",
    "check_out",
    "check_rows",
    "memory_bound",
    "name_roles",
    "part_name",
    "plan_files",
    "read_roles",
    "reading_costs",
    "summarise_files",
    "value_files",
    "with_group_names",
]
