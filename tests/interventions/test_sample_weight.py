"""Survey weights count in the rates that interventions equalise."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression

from fado import (
    LinearUtility,
    RandomPrevalenceSampler,
    ReweighedEstimator,
    Reweigher,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
)
from fado.tabular import Labels, read_problem

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(N, 2))
SEX = RNG.choice(["f", "m"], size=N)
Y = (X[:, 0] + (SEX == "m") > 0.8).astype(int)
WEIGHTS = RNG.integers(1, 4, size=N).astype(float)
VALUES = Valuation.from_probabilities(RNG.random(N), {"sex": RNG.random(N)})


def rates(weights):
    return [np.average(Y[sex == SEX], weights=weights[sex == SEX]) for sex in ("f", "m")]


def fit(intervention, sample_weight=WEIGHTS):
    return intervention.fit(X, Y, sensitive_features=SEX, valuation=VALUES, sample_weight=sample_weight)


def test_reweighing_makes_the_weighted_rates_equal():
    factors = fit(Reweigher()).sample_weight_
    assert rates(factors * WEIGHTS) == pytest.approx([np.average(Y, weights=WEIGHTS)] * 2)
    assert np.ptp(rates(factors)) > 1e-4  # without them the rates would not be
    corrected = UtilityAwareReweigher(LinearUtility(0.5), floor=0.2, prevalence_correction=1.0)
    f, m = rates(fit(corrected).sample_weight_ * WEIGHTS)
    assert f == pytest.approx(m)


def test_whole_weights_are_rows_that_stand_so_often():
    rows = np.repeat(np.arange(N), WEIGHTS.astype(int))
    repeated = Reweigher().fit(X[rows], Y[rows], sensitive_features=SEX[rows]).sample_weight_
    np.testing.assert_allclose(fit(Reweigher()).sample_weight_[rows], repeated)


@pytest.mark.parametrize(
    "sampler", [RandomPrevalenceSampler(random_state=0), UtilityAwarePrevalenceSampler(random_state=0)]
)
def test_sampling_matches_the_weighted_rates_to_one_row(sampler):
    kept = np.isin(np.arange(N), fit(sampler).sample_indices_)
    f, m = rates(WEIGHTS * kept)
    lightest = (WEIGHTS * kept)[SEX == "f"].sum()
    assert abs(f - m) <= m * WEIGHTS.max() / lightest
    assert kept[Y == 1].all()
    assert kept[SEX == "m"].all()
    assert not kept.all()


def test_equal_weights_drop_the_same_rows():
    sampler = UtilityAwarePrevalenceSampler(random_state=0, strength=0.5)
    plain, weighted = (fit(sampler, weights).sample_indices_ for weights in (None, np.full(N, 2.0)))
    np.testing.assert_array_equal(plain, weighted)


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_the_scale_of_weights_does_not_matter(scale):
    for reweigher in (Reweigher(), UtilityAwareReweigher(floor=0.2, prevalence_correction=1.0)):
        plain, scaled = (fit(reweigher, WEIGHTS * by).sample_weight_ for by in (1.0, scale))
        np.testing.assert_allclose(plain, scaled, rtol=1e-9)
    for sampler in (RandomPrevalenceSampler(random_state=0), UtilityAwarePrevalenceSampler(random_state=0)):
        plain, scaled = (fit(sampler, WEIGHTS * by).sample_indices_ for by in (1.0, scale))
        np.testing.assert_array_equal(plain, scaled)
        assert len(plain) < N


def test_a_group_that_weighs_nothing_is_told_from_one_without_positives():
    weights = np.where(SEX == "f", 0.0, WEIGHTS)
    sampler = RandomPrevalenceSampler(random_state=0)
    both = np.where(np.arange(N) % 3 == 0, "x", SEX)
    weights[both == "x"] = 1.0
    with pytest.warns(UserWarning, match="No positives of any weight in group 'f': no rate can be matched"):
        sampler.fit(X, Y, sensitive_features=both, sample_weight=weights)
    assert set(np.flatnonzero(both == "f")) <= set(sampler.sample_indices_)


def test_a_thin_group_is_thin_by_weight():
    group = np.repeat(["a", "b", "c"], [300, 200, 100])
    positive = np.r_[np.arange(300) < 6, np.arange(200) < 10, np.arange(100) < 90].astype(int)
    weights = np.where(group == "c", 0.1, 1.0)
    with pytest.warns(UserWarning, match="with less than 5 % of the weight, has the highest positive rate"):
        RandomPrevalenceSampler(random_state=0).fit(
            X, positive, sensitive_features=group, sample_weight=weights
        )


def test_a_cell_that_weighs_nothing_keeps_the_factor_one():
    weights = np.where((SEX == "f") & (Y == 1), 0.0, 1.0)
    factors = fit(Reweigher(), weights).sample_weight_
    assert (factors[weights == 0] == 1).all()
    assert np.isfinite(factors).all()


def test_a_reweigher_in_an_estimator_sees_the_weights_if_it_requests_them():
    with config_context(enable_metadata_routing=True):
        asking = Reweigher().set_fit_request(sample_weight=True)
    for reweigher, counted in ((Reweigher(), None), (asking, WEIGHTS)):
        model = ReweighedEstimator(LogisticRegression(), reweigher)
        model.fit(X, Y, sensitive_features=SEX, sample_weight=WEIGHTS)
        factors = Reweigher().fit(X, Y, sensitive_features=SEX, sample_weight=counted).sample_weight_
        expected = LogisticRegression().fit(X, Y, sample_weight=factors * WEIGHTS)
        np.testing.assert_array_equal(model.estimator_.coef_, expected.coef_)


@pytest.mark.parametrize(
    "weights", [1e308, 1e-320, np.where(Y == 1, 1e-320, 1.0)], ids=["huge", "tiny", "both"]
)
@pytest.mark.parametrize(
    "intervention",
    [
        Reweigher(),
        UtilityAwareReweigher(prevalence_correction=1.0),
        RandomPrevalenceSampler(random_state=0),
        UtilityAwarePrevalenceSampler(random_state=0),
    ],
    ids=lambda own: type(own).__name__,
)
def test_weights_that_cannot_be_multiplied_are_refused(intervention, weights):
    given = np.broadcast_to(weights, N)
    message = (
        r"`sample_weight` must be 0 or between 1e-100 and 1e\+100 in every row, got (1e\+308|9.99989e-321): "
    )
    with pytest.raises(ValueError, match=message):
        intervention.fit(X, Y, sensitive_features=SEX, valuation=VALUES, sample_weight=given)
    labels, groups = Labels(Y.astype(np.int32), (0, 1), 1), read_problem(X, Y, SEX).groups
    with pytest.raises(ValueError, match=message):
        intervention.training_set(labels, groups, np.ones(N), given)
