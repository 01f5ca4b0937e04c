"""Groups too small or too thin to decide over all others."""

import warnings
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from fado import (
    LinearUtility,
    RandomPrevalenceSampler,
    Reweigher,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
)
from fado.interventions import BaseIntervention, Entry, TrainingSet, intervention_entries

SAMPLERS = [RandomPrevalenceSampler, UtilityAwarePrevalenceSampler]


def table(**cells):
    """Give labels and groups: per group so many positives and negatives."""
    y = np.concatenate([[1] * p + [0] * n for p, n in cells.values()])
    z = np.repeat(list(cells), [p + n for p, n in cells.values()])
    return y, z


@contextmanager
def heard():
    """Gather what is warned of."""
    said = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    said += [str(one.message) for one in caught]


def fit(intervention, y, z, sample_weight=None):
    values = np.linspace(0, 1, len(y))
    return intervention.fit(
        np.zeros((len(y), 1)),
        y,
        sensitive_features=z,
        valuation=Valuation.from_values({"y": values, "z": values}),
        sample_weight=sample_weight,
    )


def lost(sampler, y, z):
    """Count by group the rows that went."""
    gone = np.ones(len(y), dtype=bool)
    gone[sampler.sample_indices_] = False
    assert not gone[y == 1].any()
    return {group: int(gone[z == group].sum()) for group in dict.fromkeys(z)}


# Rates 1/4 and 1/10: to match 1/4, b keeps 3 negatives per positive.
LARGE = {"a": (250, 750), "b": (100, 900)}


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize(
    ("small", "size"), [((1, 0), "1 row"), ((10, 0), "10 rows"), ((0, 19), "19 rows")], ids=str
)
def test_a_small_group_sets_no_rate_and_loses_nothing(kind, small, size):
    y, z = table(**LARGE, c=small)
    with heard() as said:
        sampler = fit(kind(random_state=0), y, z)
    assert said == [
        f"Group 'c' ({size}), with fewer than 30 rows and less than 1 % of the table, is not compared: "
        "all their rows are kept, and they count in no rate. `min_group_size=0` compares them too."
    ]
    assert lost(sampler, y, z) == {"a": 0, "b": 600, "c": 0}
    assert sampler.target_rate_ == 0.25
    assert sampler.sampling_strategy_ == {0: 1050 + small[1], 1: 350 + small[0]}


