"""A fit that does not come to its end leaves what an earlier one has learnt, whole."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from fado import (
    LinearUtility,
    RandomPrevalenceSampler,
    ReweighedEstimator,
    Reweigher,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
)
from fado.interventions import BaseIntervention, TrainingSet
from fado.tabular import read_problem
from fado.valuation import BaseValuator

RNG = np.random.default_rng(0)
FIRST = pd.DataFrame({"a": RNG.normal(size=60), "b": RNG.normal(size=60)})
SECOND = pd.DataFrame({"c": RNG.normal(size=80), "d": 0.0, "e": 1.0})
ENDS = [KeyboardInterrupt, ValueError, MemoryError]


def labels(X):
    return np.arange(len(X)) % 3 == 0, np.where(np.arange(len(X)) % 9 < 4, "f", "m")


class Stopped(BaseValuator):
    """Values rows, unless it is told to end otherwise."""

    end = None

    def _value(self, problem, validation, seed):
        if self.end is not None:
            raise self.end("stop")
        values = np.linspace(0, 1, problem.n_rows)
        return Valuation.from_values({variable.name: values for variable in problem.variables})


class StoppedUtility(LinearUtility):
    end = None

    def __call__(self, valuation):
        if self.end is not None:
            raise self.end("stop")
        return super().__call__(valuation)


class StoppedModel(LogisticRegression):
    end = None

    def fit(self, X, y, sample_weight=None):
        if self.end is not None:
            self.coef_ = "half"
            raise self.end("stop")
        return super().fit(X, y, sample_weight=sample_weight)


class StoppedChoice(BaseIntervention):
    end = None

    def _choose(self, labels, groups, utilities, sample_weight, generator):
        if self.end is not None:
            raise self.end("stop")
        return TrainingSet(np.arange(3))


CASES = {
    "sampler's values": (UtilityAwarePrevalenceSampler(valuator=Stopped()), Stopped),
    "sampler's utility": (
        UtilityAwarePrevalenceSampler(StoppedUtility(), valuator=Stopped()),
        StoppedUtility,
    ),
    "reweigher's values": (UtilityAwareReweigher(valuator=Stopped()), Stopped),
    "reweigher's utility": (
        UtilityAwareReweigher(StoppedUtility(), valuator=Stopped(), floor=0.1, prevalence_correction=1.0),
        StoppedUtility,
    ),
    "choice": (StoppedChoice(), StoppedChoice),
    "estimator": (ReweighedEstimator(StoppedModel(), Reweigher()), StoppedModel),
    "estimator's values": (
        ReweighedEstimator(StoppedModel(), UtilityAwareReweigher(valuator=Stopped())),
        Stopped,
    ),
}


def fit(estimator, X):
    y, sex = labels(X)
    return estimator.fit(X, y, sensitive_features={"sex": sex})


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", CASES)
def test_an_earlier_fit_stays_whole(name, end, monkeypatch):
    estimator, stopped = CASES[name]
    before = dict(vars(fit(estimator, FIRST)))
    monkeypatch.setattr(stopped, "end", end)
    with pytest.raises(end, match="stop"):
        fit(estimator, SECOND)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[attribute] is value for attribute, value in before.items())
    assert estimator.n_features_in_ == 2
    assert list(estimator.feature_names_in_) == ["a", "b"]
    monkeypatch.setattr(stopped, "end", None)
    assert fit(estimator, SECOND).n_features_in_ == 3


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", CASES)
def test_a_first_fit_that_fails_leaves_nothing(name, end, monkeypatch):
    estimator, stopped = CASES[name]
    estimator = type(estimator)(**estimator.get_params(deep=False))
    before = dict(vars(estimator))
    monkeypatch.setattr(stopped, "end", end)
    with pytest.raises(end, match="stop"):
        fit(estimator, SECOND)
    assert vars(estimator) == before
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


@pytest.mark.parametrize(
    "estimator",
    [RandomPrevalenceSampler(), UtilityAwarePrevalenceSampler(valuator=Stopped()), Reweigher()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_bad_input_leaves_an_earlier_fit_whole(estimator):
    before = dict(vars(fit(estimator, FIRST)))
    y, sex = labels(SECOND)
    for bad in ({"y": y[1:]}, {"y": RNG.normal(size=80)}, {"sensitive_features": RNG.normal(size=80)}):
        with pytest.raises(ValueError, match=r"entries and X has|Unknown label type|too many for groups"):
            estimator.fit(**({"X": SECOND, "y": y, "sensitive_features": sex} | bad))
        assert all(vars(estimator)[attribute] is value for attribute, value in before.items())


def test_what_an_intervention_chooses_leaves_no_trace_on_it():
    sampler = RandomPrevalenceSampler(random_state=0)
    y, _ = labels(FIRST)
    chosen = fit(sampler, FIRST).training_set_
    fitted = dict(vars(sampler))
    problem = read_problem(SECOND, labels(SECOND)[0], {"sex": labels(SECOND)[1]})
    other = sampler.training_set(problem.labels, problem.groups)
    assert len(other.rows) != len(chosen.rows)
    assert vars(sampler) == fitted
    assert sampler.sampling_strategy_ == {False: int((~y[chosen.rows]).sum()), True: int(y.sum())}
