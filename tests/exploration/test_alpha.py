import warnings

import numpy as np
import pytest

from fado import (
    CobbDouglasUtility,
    DifferenceUtility,
    LinearUtility,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    explore,
)

KINDS = {"linear": LinearUtility, "difference": DifferenceUtility, "cobb-douglas": CobbDouglasUtility}
STEPS = [0, 3, 10, 17, 20]


@pytest.fixture(scope="module")
def summary(small):
    return explore(
        small.X, small.y, sensitive_features=small.z, valuation=small.valuation, retrain=0
    ).to_dict()


def scene(small, summary, which):
    """Give the part of the summary, its protected attributes, and the group of every row."""
    if which == "together":
        groups = "sex = " + small.z["sex"] + ", origin = " + small.z["origin"]
        return summary["together"], small.z, groups.to_numpy()
    part = next(one for one in summary["attributes"] if one["name"] == which)["alpha"]
    return part, {which: small.z[which]}, small.z[which].to_numpy()


@pytest.mark.parametrize("which", ["sex", "origin", "together"])
@pytest.mark.parametrize("utility", KINDS)
@pytest.mark.parametrize("step", STEPS)
def test_every_setting_equals_the_library(small, summary, which, utility, step):
    part, protected, groups = scene(small, summary, which)
    alpha = step / 20
    betas = {name: (1 - alpha) / len(protected) for name in protected}
    kind = KINDS[utility](alpha=alpha, betas=betas)
    utilities = kind(small.valuation)
    found = part["utilities"][utility]["settings"][step]
    assert part["alphas"][step] == alpha
    low = part["utilities"][utility]["low"]
    edges = np.linspace(low, 1, 21) - 1e-9
    edges[[0, -1]] = -1.1, 1.1

    sampler = UtilityAwarePrevalenceSampler(kind, random_state=0)
    with warnings.catch_warnings():  # some combinations have no positives
        warnings.simplefilter("ignore")
        sampler.fit(small.X, small.y, sensitive_features=protected, valuation=small.valuation)
    dropped = ~np.isin(np.arange(600), sampler.sample_indices_)
    weights = (
        UtilityAwareReweigher(kind)
        .fit(small.X, small.y, sensitive_features=protected, valuation=small.valuation)
        .sample_weight_
    )
    positive = (small.y == "yes").to_numpy()
    v_z = np.mean([small.valuation[name] for name in protected], axis=0)
    for i, group in enumerate(part["groups"]):
        rows = groups == group
        if group.startswith("("):
            rows = ~np.isin(groups, part["groups"])
        assert part["rows"][i] == rows.sum()
        assert found["histogram"][i] == np.histogram(utilities[rows], edges)[0].tolist()
        gone = rows & dropped
        assert part["sampling"]["dropped"][i] == gone.sum()
        assert part["sampling"]["kept"][i] == (rows & ~dropped).sum()
        assert found["weights"]["share_per_group"][i] == pytest.approx(weights[rows].sum() / weights.sum())
        assert found["dropped"]["histogram"][i] == np.histogram(utilities[gone], edges)[0].tolist()
        if i == part["small"]:  # counted, and not compared
            compared = (found["mean"], found["weights"]["outcome_per_group"], part["outcome_before"])
            rates = (part["sampling"]["rate_before"], part["sampling"]["rate_after"])
            assert all(numbers[i] is None for numbers in (*compared, *rates))
            continue
        assert found["mean"][i] == pytest.approx(utilities[rows].mean())
        assert part["sampling"]["rate_before"][i] == pytest.approx(positive[rows].mean())
        assert part["sampling"]["rate_after"][i] == pytest.approx(positive[rows & ~dropped].mean())
        if gone.any():
            assert found["dropped"]["mean_v_y"][i] == pytest.approx(small.valuation["y"][gone].mean())
            assert found["dropped"]["mean_v_z"][i] == pytest.approx(v_z[gone].mean())
        else:
            assert found["dropped"]["mean_v_y"][i] is None
        assert found["weights"]["outcome_per_group"][i] == pytest.approx(
            np.average(positive[rows], weights=weights[rows])
        )
    assert found["weights"]["effective_rows"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert found["weights"]["largest"] == pytest.approx(weights.max())


def test_one_attribute_has_no_together(small):
    seen = explore(
        small.X, small.y, sensitive_features={"sex": small.z["sex"]}, valuation=small.valuation, retrain=0
    )
    assert seen.to_dict()["together"] is None


def test_slices_are_ranked_by_what_the_utility_says(planted):
    seen = explore(planted.X, planted.y, sensitive_features=planted.z, valuation=planted.valuation, retrain=0)
    part = seen.to_dict()["attributes"][0]["alpha"]
    frame = planted.X
    for utility, kind in KINDS.items():
        for step in (0, 10, 20):
            utilities = kind(alpha=step / 20)(planted.valuation)
            ranked = part["utilities"][utility]["settings"][step]["slices"]
            assert ranked["highest"]
            assert ranked["lowest"]
            for key in ("highest", "lowest"):
                means = [mean for _, mean in ranked[key]]
                assert means == sorted(means, reverse=key == "highest")
                for number, mean in ranked[key]:
                    rows = rows_where(frame, part["slices"][number]["conditions"])
                    assert part["slices"][number]["rows"] == rows.sum()
                    assert mean == pytest.approx(utilities[rows].mean())


def test_dropped_slices_say_which_share_of_the_droppable_rows_goes(planted):
    seen = explore(planted.X, planted.y, sensitive_features=planted.z, valuation=planted.valuation, retrain=0)
    part = seen.to_dict()["attributes"][0]["alpha"]
    sampler = UtilityAwarePrevalenceSampler(LinearUtility(0.5), random_state=0)
    sampler.fit(planted.X, planted.y, sensitive_features=planted.z, valuation=planted.valuation)
    dropped = ~np.isin(np.arange(len(planted.y)), sampler.sample_indices_)
    losing = np.isin(planted.sex, np.unique(planted.sex[dropped]))
    droppable = losing & ~planted.y
    ranked = part["utilities"]["linear"]["settings"][10]["slices"]["dropped"]
    assert ranked
    for number, share in ranked:
        rows = rows_where(planted.X, part["slices"][number]["conditions"])
        assert share == pytest.approx(dropped[rows & droppable].mean())


def rows_where(frame, conditions):
    rows = np.ones(len(frame), dtype=bool)
    for condition in conditions:
        for symbol, compare in ((" ≤ ", np.less_equal), (" > ", np.greater), (" = ", np.equal)):
            if symbol in condition:
                column, value = condition.split(symbol)
                there = frame[column].to_numpy()
                if there.dtype.kind == "f":  # a cut is shown with six digits
                    value = there[np.argmin(np.abs(there - float(value)))]
                rows &= compare(there, value)
                break
    return rows


def test_without_a_positive_label_there_is_no_sampling(small):
    y = small.X["kids"].map({0: "none", 1: "some", 2: "some", 3: "many"})
    part = explore(small.X, y, sensitive_features=small.z, valuation=small.valuation, retrain=0).to_dict()
    assert part["attributes"][0]["alpha"]["sampling"] is None
    assert part["attributes"][0]["alpha"]["outcome_before"] is None
    named = explore(
        small.X, y, sensitive_features=small.z, valuation=small.valuation, pos_label="many", retrain=0
    )
    rates = (y == "many").groupby(small.z["sex"]).mean()
    sampling = named.to_dict()["attributes"][0]["alpha"]["sampling"]
    assert sampling["rate_before"] == pytest.approx([rates["f"], rates["m"]])


def test_a_continuous_target_has_weighted_means(small):
    y = small.X["age"] * 1.5
    part = explore(small.X, y, sensitive_features=small.z, valuation=small.valuation, retrain=0).to_dict()
    alpha = part["attributes"][0]["alpha"]
    assert alpha["sampling"] is None
    weights = (
        UtilityAwareReweigher(LinearUtility(alpha=0.5, betas={"sex": 0.5}))
        .fit(small.X, y, sensitive_features=small.z, valuation=small.valuation)
        .sample_weight_
    )
    women = (small.z["sex"] == "f").to_numpy()
    found = alpha["utilities"]["linear"]["settings"][10]["weights"]["outcome_per_group"][0]
    assert found == pytest.approx(np.average(y[women], weights=weights[women]))
