"""The contract of interventions: values, groups, and fits that do not come to their end."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from fado import (
    InBagEntropy,
    LinearUtility,
    RandomPrevalenceSampler,
    ReweighedEstimator,
    Reweigher,
    UtilityAwareOverSampler,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
)
from fado.interventions import BaseIntervention, NoIntervention, TrainingSet
from fado.metrics._inputs import read_groups
from fado.tabular import Groups, Labels, read_problem
from fado.valuation import BaseValuator

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


def fit(user, sensitive_features, valuation=None):
    return user.fit(X, Y, sensitive_features=sensitive_features, valuation=valuation)


@pytest.mark.parametrize(
    "user", [*USERS, ReweighedEstimator(LogisticRegression(), UtilityAwareReweigher())], ids=str
)
@pytest.mark.parametrize(
    ("asked", "valued", "lacking"),
    [
        (pd.Series(OLD, name="old"), ["sex"], "old"),
        ({"old": OLD}, ["sex"], "old"),
        (pd.DataFrame({"old": OLD}), ["sex", "race"], "old"),
        ({"sex": SEX, "old": OLD}, ["sex"], "old"),
        ({"z": OLD, "sex": SEX}, ["sex"], "z"),
        ("b", ["sex"], "b"),
        ({"sex": SEX}, ["z"], "sex"),
        ({"z": SEX}, ["sex"], "z"),
    ],
    ids=["Series", "dict", "of two others", "one lacks", "z beside another", "column", "z", "of z"],
)
def test_values_of_another_attribute_are_refused(user, asked, valued, lacking):
    told = f"{', '.join(map(repr, valued))}, and none of the protected attribute '{lacking}'"
    with pytest.raises(ValueError, match=f"`valuation` has values of {told} .*pass the valuation of that"):
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


def test_values_made_on_the_way_fit_however_attributes_are_named():
    for asked in (SEX, {"sex": SEX}, pd.DataFrame({0: SEX, 1: OLD}), np.array([SEX, OLD], dtype=object).T):
        sampler = UtilityAwarePrevalenceSampler(valuator=InBagEntropy(n_jobs=1), random_state=0)
        assert len(fit(sampler, asked).sample_indices_) < N


@pytest.mark.parametrize("user", USERS, ids=str)
@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("utility", LinearUtility, r"must be an object, got the class LinearUtility: write"),
        ("utility", 0.5, r"must be a utility like LinearUtility\(alpha=0.5\)"),
        ("valuator", InBagEntropy, r"must be an object, got the class InBagEntropy: write"),
        ("valuator", "inbag", r"must be a valuator like OutOfBagEntropy\(\), got 'inbag'"),
    ],
)
def test_classes_and_texts_are_refused_before_rows_are_valued(user, name, setting, message, monkeypatch):
    monkeypatch.setattr("fado.interventions._base.OutOfBagEntropy", None)
    with pytest.raises(TypeError, match=f"^`{name}` {message}"):
        fit(clone(user).set_params(**{name: setting}), SEX)


def test_values_that_do_not_fit_the_rows_are_refused():
    values = of("sex").values
    values.loc[[3, 5], "y"] = np.nan
    for user in USERS:
        with pytest.raises(ValueError, match="`valuation` has 199 rows and X has 200: pass the valuation of"):
            fit(user, {"sex": SEX}, of("sex")[1:])
        with pytest.raises(ValueError, match=r"2 of 200 rows have no utility, .*no value .*first is row 3,"):
            fit(user, {"sex": SEX}, Valuation.from_values(values))
        with pytest.raises(TypeError, match="`valuation` must be a Valuation, got DataFrame: pass a val"):
            fit(user, {"sex": SEX}, values)
        with pytest.raises(ValueError, match=r"`utility` returned shape \(3,\) for 200 rows"):
            fit(clone(user).set_params(utility=lambda values: values["y"][:3]), {"sex": SEX}, of("sex"))


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


BIG = 2**53
POOLS = {
    "integers": [0, 1, 2, -7],
    "big integers": [BIG, BIG + 1, BIG + 2, -BIG - 1, 2**62 + 1, 2**62 + 2],
    "floats": [0.0, 0.5, 1.5, -2.25],
    "strings": ["a", "A", "a ", "", "NA", "nan", "None", "(missing)", "1"],
    "booleans": [True, False],
}


def as_list(entries, pool):
    return entries


def as_objects(entries, pool):
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


def as_nullable(entries, pool):
    dtype = {bool: "boolean", int: "Int64", float: "Float64", str: "string"}[type(pool[0])]
    return pd.Series(entries, dtype=dtype)


def as_categories(entries, pool):
    return pd.Series(pd.Categorical(entries, categories=pool[::-1]))  # some of which may have no rows


FORMS = [as_list, as_objects, as_nullable, as_categories]


@st.composite
def attributes(draw):
    """Draw attributes as users hand them over, and each row's entries."""
    n_rows = draw(st.integers(2, 25))
    given_, entries = {}, []
    for number in range(draw(st.integers(1, 3))):
        pool = POOLS[draw(st.sampled_from(sorted(POOLS)))]
        missing = [None] if draw(st.booleans()) else []
        own = draw(st.lists(st.sampled_from(pool + missing), min_size=n_rows, max_size=n_rows))
        given_[f"attribute {number}"] = draw(st.sampled_from(FORMS))(own, pool)
        entries.append(own)
    return given_, list(zip(*entries, strict=True))


