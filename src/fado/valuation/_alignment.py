"""Do values belong to the rows that they are used for? The target tells, if its labels are seen again."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from fado._messages import warn_user
from fado.tabular import Problem

__all__ = ["check_alignment", "target_pattern"]


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


def check_alignment(valuation: Any, problem: Problem) -> None:
    """Warn if a valuation was made with other labels than those of the rows it is used for.

    Labels of another number are another target, which tells nothing about the rows. Given probabilities, some
    of the rows, a continuous target and old files have no pattern to compare.
    """
    provenance = getattr(valuation, "provenance", None)
    if provenance is None or provenance.target_pattern is None:
        return
    codes, labels = problem.sources[0].encode()
    note = provenance.variables.get("y")
    if note is None or note.classes is None or len(labels) != len(note.classes):
        return
    if target_pattern(codes) != provenance.target_pattern:
        warn_user(
            "`valuation` was made with other labels `y`, or with the rows in another order: pass the "
            "valuation of these very rows."
        )
