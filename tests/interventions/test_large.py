"""Tables in files: the samples and weights of memory, what is refused, what is written, what is held."""

import errno
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.stats import rankdata

import fado
from fado import (
    CobbDouglasUtility,
    DifferenceUtility,
    LinearUtility,
    RandomPrevalenceSampler,
    Reweigher,
    UtilityAwarePrevalenceSampler,
    UtilityAwareReweigher,
    Valuation,
)
from fado.datasets import protected_from
from fado.interventions import (
    BaseIntervention,
    FairlearnGrid,
    NoIntervention,
    TrainingSet,
    _base,
    _large,
    _sampling,
)
from fado.utility import BaseUtility
from fado.valuation.large import StoredValues

N = 900
ASKED = {"target": "hired", "protected": "sex"}


@pytest.fixture(scope="session")
def frame():
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], N)
    frame = pd.DataFrame(
        {
            "id": np.arange(N),
            "age": rng.integers(18, 90, N),
            "sex": sex,
            "region": rng.choice(["n", "s", None], N, p=[0.5, 0.4, 0.1]),
            "when": pd.Timestamp("2020-01-01"),
            "survey": rng.choice([0.0, 0.3, 1.0, 2.5], N),
        }
    )
    frame["hired"] = (rng.random(N) < np.where(sex == "f", 0.2, 0.5)).astype(int)
    return frame


ENTROPY = Valuation.from_probabilities([0.5]).scales["y"]


@pytest.fixture(scope="session")
def valuation():
    rng, names = np.random.default_rng(1), ("y", "sex", "region", "age>=50")
    return Valuation.from_values(
        {name: rng.random(N) for name in names}, scales=dict.fromkeys(names, ENTROPY)
    )


@pytest.fixture(scope="session")
def folder(frame, tmp_path_factory):
    return in_files(frame, tmp_path_factory.mktemp("table"), [0, 100, 101, 640, N], row_group_size=70)


@pytest.fixture(scope="session")
def values(valuation, tmp_path_factory):
    path = tmp_path_factory.mktemp("values") / "values.parquet"
    valuation.save(path)
    return path


def refused(match, paths, function=fado.sample_files, kind=ValueError, **asked):
    with pytest.raises(kind, match=match):
        function(paths, **{**ASKED, **asked})


