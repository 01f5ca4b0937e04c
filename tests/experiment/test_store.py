"""The store: what is kept, what is damaged, and what is refused."""

import math
import sqlite3
from dataclasses import replace
from warnings import catch_warnings

import numpy as np
import pandas as pd
import pytest

from fado import Valuation
from fado._records import encode
from fado.datasets import make_account_fraud
from fado.experiment import Experiment, Results
from fado.experiment._config import config_from
from fado.experiment._database import BrokenFileError, Database
from fado.experiment._store import DATABASE, Store, differences
from fado.experiment._trial import Trial

ABOUT = {
    "format": 1,
    "settings": {},
    "versions": {},
    "fingerprint": "f",
    "summary": [],
    "configuration": encode(
        config_from(
            {
                "data": {"generator": "account_fraud", "target": "fraud_bool", "protected": "age>=50"},
                "split": {"method": "random", "train": 0.5, "test": 0.5},
                "interventions": {},
                "models": {"space": {"n_estimators": 5}},
            }
        )
    ),
}


def trials_of(count):
    return [
        Trial("UAR", {"alpha": 0.1 * j, "scaling": "minmax"}, j, {"learning_rate": 1 / 3})
        for j in range(count)
    ]


def ended(trial):
    metrics = {"test_tpr": 1 / 3, "test_fpr": math.nan, "test_threshold": math.inf}
    return replace(trial, status="done", fit="f" * 32, metrics=metrics, training_rows=7, seconds=0.25)


def test_trials_come_back_as_they_were_committed(tmp_path):
    with Store.writing(tmp_path / "s", ABOUT) as store:
        first, second = store.add(trials_of(2))
        store.write([ended(second)])
    with Store.reading(tmp_path / "s") as store:
        assert store.about == ABOUT
        found = store.trials
    assert found[0] == first
    assert repr(found[1]) == repr(ended(second))


def test_every_flipped_bit_of_the_file_is_harmless(tmp_path):
    """Whatever a flip hits, rows are either right or absent, or the file says that it is damaged."""
    database = Database(tmp_path / "l", {"a": 1})
    written = [(f"{j:02}", "c" * 64, "", 0.5) for j in range(20)]
    database.write({"valuations": written})
    database.close()
    content = (tmp_path / "l").read_bytes()
    damaged = absent = 0
    for position in range(0, len(content), 97):
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        (tmp_path / "m").write_bytes(flipped)
        try:
            other = Database(tmp_path / "m")
            found = list(other.rows("valuations"))
            other.close()
        except BrokenFileError:
            damaged += 1
            continue
        assert set(found) <= set(written)
        absent += found != written
    assert damaged > 0
    assert absent > 0


def test_a_file_torn_at_any_byte_is_damaged_or_whole(tmp_path):
    database = Database(tmp_path / "l", {"a": 1})
    database.write({"valuations": [("k", "", "no", 0.5)]})
    database.close()
    content = (tmp_path / "l").read_bytes()
    for length in range(0, len(content), 511):
        (tmp_path / "m").write_bytes(content[:length])
        try:
            other = Database(tmp_path / "m")
            found = list(other.rows("valuations"))
            other.close()
        except BrokenFileError:
            continue
        assert found == []  # the torn row is the last one, at the very end of the file
        assert length > len(content) - 512


def test_trials_are_kept_in_order_and_one_that_is_lost_gets_its_place_again(tmp_path):
    trials = trials_of(12)
    with Store.writing(tmp_path / "s", ABOUT) as store:
        store.add(trials[:5])
        store.add(trials[5:])
    with Store.reading(tmp_path / "s") as store:
        assert store.trials == trials
    change(tmp_path / "s", "UPDATE trials SET seal = 'x' WHERE number = 7")
    with pytest.warns(UserWarning, match=r"1 trial\(s\) of the store are damaged"):
        Results.load(tmp_path / "s")
    with catch_warnings(record=True, action="always") as given, Store.writing(tmp_path / "s", ABOUT) as store:
        assert store.trials == trials[:7] + trials[8:]
        store.add(trials[7:8])
        assert store.trials == trials
    assert ["1 result(s) of the store are" in str(one.message) for one in given] == [True]


