"""Values of tables in files: more rows than memory."""

from fado.valuation.large._plan import FilesPlan as FilesPlan
from fado.valuation.large._plan import ReadingCosts as ReadingCosts
from fado.valuation.large._plan import memory_bound as memory_bound
from fado.valuation.large._plan import reading_costs as reading_costs
from fado.valuation.large._run import part_name as part_name
from fado.valuation.large._summary import GroupLine as GroupLine
from fado.valuation.large._summary import summarise_files as summarise_files
from fado.valuation.large._table import BLOCK_ROWS as BLOCK_ROWS
from fado.valuation.large._table import Classes as Classes
from fado.valuation.large._table import Combinations as Combinations
from fado.valuation.large._table import Roles as Roles
from fado.valuation.large._table import StoredValues as StoredValues
from fado.valuation.large._table import TablePass as TablePass
from fado.valuation.large._table import check_comparisons as check_comparisons
from fado.valuation.large._table import check_group_names as check_group_names
from fado.valuation.large._table import check_rows as check_rows
from fado.valuation.large._table import name_roles as name_roles
from fado.valuation.large._table import read_roles as read_roles
from fado.valuation.large._table import with_group_names as with_group_names
from fado.valuation.large._value_files import Paths as Paths
from fado.valuation.large._value_files import check_out as check_out
from fado.valuation.large._value_files import plan_files as plan_files
from fado.valuation.large._value_files import value_files as value_files