def in_files(frame, folder, ends, row_group_size=1000):
    folder.mkdir(exist_ok=True)
    for number, (first, end) in enumerate(pairwise(ends)):
        table = pa.Table.from_pandas(frame.iloc[first:end], preserve_index=False)
        pa.parquet.write_table(table, folder / f"{number}.parquet", row_group_size=row_group_size)
    return folder


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Cut into many blocks what would be one."""
    monkeypatch.setattr(_large, "BLOCK_ROWS", 64)


SAMPLER = UtilityAwarePrevalenceSampler


def kept(path):
    return pd.concat([pd.read_parquet(part) for part in sorted(path.iterdir())], ignore_index=True)


def weights_in(path):
    return pd.read_parquet(path)["weight"].to_numpy()


def ranks(valuation):
    """A utility that compares rows."""
    return rankdata(valuation["y"]) - 0.3 * rankdata(valuation["sex"])


class FromTheMean(BaseUtility):
    """Another one, of the kind that can be registered."""

    def _combine(self, performance, fairness):
        return sum(weight * np.abs(values - values.mean()) for weight, values in (performance, *fairness))


UAR = UtilityAwareReweigher


def check_as_in_memory(frame, valuation, folder, values, out, intervention, protected="sex", weight=None):
    """Compare the kept rows, or the weights, with those of the same intervention in memory, to the bit."""
    asked = {"target": "hired", "protected": protected, "weight": weight, "values": values}
    listed = [protected] if isinstance(protected, str) else protected
    fitted = intervention.fit(
        frame,
        frame["hired"],
        sensitive_features={name.replace(" ", ""): protected_from(frame, name) for name in listed},
        valuation=valuation,
        sample_weight=None if weight is None else frame[weight],
    )
    if intervention.changes == "rows":
        change = fado.sample_files(folder, out=out / "s", intervention=intervention, **asked)
        assert 0 < len(fitted.sample_indices_) < len(frame)
        found = kept(out / "s")
        expected = frame.iloc[fitted.sample_indices_].reset_index(drop=True)
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)
        assert (change.n_rows, change.n_rows_after) == (len(frame), len(found))
    else:
        change = fado.reweigh_files(folder, out=out / "w.parquet", intervention=intervention, **asked)
        assert (weights_in(out / "w.parquet") == fitted.sample_weight_).all()
        assert change.n_rows_after == (fitted.sample_weight_ > 0).sum()
    return change


@pytest.mark.parametrize("weight", [None, "survey"])
@pytest.mark.parametrize("protected", ["sex", ["sex", "age >= 50"]])
@pytest.mark.parametrize(
    "intervention",
    [
        SAMPLER(random_state=0),
        SAMPLER(strength=0.4, pos_label=0, random_state=0),
        SAMPLER(CobbDouglasUtility(0.3), random_state=0),
        SAMPLER(LinearUtility(1.0), min_group_size=0, random_state=0),
        SAMPLER(ranks, random_state=0),
        SAMPLER(FromTheMean(0.7), random_state=0),
        RandomPrevalenceSampler(random_state=0),
        RandomPrevalenceSampler(random_state=1),
        Reweigher(),
        UAR(),
        UAR(ranks),
        UAR(LinearUtility(0.7), normalize=False, floor=0.2),
        UAR(scaling="none", normalize=False),
        UAR(DifferenceUtility(), scaling="none", negative="clip"),
        UAR(floor=0.1, prevalence_correction=1.0),
        UAR(prevalence_correction=0.5, normalize=False, min_group_size=0),
        UAR(DifferenceUtility(0.6), scaling="none", negative="clip", prevalence_correction=2.0),
    ],
)
def test_rows_and_weights_are_those_of_memory(
    frame, valuation, folder, values, tmp_path, weight, protected, intervention
):
    check_as_in_memory(frame, valuation, folder, values, tmp_path, intervention, protected, weight)


@pytest.mark.parametrize("few", [1 << 20, 16])
@pytest.mark.parametrize("levels", [1, 2, 5])
def test_of_equal_utilities_those_go_that_go_in_memory(frame, folder, tmp_path, monkeypatch, levels, few):
    """Whether or not a sample of the keys brackets the last row that goes."""
    rng, sampler = np.random.default_rng(2), SAMPLER(LinearUtility(1.0), random_state=3)
    tied = Valuation.from_values(
        {name: rng.integers(0, levels, len(frame)) / 8 for name in ("y", "sex")},
        scales={"y": ENTROPY, "sex": ENTROPY},
    )
    tied.save(tmp_path / "v.parquet")
    expected = sampler.fit(frame, frame["hired"], sensitive_features=frame["sex"], valuation=tied)
    rows = expected.sample_indices_.tolist()
    for name, number in {"_FEW": few, "_SAMPLED": 16, "_MARGIN": 1}.items():
        monkeypatch.setattr(_sampling, name, number)
    check_as_in_memory(frame, tied, folder, tmp_path / "v.parquet", tmp_path, sampler)
    assert kept(tmp_path / "s")["id"].tolist() == rows


@pytest.mark.parametrize("n_marked", [1, 3, 500, 4999])
@pytest.mark.parametrize("order", ["sorted", "shuffled", "tied"])
def test_the_least_keys_are_marked_whatever_their_order(monkeypatch, n_marked, order):
    for name, number in {"_FEW": 100, "_SAMPLED": 64, "_MARGIN": 2}.items():
        monkeypatch.setattr(_sampling, name, number)
    rng, marks = np.random.default_rng(0), np.zeros(9000, dtype=bool)
    keys = {"sorted": np.arange(9000), "shuffled": rng.permutation(9000), "tied": rng.integers(0, 9, 9000)}
    keys, rows, ties = keys[order] / 8, np.sort(rng.permutation(9000)[:5000]), rng.permutation(9000)
    _sampling._mark_least(marks, rows, keys, n_marked, ties)
    expected = rows[np.lexsort([ties[rows], keys[rows]])][:n_marked]
    assert np.flatnonzero(marks).tolist() == np.sort(expected).tolist()


@pytest.mark.parametrize("intervention", [SAMPLER(random_state=0), Reweigher()], ids=repr)
def test_missing_attributes_are_a_group_with_a_warning(
    frame, valuation, folder, values, tmp_path, intervention
):
    n_missing = int(frame["region"].isna().sum())
    with pytest.warns(UserWarning, match=f"'region' is unknown in {n_missing} of 900 rows: they are") as told:
        change = check_as_in_memory(frame, valuation, folder, values, tmp_path, intervention, "region")
    assert len(told) == 2
    assert {group.title for group in change.groups} == {"n", "s", "unknown"}


class BestOfEveryCell(BaseIntervention):
    """An intervention of a user's own, of rows and utilities, labels and groups, weights and a seed."""

    uses_values = True

    def __init__(self, utility=None, valuator=None, random_state=0):
        self.utility, self.valuator, self.random_state = utility, valuator, random_state

    def _choose(self, labels, groups, utilities, sample_weight, generator):
        cells = groups.codes * len(labels.classes) + labels.codes
        high = utilities >= np.median(utilities)
        return TrainingSet(np.flatnonzero(high & (cells > 0) & (generator.random(len(cells)) < 0.9)))


