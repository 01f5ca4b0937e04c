"""What a user hands over, read once: tables, variables, labels, groups, files."""

from fado.tabular._columns import Column, column_from
from fado.tabular._comparisons import Expression, GroupNames, protected_from, read_attributes
from fado.tabular._csv import write_csv
from fado.tabular._dealing import deal_rows
from fado.tabular._files import ENDINGS, ending_of, read_table
from fado.tabular._given import (
    attribute_columns,
    check_weights,
    mean_one,
    one_column,
    protected_columns,
    target_column,
    weights_of,
)
from fado.tabular._groups import Groups, group_rows, title_in_full, warn_of_missing, warn_of_missing_rows
from fado.tabular._hashing import deal_small_strata, fold_of, row_hash
from fado.tabular._joining import join_problems
from fado.tabular._labels import Labels, label_named, labels_of, positive_code
from fado.tabular._open import open_table
from fado.tabular._pattern_of_labels import LabelPattern
from fado.tabular._patterns import as_names, columns_named, is_pattern, names_like
from fado.tabular._problem import Problem, note_features, read_problem
from fado.tabular._proxies import columns_equal_to, columns_that_determine
from fado.tabular._rows import read_folds, read_rows, take_rows
from fado.tabular._shelf import ShelvedTable, on_shelf
from fado.tabular._small import MIN_GROUP_SIZE, SMALL_SHARE, check_min_group_size, small_groups, tell_small
from fado.tabular._smallest import SmallestRows
from fado.tabular._source import LargestUnit, Source, SourceFile, SourcePart, in_blocks, open_source
from fado.tabular._source_levels import MOST_LEVELS, LevelsCollector
from fado.tabular._source_paths import reader_of
from fado.tabular._strata import SMALL_STRATUM, StrataCounter
from fado.tabular._table import Table, one_hot
from fado.tabular._variables import MISSING, TARGET, Kind, Variable, check_learnable, variable_from

__all__ = [
    "ENDINGS",
    "MIN_GROUP_SIZE",
    "MISSING",
    "MOST_LEVELS",
    "SMALL_SHARE",
    "SMALL_STRATUM",
    "TARGET",
    "Column",
    "Expression",
    "GroupNames",
    "Groups",
    "Kind",
    "LabelPattern",
    "Labels",
    "LargestUnit",
    "LevelsCollector",
    "Problem",
    "ShelvedTable",
    "SmallestRows",
    "Source",
    "SourceFile",
    "SourcePart",
    "StrataCounter",
    "Table",
    "Variable",
    "as_names",
    "attribute_columns",
    "check_learnable",
    "check_min_group_size",
    "check_weights",
    "column_from",
    "columns_equal_to",
    "columns_named",
    "columns_that_determine",
    "deal_rows",
    "deal_small_strata",
    "ending_of",
    "fold_of",
    "group_rows",
    "in_blocks",
    "is_pattern",
    "join_problems",
    "label_named",
    "labels_of",
    "mean_one",
    "names_like",
    "note_features",
    "on_shelf",
    "one_column",
    "one_hot",
    "open_source",
    "open_table",
    "positive_code",
    "protected_columns",
    "protected_from",
    "read_attributes",
    "read_folds",
    "read_problem",
    "read_rows",
    "read_table",
    "reader_of",
    "row_hash",
    "small_groups",
    "take_rows",
    "target_column",
    "tell_small",
    "title_in_full",
    "variable_from",
    "warn_of_missing",
    "warn_of_missing_rows",
    "weights_of",
    "write_csv",
]
