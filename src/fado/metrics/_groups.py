"""Protected attributes of any table library as one group per row."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fado.metrics._inputs import Integers, as_series, check_length, warn_user

if TYPE_CHECKING:
    import pandas as pd

_NAMED_AT_MOST = 5  # groups spelt out in a message


def encode_groups(sensitive_features: Any, n_rows: int) -> tuple[Integers, list[str]]:
    """Return the group of each row as a position in the list of the groups' names.

    Several attributes are crossed: the groups are the combinations that occur. Missing values are a level of
    their own, with a warning. A level that a categorical column declares but no row holds is a group without
    rows, as the user named a group that these rows cannot judge.

    Parameters
    ----------
    sensitive_features : Series, array, list, DataFrame or dict
        One protected attribute, or several as columns.
    n_rows : int
        The number of rows of ``y_true``.

    Returns
    -------
    codes : ndarray of shape (n_rows,)
    names : list of str
        For display; the levels' ``repr``, so that the text ``'missing'`` and a missing value look different.

    Examples
    --------
    >>> encode_groups(["f", "m", "f"], 3)
    (array([0, 1, 0]), ["'f'", "'m'"])
    >>> encode_groups({"sex": ["f", "m", "f"], "old": ["yes", "yes", "no"]}, 3)
    (array([0, 2, 1]), ["sex='f', old='yes'", "sex='f', old='no'", "sex='m', old='yes'"])
    """
    columns = list(_columns(sensitive_features))
    if not columns:
        raise ValueError(
            "`sensitive_features` must have at least one column, got none; pass a protected attribute."
        )
    crossed = np.zeros(n_rows, dtype=np.int64)
    names: list[str] = []
    absent: list[str] = []
    for attribute, values in columns:
        check_length(values, n_rows, "sensitive_features")
        codes, levels = _levels(values, attribute)
        if len(columns) > 1:
            levels = [f"{attribute}={level}" for level in levels]
        present, codes = np.unique(codes, return_inverse=True)
        absent += np.delete(np.array(levels, dtype=object), present).tolist()
        combined, crossed = np.unique(crossed * len(present) + codes, return_inverse=True)
        before, here = np.divmod(combined, len(present))
        names = [
            ", ".join([*names[b : b + 1], levels[present[h]]]) for b, h in zip(before, here, strict=True)
        ]
    return crossed, names + absent


def list_names(names: list[str]) -> str:
    """Return names for a message, the first few if there are many."""
    more = len(names) - _NAMED_AT_MOST
    return ", ".join(names[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")


def _columns(sensitive_features: Any) -> Iterator[tuple[str, "pd.Series[Any]"]]:
    """Yield the attributes by name; columns are matched by position, never aligned on an index."""
    import pandas as pd

    if isinstance(sensitive_features, Mapping):
        for name, values in sensitive_features.items():
            yield str(name), as_series(values, f"sensitive_features[{name!r}]")
        return
    if hasattr(sensitive_features, "to_pandas"):
        sensitive_features = sensitive_features.to_pandas()
    if isinstance(sensitive_features, list) and any(
        isinstance(row, list | tuple) for row in sensitive_features[:1]
    ):
        sensitive_features = np.array(sensitive_features, dtype=object)
    if isinstance(sensitive_features, np.ndarray) and sensitive_features.ndim == 2:
        sensitive_features = pd.DataFrame(sensitive_features).rename(columns=lambda position: f"z{position}")
    if isinstance(sensitive_features, pd.DataFrame):
        for position, name in enumerate(sensitive_features.columns):
            yield str(name), sensitive_features.iloc[:, position]
        return
    values = as_series(sensitive_features, "sensitive_features")
    yield ("z" if values.name in (None, "") else str(values.name)), values


def _levels(values: "pd.Series[Any]", attribute: str) -> tuple[Integers, list[str]]:
    """Return per row the position of its level, with one more level for missing values if there are any."""
    import pandas as pd

    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, distinct = values.cat.codes.to_numpy(), values.cat.categories
    else:
        codes, distinct = pd.factorize(values)
    levels = [repr(level) for level in distinct.tolist()]
    missing = codes == -1
    if missing.any():
        warn_user(
            f"`sensitive_features` has {missing.sum()} missing values in '{attribute}'; they are a group of "
            "their own, named missing.",
            UserWarning,
        )
        levels.append("missing")
    return np.where(missing, len(levels) - 1, codes).astype(np.int64), levels
