"""Which columns the models of protected attributes must not see."""

import numpy as np
import pandas as pd
import pytest

from fado import InBagEntropy

RNG = np.random.default_rng(0)
N = 60
X = pd.DataFrame(RNG.normal(size=(N, 6)), columns=["age_20", "age_30", "AGE_40", "page_1", "a*", "ab"])
Y = np.arange(N) % 2
Z = {"old": np.arange(N) // 2 % 2, "sex": np.arange(N) // 4 % 2}


def excluded(z_exclude, frame=X):
    valuator = InBagEntropy(z_exclude=z_exclude, random_state=0, n_jobs=1)
    return valuator.fit(frame, Y, sensitive_features=Z).excluded_columns_


@pytest.mark.parametrize(
    ("pattern", "columns"),
    [
        ("age_*", ["age_20", "age_30"]),
        ("age_?0", ["age_20", "age_30"]),
        ("[aA]*_*0", ["age_20", "age_30", "AGE_40"]),
        ("a*", ["a*"]),  # a column that is called so
        ("a?", ["a*", "ab"]),
        ("*", list(X.columns)),
    ],
)
def test_patterns_match_as_in_a_shell(pattern, columns):
    assert excluded([pattern]) == {"old": columns, "sex": columns}
    assert excluded(pattern) == {"old": columns, "sex": columns}


def test_patterns_and_names_stand_side_by_side_and_per_attribute():
    both = ["age_*", "ab", "age_20"]
    assert excluded({"old": both}) == {"old": ["age_20", "age_30", "ab"], "sex": []}
    assert excluded({"old": "age_*", "sex": ["AGE*"]}) == {"old": ["age_20", "age_30"], "sex": ["AGE_40"]}


def test_names_that_are_numbers_match_too():
    frame = X.set_axis([10, 11, 20, 21, 30, 31], axis=1)
    assert excluded(["1?", 31], frame)["old"] == ["10", "11", "31"]


def test_a_pattern_that_matches_nothing_names_what_comes_close():
    with pytest.raises(
        ValueError, match=r"the pattern 'agee_\*', which matches no column of X; did you mean"
    ):
        excluded(["agee_*"])
    with pytest.raises(ValueError, match=r"'age_25', which is not a column of X; did you mean 'age_20'"):
        excluded({"sex": ["age_25"]})
