"""What values are measured against: converged ones, of the models that predict unseen rows best.

For each variable, slow learners with all, 70 % and 40 % of the columns per tree, in 255 and in 1,023 bins,
are cross-validated; the number of trees, the share of columns and the bins with the lowest log-loss make the
reference, valued with 50 bags. The choice is left to the data: a reference of fixed size would favour the
rival that overfits as much as it, one of fixed bins the rival that merges the same values.
"""

from __future__ import annotations

import itertools

import lightgbm
import numpy as np
from lightgbm import LGBMClassifier

from fado import OutOfBagEntropy

SHARES_OF_COLUMNS = (1.0, 0.7, 0.4)
BINS = (255, 1023)
SLOW = {"learning_rate": 0.05}
BAGS = 50


def converged_values(X, y, z):
    """Value y, and z seen with y among the columns.

    Returns
    -------
    ndarray of shape (2, n_rows), and the two models' parameters
    """
    models, values = [], []
    for features, labels in ((X, y), (X.assign(target=y), z)):
        models.append(best_model(features, labels))
        valuator = OutOfBagEntropy(LGBMClassifier(**models[-1]), n_bags=BAGS, random_state=1)
        values.append(valuator.fit(features, labels).valuation_["y"])
    return np.array(values), models


def best_model(features, labels):
    """Give the slow learner with the lowest cross-validated log-loss."""
    tried = []
    for bins, share in itertools.product(BINS, SHARES_OF_COLUMNS):
        curve = lightgbm.cv(
            SLOW
            | {"objective": "binary", "feature_fraction": share, "force_row_wise": True, "verbosity": -1},
            lightgbm.Dataset(features, labels, params={"max_bin": bins, "verbosity": -1}),
            num_boost_round=1000,
            seed=0,
            callbacks=[lightgbm.early_stopping(50, verbose=False)],
        )["valid binary_logloss-mean"]
        chosen = {"colsample_bytree": share, "max_bin": bins, "n_estimators": len(curve)}
        tried.append((curve[-1], SLOW | chosen))
    return min(tried, key=lambda t: t[0])[1]
