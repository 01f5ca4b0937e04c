"""Distributions, the plane and its cuts, and the slider."""

import warnings

import numpy as np
import pandas as pd
import pytest
from tests.exploration.conftest import Case

from fado import (
    CobbDouglasUtility,
    DifferenceUtility,
    LinearUtility,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
)
from fado.valuation import Provenance


@pytest.fixture(scope="module")
def sex(seen_small):
    return seen_small.to_dict()["attributes"][0]


@pytest.mark.parametrize(("key", "variable"), [("v_y", "y"), ("v_z", "sex")])
def test_distributions_per_group_and_label(small, sex, key, variable):
    cells = {(cell["group"], cell["label"]): cell for cell in sex["values"][key]}
    assert set(cells) == {(g, label) for g in "fm" for label in ("no", "yes")}
    for (group, label), cell in cells.items():
        rows = ((small.z["sex"] == group) & (small.y == label)).to_numpy()
        values = small.valuation[variable][rows]
        assert cell["rows"] == rows.sum()
        edges = np.arange(21) / 20 - 1e-9
        edges[-1] = 1.1
        assert cell["histogram"] == np.histogram(values, edges)[0].tolist()
        assert cell["quartiles"] == pytest.approx(np.quantile(values, [0.25, 0.5, 0.75]))
        assert cell["mean"] == pytest.approx(values.mean())
        assert cell["standard_error"] == pytest.approx(small.valuation.standard_error[variable][rows].mean())


def test_plane_counts_every_row_once(small, sex):
    counts = np.array(sex["plane"]["counts"])
    assert counts.sum() == 600
    v_y, v_z = small.valuation["y"], small.valuation["sex"]
    here = (v_y > 0.2499) & (v_y < 0.2999) & (v_z > 0.7499) & (v_z < 0.7999)
    assert counts[15, 5] == here.sum()


def half_entropy(share):
    return -(share * np.log2(share) + (1 - share) * np.log2(1 - share)) / 2


def test_corners(small, sex):
    v_y, v_z = small.valuation["y"], small.valuation["sex"]
    cut_y, cut_z = half_entropy((small.y == "yes").mean()), half_entropy((small.z["sex"] == "f").mean())
    corners = {(c["unsure_of_target"], c["unsure_of_attribute"]): c for c in sex["plane"]["corners"]}
    assert sum(corner["share"] for corner in corners.values()) == pytest.approx(1)
    for (unsure_y, unsure_z), corner in corners.items():
        rows = ((v_y >= cut_y) == unsure_y) & ((v_z >= cut_z) == unsure_z)
        assert corner["share"] == pytest.approx(rows.mean())
        groups = [rows[small.z["sex"] == group].mean() for group in "fm"]
        assert corner["share_per_group"] == pytest.approx(groups)
        assert corner["positive_rate"] == pytest.approx((small.y[rows] == "yes").mean())


def test_cells_under_ten_rows_are_left_out(small):
    y, women = small.y.copy(), small.z["sex"] == "f"
    y[women] = "no"
    y[np.flatnonzero(women)[:9]] = "yes"
    cells = small._replace(y=y).part()["values"]["v_y"]
    assert [(c["group"], c["label"]) for c in cells] == [("f", "no"), ("m", "no"), ("m", "yes")]


RANKS = "Rank correlation with values of another run (1: the same order of rows)"


def test_whether_another_run_would_rank_rows_alike_is_estimated_per_group(small, seen_small):
    found = seen_small.to_dict()["stability"]
    frame = small.valuation.stability(sensitive_features=small.z)  # "origin" has a group of ten rows and more
    assert found["rows"] == frame.to_dict("records")
    least = frame.loc[frame["rank_agreement"].idxmin()]
    column = {"y": "loan"}.get(least["column"], least["column"])
    where = "" if least["group"] == "all rows" else f" in “{least['group']}”"
    assert found["sentence"].startswith(f"{RANKS}: loan ")
    assert found["sentence"].endswith(
        f" Lowest: {least['rank_agreement']:.3g}, {column}{where}, with other bags."
    )
    assert found["changes"] == {"bags": "another run of as many fits, estimated from the standard errors"}


