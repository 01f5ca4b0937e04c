"""The data: what is wrong with them is said, what is named is read, and parts are split as asked."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fado.datasets import make_account_fraud
from fado.experiment import Experiment
from fado.experiment._data import read_data, split_at_random
from fado.experiment._training import Trainer
from fado.experiment._trial import Trial
from fado.metrics import evaluate

BAD_DATA = [
    ({"target": "fraud"}, "`data.target` must name a column .* got 'fraud'; did you mean"),
    ({"drop": ["id"]}, "The data have no column 'id'"),
    ({"positive": 2}, "`data.positive` must be one of the labels 0 and 1, got 2"),
    ({"target": "income"}, "The target 'income' must hold two labels, got"),
    ({"protected": "velocity_6h"}, "has [0-9]+ different numbers, too many for groups"),
    ({"protected": "age>=50"}, "must name a column of the table"),
]


@pytest.mark.parametrize(("change", "message"), BAD_DATA)
def test_bad_data_are_refused_before_a_store_is_made(table, tmp_path, change, message):
    table["data"] |= change
    with pytest.raises(ValueError, match=message):
        Experiment(table).run(tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_the_larger_label_is_positive_unless_another_is_named(table):
    table["data"].pop("positive")
    larger = read_data(Experiment(table).config)
    table["data"]["positive"] = 0
    named = read_data(Experiment(table).config)
    assert (larger.positive_label, named.positive_label) == ("fraud_bool = 1", "fraud_bool = 0")
    assert (larger.positive == ~named.positive).all()


def test_random_parts_hold_their_share_of_every_cell(table):
    data = read_data(Experiment(table).config)
    cells = data.groups.codes * 2 + data.positive
    for cell in np.unique(cells):
        n = (cells == cell).sum()
        for part, share in (("train", 0.5), ("validation", 0.25), ("test", 0.25)):
            assert abs((cells[data.parts[part]] == cell).sum() - share * n) <= 1
    assert sum(map(len, data.parts.values())) == 2000
    assert len(np.unique(np.concatenate(list(data.parts.values())))) == 2000


@pytest.fixture
def customers(table, tmp_path):
    """A table whose rows belong to customers and have weights, and the configuration that reads it."""
    frame = make_account_fraud(2000, random_state=0)
    rng = np.random.default_rng(1)
    frame["customer"] = rng.integers(0, 400, size=2000)
    frame["weight"] = rng.choice([0.5, 1.0, 4.0], size=2000)
    frame.to_parquet(tmp_path / "data.parquet")
    about = {"path": str(tmp_path / "data.parquet"), "target": "fraud_bool", "protected": "customer_age>=50"}
    return frame, table | {"data": about}


def named(table, **columns):
    return read_data(Experiment(table | {"data": table["data"] | columns}).config)


def test_weight_and_groups_are_no_features_and_make_other_data(customers):
    frame, table = customers
    plain = named(table, drop=["customer", "weight"])
    weighted = named(table, weight="weight", drop=["customer"])
    grouped = named(table, groups="customer", drop=["weight"])
    assert len({tuple(data.problem.table.names) for data in (plain, weighted, grouped)}) == 1
    assert weighted.problem.sample_weight.tolist() == frame["weight"].tolist()
    assert (plain.problem.sample_weight, plain.problem.blocks) == (None, None)
    assert (weighted.problem.blocks, grouped.problem.sample_weight) == (None, None)
    fingerprints = [data.fingerprint() for data in (plain, weighted, grouped)]
    assert len(set(fingerprints)) == 3
    assert {part: rows.tolist() for part, rows in weighted.parts.items()} == {
        part: rows.tolist() for part, rows in plain.parts.items()
    }


def test_rows_that_belong_together_go_to_one_part(customers):
    frame, table = customers
    data = named(table, groups="customer", drop=["weight"])
    customer = frame["customer"].to_numpy()
    parts = [set(customer[rows]) for rows in data.parts.values()]
    assert sum(map(len, parts)) == len(set(customer))
    assert sum(map(len, data.parts.values())) == 2000
    for part, share in (("train", 0.5), ("validation", 0.25), ("test", 0.25)):
        assert abs(len(data.parts[part]) / 2000 - share) < 0.03
        assert abs(data.positive[data.parts[part]].sum() / data.positive.sum() - share) < 0.15


def test_blocks_of_one_row_are_as_good_as_none():
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 4, size=500)
    alone = split_at_random(cells, [0.5, 0.2, 0.3], np.random.default_rng(3))
    blocks = split_at_random(cells, [0.5, 0.2, 0.3], np.random.default_rng(3), np.arange(500))
    for part in alone:
        np.testing.assert_array_equal(alone[part], blocks[part])


def test_a_block_counts_for_the_rarest_of_its_cells():
    """Ten blocks of two rows, one row of each in a rare cell: halves must hold five of them each."""
    cells = np.array([0] * 30 + [0, 1] * 10)
    blocks = np.concatenate([np.arange(30), np.repeat(np.arange(30, 40), 2)])
    parts = split_at_random(cells, [0.5, 0.0, 0.5], np.random.default_rng(0), blocks)
    assert [(cells[rows] == 1).sum() for rows in parts.values()] == [5, 0, 5]


BAD_COLUMNS = [
    ("weight", -1.0, r"`data.weight`, 'weight', must be finite and not negative"),
    ("weight", np.nan, r"`data.weight`, 'weight', must be finite and not negative"),
    ("groups", np.nan, r"`data.groups`, 'customer', is missing in 1 rows"),
]


@pytest.mark.parametrize(("key", "entry", "message"), BAD_COLUMNS)
def test_entries_that_make_no_sense_are_named(customers, tmp_path, key, entry, message):
    frame, table = customers
    column = {"weight": "weight", "groups": "customer"}[key]
    frame[column] = frame[column].astype(float)
    frame.loc[7, column] = entry
    frame.to_parquet(tmp_path / "data.parquet")
    with pytest.raises(ValueError, match=message):
        named(table, **{key: column})
    with pytest.raises(ValueError, match="The data have no column 'wait'; did you mean 'weight'"):
        named(table, **{key: "wait"})


def test_a_part_without_rows_is_refused(customers, tmp_path):
    frame, table = customers
    frame["customer"] = 0
    frame.to_parquet(tmp_path / "data.parquet")
    message = (
        r"The validation part has no rows: `split.validation` is 0.25 of the rows \(rows of equal "
        r"'customer', `data.groups`, stay together\); give it a larger share"
    )
    with pytest.raises(ValueError, match=message):
        named(table, groups="customer", drop=["weight"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_weights_count_in_fits_rates_and_metrics(customers):
    _, table = customers
    experiment = Experiment(table | {"data": table["data"] | {"weight": "weight", "drop": ["customer"]}})
    data = read_data(experiment.config)
    trainer = Trainer(data, experiment.config)
    train, test = data.parts["train"], data.parts["test"]
    own, old = data.problem.sample_weight[train], data.groups.codes[train] == 1
    np.testing.assert_allclose(trainer.training_set(Trial("none")).weights, own / own.mean(), rtol=1e-6)
    tiny = replace(data, problem=replace(data.problem, sample_weight=data.problem.sample_weight / 2**40))
    for intervention in ("none", "RW", "RPS"):
        light = Trainer(tiny, experiment.config).training_set(Trial(intervention))
        assert light.digest() == trainer.training_set(Trial(intervention)).digest()
    weights = trainer.training_set(Trial("RW")).weights.astype(float)
    rates = [np.average(data.positive[train][group], weights=weights[group]) for group in (old, ~old)]
    assert rates[0] == pytest.approx(rates[1], rel=1e-5)
    plain = [np.average(data.positive[train][group], weights=own[group]) for group in (old, ~old)]
    assert abs(plain[0] - plain[1]) > 0.001
    parameters = {"n_estimators": 5, "random_state": 0}
    scores = trainer.scores(Trial("none", parameters=parameters))
    expected = evaluate(
        data.positive[test],
        scores[len(data.parts["validation"]) :],
        sensitive_features=data.groups.codes[test],
        sample_weight=data.problem.sample_weight[test],
    )
    metrics = trainer._measuring.measure(scores, "0" * 32)
    assert {name: metrics[f"test_{name}"] for name in expected} == pytest.approx(expected, nan_ok=True)


def test_an_experiment_with_weights_and_groups_runs_and_resumes(customers, tmp_path):
    _, table = customers
    table["data"] |= {"weight": "weight", "groups": "customer"}
    results = Experiment(table).run(tmp_path / "s", n_jobs=2)
    counts = results.frame["status"].value_counts()
    assert counts["done"] == 28
    again = Experiment(table).run(tmp_path / "s", n_jobs=1)
    pd.testing.assert_frame_equal(again.frame, results.frame, check_exact=True)
    del table["data"]["groups"]
    table["data"]["drop"] = ["customer"]
    with pytest.raises(ValueError, match=r"`data.groups` = 'customer', the configuration says None"):
        Experiment(table).run(tmp_path / "s")


@pytest.mark.parametrize("key", ["drop", "exclude"])
def test_columns_may_be_named_by_a_pattern(table, key):
    table["data"][key] = ["velocity_*", "month"]
    data = read_data(Experiment(table).config)
    matched = {"velocity_6h", "velocity_24h", "velocity_4w", "month"}
    names = set(data.problem.table.names)
    assert (names & matched if key == "drop" else set(data.excluded) ^ matched) == set()
    table["data"][key] = ["volocity_*"]
    with pytest.raises(ValueError, match=r"No column matches 'volocity_\*'"):
        read_data(Experiment(table).config)


def test_a_name_that_looks_like_a_pattern_is_a_name(table, tmp_path):
    frame = make_account_fraud(2000, random_state=0)
    frame["x[a]"], frame["xa"] = 1.0, 2.0
    frame.to_parquet(tmp_path / "data.parquet")
    table["data"] = {"path": str(tmp_path / "data.parquet"), "target": "fraud_bool", "protected": "source"}
    table["data"] |= {"drop": ["x[a]"], "exclude": ["x*"], "min_group_size": 0}
    data = read_data(Experiment(table).config)
    assert "x[a]" not in data.problem.table.names
    assert data.excluded == ("xa",)  # a pattern finds only what models see


def test_a_pattern_of_columns_reaches_the_models_of_the_attribute(table, tmp_path):
    table["interventions"] = {"rps": False, "rw": False, "uar": {"alphas": [0.0]}}
    table["models"]["count"] = 1
    plain = Experiment(table).run(tmp_path / "plain", n_jobs=1).frame
    table["data"]["exclude"] = ["*"]
    blind = Experiment(table).run(tmp_path / "blind", n_jobs=1).frame
    assert plain["test_threshold"].iloc[0] == blind["test_threshold"].iloc[0]  # untouched
    assert plain["test_threshold"].iloc[1] != blind["test_threshold"].iloc[1]


def test_an_attribute_may_be_one_of_several_comparisons(table):
    table["data"]["protected"] = "customer_age>=50 | income>=0.5"
    frame = make_account_fraud(2000, random_state=0)
    data = read_data(Experiment(table).config)
    assert data.sources == {"customer_age>=50 | income>=0.5": ("customer_age", "income")}
    expected = (frame["customer_age"] >= 50) | (frame["income"] >= 0.5)
    names = np.array(data.groups.names)[data.groups.codes]
    assert names.tolist() == [f"customer_age>=50 | income>=0.5={own}" for own in expected]


def test_a_target_of_comparisons_is_no_feature(table):
    table["data"] |= {"target": "income>=0.5 & email_is_free==1"}
    table["data"].pop("positive", None)
    frame = make_account_fraud(2000, random_state=0)
    data = read_data(Experiment(table).config)
    assert data.positive.tolist() == ((frame["income"] >= 0.5) & (frame["email_is_free"] == 1)).tolist()
    assert not {"income", "email_is_free"} & set(data.problem.table.names)
    assert data.labels == (False, True)
    table["data"]["target"] = "income>=5"
    with pytest.raises(ValueError, match=r"^`data.target` 'income>=5' is true in no row: 'income' goes from"):
        read_data(Experiment(table).config)
    table["data"] |= {"target": "income>=0.5", "weight": "income"}
    with pytest.raises(ValueError, match=r"^`data.weight` names 'income', of which the target is made"):
        read_data(Experiment(table).config)


def test_an_attribute_that_tells_no_rows_apart_is_refused(table):
    table["data"]["protected"] = ["source", "customer_age>=500"]
    with pytest.raises(ValueError, match=r"`data.protected\[1\]` 'customer_age>=500' is true in no row"):
        read_data(Experiment(table).config)


def test_a_fixed_test_part_with_a_validation_part_at_random(customers):
    frame, table = customers
    table["split"] = {"method": "column", "column": "month", "train": [0, 1, 2, 3, 4, 5], "test": [6, 7]}
    fixed = named(table, drop=["customer", "weight"])
    table["split"]["validation"] = 0.25
    data = named(table, drop=["customer", "weight"])
    np.testing.assert_array_equal(data.parts["test"], np.flatnonzero(frame["month"] >= 6))
    both = np.union1d(data.parts["train"], data.parts["validation"])
    np.testing.assert_array_equal(both, fixed.parts["train"])
    assert len(both) == len(data.parts["train"]) + len(data.parts["validation"])
    cells = data.groups.codes * 2 + data.positive
    for cell in np.unique(cells):  # stratified as a random split
        drawn, of = ((cells[rows] == cell).sum() for rows in (data.parts["validation"], both))
        assert abs(drawn - 0.25 * of) <= 1
    again = named(table, drop=["customer", "weight"])
    np.testing.assert_array_equal(again.parts["validation"], data.parts["validation"])
    together = named(table, drop=["weight"], groups="customer")
    people = [set(frame["customer"].iloc[together.parts[part]]) for part in ("train", "validation")]
    assert not people[0] & people[1]
    assert abs(len(together.parts["validation"]) / len(both) - 0.25) < 0.05


def test_a_share_that_draws_nothing_is_named(customers):
    _, table = customers
    table["split"] = {"method": "column", "column": "month", "train": [0], "test": [6], "validation": 1e-9}
    message = (
        r"The validation part has no rows: `split.validation` is 1e-09 of the rows of `split.train`; give"
    )
    with pytest.raises(ValueError, match=message):
        named(table, drop=["customer", "weight"])
    table["split"] = {"method": "column", "column": "month", "train": ["0"], "test": [6]}
    message = r"`split.train\[0\]` is '0', which no row of 'month' has; it has 0, 1, 2, 3, 4, 5, 6, 7\."
    with pytest.raises(ValueError, match=message):
        named(table, drop=["customer", "weight"])


def test_a_part_of_one_label_is_named_with_its_values(customers, tmp_path):
    frame, table = customers
    frame["part"] = np.where(frame["fraud_bool"] == 1, "train", "test")
    frame.loc[frame.index[frame["fraud_bool"] == 0][:50], "part"] = "train"
    frame.to_parquet(tmp_path / "data.parquet")
    table["split"] = {"method": "column", "column": "part", "train": ["train"], "test": ["test"]}
    message = (
        r"The test part \([0-9,]+ rows\) holds only negatives of 'fraud_bool': `split.test` names the rows "
        r"whose 'part' is 'test'; name other values"
    )
    with pytest.raises(ValueError, match=message):
        named(table, drop=["customer", "weight"])


def test_changing_the_attribute_of_a_store_names_the_attribute(table, tmp_path):
    table["interventions"] = {"rps": False, "rw": False}
    table["data"]["protected"] = "source"
    table["data"]["min_group_size"] = 0
    Experiment(table).run(tmp_path / "s", n_jobs=1)
    table["data"]["protected"] = "housing_status"
    message = (
        r"^The store was made with `data.protected` = \['source'\], the configuration says "
        r"\['housing_status'\]: undo the change, or use another store\.$"
    )
    with pytest.raises(ValueError, match=message):
        Experiment(table).run(tmp_path / "s", n_jobs=1)
