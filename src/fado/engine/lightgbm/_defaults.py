"""The models that value rows when the user names none."""

from __future__ import annotations

from typing import Any

__all__ = ["default_estimators"]

# Chosen by benchmarks/default_models.py: the most faithful ranking of rows per second.
_PARAMETERS: dict[str, Any] = {
    "n_estimators": 45,
    "learning_rate": 0.28,  # fast; `fado.valuation` slows models down that need it
    "num_leaves": 24,
    "max_depth": 8,  # a deeper chain of splits costs as much time as a full tree and tells less
    "reg_lambda": 2.0,  # without it, a class of a few rows upsets the others
    "max_bin": 511,  # a bin for each of some hundred codes; costs next to nothing
}
# A tree sees a few columns, for what only some together tell, and a share of the table's.
_COLUMNS_SEEN, _AND_SHARE = 1.5, 0.55


def default_estimators(n_columns: int) -> list[Any]:
    """Make the models that value the rows of a table with so many columns when the user names none.

    Examples
    --------
    >>> classifier, regressor = default_estimators(10)
    >>> classifier.colsample_bytree
    0.7
    """
    from lightgbm import LGBMClassifier, LGBMRegressor

    share = min(_COLUMNS_SEEN / max(n_columns, 1) + _AND_SHARE, 1.0)
    parameters = _PARAMETERS | {"colsample_bytree": round(share, 3)}
    return [LGBMClassifier(**parameters), LGBMRegressor(**parameters)]