class Halved(Reweigher):
    """Another one, which leaves out rows and weighs the others."""

    def _choose(self, labels, groups, utilities, sample_weight, generator):
        return TrainingSet(np.arange(0, len(labels.codes), 2), 0.5 + groups.codes[::2].astype(np.float32))


def test_interventions_of_ones_own_work_on_files(frame, valuation, folder, values, tmp_path):
    given = {"sensitive_features": frame["sex"], "valuation": valuation}
    mine = BestOfEveryCell()
    fado.sample_files(folder, out=tmp_path / "s", values=values, intervention=mine, **ASKED)
    expected = mine.fit(frame, frame["hired"], **given).training_set_.rows
    assert kept(tmp_path / "s")["id"].tolist() == expected.tolist()
    change = fado.reweigh_files(folder, out=tmp_path / "w.parquet", intervention=Halved(), **ASKED)
    weights = weights_in(tmp_path / "w.parquet")
    assert (weights[1::2] == 0).all()
    assert (weights[::2] == np.where(frame["sex"] == "f", 0.5, 1.5)[::2]).all()
    assert (change.n_rows, change.n_rows_after) == (N, N // 2)
    fado.sample_files(folder, out=tmp_path / "all", intervention=NoIntervention(), **ASKED)
    assert len(kept(tmp_path / "all")) == N


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


def test_small_groups_are_left_alone_with_the_warning_of_memory(tmp_path):
    frame = pd.DataFrame({"z": ["a"] * 500 + ["b"] * 500 + ["c"] * 4, "y": [1, 0] * 250 + [1, 0, 0, 0] * 126})
    frame.to_csv(tmp_path / "t.csv", index=False)
    sampler = RandomPrevalenceSampler(random_state=0)
    with pytest.warns(UserWarning, match=r"Group 'c' \(4 rows\), with fewer than 30 rows"):
        change = fado.sample_files(
            tmp_path / "t.csv", target="y", protected="z", out=tmp_path / "s", intervention=sampler
        )
    # b has 125 positives: to match a half, 250 of its 375 negatives go
    lines = {own.title: (own.rows, own.rows_after, own.reason) for own in change.groups}
    assert lines == {"a": (500, 500, ""), "b": (500, 250, ""), "c": (4, 4, "small")}


def test_neither_memory_nor_a_killed_run_before_changes_a_byte(folder, values, tmp_path):
    asked = {"values": values, "target": "hired", "protected": ["sex", "age>=50"], "weight": "survey"}
    asked["intervention"] = SAMPLER(random_state=0)
    (tmp_path / ".a.parquet.0123abcd.part").mkdir()
    (tmp_path / ".a.parquet.0123abcd.part" / "a.parquet").write_bytes(b"left")
    for name, memory in (("a", "120MB"), ("b", "4GB")):
        fado.sample_files(folder, out=tmp_path / f"{name}.parquet", memory=memory, **asked)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_values_that_do_not_fit_are_refused(folder, values, tmp_path, monkeypatch):
    monkeypatch.setattr(StoredValues, "n_bytes", 10**12)
    told = r"too small for the utility 'ranks', which may compare rows .* of all 900"
    asked = {"values": values, "intervention": SAMPLER(ranks), "memory": "1GB"}
    refused(told, folder, out=tmp_path / "s", **asked)
    assert not (tmp_path / "s").exists()


def test_reweighing_by_hand_from_csv_files(tmp_path):
    # P(f) P(1) / P(f, 1) = 1/2 * 1/2 / (1/8) = 2, and 2/3 for the other label
    hired = ["yes", "no", "no", "no", "yes", "yes", "yes", "no"]
    frame = pd.DataFrame({"sex": list("ffffmmmm"), "hired": hired})
    frame[:3].to_csv(tmp_path / "a.csv", index=False)
    frame[3:].to_csv(tmp_path / "b.csv", index=False)
    asked = {"intervention": Reweigher(), "positive": "no", "out": tmp_path / "w.parquet"}
    change = fado.reweigh_files(f"{tmp_path}/*.csv", **ASKED, **asked)
    expected = np.array([2, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 2])
    np.testing.assert_allclose(weights_in(tmp_path / "w.parquet"), expected)
    assert change.positive == "no"
    rates = [(group.positive_rate, group.positive_rate_after) for group in change.groups]
    assert rates == [(0.75, pytest.approx(0.5)), (0.25, pytest.approx(0.5))]
    # of women, weights 2, 2/3, 2/3, 2/3: 4^2 / (4 + 3 * 4/9) = 3
    assert [group.effective_size_after for group in change.groups] == [3, 3]


def test_more_than_two_labels_are_weighed_too(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.integers(0, 4, 500), "z": rng.choice(["a", "b"], 500)})
    frame.to_parquet(tmp_path / "t.parquet")
    asked = {"target": "y", "protected": "z", "intervention": Reweigher()}
    change = fado.reweigh_files(tmp_path / "t.parquet", out=tmp_path / "w.parquet", **asked)
    expected = Reweigher().fit(frame, frame["y"], sensitive_features=frame["z"]).sample_weight_
    assert (weights_in(tmp_path / "w.parquet") == expected).all()
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
    assert (weights_in(tmp_path / "w.parquet") == fitted.sample_weight_).all()
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
    numbers = {"y": np.array([0.0, 1.0, 0.0, 0.5, 0.5, 0.5]), "z": np.zeros(6)}
    Valuation.from_values(numbers, scales=dict.fromkeys("yz", ENTROPY)).save(tmp_path / "v.parquet")
    asked = {"values": tmp_path / "v.parquet", "target": "y", "protected": "z"}
    reweigher = UAR(LinearUtility(1.0), prevalence_correction=1.0)
    with pytest.warns(UserWarning, match="label 0") as told:
        fado.reweigh_files(tmp_path / "t.parquet", out=tmp_path / "w", intervention=reweigher, **asked)
    sentences = "\n".join(str(warning.message) for warning in told)
    assert "No rows with label 0 in group 'b'" in sentences
    assert "All rows with label 0 in group 'a' have the weight 0" in sentences


