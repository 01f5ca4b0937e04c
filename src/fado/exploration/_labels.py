"""The labels that pictures split rows by: classes, or the halves of a continuous target."""

from __future__ import annotations

import numpy as np

from fado.exploration._groups import ShownGroups, show_groups
from fado.exploration._material import Material

__all__ = ["label_groups"]


def label_groups(material: Material) -> ShownGroups:
    """Split rows by their label; by the two halves of a continuous target."""
    target = material.target
    if target.kind == "classes":
        codes, names = target.labels.astype(np.int64), tuple(map(str, target.classes))
    else:
        middle = float(np.median(target.labels))
        codes = (target.labels > middle).astype(np.int64)
        names = (f"up to {middle:.4g}", f"over {middle:.4g}")
    return show_groups(codes, names, 0, noun="labels")
