"""Labels that models contradict, effects of rows, and slices to remove."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from fado import TreeInfluence, Valuation, explore
from fado.exploration._explored import show_groups
from fado.exploration._removals import RemovalSearch
from fado.exploration._rows import cell_effects
from fado.exploration._slices import BinnedColumn, Condition
from fado.metrics import evaluate
from fado.tabular import Groups, mean_one
from fado.valuation import Provenance, Scale


def suspicious_of(seen):
    return seen.to_dict()["attributes"][0]["suspicious"]


@pytest.fixture(scope="module")
def found(seen_small):
    return suspicious_of(seen_small)


def test_contradicted_labels_per_group(small, found):
    agreement = small.valuation.agreement["y"].to_numpy()
    for group in found["groups"]:
        rows = (small.z["sex"] == group["group"]).to_numpy()
        assert group["rows"] == rows.sum()
        assert group["contradicted"] == (agreement[rows] <= 0.1).sum()
        assert group["share"] == pytest.approx((agreement[rows] <= 0.1).mean())
        assert group["low"] < group["share"] < group["high"]
        doubt = np.minimum(agreement, 1 - agreement)[rows]
        assert group["expected"] == pytest.approx(doubt[doubt <= 0.1].sum() / rows.sum())


def test_contradicted_labels_per_group_and_label(small, found):
    agreement = small.valuation.agreement["y"].to_numpy()
    for cell in found["labels"]:
        rows = ((small.z["sex"] == cell["group"]) & (small.y == cell["label"])).to_numpy()
        assert cell["share"] == pytest.approx((agreement[rows] <= 0.1).mean())


def test_rows_are_positions_and_nothing_else(small, found):
    agreement = small.valuation.agreement["y"].to_numpy()
    for group in found["rows"]:
        rows = np.flatnonzero((small.z["sex"] == group["group"]).to_numpy() & (agreement <= 0.1))
        expected = rows[np.argsort(agreement[rows], kind="stable")][:10]
        assert [row["row"] for row in group["rows"]] == expected.tolist()
        assert all(set(row) == {"row", "agreement"} for row in group["rows"])


def test_rows_are_shown_only_if_asked_for(small):
    seen = explore(
        small.X, small.y, sensitive_features=small.z, valuation=small.valuation, show_rows=True, retrain=0
    )
    row = suspicious_of(seen)["rows"][0]["rows"][0]
    age, job, kids = small.X.iloc[row["row"]]
    assert row["label"] == small.y[row["row"]]
    job = "(missing)" if job is None or job != job else job
    assert row["features"] == [["age", str(age)], ["job", job], ["kids", str(kids)]]


def test_a_continuous_target_has_a_fence(small):
    y = small.X["age"] * 1.0
    agreement = np.full(600, 0.9) + np.linspace(0, 0.05, 600)
    agreement[7] = 0.1
    arrays = {"y": small.valuation["y"], "sex": small.valuation["sex"]}
    valuation = Valuation(
        arrays, arrays, {k: np.ones(600) for k in arrays}, {"y": agreement, "sex": agreement}
    )
    seen = explore(small.X, y, sensitive_features={"sex": small.z["sex"]}, valuation=valuation, retrain=0)
    listed = [row["row"] for group in suspicious_of(seen)["rows"] for row in group["rows"]]
    assert listed == [7]
    assert suspicious_of(seen)["beyond_doubt"] is None


def test_slices_say_how_far_agreement_falls_short(planted, seen_planted):
    found = suspicious_of(seen_planted)
    agreement = planted.valuation.agreement["y"].to_numpy()
    rows = (planted.X["region"] == "north").to_numpy() & (planted.sex == "f")
    first = found["beyond_doubt"][0]
    assert first["rows"] == rows.sum()
    assert first["mean_agreement"] == pytest.approx(agreement[rows].mean())
    assert first["expected_agreement"] == pytest.approx((agreement**2 + (1 - agreement) ** 2)[rows].mean())
    assert first["contradicted_share"] == pytest.approx((agreement[rows] <= 0.1).mean())
    assert first["mean_agreement"] < first["expected_agreement"]


def test_values_without_agreement_leave_nothing_to_suspect(small):
    half = np.linspace(0, 1, 600)
    values = Valuation.from_probabilities(half, {"sex": half})
    assert (
        suspicious_of(
            explore(small.X, small.y, sensitive_features={"sex": small.z["sex"]}, valuation=values, retrain=0)
        )
        is None
    )


def contradicted_of(y, agreement, **settings):
    n_rows = len(y)
    values = {"y": np.full(n_rows, 0.5), "sex": np.full(n_rows, 0.5)}
    valuation = Valuation(values, label_probability={"y": agreement, "sex": agreement})
    sex = np.where(np.arange(n_rows) % 2, "m", "f")
    X = np.arange(n_rows, dtype=float).reshape(-1, 1)
    return suspicious_of(
        explore(X, y, sensitive_features={"sex": sex}, valuation=valuation, **settings, retrain=0)
    )


def test_a_rare_label_is_contradicted_only_below_half_of_its_share():
    y = np.arange(1000) < 10
    agreement = np.where(y, 0.01, 0.99)  # what a model without knowledge says
    found = contradicted_of(y, agreement)
    assert sum(group["contradicted"] for group in found["groups"]) == 0
    assert found["sentence"] == "Models confidently contradict none of the labels."
    assert found["rule"].endswith("For rare labels that is less: 0.5 % for “y = True”.")
    agreement[:4] = 0.005
    found = contradicted_of(y, agreement)
    assert sum(group["contradicted"] for group in found["groups"]) == 4
    expected = [group["expected"] * group["rows"] for group in found["groups"]]
    assert sum(expected) == pytest.approx(4 * 0.005)  # the others' 0.01 is above the limit


def test_labels_that_are_one_of_many_have_limits_of_their_own():
    y = np.arange(700) % 7
    agreement = np.where(np.arange(700) < 70, 0.07, 0.08)  # half of a seventh is 0.0714
    found = contradicted_of(y, agreement)
    assert sum(group["contradicted"] for group in found["groups"]) == 70
    assert "7.14 % for “y = 0”" in found["rule"]
    assert found["sentence"].startswith("Models contradict 10 % of the labels")


def test_numbers_are_not_called_labels(small):
    agreement = np.r_[np.linspace(0.9, 0.95, 599), 0.1]
    found = contradicted_of(np.linspace(0, 1, 600), agreement)
    assert found["rule"].startswith("A number is contradicted if the models' error")
    none = "no clear difference between groups was found."
    assert found["sentence"] == f"Models contradict 0.167 % of the numbers; {none}"
    agreement[1:60:2] = 0.1
    found = contradicted_of(np.linspace(0, 1, 600), agreement)
    assert found["sentence"] == "Models contradict 10.3 % of the numbers in “m” and 0 % in “f”."


def part_of(seen, number=0):
    return seen.to_dict()["attributes"][number].get("effects")


@pytest.fixture(scope="module")
def case():
    """1,000 rows; nurses of label yes do the harm, and there is a group of nine rows."""
    rng = np.random.default_rng(0)
    n_rows = 1000
    X = pd.DataFrame(
        {
            "job": rng.choice(["clerk", "nurse", "driver", "cook"], n_rows),
            "age": rng.integers(18, 80, n_rows),
            "town": rng.choice(["x", "y"], n_rows),
        }
    )
    sex = rng.choice(["f", "m"], n_rows).astype(object)
    sex[:9] = "other"
    y = pd.Series(rng.choice(["no", "yes"], n_rows), name="hired")
    harmful = ((X["job"] == "nurse") & (y == "yes")).to_numpy()
    v_z = 0.001 * rng.normal(size=n_rows) + np.where(harmful, -0.004, 0.0005)
    v_y = 0.001 * rng.normal(size=n_rows)
    return X, y, sex, {"y": v_y, "sex": v_z}, harmful


def explored(case, **settings):
    X, y, sex, values, _ = case
    return explore(
        X, y, sensitive_features={"sex": sex}, valuation=Valuation.from_values(values), **settings, retrain=0
    )


def test_cells_add_up_and_small_ones_are_left_out():
    groups = show_groups(Groups(np.repeat([0, 1], [30, 30]), ("f", "m"), ("f", "m")))
    codes = np.concatenate([np.repeat([0, 1], [21, 9]), np.repeat([0, 1], [10, 20])])
    labels = show_groups(Groups(codes, ("n", "p"), ("n", "p")))
    on_ratio, on_performance = np.arange(60.0), np.repeat([1.0, -2.0], 30)
    cells = cell_effects(groups, labels, on_ratio, on_performance)
    assert [tuple(cell.values()) for cell in cells] == [
        ("f", "n", 21, 210.0, 21.0),
        ("m", "n", 10, 345.0, -20.0),
        ("m", "p", 20, 990.0, -40.0),
    ]


def test_the_page_s_part_holds_the_sums_of_the_values(case):
    _, y, sex, values, _ = case
    found = part_of(explored(case))
    assert [(cell["group"], cell["label"]) for cell in found["cells"]] == [
        ("f", "no"), ("f", "yes"), ("m", "no"), ("m", "yes"),
    ]  # fmt: skip
    for cell in found["cells"]:
        rows = (sex == cell["group"]) & (y == cell["label"]).to_numpy()
        assert cell["rows"] == rows.sum()
        assert cell["ratio_effect"] == pytest.approx(values["sex"][rows].sum())
        assert cell["performance_effect"] == pytest.approx(values["y"][rows].sum())
    assert found["harmful"] == (values["sex"] < 0).sum()
    assert (found["curve"], found["measured"]) == ([], None)
    assert found["reason"] == "Nothing was measured, since no model was retrained (`retrain=0`)."
    assert (found["ratio"], found["performance"], found["now"]) == ("ratio", "performance", None)
    assert "other" not in json.dumps(found)  # a group of nine rows is not named


def test_the_planted_slice_is_found_and_nothing_is_said_of_its_removal(case):
    *_, harmful = case
    first = part_of(explored(case))["slices"][0]
    assert first["conditions"] == ["job = nurse", "hired = yes"]
    assert first["rows"] == harmful.sum()
    assert first["p_value"] < 1e-6
    assert (first["ratio_change"], first["performance_change"]) == (None, None)
    assert first["measured"] is None


def test_slices_are_counted_in_all_rows_and_searched_in_a_sample(case):
    first = part_of(explored(case, max_rows=500))["slices"][0]
    assert first["conditions"] == ["job = nurse", "hired = yes"]
    assert first["rows"] == case[4].sum()


def test_effects_are_per_unit_of_weight(case):
    X, y, sex, values, _ = case
    weights = np.random.default_rng(1).integers(0, 4, 1000) * 1.0
    weighted = part_of(explored(case, sample_weight=weights))
    multiplied = Valuation.from_values({name: own * mean_one(weights) for name, own in values.items()})
    alike = part_of(explore(X, y, sensitive_features={"sex": sex}, valuation=multiplied, retrain=0))
    assert weighted == alike


def test_rows_are_numbers_and_hold_nothing_unless_asked_for(case):
    X, y, _, values, _ = case
    worst = np.argsort(values["sex"])[:10].tolist()
    rows = part_of(explored(case))["rows"]
    assert [row["row"] for row in rows] == worst
    assert all(set(row) == {"row", "ratio_effect", "performance_effect"} for row in rows)
    shown = part_of(explored(case, show_rows=True))["rows"][0]
    assert shown["label"] == y[worst[0]]
    assert dict(shown["features"]) == {name: str(X[name][worst[0]]) for name in X}


def test_rows_without_a_value_keep_the_numbers_of_the_others(case):
    X, y, sex, values, _ = case
    cut = {name: own.copy() for name, own in values.items()}
    cut["sex"][[0, 500]] = np.nan
    found = part_of(
        explore(X, y, sensitive_features={"sex": sex}, valuation=Valuation.from_values(cut), retrain=0)
    )
    assert [row["row"] for row in found["rows"]] == np.argsort(cut["sex"])[:10].tolist()


def test_values_of_the_target_may_be_no_effects(case):
    X, y, sex, values, _ = case
    scales = {"y": Scale("how unsure", 0.0, 1.0, None)}
    mixed = Valuation.from_values({"y": np.full(1000, 0.5), "sex": values["sex"]}, scales=scales)
    seen = explore(X, y, sensitive_features={"sex": sex}, valuation=mixed, retrain=0)
    found = part_of(seen)
    assert found["performance"] is None
    assert {cell["performance_effect"] for cell in found["cells"]} == {None}
    assert seen.effects()["cells"]["performance_effect"].isna().all()


def test_entropies_have_no_effects(seen_small):
    assert all("effects" not in one for one in seen_small.to_dict()["attributes"])
    assert "Effects of rows on the model" not in seen_small.html()
    with pytest.raises(
        ValueError,
        match=r"The values of 'sex' are not effects\. Nothing was measured, since no",
    ):
        seen_small.effects()


def test_frames_hold_what_the_page_shows(case):
    seen = explored(case)
    found, frames = part_of(seen), seen.effects("sex")
    assert list(frames) == ["cells", "slices", "changes", "curve"]
    assert frames["cells"].to_dict("records") == found["cells"]
    assert frames["slices"]["slice"][0] == "job = nurse and hired = yes"
    for name in ("ratio_change", "measured_ratio_change", "measured_performance_error"):
        assert frames["slices"][name].isna().all()
    assert len(frames["changes"]) == len(frames["curve"]) == 0
    with pytest.raises(ValueError, match=r"`attribute` must be one of \['sex'\], got 'age'"):
        seen.effects("age")


@pytest.mark.parametrize("performance", ["tpr_at_fpr", "accuracy", "log_loss"])
def test_where_the_metrics_stand_is_what_the_models_said_of_rows_they_had_not_seen(performance):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    z = np.where(X[:, 2] > 0, "b", "a")
    y = X[:, 0] + X[:, 2] + rng.normal(size=1500) > 1
    valuator = TreeInfluence(performance=performance, max_fpr=0.1, random_state=0)
    valuation = valuator.fit(X, y, sensitive_features={"z": z}).valuation_
    found = part_of(explore(X, y, sensitive_features={"z": z}, valuation=valuation, retrain=0))
    agreement = valuation.field("label_probability", "y")
    scores = np.where(y, agreement, 1 - agreement)
    measured = evaluate(y, scores, sensitive_features=z, max_fpr=0.1)
    expected = {
        "tpr_at_fpr": ("TPR at 10 % FPR", measured["tpr"]),
        "accuracy": ("accuracy", (agreement >= 0.5).mean()),
        "log_loss": ("minus log-loss", np.log(agreement).mean()),
    }[performance]
    assert (found["ratio"], found["performance"]) == ("FPR ratio", expected[0])
    assert found["now"]["ratio"] == pytest.approx(measured["fpr_ratio"])
    assert found["now"]["performance"] == pytest.approx(expected[1])


def test_where_a_model_was_sure_and_wrong_the_log_loss_is_that_of_scikit_learn():
    y, z = np.tile([False, True], 50), np.repeat(["a", "b"], 50)
    agreement = np.where(np.arange(100) % 7 == 0, 0.0, 0.9)
    fields = {name: np.linspace(-1, 1, 100) for name in ("y", "z")}
    told = Provenance(
        "influence", settings={"performance": "log_loss", "fairness": "fpr_ratio", "max_fpr": 0.2}
    )
    valuation = Valuation(
        fields,
        label_probability=dict.fromkeys(fields, agreement),
        provenance=told,
        scales=dict.fromkeys(fields, Scale("effect")),
    )
    found = part_of(
        explore(np.zeros((100, 1)), y, sensitive_features={"z": z}, valuation=valuation, retrain=0)
    )
    assert found["now"]["performance"] == pytest.approx(-log_loss(y, np.where(y, agreement, 1 - agreement)))


N = 4000


def column(number, name, codes):
    levels = range(int(codes.max()) + 1)
    conditions = tuple(Condition(number, level, level, f"{name} = {level}") for level in levels)
    return BinnedColumn(number, name, codes.astype(np.uint8), conditions)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    codes = {"a": rng.integers(0, 8, N), "b": rng.integers(0, 2, N), "c": rng.integers(0, 2, N)}
    columns = [column(number, name, own) for number, (name, own) in enumerate(codes.items())]
    return SimpleNamespace(columns=columns, noise=rng.normal(size=N), **codes)


def slices_of(table, gains, most=5, always=()):
    slices = RemovalSearch(table.columns, np.arange(N), gains).find(most, always)
    return [" and ".join(condition.text for condition in one.conditions) for one in slices]


def test_one_condition_is_found_where_one_says_all(table):
    assert slices_of(table, table.noise + 1.0 * (table.a == 3) - 0.125)[0] == "a = 3"


def test_two_conditions_are_found_where_it_takes_both(table):
    gains = 0.5 * table.noise + 3.0 * ((table.a == 3) & (table.b == 1)) - 1.0 * (table.a == 3)
    assert slices_of(table, gains)[0] == "a = 3 and b = 1"


def test_a_condition_that_adds_nothing_is_not_joined_to_one_of_too_many_rows(table):
    gains = table.noise + 1.0 * (table.b == 1)  # half of the rows: too many to be removed
    gains -= gains.mean()
    assert not any("c =" in one for one in slices_of(table, gains))


def test_conditions_that_cancel_out_alone_are_joined_if_they_are_always_tried(table):
    rng = np.random.default_rng(1)
    many = [column(number, f"n{number}", rng.integers(0, 2, N)) for number in range(30)]
    by_b = [BinnedColumn(30, "b", table.columns[1].codes, tuple(
        Condition(30, level, level, f"b = {level}") for level in (0, 1)))]  # fmt: skip
    small = (rng.random(N) < 0.15).astype(int)
    by_s = [column(31, "s", small)]
    gains = 0.3 * rng.normal(size=N) + np.where(table.b == 1, 1.0, -1.0) * small
    # each noise column pushed ahead, so that neither b nor s is among the best alone
    gains += sum(0.02 * (one.codes == 1) for one in many) - 0.3
    search = RemovalSearch([*many, *by_b, *by_s], np.arange(N), gains)
    slices = [" and ".join(c.text for c in one.conditions) for one in search.find(5, [30])]
    assert slices[0] == "b = 1 and s = 1"


def test_slices_hold_at_most_a_fifth_of_the_rows_and_do_not_overlap_by_half(table):
    gains = table.noise * 0.1 + (table.a >= 4) - 0.5
    search = RemovalSearch(table.columns, np.arange(N), gains)
    rows = [one.rows(table.columns) for one in search.find(8)]
    assert len(rows) >= 4
    for number, one in enumerate(rows):
        assert 40 <= one.sum() <= N // 5
        assert all((one & other).sum() <= 0.5 * (one | other).sum() for other in rows[:number])
    sums = [gains[one].sum() for one in rows]
    assert sums == sorted(sums, reverse=True)


def test_chance_alone_is_hardly_ever_found(table):
    rng = np.random.default_rng(2)
    alarms = sum(bool(slices_of(table, rng.normal(size=N), always=[1])) for _ in range(60))
    assert alarms <= 8  # 0.05 of 60 is 3, and 8 would be exceeded once in 200 times


@pytest.mark.parametrize("gains", [np.zeros(N), np.full(N, 2.0)])
def test_equal_gains_have_no_slices(table, gains):
    assert slices_of(table, gains) == []


def test_harm_alone_has_no_slices(table):
    assert slices_of(table, -1.0 + 0.01 * table.noise + 0.5 * (table.a == 3)) == []