@pytest.mark.parametrize("weight", [1e308, 1e-320])
def test_weights_that_cannot_be_multiplied_are_refused(frame, tmp_path, weight):
    frame.assign(survey=weight).to_parquet(tmp_path / "d.parquet")
    told = r"`weight` must be 0 or between 1e-100 .* in every row of '.*d.parquet'"
    asked = {"weight": "survey", "intervention": Reweigher(), "out": tmp_path / "w.parquet"}
    refused(told, tmp_path / "d.parquet", fado.reweigh_files, **asked)
    assert not (tmp_path / "w.parquet").exists()


def test_values_of_another_table_are_refused(frame, folder, values, tmp_path):
    out = tmp_path / "s"
    in_files(frame.iloc[:-1], tmp_path / "shorter", [0, 899])
    refused("are of 900 rows, and the table has 899", tmp_path / "shorter", values=values, out=out)
    frame.iloc[:-1].to_csv(tmp_path / "shorter.csv", index=False)
    refused("are of 900 rows, and the table has 899", tmp_path / "shorter.csv", values=values, out=out)
    pd.concat([frame, frame]).to_csv(tmp_path / "longer.csv", index=False)
    refused("are of 900 rows, and the table has", tmp_path / "longer.csv", values=values, out=out)
    refused("'age<30', which", folder, values=values, out=out, protected="age < 30")
    assert not out.exists()


