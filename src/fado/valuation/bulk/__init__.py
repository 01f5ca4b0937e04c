"""Values of tables in files: more rows than memory."""

from fado.valuation.bulk._plan import FilesPlan
from fado.valuation.bulk._reading import BLOCK_ROWS, ReadingCosts, memory_bound, reading_costs
from fado.valuation.bulk._roles import Roles, read_roles
from fado.valuation.bulk._summary import GroupLine
from fado.valuation.bulk._table_pass import TablePass
from fado.valuation.bulk._value_files import plan_files, summarise_files, value_files

__all__ = [
    "BLOCK_ROWS",
    "FilesPlan",
    "GroupLine",
    "ReadingCosts",
    "Roles",
    "TablePass",
    "memory_bound",
    "plan_files",
    "read_roles",
    "reading_costs",
    "summarise_files",
    "value_files",
]