def partition(keys):
    """Number groups by their first rows."""
    numbers = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


class Seen(BaseIntervention):
    """Keeps the groups that interventions are given as weights."""

    def _choose(self, labels, groups, utilities, sample_weight, generator):
        return TrainingSet(np.arange(len(groups.codes)), groups.codes.astype(float))


class Valued(BaseValuator):
    """Keeps the groups that valuators are given as values."""

    def _value(self, problem, validation, seed):
        return Valuation.from_values({"y": problem.groups.codes.astype(float)})


@settings(max_examples=300, deadline=None)
@given(attributes())
def test_values_weights_and_metrics_have_the_same_groups(drawn):
    sensitive_features, rows = drawn
    assume(all(any(entry is not None for entry in column) for column in zip(*rows, strict=True)))
    X, y = np.zeros((len(rows), 1)), np.arange(len(rows)) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of missing entries and empty cells
        told = {"sensitive_features": sensitive_features}
        by_weights = Seen().fit(X, y, **told).training_set_.weights
        by_values = Valued().fit(X, y, **told).valuation_["y"]
        groups = read_groups(sensitive_features, len(rows))
        factors = Reweigher().fit(X, y, **told).sample_weight_
    known = np.array([None not in row for row in rows])
    expected = partition([row if own else None for row, own in zip(rows, known, strict=True)])
    assert partition(by_weights) == partition(by_values) == partition(groups.codes) == expected
    assert len(groups) == len(set(expected))
    for number, factor in enumerate(factors):
        group, label = np.array(expected) == expected[number], (y == y[number]) & known
        kamiran = group.sum() * label.sum() / (known.sum() * (group & label).sum()) if known[number] else 1.0
        assert factor == pytest.approx(kamiran)


@pytest.mark.parametrize("weights", [None, np.tile([1.0, 2.0, 0.5, 1.0], 30)], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "intervention",
    [
        RandomPrevalenceSampler(random_state=0),
        UtilityAwarePrevalenceSampler(random_state=0, min_group_size=0),
        Reweigher(),
        UtilityAwareReweigher(prevalence_correction=1.0),
        UtilityAwareOverSampler(random_state=0),
        NoIntervention(share=0.5, random_state=0),
    ],
    ids=lambda own: type(own).__name__,
)
def test_a_group_without_rows_is_none(intervention, weights):
    labels = Labels(np.tile([0, 1, 0, 0, 1, 1], 20).astype(np.int32), (0, 1), 1)
    codes, utilities = np.repeat([0, 1], [70, 50]), np.linspace(0, 1, 120)
    two = Groups(codes, ("'a'", "'c'"), ("a", "c"))
    three = Groups(2 * codes, ("'a'", "'b'", "'c'"), ("a", "b", "c"))
    expected = intervention.training_set(labels, two, utilities, weights)
    assert intervention.training_set(labels, three, utilities, weights).digest() == expected.digest()


@pytest.mark.parametrize(
    ("share", "message"),
    [
        (1.5, r"`share` must be in \[0, 1\], got 1.5"),
        (-0.1, r"`share` must be in \[0, 1\], got -0.1"),
        (0, "`share` must be above 0: no row would be kept"),
        ("half", r"`share` must be a number in \[0, 1\], got 'half'"),
    ],
)
def test_a_share_that_is_none_is_refused(share, message):
    with pytest.raises(TypeError if share == "half" else ValueError, match=message):
        fit(NoIntervention(share), SEX)


