"""The store: what is kept, what is damaged, and what is refused."""

import copy
import json
import math
import os
import shutil
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.experiment.conftest import TINY

from fado import Valuation
from fado._storage import InUseError
from fado.datasets import make_account_fraud
from fado.experiment import Experiment, Results
from fado.experiment._config import config_from
from fado.experiment._store import DATABASE, About, Store
from fado.experiment._trial import Trial

ABOUT = About(
    format=1,
    configuration=config_from(copy.deepcopy(TINY)),
    versions={"lightgbm": "4"},
    fingerprint="f",
    summary=[],
    positive=None,
    plugins=[],
)


def trials_of(count):
    return [
        Trial("UAR", {"alpha": 0.1 * j, "scaling": "minmax"}, j, {"learning_rate": 1 / 3})
        for j in range(count)
    ]


def ended(trial):
    metrics = {"test_tpr": 1 / 3, "test_fpr": math.nan, "test_threshold": math.inf}
    return replace(trial, status="done", fit="f" * 32, metrics=metrics, training_rows=7, seconds=0.25)


@pytest.fixture
def store(undisturbed, tmp_path):
    shutil.copytree(undisturbed[0] / "store", tmp_path / "store")
    return tmp_path / "store"


def change(store, statement, *arguments):
    connection = sqlite3.connect(store / DATABASE)
    with connection:
        connection.execute(statement, arguments)
    connection.close()


def state_of(store):
    """What tells a fit from one that was done again."""
    with Store.reading(store) as opened:
        return {number: trial.seconds for number, trial in opened.rows.items()}


def test_trials_come_back_as_they_were_committed(tmp_path):
    with Store.writing(tmp_path / "s", ABOUT) as store:
        assert store.add(trials_of(2)) == [0, 1]
        store.write({1: ended(store.trials[1]), -1: trials_of(1)[0]})
        assert store.add(trials_of(3)[2:]) == [2]
    with Store.reading(tmp_path / "s") as store:
        assert store.about == ABOUT
        first, second, third = store.trials
    assert [first, third] == [trials_of(1)[0], trials_of(3)[2]]
    assert repr(second) == repr(ended(trials_of(2)[1]))


def test_only_the_fit_of_a_trial_that_is_gone_is_redone(undisturbed, store, table):
    before = state_of(store)
    change(store, "DELETE FROM trials WHERE number = 3")
    assert repr(Experiment(table).run(store, n_jobs=1)) == repr(undisturbed[1])
    after = state_of(store)
    assert {number for number in before if before[number] != after.get(number)} == {3}


@pytest.mark.parametrize("link", ["values", "values/abc.parquet", "lock"])
def test_links_are_refused_and_what_they_point_to_stays(tmp_path, link):
    (tmp_path / "mine.txt").write_text("mine")
    store = tmp_path / "store"
    if "/" in link:
        with Store.writing(store, ABOUT):
            pass
        with Store.reading(store):
            pass
    store.mkdir(exist_ok=True)
    (store / link).symlink_to(tmp_path / "mine.txt")
    with pytest.raises(ValueError, match=rf"{link}' is a link"), Store.writing(store, ABOUT):
        pass
    if "/" in link:
        with pytest.raises(ValueError, match=rf"{link}' is a link"), Store.reading(store):
            pass
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["letters.txt", "lock", "values/mine.txt"])
def test_a_directory_of_other_things_is_refused_and_stays_as_it_is(tmp_path, table, name):
    path = tmp_path / "project" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    if "/" in name:
        (tmp_path / "project" / "notes.txt").write_text("mine too")
    with pytest.raises(ValueError, match="neither empty nor a store"):
        Experiment(table).run(tmp_path / "project", n_jobs=1)
    assert path.read_text() == "mine"
    with pytest.raises(FileNotFoundError, match="There is no store"):
        Results.load(tmp_path / "project")


def test_what_killed_runners_left_half_written_is_removed(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / DATABASE).touch()  # killed before its first commit
    with pytest.raises(FileNotFoundError, match="There is no store"):
        Results.load(tmp_path / "s")
    with Store.writing(tmp_path / "s", ABOUT) as store:
        assert store.trials == []
    (tmp_path / "s" / "values" / ".abc.parquet.x.part").write_bytes(b"half")
    with Store.writing(tmp_path / "s", ABOUT):
        assert list((tmp_path / "s" / "values").iterdir()) == []


def test_values_come_back_and_reasons_too(tmp_path):
    valuation = Valuation.from_probabilities([0.1, 0.5])
    with Store.writing(tmp_path, ABOUT) as store:
        store.save_values("oob", valuation)
        store.save_values("inbag", "no luck")
    with Store.writing(tmp_path, ABOUT) as store:
        assert store.values("oob")["y"].tolist() == valuation["y"].tolist()
        assert store.values("inbag") == "no luck"
        assert store.values("influence") is None
        store.forget_failed()
        assert store.values("inbag") is None


def test_damaged_values_are_named_and_to_be_deleted(undisturbed, store, table):
    before = state_of(store)
    (values,) = (store / "values").iterdir()
    original = values.read_bytes()
    values.write_bytes(original[:100])
    with pytest.raises(ValueError, match=rf"{values}.*: delete it, and run the experiment again\.$"):
        Experiment(table).run(store, n_jobs=1)
    values.unlink()
    results = Experiment(table).run(store, n_jobs=1)
    pd.testing.assert_frame_equal(results.frame, undisturbed[1].frame, check_exact=True)
    assert values.read_bytes() == original
    assert state_of(store) == before


