"""What stands in for older versions does as the newest do."""

import warnings

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from fado._compat import generator_from, get_tags, is_classifier, is_regressor, with_texts


class OldTags(BaseEstimator):
    """As LightGBM 4.5 tells of itself."""

    def _more_tags(self):
        return {"allow_nan": True, "X_types": ["2darray", "sparse", "1dlabels"]}


OldTags.__module__ = "lightgbm.sklearn"


class OldClassifier(ClassifierMixin, OldTags):
    """As LightGBM 4.5 has it; of any module, as a user may derive from it."""


@pytest.mark.parametrize(
    ("estimator", "learns_classes"),
    [
        (OldClassifier(), True),
        (LGBMClassifier(), True),
        (LogisticRegression(), True),
        (LGBMRegressor(), False),
        (LinearRegression(), False),
    ],
)
def test_classifiers_and_regressors_are_recognised_without_a_warning(estimator, learns_classes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert is_classifier(estimator) == learns_classes
        assert is_regressor(estimator) != learns_classes


@pytest.mark.parametrize("old", [OldClassifier(), LGBMClassifier()])
def test_lightgbm_takes_missing_and_sparse_entries_at_every_version(old):
    tags = get_tags(old).input_tags
    assert tags.allow_nan
    assert tags.sparse
    assert not get_tags(LogisticRegression()).input_tags.allow_nan


def test_a_generator_goes_on_where_a_random_state_stands_and_is_numpys_from_anything_else():
    drawn, state = np.random.RandomState(7).random_sample(5), np.random.RandomState(7)
    np.testing.assert_array_equal(generator_from(state).random(3), drawn[:3])
    np.testing.assert_array_equal(state.random_sample(2), drawn[3:])
    given = np.random.default_rng(3)
    assert generator_from(given) is given
    np.testing.assert_array_equal(generator_from([1, 2]).random(3), np.random.default_rng([1, 2]).random(3))


def test_texts_may_be_missing():
    frame = pd.DataFrame({"a": ["x", None, np.nan], "b": [None, None, None], "n": [1, 2, 3]})
    texts = with_texts(frame, ["a", "b"])
    assert texts["a"].isna().tolist() == [False, True, True]
    assert texts["a"].dropna().tolist() == ["x"]
    assert texts["a"].dtype == ("object" if pd.__version__.startswith("2.") else "str")
    assert texts["b"].isna().all()
    assert texts["n"].tolist() == [1, 2, 3]
    assert [type(one) for one in texts["a"]] == [str, float, float]
