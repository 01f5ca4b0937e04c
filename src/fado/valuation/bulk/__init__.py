"""Values of tables in files: more rows than memory."""

from fado.valuation.bulk._checks import check_comparisons, check_rows
from fado.valuation.bulk._classes import Classes, Combinations
from fado.valuation.bulk._parts import part_name, writing
from fado.valuation.bulk._plan import FilesPlan
from fado.valuation.bulk._request import Paths, bound_of, check_out
from fado.valuation.bulk._roles import Roles, name_roles
from fado.valuation.bulk._stored_values import StoredValues
from fado.valuation.bulk._summary import GroupLine
from fado.valuation.bulk._value_files import plan_files, summarise_files, value_files

__all__ = [
    "Classes",
    "Combinations",
    "FilesPlan",
    "GroupLine",
    "Paths",
    "Roles",
    "StoredValues",
    "bound_of",
    "check_comparisons",
    "check_out",
    "check_rows",
    "name_roles",
    "part_name",
    "plan_files",
    "summarise_files",
    "value_files",
    "writing",
]
