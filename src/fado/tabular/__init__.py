"""Read what a user passes: tables, variables, labels, groups, files."""

from fado.tabular._column import FEWEST_OF_LEVEL, Column, column_from
from fado.tabular._expressions import Expression, GroupNames, protected_from, read_attributes
from fado.tabular._files import ENDINGS, Paths, ending_of, read_table, reader_of, write_csv
from fado.tabular._matching import (
    NOT_GIVEN,
    UNSEEN,
    join_problems,
    label_codes,
    match_attributes,
    match_names,
    match_positive,
)
from fado.tabular._problem import (
    Problem,
    attribute_columns,
    blocks_of,
    mean_one,
    note_features,
    one_column,
    protected_columns,
    read_problem,
    target_column,
    weights_of,
)
from fado.tabular._proxies import columns_equal_to, columns_that_determine
from fado.tabular._roles import (
    BLOCK_ROWS,
    Classes,
    Combinations,
    Roles,
    TablePass,
    check_comparisons,
    check_group_names,
    read_roles,
)
from fado.tabular._source import Source, SourcePart, in_blocks, open_source
from fado.tabular._streams import (
    LevelsCollector,
    ShelvedTable,
    SmallestRows,
    deal_rows,
    on_shelf,
    row_hash,
)
from fado.tabular._suspects import doubt_of, warn_of_doubtful_columns
from fado.tabular._table import (
    Table,
    as_names,
    columns_named,
    is_pattern,
    names_like,
    one_hot,
    open_table,
    read_folds,
    read_rows,
    take_rows,
)
from fado.tabular._variables import (
    MIN_GROUP_SIZE,
    SMALL_SHARE,
    TARGET,
    UNKNOWN,
    Groups,
    Kind,
    Labels,
    Variable,
    check_known,
    check_learnable,
    check_min_group_size,
    group_rows,
    label_named,
    labels_of,
    positive_code,
    title_in_full,
    variable_from,
    warn_of_unknown,
    warn_of_unknown_rows,
)
