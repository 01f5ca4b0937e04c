"""A table in files, valued within a bound on memory: the oracle is a hand-written loop."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone

import fado
from fado import OutOfBagEntropy, Valuation
from fado.engine import LightGBMEngine, Task, default_estimators
from fado.tabular import (
    Table,
    column_from,
    deal_small_strata,
    fold_of,
    protected_from,
    row_hash,
    variable_from,
)
from fado.valuation import digest_of_target, load_models, plan_files, summarise_files
from fado.valuation.bulk import _curve, _learning, _plan

N = 4000
FIELDS = ("values", "standard_error", "counts", "agreement")


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


def folds_by_hand(tile):
    """Deal rows by their hashes; those of joint classes of fewer than 1,000 rows in turn."""
    folds = fold_of(0, tile, np.arange(N), 5)
    joint = FRAME.groupby(["default", "sex", FRAME["age"] >= 50]).ngroup().to_numpy()
    small = np.flatnonzero(np.bincount(joint)[joint] < 1000)
    assert 0 < len(small) < N
    folds[small] = deal_small_strata(0, tile, small, joint[small], 5)
    return folds


def test_values_are_those_of_a_loop_over_bags(data, tmp_path):
    """With rows enough for all: fit the default models on the other folds, score the fold, average."""
    valuation = value(data, tmp_path / "v", train_rows=N, n_bags=10)
    features = FRAME.drop(columns=["id", "default"])
    columns = {
        "y": FRAME["default"],
        "sex": FRAME["sex"],
        "age>=50": protected_from(FRAME, "age>=50"),
    }
    variables = {name: variable_from(column_from(name, own)) for name, own in columns.items()}
    hidden = {"y": [], "sex": ["sex"], "age>=50": ["age"]}
    table = Table.from_input(features)
    engine = LightGBMEngine(table, variables["y"], by_content=True)
    told = valuation.provenance
    seeds = np.random.SeedSequence([0, 1]).generate_state(30) % 2**31
    classifier = default_estimators(table.n_columns)[0]
    for place, (name, variable) in enumerate(variables.items()):
        sums, counts = np.zeros(N), np.zeros(N)
        excluded = frozenset(features.columns.get_loc(column) for column in hidden[name])
        own = replace(variable, excluded=excluded, sees_target=name != "y")
        paced = clone(classifier).set_params(
            n_estimators=told.trees[name], learning_rate=told.learning_rates[name]
        )
        for bag in range(10):
            left_out = folds_by_hand(bag // 5) == bag % 5
            rows = np.flatnonzero(~left_out).astype(np.int32)
            task = Task(
                paced, own, rows, int(seeds[10 * place + bag]), np.flatnonzero(left_out).astype(np.int32)
            )
            p = engine.fit(task).scores
            sums[left_out] -= p * np.log2(p) + (1 - p) * np.log2(1 - p)
            counts[left_out] += 1
        assert (counts == 2).all()
        np.testing.assert_allclose(valuation[name], sums / counts, rtol=0, atol=1e-9)


def test_ranks_are_those_of_values_in_memory(data, tmp_path):
    valuation = value(data, tmp_path / "v", n_bags=20)
    z = {"sex": FRAME["sex"]}
    memory = OutOfBagEntropy(n_bags=20, z_exclude={"sex": ["sex"]}, random_state=0)
    memory.fit(FRAME.drop(columns=["id", "default"]), FRAME["default"], sensitive_features=z)
    for name in ("y", "sex"):
        assert spearmanr(valuation[name], memory.valuation_[name]).statistic > 0.9
    assert valuation.provenance.target_pattern == memory.valuation_.provenance.target_pattern
    assert valuation.provenance.kind_of("sex") == "classes"


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


def test_neither_files_nor_blocks_nor_their_order_change_a_bit(valued, tmp_path, monkeypatch):
    monkeypatch.setattr(_plan, "BLOCK_ROWS", 137)
    monkeypatch.setattr(_plan, "_PART_ROWS", 500)
    folder = write_parts(tmp_path / "d", n_files=3, row_group_size=171)
    files = sorted(folder.iterdir(), reverse=True)
    valuation = value(files, tmp_path / "v", train_rows=1000)
    assert len(list((tmp_path / "v").glob("part-*"))) > 6
    assert_same(valuation, valued[0])


def test_the_seed_changes_values(data, valued, tmp_path):
    other = value(data, tmp_path / "v", train_rows=1000, random_state=1)
    assert not np.array_equal(other["y"], valued[0]["y"])


def test_one_file_holds_what_the_parts_hold(data, valued, tmp_path):
    one = value(data, tmp_path / "v.parquet", train_rows=1000)
    assert_same(one, valued[0])
    assert one.metadata == valued[0].metadata
    assert [path.name for path in tmp_path.iterdir()] == ["v.parquet"]


def test_csv_files_are_valued_like_parquet(tmp_path):
    frame = FRAME.drop(columns=["town"])
    folder = tmp_path / "csv"
    folder.mkdir()
    frame.iloc[:1500].to_csv(folder / "a.csv", index=False)
    frame.iloc[1500:].to_csv(folder / "b.csv", index=False)
    frame.astype({"age": float, "id": float}).to_parquet(tmp_path / "one.parquet")
    assert_same(
        value(folder, tmp_path / "v", train_rows=1000),
        value(tmp_path / "one.parquet", tmp_path / "w", train_rows=1000),
    )


def test_a_directory_is_read_column_by_column(valued):
    lazy = Valuation.load(valued[1])
    assert len(lazy) == N
    assert lazy.shape == (N, 3)
    arrays = lazy._arrays["values"]
    assert not arrays._read
    assert lazy["sex"].dtype == np.float64
    assert list(arrays._read) == ["sex"]
    assert lazy.counts.dtypes.unique().tolist() == [np.dtype("int32")]
    assert_same(lazy.take(slice(None)), valued[0])


def test_some_rows_are_taken_without_a_column_of_all(valued):
    lazy, rows = Valuation.load(valued[1]), np.array([N - 1, 0, 5, 5, 700])
    taken = lazy.take(rows)
    assert len(taken) == 5
    np.testing.assert_array_equal(taken.values, valued[0].values.iloc[rows])
    np.testing.assert_array_equal(taken.take(np.array([4, 1])).values, valued[0].values.iloc[[700, 0]])
    assert not lazy._arrays["values"]._read
    np.testing.assert_array_equal(taken.counts["y"], valued[0].counts["y"].iloc[rows])


def test_a_continuous_target_and_weights(tmp_path):
    frame = FRAME.assign(default=FRAME["income"] * 3 + FRAME["age"] / 50, w=1 + FRAME["id"] % 3)
    valuation = value(write_parts(tmp_path / "d", frame), tmp_path / "v", weight="w", train_rows=N)
    assert valuation.provenance.kind_of("y") == "continuous"
    assert valuation["y"].min() >= 0
    assert valuation["y"].max() == 1 or valuation["y"].max() > 0.9
    assert valuation.provenance.target_pattern is None
    assert "w" not in valuation.provenance.split_gains.columns


def test_the_scale_of_weights_changes_no_value(tmp_path, monkeypatch):
    for module in (_learning, _curve):
        monkeypatch.setattr(module, "FIRST_SIZE", 500)  # so that there is a learning curve
    weights = np.random.default_rng(0).uniform(0.5, 3.0, 2000)
    valued = []
    for number, scale in enumerate((1.0, 2.0**-40)):
        frame = FRAME[:2000].assign(w=scale * weights)
        data = write_parts(tmp_path / f"d{number}", frame)
        valued.append(value(data, tmp_path / f"v{number}", weight="w", protected="sex"))
    pd.testing.assert_frame_equal(valued[0].values, valued[1].values, check_exact=True)
    curves = [own.provenance.settings["learning_curve"] for own in valued]
    assert curves[0] == curves[1]
    assert curves[0]["agreement"]


def test_rare_classes_are_in_every_fold(tmp_path):
    frame = FRAME.copy()
    frame.loc[np.arange(0, N, 100), "sex"] = "x"  # 40 rows in strata of a few
    value(write_parts(tmp_path / "d", frame), tmp_path / "v", protected="sex", train_rows=N)
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


def test_the_learning_curve_is_told_and_its_choice_gives_the_same_values(tmp_path, monkeypatch):
    monkeypatch.setattr(_curve, "FIRST_SIZE", 300)
    monkeypatch.setattr(_learning, "FIRST_SIZE", 300)
    monkeypatch.setattr(_curve, "ENOUGH", 0.5)  # the first doubling is enough
    folder = write_parts(tmp_path / "d")
    chosen = value(folder, tmp_path / "v")
    curve = chosen.metadata["learning_curve"]
    assert (chosen.metadata["train_rows"], curve["compared_with"]) == (600, 1200)
    assert set(curve["agreement"]) == {"y", "sex", "age>=50"}
    assert 0 < curve["agreement"]["y"] < 1
    assert curve["more_rows_would_help"] is False
    assert_same(value(folder, tmp_path / "w", train_rows=600), chosen)


def test_the_sample_has_the_smallest_hashes(valued):
    rows = np.argsort(row_hash(0, np.arange(N)))[:1250]
    models = load_models(valued[1] / "_models")
    target = variable_from(column_from("y", FRAME["default"].iloc[np.sort(rows)]))
    assert models.target_digest == digest_of_target(target)


def test_the_plan_is_told(data):
    plan = plan_files(data, memory="500MB", train_rows=1000, **SETTINGS)
    assert (plan.rows, plan.train_rows, plan.parts, plan.n_bags, plan.tiles) == (N, 1000, 4, 5, 1)
    assert 0 < plan.peak_bytes < 5 * 10**8
    assert plan.seconds > 0
    said = str(plan)
    assert "4,000 in 4 files" in said
    assert "1,000 per bag (as asked for), 5 bags, 3 variables" in said
    assert "a learning curve decides" in str(plan_files(data, memory="500MB", **SETTINGS))


@pytest.mark.parametrize("drop", [None, (), "id", ["id"], np.array(["id"])], ids=repr)
def test_columns_are_named_by_a_list_a_text_or_none(tmp_path, drop):
    data = write_parts(tmp_path / "d", FRAME[:400], n_files=1)
    asked = {"drop": drop, "exclude": None, "train_rows": 100}
    seen = value(data, tmp_path / "v", **asked).metadata["split_gains"]["columns"]
    assert ("id" in seen) is (drop is None or len(drop) == 0)


@pytest.mark.parametrize("name", ["drop", "exclude", "protected"])
def test_what_names_no_columns_gets_a_sentence(data, name):
    with pytest.raises(TypeError, match=f"^`{name}` must be a list of column names, got 7.$"):
        plan_files(data, **SETTINGS | {name: 7})
