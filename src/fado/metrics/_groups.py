"""Protected attributes as one group per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fado._messages import warn_user
from fado.metrics._inputs import Bools, Integers, check_length

if TYPE_CHECKING:
    from fado.tabular import Groups, Variable

MIN_GROUP_SIZE = 30  # as `fado.tabular` has it, which is imported by the functions that need it


def encode_groups(sensitive_features: Any, n_rows: int) -> tuple[Integers, tuple[str, ...]]:
    """Return the group of each row as a position among the groups' names.

    Several attributes are crossed: the groups are the combinations that occur. Missing values are a level of
    their own, with a warning. Levels are numbered as rows show them, so that a group keeps its place
    whatever it is called.

    Parameters
    ----------
    sensitive_features : Series, array, list, DataFrame or dict
        One protected attribute, or several as columns.
    n_rows : int
        The number of rows of ``y_true``.

    Returns
    -------
    codes : ndarray of shape (n_rows,)
    names : tuple of str
        For display; the levels' ``repr``, so that the text ``'(missing)'`` and a missing value look
        different.

    Examples
    --------
    >>> encode_groups(["f", "m", "f"], 3)
    (array([0, 1, 0]), ("'f'", "'m'"))
    >>> encode_groups({"sex": ["f", "m", "f"], "old": ["yes", "yes", "no"]}, 3)
    (array([0, 2, 1]), ("sex='f', old='yes'", "sex='f', old='no'", "sex='m', old='yes'"))
    """
    groups = read_groups(sensitive_features, n_rows)
    return groups.codes, groups.names


def read_groups(sensitive_features: Any, n_rows: int) -> Groups:
    """Do the work of :func:`encode_groups`, and keep what people call the groups."""
    from fado.tabular import group_rows

    return group_rows(read_variables(sensitive_features, n_rows), appearance=True)


def read_variables(sensitive_features: Any, n_rows: int) -> list[Variable]:
    """Read protected attributes, with a warning that tells where they are missing."""
    from fado.tabular import attribute_columns, variable_from, warn_of_missing

    columns = attribute_columns(sensitive_features)
    if not columns:
        raise ValueError(
            "`sensitive_features` must have at least one column, got none; pass a protected attribute."
        )
    for column in columns:
        check_length(column, n_rows, "sensitive_features")
    variables = [variable_from(column) for column in columns]
    warn_of_missing(variables)
    return variables


def small_among(codes: Integers, n_groups: int, min_group_size: int) -> Bools:
    """Return which groups are too small to be compared, by the number of their rows."""
    from fado.tabular import check_min_group_size, small_groups

    check_min_group_size(min_group_size)
    return small_groups(np.bincount(codes, minlength=n_groups), min_group_size)


def leave_out_small(codes: Integers, names: Sequence[str], min_group_size: int) -> Bools:
    """Return which groups ratios leave out as too small, with one warning that names them.

    Examples
    --------
    >>> codes = np.repeat([0, 1], [2000, 4])
    >>> leave_out_small(codes, ["'a'", "'b'"], min_group_size=3)
    array([False, False])
    """
    from fado.tabular import tell_small

    small = small_among(codes, len(names), min_group_size)
    if small.any():
        sizes = np.bincount(codes, minlength=len(names))
        told = tell_small(names, sizes, small, min_group_size)
        left_out = f"{'is' if small.sum() == 1 else 'are'} left out of ratios"
        warn_user(f"{told} {left_out}; `min_group_size=0` compares all groups.")
    return small