@pytest.mark.parametrize("kind", SAMPLERS)
def test_turned_off_every_group_counts(kind):
    y, z = table(**LARGE, c=(1, 0))
    with pytest.warns(UserWarning, match="No negatives in group 'c': the other groups lose theirs") as caught:
        sampler = fit(kind(random_state=0, min_group_size=0), y, z)
    assert len(caught) == 1
    assert lost(sampler, y, z) == {"a": 750, "b": 900, "c": 0}
    assert sampler.target_rate_ == 1


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize(("c", "kept"), [((2, 28), 6), ((2, 18), 6)], ids=["30 rows", "1 %"])
def test_a_group_is_small_only_by_number_and_by_share(kind, c, kept):
    large = {name: (p // 2, n // 2) for name, (p, n) in LARGE.items()} if sum(c) < 30 else LARGE
    y, z = table(**large, c=c)
    assert lost(fit(kind(), y, z), y, z)["c"] == c[1] - kept


@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_lone_group_beside_small_ones_keeps_every_row(kind):
    y, z = table(a=(100, 900), b=(5, 0), c=(0, 5))
    with heard() as said:
        sampler = fit(kind(), y, z)
    assert [one[:42] for one in said] == [
        "Groups 'b' (5 rows), 'c' (5 rows), with fe",
        "Only group 'a' is left to compare, so ther",
    ]
    assert len(sampler.sample_indices_) == len(y)
    assert np.isnan(sampler.target_rate_)


def test_a_table_of_small_groups_alone_stays_as_it_is():
    y, z = table(**{f"g{i}": (1 + i % 5, 14 - i % 5) for i in range(200)})
    corrected = UtilityAwareReweigher(floor=1, prevalence_correction=1)
    for intervention in (RandomPrevalenceSampler(), Reweigher(), corrected):
        with heard() as said:
            chosen = fit(intervention, y, z).training_set_
        assert [one[:36] for one in said] == [
            "Groups 'g0' (15 rows), 'g1' (15 rows",
            "No group is left to compare, so ther",
        ]
        assert chosen.rows.tolist() == list(range(3000))
        assert chosen.weights is None or (chosen.weights == 1).all()


@pytest.mark.parametrize("cells", [LARGE | {"c": (1, 0)}, {"f": (10, 30), "m": (20, 60)}], ids=str)
def test_nothing_is_said_where_nothing_is_matched(cells):
    y, z = table(**cells)
    assert len(fit(RandomPrevalenceSampler(strength=0), y, z).sample_indices_) == len(y)


# a has a rate of .1, b of .2, c of .9 in 4 % of the rows. To match .9, a keeps 48 / 9 = 5 and b 96 / 9 = 11
# negatives: 800 rows go. Half go where both keep 316 of them: up to 96 / (96 + 210.5), where b gives up one
# more.
THIN = {"a": (48, 432), "b": (96, 384), "c": (36, 4)}


@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_thin_group_cannot_take_more_than_half(kind):
    y, z = table(**THIN)
    with heard() as said:
        sampler = fit(kind(random_state=0), y, z)
    assert said == [
        "Group 'c' (40 rows), with less than 5 % of the rows, has the highest positive rate, 0.9: to match "
        "it, 800 of 1,000 rows would be dropped, more than half. The target rate is 0.313 instead, and 500 "
        "of 1,000 rows are dropped. Merge the group with another; `min_group_size=0` matches its rate in any "
        "case."
    ]
    assert lost(sampler, y, z) == {"a": 327, "b": 173, "c": 0}
    assert sampler.target_rate_ == pytest.approx(96 / 306.5, abs=1e-10)
    free = fit(kind(random_state=0, min_group_size=0), y, z)
    assert lost(free, y, z) == {"a": 427, "b": 373, "c": 0}
    assert free.target_rate_ == 0.9


def test_strength_moves_rates_to_the_capped_target():
    y, z = table(**THIN)
    with pytest.warns(UserWarning, match="The target rate is 0.463 instead, and 500 of 1,000 rows are"):
        half = fit(RandomPrevalenceSampler(strength=0.5), y, z)
    target = half.target_rate_
    for group, own, positives, negatives in (("a", 0.1, 48, 432), ("b", 0.2, 96, 384)):
        rate = (own + target) / 2
        assert lost(half, y, z)[group] == negatives - round(positives * (1 - rate) / rate)
    # At a tenth, a goes to .18 and keeps 219, b to .27 and keeps 260: fewer than half go, but by c's rate.
    with pytest.warns(
        UserWarning, match=r"337 of 1,000 rows are dropped; 44 of 1,000 rows would be dropped to match 0\.2,"
    ):
        tenth = fit(RandomPrevalenceSampler(strength=0.1), y, z)
    assert tenth.target_rate_ == 0.9


def test_a_thin_group_that_costs_a_tenth_of_the_rows_is_told_of():
    # To match c's .3, a keeps 112 and b 224: 480 rows go; to match b's .2, a keeps 192: 240.
    y, z = table(**(THIN | {"c": (12, 28)}))
    with pytest.warns(UserWarning, match=r"480 of 1,000 rows are .* 240 .* match 0\.2.*lower `strength`"):
        sampler = fit(RandomPrevalenceSampler(), y, z)
    assert lost(sampler, y, z) == {"a": 320, "b": 160, "c": 0}
    assert sampler.target_rate_ == 0.3
    # To match .225, a keeps 165 and b 331: 320 rows go, 80 more than without c, and nothing is said.
    y, z = table(**(THIN | {"c": (9, 31)}))
    assert lost(fit(RandomPrevalenceSampler(), y, z), y, z) == {"a": 267, "b": 53, "c": 0}


def test_what_thick_groups_cost_is_not_capped():
    # To match b's .5, a keeps 9 of 891 negatives: more than half of the rows, but b has 6 % of them.
    y, z = table(a=(9, 891), b=(30, 30), c=(36, 4))
    with pytest.warns(UserWarning, match=r"917 of 1,000 rows would .* 0\.5 instead, and 882 of 1,000"):
        sampler = fit(RandomPrevalenceSampler(), y, z)
    assert lost(sampler, y, z) == {"a": 882, "b": 0, "c": 0}
    assert sampler.target_rate_ == 0.5
    y, z = table(a=(9, 891), b=(100, 0))
    with pytest.warns(UserWarning, match="No negatives in group 'b'"):
        assert lost(fit(RandomPrevalenceSampler(), y, z), y, z) == {"a": 891, "b": 0}


def test_among_thin_groups_alone_half_is_all_that_goes():
    # 24 groups of rate .1 lose 36 - k negatives each: 20, as 24 * 21 are more than half; k is 16 to 4 / 19.5.
    y, z = table(**{f"g{i}": (4, 36) for i in range(24)}, high=(36, 4))
    with pytest.warns(UserWarning, match="Group 'high' .* 864 of 1,000 .* and 480 of 1,000 rows are"):
        sampler = fit(RandomPrevalenceSampler(), y, z)
    assert set(lost(sampler, y, z).values()) == {0, 20}
    assert sampler.target_rate_ == pytest.approx(4 / 19.5, abs=1e-10)


def test_a_thick_group_without_positives_is_no_bar():
    y, z = table(none=(0, 500), **{f"g{i}": (4, 36) for i in range(24)}, high=(36, 4))
    with heard() as said:
        sampler = fit(RandomPrevalenceSampler(), y, z)
    assert ["No positives in group 'none'" in one for one in said] == [True, False]
    assert set(lost(sampler, y, z).values()) == {0, 31}  # 24 * 31 are 744 of 1,500 rows


def test_groups_without_a_label_are_told_of_once_and_only_if_compared():
    y, z = table(**THIN, none=(0, 9), only=(9, 0))
    with heard() as said:
        fit(RandomPrevalenceSampler(), y, z)
    assert [one[:33] for one in said] == [
        "Groups 'none' (9 rows), 'only' (9",
        "Group 'c' (40 rows), with less th",
    ]
    with heard() as said:
        fit(RandomPrevalenceSampler(), *table(**(THIN | {"c": (40, 0)})))
    assert len(said) == 1
    assert "816 of 1,000 rows would be dropped" in said[0]
    y, z = table(**LARGE, c=(3, 2))
    y[-1] = 2  # a label of a small group alone
    with heard() as said:
        fit(Reweigher(), y, z)
    assert len(said) == 1


def test_with_weights_shares_and_the_half_are_of_the_weight():
    y, z = table(**THIN)
    with pytest.warns(UserWarning, match="80 % of the weight would.*0.313 instead, and 50 % of the weight"):
        sampler = fit(RandomPrevalenceSampler(), y, z, sample_weight=np.full(1000, 3.0))
    assert lost(sampler, y, z) == {"a": 327, "b": 173, "c": 0}
    assert sampler.target_rate_ == pytest.approx(144 / 460)  # 480 * 2 - 144 / rate = 500
    heavy = np.where(z == "c", 2.0, 1.0)  # 80 of 1,040, and thin no more
    assert fit(RandomPrevalenceSampler(), y, z, sample_weight=heavy).target_rate_ == pytest.approx(0.9)


def test_the_target_rate():
    y, z = table(a=(1, 1), b=(1, 4))
    assert fit(RandomPrevalenceSampler(), y, z).target_rate_ == 0.5
    with pytest.warns(UserWarning, match="only one group"):
        assert np.isnan(fit(RandomPrevalenceSampler(), y, ["a"] * 7).target_rate_)


def kept_by(cells, strength, rate):
    """Give how many negatives of each group stay, by the paper's rule."""
    kept = []
    for p, n in cells:
        own = Fraction(p, p + n)
        target = own + strength * (rate - own)
        kept.append(min(n, round(p * (1 - target) / target)) if p and target else n)
    return kept


def most_that_may_go(cells, strength):
    """Find by trial of every rate at which a group gives up a row how many rows may go."""
    n_rows = sum(map(sum, cells))
    rates = [Fraction(p, p + n) for p, n in cells]
    thick = [rate for rate, cell in zip(rates, cells, strict=True) if 20 * sum(cell) >= n_rows]

    def going(rate):
        return sum(n for _, n in cells) - sum(kept_by(cells, strength, rate))

    tried = {max(rates)}
    for (p, n), own in zip(cells, rates, strict=True):
        for k in range(n):
            at = Fraction(2 * p, 2 * p + 2 * k + 1)  # where p (1 - rate) / rate is k + 1/2
            reached = own + (at - own) / strength
            # Not at the rate itself, where of two groups that give up a row one may and the other may not.
            tried |= {reached - Fraction(1, 10**9), reached + Fraction(1, 10**9)}
    possible = [going(rate) for rate in tried if min(rates) <= rate <= max(rates)]
    capped = max([count for count in possible if 2 * count <= n_rows], default=0)
    return max(capped, going(max(thick))) if thick else capped


@example([(8, 36), (4, 2), (7, 24)], [(1, 1), (2, 0), (3, 0), (2, 0)], Fraction(1, 2))
@settings(max_examples=60, deadline=None)
@given(
    large=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 60)), min_size=1, max_size=3),
    thin=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=4),
    strength=st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 8)]),
)
def test_a_sampler_drops_as_much_as_it_may_and_no_more(large, thin, strength):
    cells = large + thin
    y, z = table(**{f"g{i}": cell for i, cell in enumerate(cells)})
    assume(all(100 * sum(cell) >= len(y) for cell in cells))  # small ones are another matter
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = fit(RandomPrevalenceSampler(strength=float(strength)), y, z)
        free = fit(RandomPrevalenceSampler(strength=float(strength), min_group_size=0), y, z)
    assert len(y) - len(sampler.sample_indices_) == most_that_may_go(cells, strength)
    papers = kept_by(cells, strength, max(Fraction(p, p + n) for p, n in cells))
    assert list(lost(free, y, z).values()) == [n - k for (_, n), k in zip(cells, papers, strict=True)]


