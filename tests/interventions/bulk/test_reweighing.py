"""Weights of tables in files, against the reweighers in memory."""

import numpy as np
import pandas as pd
import pytest

import fado
from fado import DifferenceUtility, LinearUtility, Reweigher, UtilityAwareReweigher, Valuation
from fado.datasets import protected_from

UAR = UtilityAwareReweigher
pytestmark = pytest.mark.usefixtures("small_blocks")


def weights_in(path):
    return pd.read_parquet(path)["weight"].to_numpy()


@pytest.mark.parametrize("weight", [None, "survey"])
@pytest.mark.parametrize("protected", ["sex", ["sex", "age >= 50"]])
@pytest.mark.parametrize(
    "reweigher",
    [
        Reweigher(),
        UAR(),
        UAR(LinearUtility(0.7), normalize=False, floor=0.2),
        UAR(scaling="none", normalize=False),
        UAR(DifferenceUtility(), scaling="none", negative="clip"),
        UAR(floor=0.1, prevalence_correction=1.0),
        UAR(prevalence_correction=0.5, normalize=False, min_group_size=0),
        UAR(DifferenceUtility(0.6), scaling="none", negative="clip", prevalence_correction=2.0),
    ],
    ids=repr,
)
def test_weights_are_those_of_memory(
    frame, valuation, folder, values, tmp_path, weight, protected, reweigher
):
    out = tmp_path / "w.parquet"
    asked = {"values": values, "target": "hired", "protected": protected, "weight": weight}
    change = fado.reweigh_files(folder, out=out, intervention=reweigher, **asked)
    listed = [protected] if isinstance(protected, str) else protected
    attributes = {name.replace(" ", ""): protected_from(frame, name) for name in listed}
    counted = None if weight is None else frame[weight]
    reweigher.fit(
        frame, frame["hired"], sensitive_features=attributes, valuation=valuation, sample_weight=counted
    )
    np.testing.assert_allclose(weights_in(out), reweigher.sample_weight_, rtol=1e-12)
    assert change.n_rows_after == (reweigher.sample_weight_ > 0).sum()


def test_reweighing_by_hand_from_csv_files(tmp_path):
    # P(f) P(1) / P(f, 1) = 1/2 * 1/2 / (1/8) = 2, and 2/3 for the other label
    for name, frame in {
        "a": pd.DataFrame({"sex": list("fffff")[:3], "hired": ["yes", "no", "no"]}),
        "b": pd.DataFrame({"sex": list("fmmmm"), "hired": ["no", "yes", "yes", "yes", "no"]}),
    }.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    change = fado.reweigh_files(
        f"{tmp_path}/*.csv",
        target="hired",
        protected="sex",
        out=tmp_path / "w.parquet",
        intervention=Reweigher(),
        positive="no",
    )
    expected = np.array([2, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 2])
    np.testing.assert_allclose(weights_in(tmp_path / "w.parquet"), expected)
    assert change.positive == "no"
    rates = [(own.positive_rate, own.positive_rate_after) for own in change.groups]
    assert rates == [(0.75, pytest.approx(0.5)), (0.25, pytest.approx(0.5))]
    # of women, weights 2, 2/3, 2/3, 2/3: 4^2 / (4 + 3 * 4/9) = 3
    assert [own.effective_size_after for own in change.groups] == [3, 3]


def test_more_than_two_labels_are_weighed_too(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.integers(0, 4, 500), "z": rng.choice(["a", "b"], 500)})
    frame.to_parquet(tmp_path / "t.parquet")
    asked = {"target": "y", "protected": "z", "intervention": Reweigher()}
    change = fado.reweigh_files(tmp_path / "t.parquet", out=tmp_path / "w.parquet", **asked)
    expected = Reweigher().fit(frame, frame["y"], sensitive_features=frame["z"]).sample_weight_
    np.testing.assert_allclose(weights_in(tmp_path / "w.parquet"), expected, rtol=1e-12)
    assert change.positive is None
    assert change.all_rows.positive_rate is None


