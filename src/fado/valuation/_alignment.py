"""Do values belong to the rows that they are used for? The target tells, if its labels are seen again."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._variables import encoded, target_column
from fado.metrics._inputs import warn_user

__all__ = ["TARGET_PATTERN", "target_pattern", "warn_of_other_rows"]

TARGET_PATTERN = "target_pattern"  # its place in a valuation's metadata


def target_pattern(codes: npt.NDArray[np.int32]) -> str:
    """Digest which rows share a label, in the rows' order; what the labels are called does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> target_pattern(np.array([0, 0, 1])) == target_pattern(np.array([1, 1, 0]))
    True
    >>> target_pattern(np.array([0, 0, 1])) == target_pattern(np.array([0, 1, 0]))
    False
    """
    first = np.full(int(codes.max()) + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    by_appearance = np.argsort(np.argsort(first, kind="stable"), kind="stable").astype(np.int32)
    return hashlib.blake2b(by_appearance[codes].data, digest_size=16).hexdigest()


def warn_of_other_rows(valuation: Any, y: Any) -> None:
    """Warn if a valuation was made with other labels than those of the rows it is used for.

    Labels of another number are another target, which tells nothing about the rows.
    """
    about = getattr(valuation, "metadata", {})
    if TARGET_PATTERN not in about:  # given probabilities, some of the rows, a continuous target, an old file
        return
    codes, labels = encoded(target_column(y, len(valuation)))
    if len(labels) != len(about["variables"]["y"]["classes"]):
        return
    if target_pattern(codes) != about[TARGET_PATTERN]:
        warn_user(
            "`valuation` was made with other labels `y`, or with the rows in another order: pass the "
            "valuation of these very rows.",
            UserWarning,
        )
