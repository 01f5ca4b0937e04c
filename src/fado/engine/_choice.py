"""Which engine serves an estimator."""

from __future__ import annotations

from typing import Any

from fado.engine._sklearn import SklearnEngine
from fado.engine.lightgbm import LightGBMEngine
from fado.tabular import Table

__all__ = ["engine_class"]


def engine_class(estimator: Any, table: Table) -> type[LightGBMEngine] | type[SklearnEngine]:
    """Choose the quickest engine that does all as the estimator's own `fit` would.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fado.tabular import Table
    >>> table = Table.from_input([[0.0, 1.0]])
    >>> engine_class(LGBMClassifier(), table).__name__
    'LightGBMEngine'
    >>> engine_class(LogisticRegression(), table).__name__
    'SklearnEngine'
    """
    return LightGBMEngine if LightGBMEngine.supports(estimator, table) else SklearnEngine
