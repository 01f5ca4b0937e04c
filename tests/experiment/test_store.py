"""The store: seals, links, and the ledger that is rebuilt."""

import numpy as np
import pandas as pd
import pytest

from fado import Valuation
from fado.datasets import make_account_fraud
from fado.experiment import Experiment, Results
from fado.experiment.search import Trial
from fado.experiment.store import DONE, Record, Store, StoredTrial, differences, read_trials, write_trials
from fado.experiment.store._ledger import DamagedLedgerError, Ledger

ABOUT = {
    "format": 1,
    "settings": {},
    "versions": {},
    "fingerprint": "f",
    "summary": [],
    "configuration": {
        "data": {"generator": "account_fraud", "target": "fraud_bool", "protected": "customer_age>=50"},
        "split": {"method": "random", "train": 0.5, "test": 0.5},
        "interventions": {},
        "models": {"space": {"n_estimators": 5}},
    },
}


def test_the_ledger_gives_back_what_was_committed(tmp_path):
    ledger = Ledger(tmp_path / "l", {"a": [1, 2.5]})
    records = [Record("fit", "k", DONE, checksum="c", seconds=0.25), Record("set", "s", DONE, "text")]
    ledger.write(records)
    ledger.close()
    ledger = Ledger(tmp_path / "l")
    assert ledger.about() == {"a": [1, 2.5]}
    assert ledger.records() == {("fit", "k"): records[0], ("set", "s"): records[1]}
    ledger.forget([("set", "s")])
    assert list(ledger.records()) == [("fit", "k")]
    ledger.close()


def test_every_flipped_bit_of_a_ledger_is_harmless(tmp_path):
    """Whatever a flip hits, records are either right or absent, or the ledger says that it is damaged."""
    ledger = Ledger(tmp_path / "l", {"a": 1})
    written = {("fit", f"{i:02}"): Record("fit", f"{i:02}", DONE, checksum="c" * 64) for i in range(20)}
    ledger.write(list(written.values()))
    ledger.close()
    content = (tmp_path / "l").read_bytes()
    damaged = absent = 0
    for position in range(0, len(content), 97):
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        (tmp_path / "m").write_bytes(flipped)
        try:
            other = Ledger(tmp_path / "m")
            found = other.records()
            other.close()
        except DamagedLedgerError:
            damaged += 1
            continue
        assert found.items() <= written.items()
        absent += found != written
    assert damaged > 0
    assert absent > 0


def test_a_ledger_torn_at_any_byte_is_damaged_or_whole(tmp_path):
    ledger = Ledger(tmp_path / "l", {"a": 1})
    ledger.write([Record("fit", "k", DONE)])
    ledger.close()
    content = (tmp_path / "l").read_bytes()
    for length in range(0, len(content), 511):
        (tmp_path / "m").write_bytes(content[:length])
        try:
            other = Ledger(tmp_path / "m")
        except DamagedLedgerError:
            continue
        assert other.records() == {}  # the torn record is the last one, at the very end of the file
        other.close()
        assert length > len(content) - 512


def test_trials_are_kept_in_order_and_one_that_is_lost_gets_its_place_again(tmp_path):
    trials = [
        StoredTrial(
            Trial("UAR", {"alpha": 0.1 * j, "scaling": "minmax"}, j, {"learning_rate": 1 / 3}), f"s{j}"
        )
        for j in range(12)
    ]
    with Store.writing(tmp_path / "s", ABOUT) as store:
        write_trials(store, trials[:5])
        write_trials(store, trials[5:])
    with Store.reading(tmp_path / "s") as store:
        assert read_trials(store) == trials
    ledger = Ledger(tmp_path / "s" / "ledger.sqlite")
    (lost,) = [key for kind, key in ledger.records() if key.endswith("7")]
    ledger.forget([("trial", lost)])
    ledger.close()
    with Store.writing(tmp_path / "s", ABOUT) as store:
        assert read_trials(store) == trials[:7] + trials[8:]
        write_trials(store, trials[7:8])
        assert read_trials(store) == trials