def test_a_frame_of_stability_is_shown_as_it_was_measured(small):
    columns = ["column", "variation", "group", "rows", "rank_agreement", "top_overlap"]
    evil = "</script><script>alert(1)</script>"
    rows = [
        ("y", "seeds", "all rows", 600, 0.5, 0.25),
        ("sex", "bags", evil, 180, 0.125, 0.5),
        ("sex", "bags", "tiny", 9, 0.9, 0.5),
        ("other", "seeds", "all rows", 600, 0.1, 0.1),
    ]
    frame = pd.DataFrame(rows, columns=columns)
    frame.attrs = {"changes": {"seeds": "random_state=1"}, "notes": ["A note."]}
    seen = small._replace(z={"sex": small.z["sex"]}).seen(stability=frame)
    assert seen.to_dict()["stability"] == {
        "sentence": f"{RANKS}: loan 0.5. Lowest: 0.125, sex in “{evil}”, with other bags.",
        "rows": [dict(zip(columns, row, strict=True)) for row in rows[:2]],
        "changes": {"seeds": "random_state=1"},
        "notes": ["A note."],
    }
    assert "<script>alert" not in seen.html()
    assert "tiny" not in seen.html().split('id="data"')[1]


def test_where_standard_errors_tell_nothing_the_page_says_so_and_names_no_tiny_group(small):
    z = {"town": np.where(np.arange(600) < 4, "hamlet", "city")}
    values = {"y": np.linspace(0, 1, 600), "town": np.linspace(0, 1, 600)}
    found = small._replace(z=z, valuation=Valuation.from_values(values)).seen().to_dict()["stability"]
    assert found["sentence"] == "It is not known whether another run would rank the rows the same way."
    assert found["rows"] == []
    assert "have no standard errors" in found["notes"][0]
    told = Valuation(values, {name: np.full(600, 0.1) for name in values})
    found = small._replace(z=z, valuation=told).seen().to_dict()["stability"]
    groups = [("all rows", 600), ("city", 596)]
    expected = [(column, *group) for column in ("y", "town") for group in groups]
    assert [(row["column"], row["group"], row["rows"]) for row in found["rows"]] == expected
    assert "hamlet" not in str(found)


N = 1000


def plane_of(y, z, valuation):
    part = Case(pd.DataFrame({"x": np.arange(float(N))}), y, {"z": z}, valuation).part()
    return part["plane"], part["values"]["lead"]


def entropies(**values):
    return Valuation({name: np.asarray(array, dtype=float) for name, array in values.items()})


def unsure_share(plane, of):
    return sum(corner["share"] for corner in plane["corners"] if corner[f"unsure_of_{of}"])


def test_a_rare_positive_class_leaves_room_for_doubt():
    y = np.arange(N) < 10
    values = np.where(np.arange(N) < 300, 0.06, 0.01)  # far below 0.5, and above what the base rate halves to
    plane, lead = plane_of(y, np.arange(N) % 2, entropies(y=values, z=np.full(N, 0.9)))
    base = -(0.01 * np.log2(0.01) + 0.99 * np.log2(0.99))
    assert plane["scales"]["v_y"]["cut"] == pytest.approx(base / 2)  # 0.0404
    assert plane["scales"]["v_z"]["cut"] == pytest.approx(0.5)
    assert unsure_share(plane, "target") == pytest.approx(0.3)
    assert "v_y at 0.0404, half of 0.0808" in plane["cuts"]
    assert "a model that knows only the shares of the classes of y has 0.0808" in lead


def test_seven_classes_are_cut_by_their_own_shares():
    shares = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05])
    y = np.repeat(np.arange(7), (shares * N).astype(int))
    plane, _ = plane_of(y, np.arange(N) % 2, entropies(y=np.linspace(0, 1, N), z=np.ones(N)))
    base = -(shares * np.log2(shares)).sum() / np.log2(7)
    assert plane["scales"]["v_y"]["cut"] == pytest.approx(base / 2)
    assert unsure_share(plane, "target") == pytest.approx(1 - base / 2, abs=1e-3)


@pytest.mark.parametrize(("error", "sure"), [(1.0, 0.0), (0.75, 0.25), (0.0, 1.0)])
def test_as_many_rows_of_a_number_are_sure_as_models_remove_of_its_error(error, sure):
    wealth = np.linspace(-1, 1, N)
    errors = error * np.abs(wealth - wealth.mean())
    values = {"y": np.full(N, 0.5), "z": np.linspace(0, 1, N)}
    valuation = Valuation(
        values,
        label_probability={"y": np.full(N, 0.5), "z": 1 - errors / 2},
        provenance=Provenance(largest_error={"z": 2.0}),
    )
    plane, lead = plane_of(np.arange(N) % 2, wealth, valuation)
    assert unsure_share(plane, "attribute") == pytest.approx(1 - sure, abs=2 / N)
    assert f"so that {100 * sure:.3g} % of the rows count as certain" in plane["cuts"]
    assert "a model that knows only the mean of z has 1" in lead


