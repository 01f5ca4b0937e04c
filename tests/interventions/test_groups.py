"""Values, weights and metrics agree on what a group is."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fado import (
    RandomPrevalenceSampler,
    Reweigher,
    UtilityAwareOverSampler,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
)
from fado.interventions import BaseIntervention, NoIntervention, TrainingSet
from fado.metrics._inputs import read_groups
from fado.tabular import Groups, Labels
from fado.valuation import BaseValuator, Valuation

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
    X, y = np.zeros((len(rows), 1)), np.arange(len(rows)) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of missing entries and empty cells
        told = {"sensitive_features": sensitive_features}
        by_weights = Seen().fit(X, y, **told).training_set_.weights
        by_values = Valued().fit(X, y, **told).valuation_["y"]
        groups = read_groups(sensitive_features, len(rows))
        factors = Reweigher().fit(X, y, **told).sample_weight_
    expected = partition(rows)
    assert partition(by_weights) == partition(by_values) == partition(groups.codes) == expected
    assert len(groups) == len(set(expected))
    for number, factor in enumerate(factors):
        group, label = np.array(expected) == expected[number], y == y[number]
        assert factor == pytest.approx(group.sum() * label.sum() / (len(y) * (group & label).sum()))


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
