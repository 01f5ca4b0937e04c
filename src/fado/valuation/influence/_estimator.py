"""Which LightGBM models tell the effects of their rows, and what each row weighs in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from fado._checks import check_instance
from fado.engine import LightGBMEngine
from fado.tabular import Labels, Table

__all__ = ["class_factors", "readable_estimator"]

FloatArray = npt.NDArray[np.float64]

_ALIASES = {
    "boosting_type": ("boosting_type", "boosting", "boost"),
    "subsample": ("bagging_fraction", "subsample"),
    "subsample_freq": ("bagging_freq", "subsample_freq"),
}


def readable_estimator(given: Any, table: Table) -> Any:
    """Give the estimator whose leaves are read, without class weights; refuse one that hides its rows.

    Parameters
    ----------
    given : LGBMClassifier or None
        None is one with LightGBM's own settings.
    table : Table
        The features.
    """
    from lightgbm import LGBMClassifier

    if given is None:
        return LGBMClassifier()
    check_instance("estimator", given)
    if type(given) is not LGBMClassifier:
        raise TypeError(
            f"`estimator` must be an LGBMClassifier, whose leaves are read, got {given!r}: for other models "
            "use DataShapley or KNNShapley."
        )
    parameters = given.get_params()
    for fault in _faults(parameters):
        raise ValueError(f"`estimator` has {fault}.")
    estimator = clone(given).set_params(class_weight=None)
    if not LightGBMEngine.supports(estimator, table):
        raise ValueError(
            f"`estimator` has settings whose effect on the leaves is not known: {given!r}; leave them out."
        )
    return estimator


def _faults(parameters: dict[str, Any]) -> list[str]:
    """Say what keeps a model's leaves from telling the effects of rows."""

    def setting(name: str) -> Any:
        names = _ALIASES.get(name, (name,))
        return next((parameters[own] for own in names if parameters.get(own) is not None), None)

    found = []
    hidden = "each tree learns from rows that nobody can name afterwards"
    kind = setting("boosting_type")
    if kind not in (None, "gbdt"):
        found.append(f"`boosting_type={kind!r}`: {hidden}; use 'gbdt'")
    if setting("data_sample_strategy") not in (None, "bagging"):
        found.append(f"`data_sample_strategy={setting('data_sample_strategy')!r}`: {hidden}; leave it out")
    if (setting("subsample_freq") or 0) > 0 and (setting("subsample") or 1.0) < 1.0:
        found.append(f"bagging (`subsample={setting('subsample')}`): {hidden}; use `subsample=1.0`")
    for name in ("is_unbalance", "path_smooth", "max_delta_step"):
        if setting(name):
            found.append(f"`{name}={setting(name)}`, which leaves do not tell: leave it out")
    if setting("scale_pos_weight") not in (None, 1, 1.0):
        found.append("`scale_pos_weight`, which leaves do not tell: use `class_weight` or `sample_weight`")
    return found


def class_factors(given: Any, labels: Labels) -> FloatArray | None:
    """Give by how much an estimator's class weights raise each row's weight; None if it has none."""
    class_weight = None if given is None else given.class_weight
    if class_weight is None:
        return None
    names = np.array(labels.classes)[labels.codes]
    return np.asarray(compute_sample_weight(class_weight, names), dtype=np.float64)