@pytest.mark.parametrize("weighted", [False, True])
def test_small_groups_weigh_one_and_do_not_count(weighted):
    y, z = table(**LARGE, c=(3, 2))
    others, counted = z != "c", np.linspace(1, 2, len(y)) if weighted else None
    alone = fit(Reweigher(), y[others], z[others], counted[others] if weighted else None).sample_weight_
    family = UtilityAwareReweigher(floor=1, prevalence_correction=1, normalize=not weighted)  # holds RW
    for reweigher, close in ((Reweigher(), 0), (family, 1e-12)):
        with heard() as said:
            weights = fit(reweigher, y, z, counted).sample_weight_
        assert said == [
            "Group 'c' (5 rows), with fewer than 30 rows and less than 1 % of the table, is not compared: "
            "their rows get the factor 1, and they count in no rate. `min_group_size=0` compares them too."
        ]
        np.testing.assert_allclose(weights, np.r_[alone, np.ones(5)], rtol=close)
    if not weighted:
        assert weights[0] == pytest.approx(1000 * 350 / (2000 * 250))
        everyone = fit(Reweigher(min_group_size=0), y, z).sample_weight_
        assert everyone[-1] == pytest.approx(5 * 1652 / (2005 * 2))


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_small_groups_keep_the_weight_of_their_utility(power):
    y, z = table(**LARGE, c=(3, 2))
    settings = {"utility": LinearUtility(0.5), "floor": 0.2, "normalize": False}
    plain = fit(UtilityAwareReweigher(**settings), y, z).sample_weight_  # which says nothing of groups
    with pytest.warns(UserWarning, match="Group 'c'.*their rows get the factor 1"):
        corrected = fit(UtilityAwareReweigher(**settings, prevalence_correction=power), y, z).sample_weight_
    others = z != "c"
    np.testing.assert_allclose(corrected[~others], plain[~others], rtol=1e-15)
    total = plain[others].sum()
    for group in "ab":
        for label in (0, 1):
            cell = (z == group) & (y == label)
            expected = plain[z == group].sum() * plain[others & (y == label)].sum() / total
            factor = (expected / plain[cell].sum()) ** power
            np.testing.assert_allclose(corrected[cell], plain[cell] * factor, rtol=1e-12)


