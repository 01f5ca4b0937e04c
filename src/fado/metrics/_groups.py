"""Protected attributes as one group per row."""

from __future__ import annotations

from typing import Any

from fado.metrics._inputs import Integers, check_length


def encode_groups(sensitive_features: Any, n_rows: int) -> tuple[Integers, tuple[str, ...]]:
    """Return the group of each row as a position among the groups' names.

    Several attributes are crossed: the groups are the combinations that occur. Missing values are a level of
    their own, with a warning. Levels are numbered as rows show them, so that a group keeps its place in the
    draws of a bootstrap whatever it is called.

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
    from fado.tabular import attribute_columns, group_rows, variable_from, warn_of_missing

    columns = attribute_columns(sensitive_features)
    if not columns:
        raise ValueError(
            "`sensitive_features` must have at least one column, got none; pass a protected attribute."
        )
    for column in columns:
        check_length(column, n_rows, "sensitive_features")
    variables = [variable_from(column) for column in columns]
    warn_of_missing(variables)
    groups = group_rows(variables, appearance=True)
    return groups.codes, groups.names