def cut(store):
    (store / DATABASE).write_bytes((store / DATABASE).read_bytes()[:5000])


def name_another_file(store):
    """SQLite would take the file for a journal of several databases, and delete it when it is done."""
    name = str(store / "victim.txt").encode()
    (store / "victim.txt").write_text("mine")
    magic = bytes.fromhex("d9d505f920a163d7")
    header = magic + (0).to_bytes(4) + bytes(4) + (1).to_bytes(4) + (512).to_bytes(4) + (4096).to_bytes(4)
    tail = (0x40000000 // 4096 + 1).to_bytes(4) + name + len(name).to_bytes(4) + sum(name).to_bytes(4)
    (store / f"{DATABASE}-journal").write_bytes(header.ljust(512, b"\0") + tail + magic)


DAMAGE = {
    "cut": cut,
    "no database": lambda store: (store / DATABASE).write_bytes(b"x" * 9000),
    "journal": name_another_file,
    "no description": lambda store: change(store, "DELETE FROM about"),
    "description": lambda store: change(store, "UPDATE about SET content = '[1]'"),
    "field": lambda store: change(store, "UPDATE about SET content = json_set(content, '$.plugins', 3)"),
    "configuration": lambda store: change(
        store, "UPDATE about SET content = json_remove(content, '$.configuration.data.target')"
    ),
    "no JSON": lambda store: change(store, "UPDATE trials SET trial = '{' WHERE number = 1"),
    "trial": lambda store: change(store, "UPDATE trials SET trial = json_set(trial, '$.model', 'x')"),
    "table": lambda store: change(store, "DROP TABLE trials"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_store_is_named_and_to_be_deleted(store, table, damage):
    DAMAGE[damage](store)
    sentence = rf"^The store '{store}' is damaged \(.*\): delete it, and run the experiment again\.$"
    with pytest.raises(ValueError, match=sentence):
        Results.load(store)
    with pytest.raises(ValueError, match=sentence):
        Experiment(table).run(store, n_jobs=1)
    if damage == "journal":
        assert (store / "victim.txt").read_text() == "mine"


def test_a_store_of_another_format_is_no_damage(store):
    change(store, "UPDATE about SET content = json_set(content, '$.format', 99)")
    with pytest.raises(ValueError, match="it is of format 99, and this release knows format 1"):
        Results.load(store)


def test_a_store_that_is_only_read_is_not_written(store):
    def state():
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in store.rglob("*")}

    before = state()
    connection = sqlite3.connect(store / DATABASE)
    connection.execute("BEGIN IMMEDIATE")  # a runner is about to write: readers need not wait for it
    Results.load(store)
    connection.close()
    assert state() == before


@pytest.mark.parametrize(
    ("section", "change", "told"),
    [
        ("models", {"count": 3}, "`models.count` = 2, the configuration says 3: undo"),
        ("data", {"rows": 2100}, "`data.rows` = 2000, the configuration says 2100: undo"),
        ("evaluation", {"groups": "each"}, "`evaluation.groups` = 'crossed', the configuration says 'each'"),
        (
            "models",
            {"space": TINY["models"]["space"] | {"max_depth": 3}},
            "no `models.space.max_depth.choices`, the configuration",
        ),
        (
            "models",
            {"space": {"boosting_type": "goss", "n_estimators": {"log_uniform": [3, 20]}}},
            r"`models.space.num_leaves.choices` = \[5\], the configuration does not name it",
        ),
        (
            "evaluation",
            {"top_k": 40},
            "`evaluation.max_fpr` = 0.05, the configuration does not name it; with no `evaluation.top_k`",
        ),
    ],
)
def test_another_experiment_is_refused_with_the_difference(undisturbed, table, section, change, told):
    before = state_of(undisturbed[0] / "store")
    table[section] |= change
    with pytest.raises(ValueError, match=f"The store was made with {told}"):
        Experiment(table).run(undisturbed[0] / "store")
    assert state_of(undisturbed[0] / "store") == before


def test_other_versions_are_refused(undisturbed, table, monkeypatch):
    monkeypatch.setattr("fado.experiment._runner.library_versions", lambda: {"lightgbm": "0.1"})
    with pytest.raises(ValueError, match=r"made with .*lightgbm 4\S*, here is 0.1"):
        Experiment(table).run(undisturbed[0] / "store")


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


def test_what_a_store_says_is_escaped_in_the_report(store, tmp_path):
    hostile = "</script><img src=x onerror=alert(1)>"
    group = {"part": hostile, "group": hostile, "rows": 100, "positives": 10, "attribute": None}
    change(store, "UPDATE about SET content = json_set(content, '$.positive', ?)", hostile)
    change(store, "UPDATE about SET content = json_set(content, '$.summary', json(?))", json.dumps([group]))
    change(
        store,
        "UPDATE trials SET trial = json_set(trial, '$.intervention', ?, '$.settings', json(?)) "
        "WHERE number = (SELECT min(number) FROM trials)",
        hostile,
        json.dumps({hostile: hostile}),
    )
    failed = "UPDATE trials SET trial = json_set(trial, '$.status', 'failed', '$.error', ?) WHERE number = 5"
    change(store, failed, hostile)
    Results.load(store).report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "onerror=alert" in text
    assert "<img src=x" not in text


def test_a_second_run_is_refused(store, table):
    with Store.reading(store) as opened:
        about = opened.about
    with (
        Store.writing(store, about),
        pytest.raises(InUseError, match=f"store' is in use by process {os.getpid()} on host"),
    ):
        Experiment(table).run(store, n_jobs=1)
