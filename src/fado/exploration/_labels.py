"""The labels that pictures split rows by: classes, or the halves of a continuous target."""

from __future__ import annotations

import numpy as np

from fado.exploration._groups import Groups, shown
from fado.exploration._material import Material

__all__ = ["label_groups"]


def label_groups(material: Material) -> Groups:
    """Split rows by their label; by the two halves of a continuous target."""
    target = material.target
    if target.kind == "classes":
        return shown(Groups(target.labels.astype(np.int64), tuple(map(str, target.classes))))
    middle = float(np.median(target.labels))
    names = (f"up to {middle:.4g}", f"over {middle:.4g}")
    return shown(Groups((target.labels > middle).astype(np.int64), names))
