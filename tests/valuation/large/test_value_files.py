"""A table in files, valued within a bound on memory: the oracle is the same table in memory."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import fado
from fado import OutOfBagEntropy, Valuation
from fado.datasets import protected_from
from fado.tabular import Table, row_hash
from fado.valuation import load_models, plan_files, summarise_files
from fado.valuation._probabilities import normalised_entropy
from fado.valuation.large import _plan, _scoring

N = 4000
FIELDS = ("values", "standard_error", "counts", "label_probability")


def make_frame(n_rows=N, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": np.arange(n_rows),
            "age": rng.integers(18, 90, n_rows),
            "income": rng.normal(size=n_rows),
            "debt": rng.normal(size=n_rows),
            "town": rng.choice(["Ulm", "Bonn", "Kiel", None], n_rows),
            "sex": rng.choice(["f", "m"], n_rows),
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "debt"] = np.nan
    score = 2 * frame["income"] + frame["debt"].fillna(0) * (frame["town"] == "Ulm")
    frame["default"] = np.where(score + rng.normal(size=n_rows) < -1, "yes", "no")
    frame["sex"] = np.where(frame["income"] + rng.normal(size=n_rows) > 0.5, "m", frame["sex"])
    return frame


FRAME = make_frame()
SETTINGS = {"target": "default", "protected": ["sex", "age >= 50"], "drop": ["id"], "n_bags": 5}


def write_parts(folder, frame=FRAME, n_files=4, row_group_size=300):
    folder.mkdir(exist_ok=True)
    edges = np.linspace(0, len(frame), n_files + 1).astype(int)
    for number, (start, stop) in enumerate(pairwise(edges)):
        part = frame.iloc[start:stop].reset_index(drop=True)
        part.to_parquet(folder / f"p{number}.parquet", row_group_size=row_group_size)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("data") / "parts")


def value(data, out, **more):
    return fado.value_files(data, out=out, **{"memory": "500MB", "n_jobs": 2, **SETTINGS, **more})


@pytest.fixture(scope="module")
def valued(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("values") / "v"
    return value(data, out, train_rows=1000), out


def assert_same(one, other):
    assert one.variables == other.variables
    for field in FIELDS:
        for name in one.variables:
            np.testing.assert_array_equal(one.field(field, name), other.field(field, name))


# --- all rows are learnt from: values are those of memory, to the bit


def make_mixed(n_rows=900):
    """Numbers, text, categories, booleans, missing entries, weights, and rows that belong together."""
    frame, rng = make_frame(n_rows).drop(columns="id"), np.random.default_rng(1)
    frame["grade"] = pd.Categorical(
        rng.choice(["low", "mid", "high"], n_rows), ["none", "mid", "low", "high"]
    )
    frame["member"] = rng.random(n_rows) < 0.4
    frame["sex"] = frame["sex"].where(rng.random(n_rows) > 0.03)
    frame["weight"] = rng.uniform(0.5, 3.0, n_rows)
    frame["person"] = rng.integers(0, n_rows // 3, n_rows)
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["person"], unit="D")
    return frame


MIXED = make_mixed()
BESIDE = ["weight", "person", "day"]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    for ending in ("parquet", "csv"):
        (folder / ending).mkdir()
        for number, rows in enumerate(np.array_split(np.arange(len(MIXED)), 3)):
            part = MIXED.iloc[rows]
            path = folder / ending / f"{number}.{ending}"
            _ = part.to_csv(path, index=False) if ending == "csv" else part.to_parquet(path, index=False)
    return folder


def in_memory(weight=None, groups=None, target=None, **settings):
    valuator = OutOfBagEntropy(z_exclude={"sex": ["sex"], "age>=50": ["age"]}, **settings)
    return valuator.fit(
        MIXED.drop(columns=["default", *BESIDE]),
        MIXED["default"] if target is None else target,
        sensitive_features={"sex": MIXED["sex"], "age>=50": protected_from(MIXED, "age>=50", named=True)},
        sample_weight=None if weight is None else MIXED[weight],
        groups=None if groups is None else MIXED[groups],
    ).valuation_


@pytest.mark.filterwarnings("ignore:Protected attribute 'sex' is unknown")
@pytest.mark.parametrize(
    ("ending", "workers", "weight", "groups", "fraction"),
    [
        ("parquet", 1, None, None, 0.2),
        ("parquet", 2, "weight", None, 0.37),
        ("parquet", 2, None, "day", 0.5),
        ("csv", 1, "weight", "person", 0.37),
        ("csv", 2, "weight", "day", 0.2),
        ("csv", 2, None, None, 0.5),
    ],
)
def test_files_are_valued_as_in_memory_to_the_bit(mixed, tmp_path, ending, workers, weight, groups, fraction):
    settings = {"n_bags": 5, "unseen_fraction": fraction, "random_state": 3}
    found = fado.value_files(
        mixed / ending,
        target="default",
        protected=["sex", "age>=50"],
        out=tmp_path / "v",
        drop=[name for name in BESIDE if name not in (weight, groups)],
        weight=weight,
        groups=groups,
        n_jobs=workers,
        memory="500MB",
        **settings,
    )
    expected = in_memory(weight, groups, n_jobs=1, **settings)
    assert_same(found, expected)
    told, wanted = found.metadata, expected.metadata
    assert {name: told[name] for name in wanted} == wanted


@pytest.mark.filterwarnings("ignore:Protected attribute 'sex' is unknown")
def test_a_continuous_target_is_valued_as_in_memory_to_the_bit(tmp_path):
    target = MIXED["income"] * 3 + MIXED["age"] / 50
    MIXED.assign(default=target).drop(columns=["person", "day"]).to_parquet(tmp_path / "one.parquet")
    found = fado.value_files(
        tmp_path / "one.parquet",
        target="default",
        protected=["sex", "age>=50"],
        weight="weight",
        out=tmp_path / "v",
        train_rows=len(MIXED),
        n_bags=5,
        memory="500MB",
    )
    assert found.provenance.kind_of("y") == "continuous"
    assert found.provenance.target_pattern is None
    assert "weight" not in found.provenance.split_gains.columns
    assert_same(found, in_memory("weight", target=target, n_bags=5, random_state=0))


def test_groups_that_are_missing_name_the_file(tmp_path):
    MIXED.assign(person=MIXED["person"].where(MIXED["age"] > 20)).to_parquet(tmp_path / "holes.parquet")
    with pytest.raises(ValueError, match=r"`groups` is missing in \d+ or more rows of '.*holes\.parquet'"):
        value(tmp_path, tmp_path / "_v", groups="person", drop=["day", "weight"])


# --- a sample is learnt from


def scores_by_hand(models, features, target, bags):
    """The mean entropies over the models of some bags, row by row, of variables of two classes."""
    found = {}
    table = Table.from_input(features)
    for own in models.kept:
        p = np.array([normalised_entropy(model.scorer.score(table, target)) for model in own.models])
        found[own.variable.name] = np.where(bags.T, p, 0).sum(axis=0) / bags.sum(axis=1)
    return found


def test_the_sample_is_valued_as_in_memory_and_each_other_row_by_as_many_models(data, tmp_path):
    found = value(data, tmp_path / "v", train_rows=1000, n_bags=10)
    hashes = row_hash(0, np.arange(N))
    rows = np.sort(np.argsort(hashes)[:1250])
    sample = FRAME.iloc[rows]
    features = FRAME.drop(columns=["id", "default"])
    hidden = {"sex": ["sex"], "age>=50": ["age"]}
    memory = OutOfBagEntropy(z_exclude=hidden, random_state=0, keep_models=True)
    memory.fit(
        features.iloc[rows],
        sample["default"],
        sensitive_features={
            "sex": sample["sex"],
            "age>=50": protected_from(sample, "age>=50", named=True),
        },
    )
    assert_same(found.take(rows), memory.valuation_)
    assert load_models(tmp_path / "v" / "_models").target_digest == memory.models_.target_digest
    begin = (hashes % np.uint64(10)).astype(int)
    bags = np.zeros((N, 10), dtype=bool)
    bags[np.arange(N), begin] = bags[np.arange(N), (begin + 1) % 10] = True
    models = load_models(tmp_path / "v" / "_models")
    expected = scores_by_hand(models, features, (FRAME["default"] == "yes").to_numpy().astype(int), bags)
    others = np.setdiff1d(np.arange(N), rows)
    for name in found.variables:
        np.testing.assert_allclose(found[name][others], expected[name][others], rtol=0, atol=1e-12)


def test_no_row_is_scored_by_a_model_that_has_seen_its_group(tmp_path):
    """A group tells its label: who has seen another row of it knows it, and nobody else does."""
    rng = np.random.default_rng(0)
    person = rng.integers(0, 400, 3000)
    place = rng.normal(size=400)
    frame = pd.DataFrame({"person": person, "place": place[person], "noise": rng.normal(size=3000)})
    frame["z"] = rng.choice(["f", "m"], 3000)
    frame["y"] = rng.integers(0, 2, 400)[person]
    frame.to_parquet(tmp_path / "one.parquet")
    asked = {"target": "y", "protected": "z", "n_bags": 5, "memory": "500MB", "train_rows": 1600}
    apart = fado.value_files(tmp_path / "one.parquet", out=tmp_path / "v", groups="person", **asked)
    split = fado.value_files(tmp_path / "one.parquet", out=tmp_path / "w", drop="person", **asked)
    others = row_hash(0, np.arange(3000)).argsort()[2000:]
    for rows in (others, np.setdiff1d(np.arange(3000), others)):
        assert apart.label_probability["y"].iloc[rows].mean() < 0.55
        assert split.label_probability["y"].iloc[rows].mean() > 0.65
    assert (apart.counts["y"] >= 1).all()


def test_every_row_is_left_out_equally_often_and_no_model_saw_the_rows_it_scores(valued):
    valuation, out = valued
    assert (valuation.counts == 1).all(axis=None)
    assert np.isfinite(valuation.values).all(axis=None)
    models = load_models(out / "_models")
    assert models.n_models == {"y": 5, "sex": 5, "age>=50": 5}
    assert models.n_rows == 1250  # a fifth of them is left out by each bag
    assert valuation.metadata["train_rows"] == 1000


@pytest.mark.parametrize("other", [{"n_jobs": 1, "memory": "3GB"}, {"n_jobs": 3, "memory": "250MB"}], ids=str)
def test_neither_memory_nor_workers_change_a_bit(data, valued, tmp_path, other):
    assert_same(value(data, tmp_path / "v", train_rows=1000, **other), valued[0])


def test_another_seed_gives_other_values(data, valued, tmp_path):
    other = value(data, tmp_path / "v", train_rows=1000, random_state=1)
    assert (other.values != valued[0].values).mean().min() > 0.9


def test_neither_files_nor_blocks_nor_their_order_change_a_bit(valued, tmp_path, monkeypatch):
    monkeypatch.setattr(_plan, "BLOCK_ROWS", 137)
    monkeypatch.setattr(_scoring, "PART_ROWS", 500)
    folder = write_parts(tmp_path / "d", n_files=3, row_group_size=171)
    files = sorted(folder.iterdir(), reverse=True)
    valuation = value(files, tmp_path / "v", train_rows=1000)
    assert len(list((tmp_path / "v").glob("part-*"))) > 6
    assert_same(valuation, valued[0])


def test_a_directory_is_read_column_by_column_and_some_rows_without_all(data, valued, tmp_path):
    lazy, rows = Valuation.load(valued[1]), np.array([N - 1, 0, 5, 5, 700])
    assert (len(lazy), lazy.shape) == (N, (N, 3))
    taken, arrays = lazy.take(rows), lazy._arrays["values"]
    np.testing.assert_array_equal(taken.values, valued[0].values.iloc[rows])
    np.testing.assert_array_equal(taken.take(np.array([4, 1])).values, valued[0].values.iloc[[700, 0]])
    np.testing.assert_array_equal(taken.counts["y"], valued[0].counts["y"].iloc[rows])
    assert not arrays._read
    assert lazy["sex"].dtype == np.float64
    assert list(arrays._read) == ["sex"]
    assert lazy.counts.dtypes.unique().tolist() == [np.dtype("int32")]
    one = value(data, tmp_path / "v.parquet", train_rows=1000)
    for other in (lazy.take(slice(None)), one):
        assert_same(other, valued[0])
    assert one.metadata == valued[0].metadata
    assert [path.name for path in tmp_path.iterdir()] == ["v.parquet"]


def test_the_scale_of_weights_changes_no_value(tmp_path):
    weights = np.random.default_rng(0).uniform(0.5, 3.0, 2000)
    valued = []
    for number, scale in enumerate((1.0, 2.0**-40)):
        frame = FRAME[:2000].assign(w=scale * weights)
        data = write_parts(tmp_path / f"d{number}", frame)
        valued.append(value(data, tmp_path / f"v{number}", weight="w", protected="sex"))
    pd.testing.assert_frame_equal(valued[0].values, valued[1].values, check_exact=True)


def test_rare_classes_are_in_every_bag_and_csv_files_valued_like_parquet(tmp_path):
    frame = FRAME.drop(columns="town").astype({"age": float, "id": float})
    frame.loc[np.arange(0, N, 100), "sex"] = "x"  # 40 rows in strata of a few
    (tmp_path / "csv").mkdir()
    frame.iloc[:1500].to_csv(tmp_path / "csv" / "a.csv", index=False)
    frame.iloc[1500:].to_csv(tmp_path / "csv" / "b.csv", index=False)
    asked = {"protected": "sex", "train_rows": 2000}
    found = value(tmp_path / "csv", tmp_path / "v", **asked)
    assert_same(found, value(write_parts(tmp_path / "d", frame), tmp_path / "w", **asked))
    models = load_models(tmp_path / "v" / "_models")
    assert models.classes("sex") == ("f", "m", "x")
    assert all(model.scorer.present == (0, 1, 2) for model in models.kept[1].models)


def test_the_summary_is_that_of_the_rows(data, valued):
    lines = summarise_files(valued[1])
    assert list(lines) == ["sex", "age>=50"]
    for line in lines["sex"]:
        members = (FRAME["sex"] == line.title).to_numpy()
        assert line.n_rows == members.sum()
        assert line.positive == pytest.approx((FRAME["default"] == "yes")[members].mean())
        assert line.mean_y == pytest.approx(valued[0]["y"][members].mean(), abs=1e-8)
        assert line.mean_z == pytest.approx(valued[0]["sex"][members].mean(), abs=1e-8)


def test_more_rows_than_help_are_not_learnt_from(tmp_path, monkeypatch):
    monkeypatch.setattr(_plan, "MOST_TRAIN_ROWS", 600)
    folder = write_parts(tmp_path / "d")
    by_default = value(folder, tmp_path / "v")
    assert by_default.metadata["train_rows"] == 600
    assert_same(value(folder, tmp_path / "w", train_rows=600), by_default)


def test_the_plan_is_told(data):
    plan = plan_files(data, memory="500MB", train_rows=1000, **SETTINGS)
    assert (plan.rows, plan.train_rows, plan.parts, plan.n_bags, plan.bags_per_row) == (N, 1000, 4, 5, 1)
    assert 0 < plan.peak_bytes < 5 * 10**8
    said = str(plan)
    assert "4,000 in 4 files" in said
    assert "1,000 per bag at most, 5 bags, 3 variables" in said
    assert plan_files(data, memory="500MB", **SETTINGS).train_rows == N


@pytest.mark.parametrize("name", ["drop", "exclude", "protected"])
def test_what_names_no_columns_gets_a_sentence(data, name):
    with pytest.raises(TypeError, match=f"^`{name}` must be a list of column names, got 7.$"):
        plan_files(data, **SETTINGS | {name: 7})