DRAWN = np.random.default_rng(0)
FIRST = pd.DataFrame({"a": DRAWN.normal(size=60), "b": DRAWN.normal(size=60)})
SECOND = pd.DataFrame({"c": DRAWN.normal(size=80), "d": 0.0, "e": 1.0})
ENDS = [KeyboardInterrupt, ValueError, MemoryError]


def labels(X):
    return np.arange(len(X)) % 3 == 0, np.where(np.arange(len(X)) % 9 < 4, "f", "m")


class Stopping:
    """A class whose work ends in an error while `end` is set."""

    end = None

    def check(self):
        if self.end is not None:
            raise self.end("stop")


class Stopped(Stopping, BaseValuator):
    def _value(self, problem, validation, seed):
        self.check()
        values = np.linspace(0, 1, problem.n_rows)
        return Valuation.from_values({variable.name: values for variable in problem.variables})


class StoppedUtility(Stopping, LinearUtility):
    def __call__(self, valuation):
        self.check()
        return super().__call__(valuation)


class StoppedModel(Stopping, LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        self.coef_ = "half"
        self.check()
        return super().fit(X, y, sample_weight=sample_weight)


class StoppedChoice(Stopping, BaseIntervention):
    def _choose(self, labels, groups, utilities, sample_weight, generator):
        self.check()
        return TrainingSet(np.arange(3))


VALUED = {"valuator": Stopped()}
CORRECTED = {"floor": 0.1, "prevalence_correction": 1.0}
CASES = {
    "sampler's values": (UtilityAwarePrevalenceSampler(**VALUED), Stopped),
    "sampler's utility": (UtilityAwarePrevalenceSampler(StoppedUtility(), **VALUED), StoppedUtility),
    "reweigher's values": (UtilityAwareReweigher(**VALUED), Stopped),
    "reweigher's utility": (UtilityAwareReweigher(StoppedUtility(), **VALUED, **CORRECTED), StoppedUtility),
    "choice": (StoppedChoice(), StoppedChoice),
    "estimator": (ReweighedEstimator(StoppedModel(), Reweigher()), StoppedModel),
    "estimator's values": (ReweighedEstimator(StoppedModel(), UtilityAwareReweigher(**VALUED)), Stopped),
}


def fit_to(estimator, X):
    y, sex = labels(X)
    return estimator.fit(X, y, sensitive_features={"sex": sex})


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", CASES)
def test_a_fit_that_fails_leaves_what_was_there(name, end, monkeypatch):
    estimator, stopped = CASES[name]
    fresh = type(estimator)(**estimator.get_params(deep=False))
    fit_to(estimator, FIRST)
    before, unfitted = dict(vars(estimator)), dict(vars(fresh))
    with monkeypatch.context() as patched:
        patched.setattr(stopped, "end", end)
        for failing in (estimator, fresh):
            with pytest.raises(end, match="stop"):
                fit_to(failing, SECOND)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[attribute] is value for attribute, value in before.items())
    assert estimator.n_features_in_ == 2
    assert list(estimator.feature_names_in_) == ["a", "b"]
    assert vars(fresh) == unfitted
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)
    assert fit_to(estimator, SECOND).n_features_in_ == 3


@pytest.mark.parametrize(
    "estimator",
    [RandomPrevalenceSampler(), UtilityAwarePrevalenceSampler(valuator=Stopped()), Reweigher()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_bad_input_leaves_an_earlier_fit_whole(estimator):
    before = dict(vars(fit_to(estimator, FIRST)))
    y, sex = labels(SECOND)
    for bad in ({"y": y[1:]}, {"y": DRAWN.normal(size=80)}, {"sensitive_features": DRAWN.normal(size=80)}):
        with pytest.raises(ValueError, match=r"entries and X has|Unknown label type|too many for groups"):
            estimator.fit(**({"X": SECOND, "y": y, "sensitive_features": sex} | bad))
        assert all(vars(estimator)[attribute] is value for attribute, value in before.items())


def test_what_an_intervention_chooses_leaves_no_trace_on_it():
    sampler = RandomPrevalenceSampler(random_state=0)
    y, _ = labels(FIRST)
    chosen = fit_to(sampler, FIRST).training_set_
    fitted = dict(vars(sampler))
    problem = read_problem(SECOND, labels(SECOND)[0], {"sex": labels(SECOND)[1]})
    other = sampler.training_set(problem.labels, problem.groups)
    assert len(other.rows) != len(chosen.rows)
    assert vars(sampler) == fitted
    assert sampler.sampling_strategy_ == {False: int((~y[chosen.rows]).sum()), True: int(y.sum())}