def test_what_another_release_did_not_know_is_no_difference_unless_it_is_set():
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
    (store / "fits").symlink_to(outside)
    with pytest.raises(ValueError, match="fits' is a link"), Store.writing(store, ABOUT):
        pass
    (store / "fits").unlink()
    with Store.writing(store, ABOUT):
        pass
    (store / "fits" / "abc.parquet").symlink_to(outside / "x")
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
    (tmp_path / "s" / "fits" / ".abc.parquet.x.part").write_bytes(b"half")
    with Store.writing(tmp_path / "s", ABOUT):
        assert list((tmp_path / "s" / "fits").iterdir()) == []


def fits_of(store):
    return sorted((store / "fits").glob("*.parquet"))


def state_of(store):
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in fits_of(store)}


def copied(undisturbed, tmp_path):
    import shutil

    shutil.copytree(undisturbed[0] / "store", tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.parametrize("damage", ["bit", "torn", "gone"])
def test_only_the_fit_of_a_damaged_file_is_redone(undisturbed, table, tmp_path, damage):
    store = copied(undisturbed, tmp_path)
    before = state_of(store)
    victim = fits_of(store)[3]
    content = bytearray(victim.read_bytes())
    if damage == "bit":
        content[len(content) // 3] ^= 4
        victim.write_bytes(content)
    elif damage == "torn":
        victim.write_bytes(content[:-7])
    else:
        victim.unlink()
    if damage != "bit":
        assert (Results.load(store).frame["status"] == "pending").any()
    with pytest.warns(UserWarning, match=r"1 file\(s\) of the store are missing or damaged"):
        results = Experiment(table).run(store, n_jobs=1)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)
    after = state_of(store)
    assert {name for name in before if before[name] != after[name]} == {victim.name}


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
    made = {key: Valuation.from_probabilities([own, 0.5]) for key, own in (("a" * 32, 0.1), ("b" * 32, 0.9))}
    with Store.writing(tmp_path, ABOUT) as store:
        for key, own in made.items():
            store.save_values(key, own, 0.0)
    one, other = (tmp_path / "values" / f"{key}.parquet" for key in made)
    with Store.reading(tmp_path) as store:
        assert store.load_values("a" * 32)["y"].tolist() == made["a" * 32]["y"].tolist()
        one.rename(tmp_path / "aside")
        other.rename(one)
        (tmp_path / "aside").rename(other)
        with pytest.raises(ValueError, match=r"a\.parquet' is missing, damaged, or holds other values: run"):
            store.load_values("a" * 32)


def test_a_damaged_ledger_is_rebuilt_from_the_files(undisturbed, table, tmp_path):
    store = copied(undisturbed, tmp_path)
    before = state_of(store)
    ledger = store / "ledger.sqlite"
    ledger.write_bytes(ledger.read_bytes()[:5000])
    with pytest.raises(ValueError, match=r"ledger of the store .* is damaged"):
        Results.load(store)
    with pytest.warns(UserWarning, match=f"a new one was made from the files of {len(before)} fit"):
        results = Experiment(table).run(store, n_jobs=1)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)
    assert state_of(store) == before
    assert (store / "ledger.damaged-0.sqlite").exists()


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
    monkeypatch.setattr("fado.experiment.run._runner.library_versions", lambda: {"lightgbm": "0.1"})
    with pytest.raises(ValueError, match=r"made with .*lightgbm 4\S*, here is 0.1"):
        Experiment(table).run(store)
    assert state_of(store) == before


@pytest.mark.parametrize("name", ["lock", "running/2024-05-marathon.csv", "fits/mine.txt"])
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


def test_a_note_that_is_none_of_ours_stays(tmp_path, table):
    table["interventions"] = {}
    mine = tmp_path / "running" / "2024-05-marathon.csv"
    mine.parent.mkdir()
    mine.write_text("mine")
    Experiment(table).run(tmp_path, n_jobs=1)
    assert mine.read_text() == "mine"


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
