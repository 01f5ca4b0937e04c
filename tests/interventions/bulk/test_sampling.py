"""Samples of tables in files, against the samplers in memory."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

import fado
from fado import (
    CobbDouglasUtility,
    LinearUtility,
    RandomPrevalenceSampler,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
)
from fado.datasets import protected_from
from fado.utility import BaseUtility
from fado.valuation.bulk import _stored_values

SAMPLER = UtilityAwarePrevalenceSampler
ENTROPY = Valuation.from_probabilities([0.5]).scales["y"]


def kept(path):
    return pd.concat([pd.read_parquet(part) for part in sorted(path.iterdir())], ignore_index=True)


pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.mark.parametrize("weight", [None, "survey"])
@pytest.mark.parametrize("protected", ["sex", "age >= 50", ["sex", "age >= 50"]])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"strength": 0.4, "pos_label": 0},
        {"utility": CobbDouglasUtility(0.3)},
        {"utility": LinearUtility(1.0), "min_group_size": 0},
    ],
)
def test_rows_that_stay_are_those_that_stay_in_memory(
    frame, valuation, folder, values, tmp_path, weight, protected, settings
):
    sampler = SAMPLER(**settings, random_state=0)
    change = fado.sample_files(
        folder,
        values=values,
        target="hired",
        protected=protected,
        out=tmp_path / "s",
        intervention=sampler,
        weight=weight,
    )
    listed = [protected] if isinstance(protected, str) else protected
    attributes = {name.replace(" ", ""): protected_from(frame, name) for name in listed}
    weights = None if weight is None else frame[weight]
    sampler.fit(
        frame, frame["hired"], sensitive_features=attributes, valuation=valuation, sample_weight=weights
    )
    assert 0 < len(sampler.sample_indices_) < len(frame)
    assert kept(tmp_path / "s")["id"].tolist() == sampler.sample_indices_.tolist()
    assert (change.n_rows, change.n_rows_after) == (len(frame), len(sampler.sample_indices_))


def test_the_rows_are_written_as_they_were(frame, folder, values, tmp_path):
    fado.sample_files(
        folder, values=values, target="hired", protected="sex", out=tmp_path / "s.parquet", memory="500MB"
    )
    found = pd.read_parquet(tmp_path / "s.parquet")
    expected = frame.iloc[found["id"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert [path.name for path in tmp_path.iterdir()] == ["s.parquet"]


def test_a_random_sample_drops_as_many_and_follows_the_seed(frame, folder, tmp_path):
    asked = {"target": "hired", "protected": "sex"}
    found = {}
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        sampler = RandomPrevalenceSampler(random_state=seed)
        fado.sample_files(folder, out=tmp_path / name, intervention=sampler, **asked)
        found[name] = kept(tmp_path / name)["id"].tolist()
    assert found["a"] == found["b"] != found["c"]
    sampler.fit(frame, frame["hired"], sensitive_features=frame["sex"])
    assert len(found["a"]) == len(found["c"]) == len(sampler.sample_indices_)
    gone = ~frame["id"].isin(found["c"])
    assert not frame.loc[gone, "hired"].any()


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_of_equal_utilities_as_many_go_as_in_memory(frame, folder, tmp_path, levels):
    rng = np.random.default_rng(2)
    tied = Valuation.from_values(
        {name: rng.integers(0, levels, len(frame)) / 8 for name in ("y", "sex")},
        scales={"y": ENTROPY, "sex": ENTROPY},
    )
    tied.save(tmp_path / "v.parquet")
    sampler = SAMPLER(LinearUtility(1.0), random_state=3)
    asked = {"values": tmp_path / "v.parquet", "target": "hired", "protected": "sex", "intervention": sampler}
    fado.sample_files(folder, out=tmp_path / "s", **asked)
    sampler.fit(frame, frame["hired"], sensitive_features=frame["sex"], valuation=tied)
    in_memory, in_files = (
        np.sort(np.delete(tied["y"], rows)) for rows in (sampler.sample_indices_, kept(tmp_path / "s")["id"])
    )
    assert (in_memory == in_files).all()


def test_groups_and_their_lines_are_those_of_the_rows(frame, folder, values, tmp_path):
    change = fado.sample_files(
        folder, values=values, target="hired", protected="sex", out=tmp_path / "s", weight="survey"
    )
    after = kept(tmp_path / "s")
    assert change.positive == 1
    assert [own.title for own in change.groups] == frame["sex"].value_counts().index.tolist()
    for own in change.groups:
        for rows, told in (
            (frame, (own.rows, own.positive_rate, own.effective_size)),
            (after, (own.rows_after, own.positive_rate_after, own.effective_size_after)),
        ):
            mine = rows[rows["sex"] == own.title]
            rate = np.average(mine["hired"], weights=mine["survey"])
            kish = mine["survey"].sum() ** 2 / (mine["survey"] ** 2).sum()
            assert told == (len(mine), pytest.approx(rate), round(kish))


def test_missing_attributes_are_a_group_with_a_warning(frame, valuation, folder, values, tmp_path):
    sampler = SAMPLER(random_state=0)
    asked = {"target": "hired", "protected": "region", "intervention": sampler}
    n_missing = int(frame["region"].isna().sum())
    sentence = f"'region' is missing in {n_missing} of 900 rows: they are a group of their own"
    with pytest.warns(UserWarning, match=sentence):
        change = fado.sample_files(folder, values=values, out=tmp_path / "s", **asked)
    with pytest.warns(UserWarning, match=sentence):
        sampler.fit(frame, frame["hired"], sensitive_features=frame["region"], valuation=valuation)
    assert kept(tmp_path / "s")["id"].tolist() == sampler.sample_indices_.tolist()
    assert {own.title for own in change.groups} == {"n", "s", "(missing)"}


def test_small_groups_are_left_alone_with_the_warning_of_memory(tmp_path):
    frame = pd.DataFrame({"z": ["a"] * 500 + ["b"] * 500 + ["c"] * 4, "y": [1, 0] * 250 + [1, 0, 0, 0] * 126})
    frame.to_csv(tmp_path / "t.csv", index=False)
    sampler = RandomPrevalenceSampler(random_state=0)
    with pytest.warns(UserWarning, match=r"Group 'c' \(4 rows\), with fewer than 30 rows"):
        change = fado.sample_files(
            tmp_path / "t.csv", target="y", protected="z", out=tmp_path / "s", intervention=sampler
        )
    # b has 125 positives: to match a half, 250 of its 375 negatives go
    lines = {own.title: (own.rows, own.rows_after, own.is_small) for own in change.groups}
    assert lines == {"a": (500, 500, False), "b": (500, 250, False), "c": (4, 4, True)}


def test_one_group_keeps_all_rows_with_a_warning(tmp_path):
    pd.DataFrame({"z": ["a"] * 4, "y": [1, 0, 0, 0]}).to_parquet(tmp_path / "t.parquet")
    with pytest.warns(UserWarning, match="only one group"):
        change = fado.sample_files(
            tmp_path / "t.parquet",
            target="y",
            protected="z",
            out=tmp_path / "s",
            intervention=RandomPrevalenceSampler(),
        )
    assert change.n_rows_after == 4


def test_neither_memory_nor_a_killed_run_before_changes_a_byte(folder, values, tmp_path):
    asked = {"values": values, "target": "hired", "protected": ["sex", "age>=50"], "weight": "survey"}
    asked["intervention"] = SAMPLER(random_state=0)
    (tmp_path / ".a.parquet.0123abcd.part").mkdir()
    (tmp_path / ".a.parquet.0123abcd.part" / "a.parquet").write_bytes(b"left")
    for name, memory in (("a", "120MB"), ("b", "4GB")):
        fado.sample_files(folder, out=tmp_path / f"{name}.parquet", memory=memory, **asked)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def ranks(valuation):
    """A utility that compares rows."""
    return rankdata(valuation["y"]) - 0.3 * rankdata(valuation["sex"])


class FromTheMean(BaseUtility):
    """Another one, of the kind that can be registered."""

    def _combine(self, performance, fairness):
        return sum(weight * np.abs(values - values.mean()) for weight, values in (performance, *fairness))


@pytest.mark.parametrize("utility", [ranks, FromTheMean(0.7)])
def test_a_utility_that_compares_rows_sees_all_of_them(frame, valuation, folder, values, tmp_path, utility):
    asked = {"values": values, "target": "hired", "protected": "sex"}
    given = {"y": frame["hired"], "sensitive_features": {"sex": frame["sex"]}, "valuation": valuation}
    sampler = SAMPLER(utility, random_state=0)
    fado.sample_files(folder, out=tmp_path / "s", intervention=sampler, **asked)
    assert kept(tmp_path / "s")["id"].tolist() == sampler.fit(frame, **given).sample_indices_.tolist()
    reweigher = UtilityAwareReweigher(utility)
    fado.reweigh_files(folder, out=tmp_path / "w.parquet", intervention=reweigher, **asked)
    weights = pd.read_parquet(tmp_path / "w.parquet")["weight"]
    np.testing.assert_allclose(weights, reweigher.fit(frame, **given).sample_weight_, rtol=1e-12)


def test_values_that_do_not_fit_are_refused(folder, values, tmp_path, monkeypatch):
    monkeypatch.setattr(_stored_values.StoredValues, "n_bytes", 10**12)
    with pytest.raises(
        ValueError, match=r"too small for the utility 'ranks', which may compare rows .* of all 900"
    ):
        fado.sample_files(
            folder,
            values=values,
            target="hired",
            protected="sex",
            out=tmp_path / "s",
            intervention=SAMPLER(ranks),
            memory="1GB",
        )
    assert not (tmp_path / "s").exists()