@pytest.mark.filterwarnings("ignore:Models will learn little")
def test_values_made_with_other_labels_are_refused(frame, folder, tmp_path):
    asked = {**ASKED, "train_rows": 200, "n_bags": 5, "drop": ["when", "region"]}
    fado.value_files(folder, out=tmp_path / "v", **asked)
    change = fado.sample_files(folder, values=tmp_path / "v", out=tmp_path / "s", **ASKED)
    assert change.n_rows == 900
    turned = in_files(frame.iloc[::-1], tmp_path / "turned", [0, 900])
    refused("or with the rows in another order", turned, values=tmp_path / "v", out=tmp_path / "x")


def test_rows_without_a_value_are_refused_as_in_memory(folder, tmp_path):
    numbers, path = np.full(900, 0.5), tmp_path / "v.parquet"
    numbers[[70, 500]] = np.nan
    scales = {"y": ENTROPY, "sex": ENTROPY}
    Valuation.from_values({"y": numbers, "sex": np.full(900, 0.5)}, scales=scales).save(path)
    told = r"2 of 900 rows have no utility, .* \(the first is row 70, counted from 0\)"
    refused(told, folder, values=path, out=tmp_path / "s")


def test_effects_and_files_that_are_no_values_are_refused(folder, tmp_path):
    effects = Valuation.from_values({"y": np.arange(900.0), "sex": np.arange(900.0)})
    for name, told in (
        ("v.parquet", "another scale than .* needs all rows in memory"),
        ("v.csv", "must be a directory of parts or end in .parquet"),
    ):
        effects.save(tmp_path / name)
        refused(told, folder, values=tmp_path / name, out=tmp_path / "s")
    refused("There is no file or directory", folder, values=tmp_path / "none", out=tmp_path / "s")
    refused("`values` must be given, as UtilityAwarePrev", folder, out=tmp_path / "s")


class Repeated(NoIntervention):
    """Makes rows, or weighs them too."""

    def __init__(self, made=None):
        self.made = made

    def _choose(self, labels, *_):
        return TrainingSet(np.arange(3), **{self.made: np.arange(3)})


def test_what_needs_all_rows_says_so(folder, tmp_path):
    out = tmp_path / "w"
    told = "FairlearnGrid needs all rows in memory, as it changes labels"
    refused(told, folder, fado.reweigh_files, intervention=FairlearnGrid(), out=out)
    refused("in memory, as it makes new rows", folder, intervention=Repeated("parents"), out=out)
    refused("in memory, as it also weighs them", folder, intervention=Repeated("weights"), out=out)
    refused("must change rows, and Reweigher changes weights", folder, intervention=Reweigher(), out=out)
    refused("must be an intervention", folder, kind=TypeError, intervention="rps", out=out)
    assert not out.exists()