def test_what_is_not_named_is_no_difference_unless_it_is_set():
    before = {"a": 1, "gone": None, "was": 2}
    now = {"a": 1, "weight": None, "switch": False, "new": [1]}
    assert differences(before, now) == {
        "was": "`was` = 2, the configuration does not name it",
        "new": "no `new`, the configuration says [1]",
    }
    assert differences({"a": None}, {"a": False}) == {"a": "`a` = None, the configuration says False"}


def test_links_are_refused(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    store = tmp_path / "store"
    store.mkdir()
    (store / "lock").touch()
    (store / "values").symlink_to(outside)
    with pytest.raises(ValueError, match="values' is a link"), Store.writing(store, ABOUT):
        pass
    (store / "values").unlink()
    with Store.writing(store, ABOUT):
        pass
    (store / "values" / "abc.parquet").symlink_to(outside / "x")
    for opening in (lambda: Store.writing(store, ABOUT), lambda: Store.reading(store)):
        with pytest.raises(ValueError, match=r"abc.parquet' is a link"), opening():
            pass


def test_a_directory_of_something_else_is_refused(tmp_path):
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(ValueError, match="neither empty nor a store"), Store.writing(tmp_path, ABOUT):
        pass
    with pytest.raises(FileNotFoundError, match="There is no store"):
        Results.load(tmp_path)


def test_what_killed_runners_left_half_written_is_removed(tmp_path):
    with Store.writing(tmp_path / "s", ABOUT):
        pass
    (tmp_path / "s" / "values" / ".abc.parquet.x.part").write_bytes(b"half")
    with Store.writing(tmp_path / "s", ABOUT):
        assert list((tmp_path / "s" / "values").iterdir()) == []


def change(store, statement):
    with sqlite3.connect(store / DATABASE) as connection:
        connection.execute(statement)
    connection.close()


def state_of(store):
    """What tells a fit from one that was done again."""
    with Store.reading(store) as opened:
        return {trial.number: trial.seconds for trial in opened.trials}


def copied(undisturbed, tmp_path):
    import shutil

    shutil.copytree(undisturbed[0] / "store", tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.parametrize("damage", ["UPDATE trials SET metrics = '{}'", "DELETE FROM trials"])
def test_only_the_fit_of_a_damaged_trial_is_redone(undisturbed, table, tmp_path, damage):
    store = copied(undisturbed, tmp_path)
    before = state_of(store)
    change(store, f"{damage} WHERE number = 3")
    if damage.startswith("UPDATE"):
        with pytest.warns(UserWarning, match=r"1 result\(s\) of the store are missing or damaged"):
            results = Experiment(table).run(store, n_jobs=1)
    else:
        results = Experiment(table).run(store, n_jobs=1)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)
    after = state_of(store)
    assert {number for number in before if before[number] != after[number]} == {3}


def test_damaged_values_are_made_again_and_no_fit_is(undisturbed, table, tmp_path):
    store = copied(undisturbed, tmp_path)
    before = state_of(store)
    (values,) = (store / "values").iterdir()
    original = values.read_bytes()
    values.write_bytes(original[:100])
    with pytest.warns(UserWarning, match="damaged"):
        results = Experiment(table).run(store, n_jobs=1)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)
    assert values.read_bytes() == original
    assert state_of(store) == before


def test_values_that_were_swapped_on_disk_are_not_read(tmp_path):
    made = {name: Valuation.from_probabilities([own, 0.5]) for name, own in (("oob", 0.1), ("inbag", 0.9))}
    with Store.writing(tmp_path, ABOUT) as store:
        for algorithm, own in made.items():
            store.save_values(algorithm, own)
            assert store.values("influence") is None
        one, other = (store._values_file(store._values_name(algorithm)) for algorithm in made)
    with Store.reading(tmp_path) as store:
        assert store.values("oob")["y"].tolist() == made["oob"]["y"].tolist()
        one.rename(tmp_path / "aside")
        other.rename(one)
        (tmp_path / "aside").rename(other)
        with pytest.raises(ValueError, match=r"\.parquet' is missing, damaged, or holds other values: run"):
            store.values("oob")


