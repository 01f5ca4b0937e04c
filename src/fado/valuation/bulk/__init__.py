"""Values of tables in files: more rows than memory."""

from fado.valuation.bulk._checks import check_comparisons, check_group_names, check_rows
from fado.valuation.bulk._classes import Classes, Combinations
from fado.valuation.bulk._parts import part_name
from fado.valuation.bulk._plan import FilesPlan
from fado.valuation.bulk._reading import BLOCK_ROWS, ReadingCosts, memory_bound, reading_costs
from fado.valuation.bulk._request import Paths, check_out
from fado.valuation.bulk._roles import Roles, name_roles, read_roles, with_group_names
from fado.valuation.bulk._stored_values import StoredValues
from fado.valuation.bulk._summary import GroupLine
from fado.valuation.bulk._table_pass import TablePass
from fado.valuation.bulk._value_files import plan_files, summarise_files, value_files

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
