"""Values of tables in files: more rows than memory."""

from fado.valuation.bulk._plan import FilesPlan
from fado.valuation.bulk._summary import GroupLine
from fado.valuation.bulk._value_files import plan_files, summarise_files, value_files

__all__ = ["FilesPlan", "GroupLine", "plan_files", "summarise_files", "value_files"]
