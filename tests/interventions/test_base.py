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


def test_rows_without_a_value_are_counted():
    values = of("sex").values
    values.loc[[3, 5], "y"] = np.nan
    with pytest.raises(ValueError, match=r"2 of 200 rows have no utility, .*no value .*first is row 3,"):
        fit(UtilityAwareReweigher(), {"sex": SEX}, Valuation.from_values(values))
    with pytest.raises(TypeError, match="`valuation` must be a Valuation, got DataFrame: pass a valuator's"):
        fit(UtilityAwareReweigher(), {"sex": SEX}, values)


def test_a_function_that_gives_no_number_per_row_is_told_of_as_such():
    sampler = UtilityAwarePrevalenceSampler(lambda values: values["y"][:3])
    with pytest.raises(ValueError, match=r"`utility` returned shape \(3,\) for 200 rows"):
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
    ("share", "error", "message"),
    [
        (1.5, ValueError, r"`share` must be in \[0, 1\], got 1.5"),
        (-0.1, ValueError, r"`share` must be in \[0, 1\], got -0.1"),
        (0, ValueError, "`share` must be above 0: no row would be kept"),
        ("half", TypeError, r"`share` must be a number in \[0, 1\], got 'half'"),
    ],
)
def test_a_share_that_is_none_is_refused(share, error, message):
    with pytest.raises(error, match=message):
        NoIntervention(share).fit(np.zeros((4, 1)), [0, 1, 0, 1], sensitive_features=list("abab"))


DRAWN = np.random.default_rng(0)
FIRST = pd.DataFrame({"a": DRAWN.normal(size=60), "b": DRAWN.normal(size=60)})
SECOND = pd.DataFrame({"c": DRAWN.normal(size=80), "d": 0.0, "e": 1.0})
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


def fit_to(estimator, X):
    y, sex = labels(X)
    return estimator.fit(X, y, sensitive_features={"sex": sex})


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", CASES)
def test_an_earlier_fit_stays_whole(name, end, monkeypatch):
    estimator, stopped = CASES[name]
    before = dict(vars(fit_to(estimator, FIRST)))
    monkeypatch.setattr(stopped, "end", end)
    with pytest.raises(end, match="stop"):
        fit_to(estimator, SECOND)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[attribute] is value for attribute, value in before.items())
    assert estimator.n_features_in_ == 2
    assert list(estimator.feature_names_in_) == ["a", "b"]
    monkeypatch.setattr(stopped, "end", None)
    assert fit_to(estimator, SECOND).n_features_in_ == 3


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", CASES)
def test_a_first_fit_that_fails_leaves_nothing(name, end, monkeypatch):
    estimator, stopped = CASES[name]
    estimator = type(estimator)(**estimator.get_params(deep=False))
    before = dict(vars(estimator))
    monkeypatch.setattr(stopped, "end", end)
    with pytest.raises(end, match="stop"):
        fit_to(estimator, SECOND)
    assert vars(estimator) == before
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


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