def test_places_that_cannot_be_written_are_refused_before_a_row_is_read(folder, values, tmp_path):
    asked = {"values": values, "intervention": RandomPrevalenceSampler()}
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    (tmp_path / ".full.0123abcd.part").mkdir()  # of one who was killed when all was done
    refused("is not empty: name another `out`", folder, out=tmp_path / "full", **asked)
    assert not (tmp_path / ".full.0123abcd.part").exists()
    refused("must be a directory, or end in .parquet", folder, out=tmp_path / "s.csv", **asked)
    refused("which is read as well", folder, out=folder, **asked)
    refused("would read the next time", folder, out=folder / "s", **asked)
    refused(r"\*' would read the next time", f"{folder}/*", out=folder / "s", **asked)
    refused(r"\*' would read the next time", f"{folder}/*", out=folder / "s.parquet", **asked)
    refused("which is read as well", folder, out=values, values=values)
    refused("does not exist: create it first", folder, out=tmp_path / "no" / "s", **asked)


def test_other_settings_are_refused_in_a_sentence(frame, folder, tmp_path):
    rps, out = RandomPrevalenceSampler(), tmp_path / "s"
    refused("`target` must name a column .* got 'hird'", folder, intervention=rps, out=out, target="hird")
    refused("'age' has more than 20 different numbers", folder, intervention=rps, out=out, protected="age")
    refused("is true in no row", folder, intervention=rps, out=out, protected="age > 200")
    refused("`weight` names 'sex', which holds text", folder, intervention=rps, out=out, weight="sex")
    refused("must be one of the labels 0 and 1", folder, out=out, intervention=rps.set_params(pos_label=7))
    in_files(frame.assign(hired=None, survey=0.0), tmp_path / "bad", [0, 900])
    rps = RandomPrevalenceSampler()
    refused("The target is missing in", tmp_path / "bad", intervention=rps, out=out)
    in_files(frame.assign(survey=0.0), tmp_path / "light", [0, 900])
    refused("`weight` is zero in every row", tmp_path / "light", intervention=rps, out=out, weight="survey")
    refused("must be in", folder, intervention=RandomPrevalenceSampler(strength=2.0), out=out)
    assert not out.exists()


def test_a_bound_too_small_names_the_least_that_works(folder, tmp_path, monkeypatch):
    asked = {**ASKED, "intervention": RandomPrevalenceSampler(random_state=0)}
    match = r"`memory` of 2.0 MB is too small to decide .* the least that works is"
    with pytest.raises(ValueError, match=match) as told:
        fado.sample_files(folder, out=tmp_path / "s", memory="2MB", **asked)
    least = int(str(told.value).split("works is ")[1].split()[0])
    fado.sample_files(folder, out=tmp_path / "s", memory=f"{least}MB", **asked)
    refused("too small", folder, out=tmp_path / "t", memory=f"{least - 1}MB", **asked)
    monkeypatch.setattr(RandomPrevalenceSampler, "_row_bytes", (10**7, 10**7))
    match = "`memory` of 8.0 GB is too small to decide on 900 rows at once, .* that works is 9,[0-9]+ MB"
    refused(match, folder, memory="8GB", out=tmp_path / "t", **asked)


@pytest.mark.parametrize(
    ("code", "sentence"), [(errno.ENOSPC, r", .* are free\): make room"), (errno.EIO, r"\): fix that")]
)
def test_what_cannot_be_written_leaves_nothing(folder, tmp_path, monkeypatch, code, sentence):
    def fail(*_):
        raise OSError(code, "it failed")

    monkeypatch.setattr(_large, "_write", fail)
    told = rf"^The rows cannot be written to '{tmp_path}/w.*parquet' \(it failed{sentence}"
    for name in ("w", "w.parquet"):
        asked = {"kind": OSError, "intervention": Reweigher(), "out": tmp_path / name}
        refused(told, folder, fado.reweigh_files, **asked)
    assert not list(tmp_path.iterdir())