def test_groups_that_weigh_nothing_beside_a_small_one_that_does():
    y, z = table(**LARGE, c=(3, 2))
    values = Valuation.from_values({"y": (z == "c").astype(float)})
    reweigher = UtilityAwareReweigher(LinearUtility(1), prevalence_correction=1, normalize=False)
    with heard() as said:
        reweigher.fit(np.zeros((len(y), 1)), y, sensitive_features=z, valuation=values)
    assert [one[:38] for one in said] == [
        "Group 'c' (5 rows), with fewer than 30",
        "All rows with label 0 in group 'a', 'b",
        "All rows with label 1 in group 'a', 'b",
    ]
    np.testing.assert_array_equal(reweigher.sample_weight_, z == "c")


@pytest.mark.parametrize(
    "kind", [*SAMPLERS, Reweigher, UtilityAwareReweigher], ids=lambda kind: kind.__name__
)
@pytest.mark.parametrize(
    ("size", "error", "message"),
    [
        (-1, ValueError, "`min_group_size` must be at least 0, got -1"),
        (2.5, TypeError, "`min_group_size` must be a whole number, got 2.5"),
        (True, TypeError, "`min_group_size` must be a whole number, got True"),
    ],
)
def test_what_is_no_number_of_rows_is_refused(kind, size, error, message):
    y, z = table(a=(1, 1), b=(1, 4))
    with pytest.raises(error, match=message):
        fit(kind(min_group_size=size), y, z)


