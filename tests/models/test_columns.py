"""A summary of training columns is small, tells drift, and no number of fewer than 10 rows."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.models.made import LATE, SEX, X, chosen, remade

import fado
from fado._records import encode
from fado.models import ColumnSummary, summarize_columns
from fado.models._drift import DRIFT_LIMIT, compare_columns
from fado.tabular import Table, column_from

LABELS = np.where(LATE, "yes", "no")


def summary_of(values):
    return ColumnSummary.of(column_from("x", values))


def distance(before, now):
    return summary_of(before).distance(column_from("x", now))[0]


def test_numbers_are_counted_by_deciles_and_the_extremes_are_not_kept():
    summary = summary_of(np.r_[np.arange(1000.0), [np.nan] * 50])
    assert summary.edges == tuple(np.arange(99.0, 899.5, 100))
    assert summary.counts == (100,) * 10 + (50,)
    assert len(summary_of(np.arange(45.0)).edges) == 3  # four bins of eleven
    assert summary_of(np.r_[np.zeros(900), np.arange(1.0, 41), np.arange(50.0, 59)]).counts == (900, 49, 0)


@pytest.mark.parametrize("kind", [float, int, bool], ids=str)
def test_few_numbers_are_levels_whatever_their_type(kind):
    values = np.repeat([0, 1], [70, 30]).astype(kind)
    assert summary_of(values) == ColumnSummary("x", (70, 30, 0, 0), levels=("0", "1"))
    assert distance(values, np.repeat([0.0, 1.0], [70, 30])) == 0.0


def test_no_number_of_fewer_than_ten_rows_is_kept():
    texts = ["a"] * 20 + ["b"] * 9 + ["c"] * 3 + [None] * 9
    assert summary_of(texts) == ColumnSummary("x", (20, 12, 0), levels=("a",))
    assert summary_of(["a"] * 20 + ["b"] * 9) == ColumnSummary("x", (20, 0, 0), levels=("a",))
    many = summary_of(np.repeat([f"{n:03}" for n in range(80)], np.arange(100, 20, -1)))
    assert many.levels == tuple(f"{n:03}" for n in range(50))
    assert many.counts[-2:] == (sum(range(21, 51)), 0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.choice(rng.normal(size=40), size=rng.integers(5, 400))
        assert not {*range(1, 10)} & set(summary_of(values).counts)


def test_the_stability_index_is_what_it_is_defined_as():
    # Shares of (500.5, 500.5) and (800.5, 200.5) of 1,001: half a row is added to each bin.
    expected = 300 / 1001 * np.log(800.5 / 500.5) - 300 / 1001 * np.log(200.5 / 500.5)
    found = distance(["a"] * 500 + ["b"] * 500, ["a"] * 800 + ["b"] * 200)
    assert found == pytest.approx(expected)
    assert found == pytest.approx(0.3 * np.log(4), rel=0.01)  # without the half rows
    assert distance(np.arange(1000.0), np.arange(1000.0)) == 0.0
    assert distance(np.arange(1000.0), np.full(50, np.nan)) > 4  # all are missing


def told(before, now):
    table = Table.from_input(pd.DataFrame({"x": now}))
    first = Table.from_input(pd.DataFrame({"x": before}))
    schema = fado.engine.Schema.of(first)
    (column,), notes = compare_columns(summarize_columns(first), schema, table)
    return column, notes


def test_chance_is_no_drift():
    rng = np.random.default_rng(0)
    before = rng.normal(size=2000)
    alarms = [told(before, rng.normal(size=n))[0]["drifted"] for n in (30, 60, 300) for _ in range(100)]
    assert sum(alarms) <= 2  # 0.3 are expected
    few = told(before, rng.normal(size=30))[0]
    assert few["limit"] > DRIFT_LIMIT
    many, notes = told(before, rng.normal(1.0, size=300))
    assert many["limit"] == DRIFT_LIMIT
    assert many["drifted"]
    assert notes == [
        "1 of 1 columns drifted from the training rows, by a population stability index above 0.2 and beyond "
        f"chance: 'x' ({many['stability_index']:.2f})."
    ]


def test_levels_that_were_not_there_are_counted_and_missing_entries_told():
    before = ["a"] * 90 + ["b"] * 5 + [None] * 5
    now = ["a"] * 60 + ["b"] * 10 + ["c"] * 20 + ["d"] * 4 + [None] * 6
    column, notes = told(before, now)
    assert (column["unseen"], column["unseen_levels"]) == (24, ["c", "d"])
    assert (column["missing"], column["missing_before"]) == (0.06, 0.0)  # 5 rows are not told
    assert notes[-1] == (
        "Levels that the model has not seen, which it treats as missing: 'x' in 24 rows ('c', 'd')."
    )


def test_new_levels_in_a_column_of_many_are_drift_too():
    """Of 1,000 levels the 50 most frequent are kept; new ones share the last bin with all others."""
    before = [f"{n}" for n in range(1_000) for _ in range(10)]
    column, _ = told(before, [f"new {n}" for n in range(500)])
    assert (column["stability_index"] < DRIFT_LIMIT, column["unseen"], column["drifted"]) == (True, 500, True)
    assert not told(before, [f"new {n}" for n in range(100)] + before[::20])[0]["drifted"]  # a sixth is new
    # 300 of 600 levels occur once, so half of all new rows may have a level that is new
    often = [f"{n % 30}" for n in range(300)]
    rare = [*often, *(f"once {n}" for n in range(300))]
    assert summary_of(rare).unseen == 0.5
    assert not told(rare, [*often, *(f"other {n}" for n in range(300))])[0]["drifted"]
    assert summary_of([*often, *"abcdefghi"]).unseen == 0  # fewer than ten are not told


def test_a_column_that_is_gone_is_drift():
    rows = pd.DataFrame({"x": np.arange(50.0), "y": np.arange(50.0)})
    table = Table.from_input(rows)
    now, schema = Table.from_input(rows[["x"]].assign(z=1)), fado.engine.Schema.of(table)
    columns, notes = compare_columns(summarize_columns(table), schema, now)
    assert [(own["absent"], own["drifted"]) for own in columns] == [(False, False), (True, True)]
    assert notes == ["Columns of the training rows that these rows lack, and scores do not use: 'y'."]


def test_a_model_keeps_the_summary_and_no_rows(tmp_path):
    model = remade(chosen(), columns=summarize_columns(Table.from_input(X)))
    model.save(tmp_path / "model")
    loaded = fado.load_model(tmp_path / "model")
    assert loaded.columns_ == model.columns_
    assert [one.name for one in loaded.columns_] == ["debts", "town", "home", "flag"]
    shifted = X.assign(debts=X["debts"] + 2, town="Kiel")[["flag", "town", "home", "debts"]]  # in any order
    check = loaded.check(shifted, LABELS, SEX)
    assert check == model.check(shifted, LABELS, SEX)
    assert check.drifted == ("debts", "town")
    assert check.to_plain()["drifted"] == ["debts", "town"]
    assert model.check(X, LABELS, SEX).drifted == ()
    assert "has no summary" not in " ".join(check.notes)


def test_a_model_without_a_summary_says_so_and_still_tells_new_levels():
    notes = chosen().check(X.assign(town="Kiel"), LABELS, SEX).notes
    assert notes[-2:] == (
        "Levels that the model has not seen, which it treats as missing: 'town' in 600 rows ('Kiel').",
        "The model has no summary of its training columns: drift cannot be detected.",
    )


def test_columns_that_are_not_those_of_the_model_are_refused():
    columns = summarize_columns(Table.from_input(X[["town", "debts", "home", "flag"]]))
    with pytest.raises(ValueError, match="`columns` must sum up the columns of the model, in their order"):
        remade(chosen(), columns=columns)


@pytest.mark.parametrize(
    "broken",
    [
        {"name": 3, "counts": [10, 0], "edges": [], "levels": None},
        {"name": "x", "counts": [10], "edges": [], "levels": None},
        {"name": "x", "counts": [10, -1], "edges": [], "levels": None},
        {"name": "x", "counts": [10, 0, 0], "edges": None, "levels": [1]},
        {"name": "x", "counts": [10, 0], "edges": None, "levels": None},
    ],
    ids=str,
)
def test_a_summary_that_is_none_is_refused(broken):
    with pytest.raises(ValueError, match="of the summary of its training columns is broken"):
        ColumnSummary.from_plain(broken)


def test_a_summary_comes_back_from_json():
    for summary in summarize_columns(Table.from_input(X)):
        assert ColumnSummary.from_plain(json.loads(json.dumps(encode(summary)))) == summary
