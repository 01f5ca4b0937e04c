"""The data: what is wrong with them is said, what is named is read, and parts are split as asked."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fado.datasets import make_account_fraud
from fado.experiment import Experiment
from fado.experiment._data import read_data
from fado.experiment._training import Trainer
from fado.experiment._trial import Trial
from fado.metrics import evaluate

FRAME = make_account_fraud(2000, random_state=0)
SHARES = {"train": 0.5, "validation": 0.25, "test": 0.25}
BY_MONTH = {"method": "column", "column": "month", "train": [0, 1, 2, 3, 4, 5], "test": [6, 7]}
UNSEEN = {"drop": ["customer", "weight"]}


def read(table, **data):
    return read_data(Experiment(table | {"data": table["data"] | data}).config)


@pytest.fixture
def customers(table, tmp_path):
    """A table whose rows belong to customers and have weights, and the configuration that reads it."""
    rng = np.random.default_rng(1)
    frame = FRAME.assign(customer=rng.integers(0, 400, size=2000), weight=rng.choice([0.5, 1.0, 4.0], 2000))
    frame.to_parquet(tmp_path / "data.parquet")
    about = {"path": str(tmp_path / "data.parquet"), "target": "fraud_bool", "protected": "customer_age>=50"}
    return frame, table | {"data": about}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "fraud"}, "`data.target` must name a column .* got 'fraud'; did you mean"),
        ({"drop": ["id"]}, "The data have no column 'id'"),
        ({"drop": ["volocity_*"]}, r"No column matches 'volocity_\*'"),
        ({"positive": 2}, "`data.positive` must be one of the labels 0 and 1, got 2"),
        ({"target": "income"}, "The target 'income' must hold two labels, got"),
        (
            {"target": "income>=5", "positive": None},
            "^`data.target` 'income>=5' is true in no row: 'income' goes",
        ),
        (
            {"target": "income>=0.5", "positive": None, "weight": "income"},
            "^`data.weight` names 'income', of which the target is made",
        ),
        ({"protected": "velocity_6h"}, "has [0-9]+ different numbers, too many for groups"),
        ({"protected": "age>=50"}, "must name a column of the table"),
        (
            {"protected": ["source", "customer_age>=500"]},
            r"`data.protected\[1\]` 'customer_age>=500' is true in no row",
        ),
    ],
)
def test_bad_data_are_refused_before_a_store_is_made(table, tmp_path, change, message):
    table["data"] |= change
    with pytest.raises(ValueError, match=message):
        Experiment(table).run(tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("change", "data", "split", "message"),
    [
        (
            {"weight": -1.0},
            {"weight": "weight"},
            {},
            "`data.weight`, 'weight', must be finite and not negative",
        ),
        ({"weight": np.nan}, {"weight": "weight"}, {}, "`data.weight`, 'weight', must be finite and not neg"),
        (
            {"customer": np.nan},
            {"groups": "customer"},
            {},
            "`data.groups`, 'customer', is missing in 2000 rows",
        ),
        ({}, {"weight": "wait"}, {}, "The data have no column 'wait'; did you mean 'weight'"),
        ({}, {"groups": "wait"}, {}, "The data have no column 'wait'; did you mean 'weight'"),
        (
            {"customer": 0},
            {"groups": "customer"},
            {},
            r"The validation part has no rows: `split.validation` is 0.25 of the rows \(rows of equal "
            r"'customer', `data.groups`, stay together\); give it a larger share",
        ),
        (
            {},
            UNSEEN,
            BY_MONTH | {"validation": 1e-9},
            "The validation part has no rows: `split.validation` is 1e-09 of the rows of `split.train`; give",
        ),
        (
            {},
            UNSEEN,
            BY_MONTH | {"train": ["0"]},
            r"`split.train\[0\]` is '0', which no row of 'month' has; it has 0, 1, 2, 3, 4, 5, 6, 7\.",
        ),
        (
            {"month": np.where(FRAME["fraud_bool"] == 1, 0, np.arange(2000) % 2)},
            UNSEEN,
            BY_MONTH | {"train": [0], "test": [1]},
            r"The test part \([0-9,]+ rows\) holds only negatives of 'fraud_bool': `split.test` names the "
            "rows whose 'month' is 1; name other values",
        ),
    ],
)
def test_columns_and_parts_that_make_no_sense_are_named(customers, change, data, split, message):
    frame, table = customers
    frame.assign(**change).to_parquet(table["data"]["path"])
    with pytest.raises(ValueError, match=message):
        read(table | {"split": split or table["split"]}, **data)


def test_the_larger_label_is_positive_unless_another_is_named(table):
    larger, named = read(table, positive=None), read(table, positive=0)
    assert (larger.positive_label, named.positive_label) == ("fraud_bool = 1", "fraud_bool = 0")
    assert (larger.positive == ~named.positive).all()


def test_random_parts_hold_their_share_of_every_cell(table):
    data = read(table)
    cells = data.groups.codes * 2 + data.positive
    for cell in np.unique(cells):
        for part, share in SHARES.items():
            assert abs((cells[data.parts[part]] == cell).sum() - share * (cells == cell).sum()) <= 1
    assert sorted(np.concatenate(list(data.parts.values()))) == list(range(2000))


def test_weight_and_groups_are_no_features_and_make_other_data(customers):
    frame, table = customers
    plain, weighted, grouped = (
        read(table, **columns)
        for columns in (
            UNSEEN,
            {"weight": "weight", "drop": ["customer"]},
            {"groups": "customer", "drop": ["weight"]},
        )
    )
    assert len({tuple(data.problem.table.names) for data in (plain, weighted, grouped)}) == 1
    assert weighted.problem.sample_weight.tolist() == frame["weight"].tolist()
    assert (plain.problem.sample_weight, plain.problem.blocks) == (None, None)
    assert (weighted.problem.blocks, grouped.problem.sample_weight) == (None, None)
    assert len({data.fingerprint() for data in (plain, weighted, grouped)}) == 3
    for part, rows in weighted.parts.items():
        np.testing.assert_array_equal(rows, plain.parts[part])
    # rows that belong together go to one part
    people = [set(frame["customer"].iloc[rows]) for rows in grouped.parts.values()]
    assert sum(map(len, people)) == frame["customer"].nunique()
    assert sum(map(len, grouped.parts.values())) == 2000
    for part, share in SHARES.items():
        assert abs(len(grouped.parts[part]) / 2000 - share) < 0.03
        assert abs(grouped.positive[grouped.parts[part]].sum() / grouped.positive.sum() - share) < 0.15


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_weights_count_in_fits_rates_and_metrics(customers):
    _, table = customers
    config = Experiment(table | {"data": table["data"] | {"weight": "weight", "drop": ["customer"]}}).config
    data = read_data(config)
    trainer = Trainer(data, config)
    train, test = data.parts["train"], data.parts["test"]
    weight, old = data.problem.sample_weight[train], data.groups.codes[train] == 1
    plain = trainer.training_set(Trial("none")).weights
    np.testing.assert_allclose(plain, weight / weight.mean(), rtol=1e-6)
    tiny = replace(data, problem=replace(data.problem, sample_weight=data.problem.sample_weight / 2**40))
    for intervention in ("none", "RW", "RPS"):
        light = Trainer(tiny, config).training_set(Trial(intervention))
        assert light.digest() == trainer.training_set(Trial(intervention)).digest()

    def gap(weights):
        first, second = (np.average(data.positive[train][own], weights=weights[own]) for own in (old, ~old))
        return abs(first - second)

    assert gap(trainer.training_set(Trial("RW")).weights.astype(float)) < 1e-6
    assert gap(weight) > 0.001
    scores = trainer.scores(Trial("none", parameters={"n_estimators": 5, "random_state": 0}))
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
    frame = Experiment(table).run(tmp_path / "s", n_jobs=2).frame
    assert frame["status"].value_counts()["done"] == 28
    again = Experiment(table).run(tmp_path / "s", n_jobs=1).frame
    pd.testing.assert_frame_equal(again, frame, check_exact=True)
    del table["data"]["groups"]
    table["data"]["drop"] = ["customer"]
    with pytest.raises(ValueError, match=r"`data.groups` = 'customer', the configuration says None"):
        Experiment(table).run(tmp_path / "s")


def test_columns_may_be_named_by_a_pattern(table, tmp_path):
    matched = {"velocity_6h", "velocity_24h", "velocity_4w", "month"}
    assert not matched & set(read(table, drop=["velocity_*", "month"]).problem.table.names)
    assert set(read(table, exclude=["velocity_*", "month"]).excluded) == matched
    FRAME.assign(**{"x[a]": 1.0, "xa": 2.0}).to_parquet(tmp_path / "data.parquet")
    table["data"] = {"path": str(tmp_path / "data.parquet"), "target": "fraud_bool", "protected": "source"}
    data = read(table, drop=["x[a]"], exclude=["x*"], min_group_size=0)
    assert "x[a]" not in data.problem.table.names  # a name that looks like a pattern is a name
    assert data.excluded == ("xa",)  # a pattern finds only what models see


def test_a_pattern_of_columns_reaches_the_models_of_the_attribute(table, tmp_path):
    table["interventions"] = {"rps": False, "rw": False, "uar": {"alphas": [0.0]}}
    table["models"]["count"] = 1
    plain = Experiment(table).run(tmp_path / "plain", n_jobs=1).frame
    table["data"]["exclude"] = ["*"]
    blind = Experiment(table).run(tmp_path / "blind", n_jobs=1).frame
    assert (plain["test_threshold"] == blind["test_threshold"]).tolist() == [True, False]  # none, UAR


def test_attributes_and_targets_may_be_several_comparisons(table):
    named = "customer_age>=50 | income>=0.5"
    data = read(table, protected=named)
    assert data.sources == {named: ("customer_age", "income")}
    expected = (FRAME["customer_age"] >= 50) | (FRAME["income"] >= 0.5)
    names = np.array(data.groups.names)[data.groups.codes]
    assert names.tolist() == [f"{named}={answer}" for answer in expected]
    data = read(table, target="income>=0.5 & email_is_free==1", positive=None)
    assert data.positive.tolist() == ((FRAME["income"] >= 0.5) & (FRAME["email_is_free"] == 1)).tolist()
    assert not {"income", "email_is_free"} & set(data.problem.table.names)
    assert data.labels == (False, True)


def test_a_fixed_test_part_with_a_validation_part_at_random(customers):
    frame, table = customers
    fixed = read(table | {"split": BY_MONTH}, **UNSEEN)
    table["split"] = BY_MONTH | {"validation": 0.25}
    data, again = read(table, **UNSEEN), read(table, **UNSEEN)
    np.testing.assert_array_equal(data.parts["test"], np.flatnonzero(frame["month"] >= 6))
    both = np.concatenate([data.parts["train"], data.parts["validation"]])
    np.testing.assert_array_equal(np.sort(both), fixed.parts["train"])
    np.testing.assert_array_equal(again.parts["validation"], data.parts["validation"])
    cells = data.groups.codes * 2 + data.positive
    for cell in np.unique(cells):  # stratified as a random split
        drawn, of = ((cells[rows] == cell).sum() for rows in (data.parts["validation"], both))
        assert abs(drawn - 0.25 * of) <= 1
    together = read(table, drop=["weight"], groups="customer")
    train, validation = (
        set(frame["customer"].iloc[together.parts[part]]) for part in ("train", "validation")
    )
    assert not train & validation
    assert abs(len(together.parts["validation"]) / len(both) - 0.25) < 0.05


def test_changing_the_attribute_of_a_store_names_the_attribute(table, tmp_path):
    table["interventions"] = {"rps": False, "rw": False}
    table["data"] |= {"protected": "source", "min_group_size": 0}
    Experiment(table).run(tmp_path / "s", n_jobs=1)
    table["data"]["protected"] = "housing_status"
    message = (
        r"^The store was made with `data.protected` = \['source'\], the configuration says "
        r"\['housing_status'\]: undo the change, or use another store\.$"
    )
    with pytest.raises(ValueError, match=message):
        Experiment(table).run(tmp_path / "s", n_jobs=1)
