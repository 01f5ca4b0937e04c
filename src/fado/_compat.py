"""All workarounds for older versions of libraries; each states when it can be removed.

The oldest versions are listed in `pyproject.toml`; `make test-oldest` runs the tests on them.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from sklearn.utils import Tags

# scikit-learn 1.6 warns so about LightGBM before 4.6, also within a pipeline, and users cannot fix it.
# Goes with LightGBM 4.5.
OLD_NEWS = "The LGBM.* or classes from which it inherits use `_get_tags` and `_more_tags`"
warnings.filterwarnings("ignore", message=OLD_NEWS, category=FutureWarning)


def get_tags(estimator: Any) -> Tags:
    """Return an estimator's tags, corrected for LightGBM before 4.6. Goes with LightGBM 4.5."""
    import sklearn.utils

    parts = [vars(kind) for kind in type(estimator).__mro__ if kind.__module__.startswith("lightgbm.")]
    if not any("_more_tags" in names and "__sklearn_tags__" not in names for names in parts):
        return sklearn.utils.get_tags(estimator)
    tags = estimator.__sklearn_tags__()  # those of scikit-learn, which know nothing of LightGBM
    tags.input_tags.allow_nan = tags.input_tags.sparse = True
    return tags


def is_classifier(estimator: Any) -> bool:
    """Return whether an estimator is a classifier. Goes with LightGBM 4.5."""
    return get_tags(estimator).estimator_type == "classifier"


def is_regressor(estimator: Any) -> bool:
    """Return whether an estimator is a regressor. Goes with LightGBM 4.5."""
    return get_tags(estimator).estimator_type == "regressor"


def generator_from(seed: Any) -> np.random.Generator:
    """Return `numpy.random.default_rng(seed)`, which accepts a RandomState from numpy 2.2 on."""
    import numpy as np

    if isinstance(seed, np.random.RandomState):
        return np.random.Generator(seed._bit_generator)
    return np.random.default_rng(seed)


def with_texts(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Make columns text, NaN where it is missing; objects before pandas 3, which would write "nan"."""
    import numpy as np
    import pandas as pd

    if int(pd.__version__.split(".")[0]) >= 3:
        return frame.astype(dict.fromkeys(names, "str"))
    missing = frame[names].isna()
    return frame.assign(**{name: frame[name].astype(object).mask(missing[name], np.nan) for name in names})