def test_groups_of_several_attributes_are_named():
    frame = pd.DataFrame({"sex": ["f", "m"] * 1000 + ["m"] * 3, "old": [False] * 2000 + [True] * 3})
    y = np.r_[np.resize([1, 0, 0], 2000), [1, 1, 1]]
    with pytest.warns(UserWarning, match=r"Group sex='m', old=True \(3 rows\)"):
        RandomPrevalenceSampler().fit(np.zeros((2003, 1)), y, sensitive_features=frame)


def test_registered_interventions_are_made_with_it_if_they_have_it():
    made = {entry.key: entry.make(random_state=0, min_group_size=7) for entry in intervention_entries()}
    for key in ("rps", "rw", "uaps", "uar", "corrected_uar"):
        assert made[key].min_group_size == 7
    assert not hasattr(made["none"], "min_group_size")
    assert {entry.make().get_params().get("min_group_size", 30) for entry in intervention_entries()} == {30}
    assert not any(own.name == "min_group_size" for entry in intervention_entries() for own in entry.settings)


def test_an_intervention_without_it_is_made_all_the_same():
    class AsItWas(BaseIntervention):
        def _choose(self, labels, groups, utilities, sample_weight, generator):
            return TrainingSet(np.arange(len(labels.codes)))

    made = Entry("as it was", "as_it_was", AsItWas).make(random_state=0, min_group_size=7)
    assert isinstance(made, AsItWas)


# --- what was asked for and changes nothing says so


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    ("cells", "strength"), [({"f": (10, 30), "m": (20, 60)}, 1.0), ({"f": (10, 30), "m": (10, 33)}, 0.1)]
)
def test_a_sampler_that_drops_nothing_says_so(sampler, cells, strength):
    y, z = table(**cells)
    told = r"^The groups' positive rates are equal, or too close .*: every row is kept"
    with pytest.warns(UserWarning, match=told):
        assert len(fit(sampler(strength=strength, random_state=0), y, z).sample_indices_) == len(y)


def test_a_reweigher_that_weighs_all_rows_alike_says_so():
    told = "^The groups already have equal shares of each label: all weights are"
    with pytest.warns(UserWarning, match=told):
        weights = fit(Reweigher(), *table(f=(10, 30), m=(20, 60))).sample_weight_
    np.testing.assert_allclose(weights, 1)