def test_a_damaged_file_is_put_aside_and_the_rows_that_are_whole_are_kept(undisturbed, table, tmp_path):
    store = copied(undisturbed, tmp_path)
    before = state_of(store)
    change(store, "CREATE TABLE mine (x)")
    with pytest.raises(
        ValueError, match=r"The store .* is damaged \(its tables are others.*which repairs it"
    ):
        Results.load(store)
    with pytest.warns(UserWarning, match="a new one was made, with 30 of its trials"):
        results = Experiment(table).run(store, n_jobs=1)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)
    assert state_of(store) == before
    assert (store / "experiment.damaged-0.sqlite").exists()
    (store / DATABASE).write_bytes((store / DATABASE).read_bytes()[:5000])
    with pytest.warns(UserWarning, match="a new one was made, with 0 of its trials"):
        results = Experiment(table).run(store, n_jobs=1)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)
    assert (store / "experiment.damaged-1.sqlite").exists()


def test_another_experiment_is_refused_with_the_difference(undisturbed, table, tmp_path, monkeypatch):
    store = copied(undisturbed, tmp_path)
    before = state_of(store)
    table["models"]["count"] = 3
    with pytest.raises(ValueError, match=r"made with `models.count` = 2, the configuration says 3: undo"):
        Experiment(table).run(store)
    table["models"]["count"] = 2
    table["data"]["rows"] = 2100
    with pytest.raises(ValueError, match=r"made with `data.rows` = 2000, the configuration says 2100: undo"):
        Experiment(table).run(store)
    table["data"]["rows"] = 2000
    monkeypatch.setattr("fado.experiment._runner.library_versions", lambda: {"lightgbm": "0.1"})
    with pytest.raises(ValueError, match=r"made with .*lightgbm 4\S*, here is 0.1"):
        Experiment(table).run(store)
    assert state_of(store) == before


@pytest.mark.parametrize("name", ["lock", "values/mine.txt"])
def test_a_directory_of_other_things_stays_as_it_is(tmp_path, table, name):
    path = tmp_path / "project" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    (tmp_path / "project" / "notes.txt").write_text("mine too")
    with pytest.raises(ValueError, match="neither empty nor a store"):
        Experiment(table).run(tmp_path / "project", n_jobs=1)
    assert path.read_text() == "mine"


def test_a_lone_file_called_lock_is_no_store(tmp_path, table):
    (tmp_path / "lock").write_text("mine")
    with pytest.raises(ValueError, match="neither empty nor a store"):
        Experiment(table).run(tmp_path, n_jobs=1)
    assert (tmp_path / "lock").read_text() == "mine"


def test_a_lock_that_is_a_link_is_refused_before_it_is_written(tmp_path, table):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "lock").symlink_to(tmp_path / "mine.txt")
    with pytest.raises(ValueError, match=r"is a link|neither empty nor a store"):
        Experiment(table).run(tmp_path / "store", n_jobs=1)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_rows_that_change_their_part_are_other_data(tmp_path, table):
    frame = make_account_fraud(2000, random_state=0).sort_values("month", kind="stable")
    path, months = tmp_path / "data.parquet", {"train": [0], "validation": [1, 2, 3], "test": [4, 5, 6, 7]}
    table["data"] = {"path": str(path), "target": "fraud_bool", "protected": "customer_age>=50"}
    table["split"] = {"method": "column", "column": "month", **months}
    table["interventions"] = {}
    frame.to_parquet(path)
    Experiment(table).run(tmp_path / "store", n_jobs=1)
    (last_of_month_0,) = np.flatnonzero(frame["month"] == 0)[-1:]
    frame.iloc[last_of_month_0, frame.columns.get_loc("month")] = 1
    frame.to_parquet(path)
    with pytest.raises(ValueError, match="The store was made with other data"):
        Experiment(table).run(tmp_path / "store", n_jobs=1)