def test_numbers_as_target_and_attribute_need_no_groups_without_a_correction(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"pay": rng.normal(size=300), "age": rng.integers(18, 90, 300)})
    frame.to_parquet(tmp_path / "t.parquet")
    valuation = Valuation.from_probabilities(rng.random(300), {"age": rng.random(300)})
    valuation.save(tmp_path / "v.parquet")
    asked = {"values": tmp_path / "v.parquet", "target": "pay", "protected": "age"}
    change = fado.reweigh_files(tmp_path / "t.parquet", out=tmp_path / "w.parquet", **asked)
    fitted = UAR().fit(frame, frame["pay"], sensitive_features=frame["age"], valuation=valuation)
    np.testing.assert_allclose(weights_in(tmp_path / "w.parquet"), fitted.sample_weight_, rtol=1e-12)
    assert [own.title for own in change.groups] == ["all rows"]
    asked["intervention"] = UAR(prevalence_correction=1.0)
    with pytest.raises(ValueError, match="`y` has more than 20 different numbers, and this needs classes"):
        fado.reweigh_files(tmp_path / "t.parquet", out=tmp_path / "x", **asked)
    frame.assign(pay=frame["pay"] > 0).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="'age' has more than 20 different numbers, too many for groups"):
        fado.reweigh_files(tmp_path / "t.parquet", out=tmp_path / "x", **asked)


def test_cells_without_rows_or_weight_are_told_as_in_memory(tmp_path):
    frame = pd.DataFrame({"y": [0, 1, 0, 1, 1, 1], "z": list("aaabbb")})
    frame.to_parquet(tmp_path / "t.parquet")
    Valuation.from_values(
        {"y": np.array([0.0, 1.0, 0.0, 0.5, 0.5, 0.5]), "z": np.zeros(6)},
        scales=dict.fromkeys("yz", Valuation.from_probabilities([0.5]).scales["y"]),
    ).save(tmp_path / "v.parquet")
    asked = {"values": tmp_path / "v.parquet", "target": "y", "protected": "z"}
    reweigher = UAR(LinearUtility(1.0), prevalence_correction=1.0)
    with pytest.warns(UserWarning, match="label 0") as told:
        fado.reweigh_files(tmp_path / "t.parquet", out=tmp_path / "w", intervention=reweigher, **asked)
    sentences = [str(own.message) for own in told]
    assert any("No rows with label 0 in group 'b'" in own for own in sentences)
    assert any("All rows with label 0 in group 'a' have the weight 0" in own for own in sentences)


def test_weights_beyond_floats_are_refused(tmp_path):
    frame = pd.DataFrame({"y": [0, 1] * 40, "z": ["a"] * 60 + ["b"] * 20})
    frame.loc[60:70, "y"] = 0
    frame.to_parquet(tmp_path / "t.parquet")
    Valuation.from_probabilities(np.linspace(0.1, 0.5, 80), {"z": np.full(80, 0.5)}).save(
        tmp_path / "v.parquet"
    )
    reweigher = UAR(prevalence_correction=5000.0, normalize=False)
    asked = {"values": tmp_path / "v.parquet", "target": "y", "protected": "z", "intervention": reweigher}
    with pytest.raises(ValueError, match="beyond what a float can hold"):
        fado.reweigh_files(tmp_path / "t.parquet", out=tmp_path / "w", **asked)
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("weight", [1e308, 1e-320])
def test_weights_that_cannot_be_multiplied_are_refused(frame, tmp_path, weight):
    frame.assign(survey=weight).to_parquet(tmp_path / "d.parquet")
    with pytest.raises(
        ValueError, match=r"`weight` must be 0 or between 1e-100 .* in every row of '.*d.parquet'"
    ):
        fado.reweigh_files(
            tmp_path / "d.parquet",
            target="hired",
            protected="sex",
            weight="survey",
            intervention=Reweigher(),
            out=tmp_path / "w.parquet",
        )
    assert not (tmp_path / "w.parquet").exists()
