"""Values must be those of the rows and of the attributes that are asked for."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fado import (
    InBagEntropy,
    LinearUtility,
    ReweighedEstimator,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
)

RNG = np.random.default_rng(0)
N = 200
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.integers(0, 2, N)})
Y = RNG.integers(0, 2, N)
SEX, OLD = RNG.choice(["f", "m"], N), RNG.random(N) < 0.3
USERS = [
    UtilityAwarePrevalenceSampler(random_state=0),
    UtilityAwareReweigher(),
    UtilityAwareReweigher(floor=0.1, prevalence_correction=1.0),
]


def of(*names):
    return Valuation.from_values({name: RNG.random(N) for name in ("y", *names)})


def fit(user, sensitive_features, valuation):
    return user.fit(X, Y, sensitive_features=sensitive_features, valuation=valuation)


@pytest.mark.parametrize("user", USERS, ids=str)
@pytest.mark.parametrize(
    ("asked", "valued", "message"),
    [
        (pd.Series(OLD, name="old"), ["sex"], "values of 'sex', and none of the protected attribute 'old'"),
        ({"old": OLD}, ["sex"], "values of 'sex', and none of the protected attribute 'old'"),
        (pd.DataFrame({"old": OLD}), ["sex", "race"], "values of 'sex', 'race', and none of .* 'old'"),
        ({"sex": SEX, "old": OLD}, ["sex"], "values of 'sex', and none of the protected attribute 'old'"),
        ({"z": OLD, "sex": SEX}, ["sex"], "values of 'sex', and none of the protected attribute 'z'"),
        ("b", ["sex"], "values of 'sex', and none of the protected attribute 'b'"),
        ({"sex": SEX}, ["z"], "values of 'z', and none of the protected attribute 'sex'"),
        ({"z": SEX}, ["sex"], "values of 'sex', and none of the protected attribute 'z'"),
    ],
    ids=["Series", "dict", "of two others", "one lacks", "z beside another", "column", "z", "of z"],
)
def test_values_of_another_attribute_are_refused(user, asked, valued, message):
    with pytest.raises(ValueError, match=rf"`valuation` has {message} .*pass the valuation of that"):
        fit(user, asked, of(*valued))


@pytest.mark.parametrize("user", USERS, ids=str)
@pytest.mark.parametrize(
    ("asked", "valued"),
    [
        ({"sex": SEX}, ["sex"]),
        ({"sex": SEX}, ["old", "sex"]),
        ({"sex": SEX, "old": OLD}, ["old", "sex"]),
        (SEX, ["sex"]),
        (list(SEX), ["sex"]),
        (pd.Series(SEX), ["sex"]),
        (np.array([SEX, OLD], dtype=object).T, ["sex", "old"]),
        ({"sex": SEX}, ["z"]),
        ({"sex": SEX, "old": OLD}, ["z0", "z1"]),
    ],
    ids=["same", "among several", "other order", "array", "list", "Series", "matrix", "z", "z0 and z1"],
)
def test_names_are_compared_only_where_they_were_given(user, asked, valued):
    values = of(*valued).with_provenance(names_given=valued[0] not in ("z", "z0"))
    assert len(fit(user, asked, values).training_set_.rows) > 0


def test_values_without_attributes_fit_any():
    probabilities = Valuation.from_probabilities(RNG.random(N))
    sampler = UtilityAwarePrevalenceSampler(LinearUtility(1.0), random_state=0)
    assert len(fit(sampler, {"sex": SEX}, probabilities).sample_indices_) < N


def test_a_utility_picks_its_own_column_of_those_that_are_there():
    values = of("sex", "old")
    picked = UtilityAwareReweigher(LinearUtility(0.0, betas={"sex": 1.0}), normalize=False)
    scaled = (values["sex"] - values["sex"].min()) / np.ptp(values["sex"])
    for asked in ({"sex": SEX}, {"old": OLD}):
        np.testing.assert_allclose(fit(picked, asked, values).sample_weight_, scaled)
    with pytest.raises(ValueError, match="none of the protected attribute 'race'"):
        fit(picked, {"race": SEX}, values)


def test_an_estimator_refuses_them_too():
    model = ReweighedEstimator(LogisticRegression(), UtilityAwareReweigher())
    with pytest.raises(ValueError, match="values of 'sex', and none of the protected attribute 'old'"):
        model.fit(X, Y, sensitive_features={"old": OLD}, valuation=of("sex"))


def test_values_made_on_the_way_fit_however_attributes_are_named():
    for asked in (SEX, {"sex": SEX}, pd.DataFrame({0: SEX, 1: OLD}), np.array([SEX, OLD], dtype=object).T):
        sampler = UtilityAwarePrevalenceSampler(valuator=InBagEntropy(n_jobs=1), random_state=0)
        assert len(sampler.fit(X, Y, sensitive_features=asked).sample_indices_) < N


@pytest.mark.parametrize("user", USERS, ids=str)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"utility": LinearUtility}, r"^`utility` must be an object, got the class LinearUtility: write"),
        ({"utility": 0.5}, r"^`utility` must be a utility like LinearUtility\(alpha=0.5\)"),
        ({"valuator": InBagEntropy}, r"^`valuator` must be an object, got the class InBagEntropy: write"),
        ({"valuator": "inbag"}, r"^`valuator` must be a valuator like OutOfBagEntropy\(\), got 'inbag'"),
    ],
)
def test_classes_and_texts_are_refused_before_rows_are_valued(user, settings, message, monkeypatch):
    monkeypatch.setattr("fado.interventions._base.OutOfBagEntropy", None)
    with pytest.raises(TypeError, match=message):
        fit(clone(user).set_params(**settings), SEX, None)


@pytest.mark.parametrize("user", USERS, ids=str)
def test_values_of_other_rows_are_refused(user):
    with pytest.raises(ValueError, match="`valuation` has 199 rows and X has 200: pass the valuation of the"):
        fit(user, {"sex": SEX}, of("sex")[1:])


def test_a_function_that_gives_no_number_per_row_is_told_of_as_such():
    sampler = UtilityAwarePrevalenceSampler(lambda values: values["y"][:3])
    with pytest.raises(ValueError, match=r"`utility` gave numbers of shape \(3,\) for 200 rows"):
        fit(sampler, {"sex": SEX}, of("sex"))


def test_what_only_looks_like_a_valuation_will_do():
    class Plain:
        protected = ("sex",)

        def __getitem__(self, name):
            return np.arange(N) / N

    class Values:
        def fit(self, X, y, sensitive_features):
            self.valuation_ = Plain()
            return self

    given = fit(UtilityAwarePrevalenceSampler(random_state=0), {"sex": SEX}, Plain())
    made = fit(UtilityAwarePrevalenceSampler(valuator=Values(), random_state=0), {"sex": SEX}, None)
    np.testing.assert_array_equal(given.sample_indices_, made.sample_indices_)