def test_neither_memory_nor_the_cut_into_files_changes_a_byte(frame, valuation, values, tmp_path):
    asked = {**ASKED, "values": values, "weight": "survey"}
    asked["intervention"] = UtilityAwareReweigher(floor=0.1, prevalence_correction=1.0)
    found = set()
    for number, (ends, rows) in enumerate(
        [([0, 900], 900), ([0, 7, 64, 500, 900], 33), ([0, 899, 900], 128)]
    ):
        cut = in_files(frame, tmp_path / str(number), ends, row_group_size=rows)
        for memory in ("90MB", "8GB"):
            out = tmp_path / f"{number}-{memory}.parquet"
            fado.reweigh_files(cut, out=out, memory=memory, **asked)
            found.add(out.read_bytes())
    assert len(found) == 1


def test_parts_have_names_in_order_and_rows_in_theirs(frame, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(_large, "_ROWS_OF_A_PART", 256)
    monkeypatch.setattr(_large, "_MOST_ROWS", 128)
    fado.reweigh_files(folder, out=tmp_path / "w", intervention=Reweigher(), **ASKED)
    fado.reweigh_files(folder, out=tmp_path / "w.parquet", intervention=Reweigher(), **ASKED)
    parts = sorted((tmp_path / "w").iterdir())
    assert [path.name for path in parts] == [f"part-0000{number}.parquet" for number in range(4)]
    tables = [pa.parquet.read_table(path) for path in parts]
    assert [table.num_rows for table in tables] == [256, 256, 256, 132]
    assert pa.concat_tables(tables).equals(pa.parquet.read_table(tmp_path / "w.parquet"))
    footer = pa.parquet.read_metadata(parts[0])
    assert (footer.num_row_groups, footer.row_group(0).column(0).compression) == (2, "ZSTD")


@pytest.mark.parametrize("weight", [None, "survey"])
@pytest.mark.parametrize(
    ("function", "intervention"),
    [
        (fado.sample_files, SAMPLER(random_state=0)),
        (fado.sample_files, RandomPrevalenceSampler(random_state=0)),
        (fado.reweigh_files, UAR()),
        (fado.reweigh_files, UAR(floor=0.1, prevalence_correction=1.0)),
        (fado.reweigh_files, Reweigher()),
    ],
    ids=["uaps", "rps", "uar", "uar-corrected", "rw"],
)
def test_no_more_is_held_of_a_row_than_is_said(tmp_path, monkeypatch, function, intervention, weight):
    """Of so many rows that what a block takes does not show."""
    n_rows, rng = 400_000, np.random.default_rng(0)
    monkeypatch.setattr(_large, "BLOCK_ROWS", 1 << 11)
    monkeypatch.setattr(_base, "_ROWS_AT_A_TIME", 1 << 11)
    for name, number in {"_FEW": 1 << 12, "_SAMPLED": 1 << 12, "_MARGIN": 1 << 8}.items():
        monkeypatch.setattr(_sampling, name, number)
    frame = pd.DataFrame({"sex": rng.choice([0, 1], n_rows), "survey": rng.choice([0.5, 1.0], n_rows)})
    frame["hired"] = (rng.random(n_rows) < 0.02 + 0.03 * frame["sex"]).astype(int)
    table = in_files(frame, tmp_path / "table", [0, n_rows // 3, n_rows], row_group_size=1 << 13)
    Valuation.from_probabilities(rng.random(n_rows), {"sex": rng.random(n_rows)}).save(tmp_path / "v.parquet")
    asked = {**ASKED, "values": tmp_path / "v.parquet", "weight": weight, "intervention": intervention}
    tracemalloc.start()
    function(table, out=tmp_path / "out", **asked)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (
        held / n_rows <= intervention._row_bytes[weight is not None] + 3
    )  # for what does not grow with rows