def test_a_number_without_agreement_is_cut_at_its_median():
    values = np.r_[0.0, np.full(N - 1, 0.9)] + np.arange(N) / 1e5
    plane, _ = plane_of(np.arange(N) % 2, np.linspace(0, 1, N), entropies(y=np.ones(N), z=values))
    assert plane["scales"]["v_z"]["cut"] == pytest.approx(np.median(values))
    assert "the median, since z is continuous" in plane["cuts"]


def test_effects_are_cut_at_zero():
    effects = np.random.default_rng(0).normal(0.1, 1, N)
    valuation = Valuation.from_values({"y": effects, "z": effects})
    plane, _ = plane_of(np.arange(N) < 10, np.arange(N) % 2, valuation)
    assert plane["scales"]["v_y"]["cut"] == plane["scales"]["v_z"]["cut"] == 0
    assert unsure_share(plane, "target") == pytest.approx((effects >= 0).mean())
    assert "low from high" in plane["cuts"]


KINDS = {"linear": LinearUtility, "difference": DifferenceUtility, "cobb-douglas": CobbDouglasUtility}
STEPS = [0, 3, 10, 17, 20]


@pytest.fixture(scope="module")
def summary(seen_small):
    return seen_small.to_dict()


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
    weigher = UtilityAwareReweigher(kind)
    weigher.fit(small.X, small.y, sensitive_features=protected, valuation=small.valuation)
    weights = weigher.sample_weight_
    positive = (small.y == "yes").to_numpy()
    v_z = np.mean([small.valuation[name] for name in protected], axis=0)
    for i, group in enumerate(part["groups"]):
        rows = groups == group
        assert part["rows"][i] == rows.sum()
        assert found["histogram"][i] == np.histogram(utilities[rows], edges)[0].tolist()
        gone = rows & dropped
        assert part["sampling"]["dropped"][i] == gone.sum()
        assert part["sampling"]["kept"][i] == (rows & ~dropped).sum()
        assert found["weights"]["share_per_group"][i] == pytest.approx(weights[rows].sum() / weights.sum())
        assert found["dropped"]["histogram"][i] == np.histogram(utilities[gone], edges)[0].tolist()
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
    assert small._replace(z={"sex": small.z["sex"]}).seen().to_dict()["together"] is None


@pytest.mark.parametrize("utility", KINDS)
def test_slices_are_ranked_by_what_the_utility_says(planted, seen_planted, utility):
    part = seen_planted.to_dict()["attributes"][0]["alpha"]
    for step in (0, 10, 20):
        utilities = KINDS[utility](alpha=step / 20)(planted.valuation)
        ranked = part["utilities"][utility]["settings"][step]["slices"]
        for key in ("highest", "lowest"):
            means = [mean for _, mean in ranked[key]]
            assert means
            assert means == sorted(means, reverse=key == "highest")
            for number, mean in ranked[key]:
                rows = rows_where(planted.X, part["slices"][number]["conditions"])
                assert part["slices"][number]["rows"] == rows.sum()
                assert mean == pytest.approx(utilities[rows].mean())


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
    case = small._replace(y=y)
    alpha = case.part()["alpha"]
    assert alpha["sampling"] is None
    assert alpha["outcome_before"] is None
    rates = (y == "many").groupby(small.z["sex"]).mean()
    sampling = case.part(pos_label="many")["alpha"]["sampling"]
    assert sampling["rate_before"] == pytest.approx([rates["f"], rates["m"]])


def test_a_continuous_target_has_weighted_means(small):
    case = small._replace(y=small.X["age"] * 1.5)
    alpha = case.part()["alpha"]
    assert alpha["sampling"] is None
    weigher = UtilityAwareReweigher(LinearUtility(alpha=0.5, betas={"sex": 0.5}))
    weigher.fit(case.X, case.y, sensitive_features=case.z, valuation=case.valuation)
    women = (small.z["sex"] == "f").to_numpy()
    found = alpha["utilities"]["linear"]["settings"][10]["weights"]["outcome_per_group"][0]
    assert found == pytest.approx(np.average(case.y[women], weights=weigher.sample_weight_[women]))
