"""Values of tables in files: more rows than memory."""

from fado.valuation.large._plan import FilesPlan as FilesPlan
from fado.valuation.large._plan import memory_bound as memory_bound
from fado.valuation.large._plan import reading_costs as reading_costs
from fado.valuation.large._run import part_name as part_name
from fado.valuation.large._stored import StoredValues as StoredValues
from fado.valuation.large._stored import with_group_names as with_group_names
from fado.valuation.large._summary import GroupLine as GroupLine
from fado.valuation.large._summary import summarise_files as summarise_files
from fado.valuation.large._value_files import check_out as check_out
from fado.valuation.large._value_files import plan_files as plan_files
from fado.valuation.large._value_files import value_files as value_files
