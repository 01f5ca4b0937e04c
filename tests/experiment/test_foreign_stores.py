"""A store that somebody else wrote is data: it is read as what it must be, or refused in one sentence."""

import json
import os
import shutil
import sqlite3

import pytest

from fado.experiment import Experiment, Results
from fado.experiment._database import seal_of
from fado.experiment._store import DATABASE

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def store(undisturbed, tmp_path):
    shutil.copytree(undisturbed[0] / "store", tmp_path / "store")
    return tmp_path / "store"


def execute(store, *statements):
    connection = sqlite3.connect(store / DATABASE)
    for statement in statements:
        connection.execute(*statement)
    connection.commit()
    connection.close()


def say(store, name, text):
    """Change what a store says of its experiment, with a seal that is right."""
    execute(
        store,
        ("UPDATE about SET text = ?, seal = ? WHERE name = ?", (text, seal_of("about", [name, text]), name)),
    )


def enter(store, **fields):
    """Change a trial that is done, with a seal that is right."""
    connection = sqlite3.connect(store / DATABASE)
    connection.row_factory = sqlite3.Row
    row = dict(connection.execute("SELECT * FROM trials WHERE status = 'done'").fetchone())
    connection.close()
    del row["seal"]
    changed = row | fields
    marks = ", ".join("?" * (len(changed) + 1))
    sealed = (*changed.values(), seal_of("trials", list(changed.values())))
    execute(
        store,
        ("DELETE FROM trials WHERE number = ?", (row["number"],)),
        (f"INSERT INTO trials VALUES ({marks})", sealed),
    )


def refused(store, match):
    with pytest.raises(ValueError, match=match) as caught:
        Results.load(store)
    assert str(store) in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("settings", "null", "its `settings` is not what a run writes"),
        ("versions", "[]", "its `versions` is not"),
        ("versions", '{"fado": {}}', "its `versions` is not"),
        ("format", "99", "it is of format 99, and this release knows format 1"),
        ("format", "true", "its `format` is not a number"),
        ("fingerprint", "-1", "its `fingerprint` is not"),
        ("positive", "[]", "its `positive` is not what a run writes"),
        ("plugins", "{}", "its `plugins` is not what a run writes"),
        (
            "plugins",
            '[{"kind": "valuator", "name": 3, "module": "", "package": ""}]',
            "its `plugins` is not",
        ),
        ("summary", '[{"part": "train", "group": "a", "rows": 1e308, "positives": 0}]', "its `summary` is"),
        ("summary", '[{"part": "train", "group": "a", "rows": 3, "positives": 4}]', "its `summary` is"),
        ("configuration", "{}", "its configuration is wrong"),
        ("configuration", "NaN", "its 'configuration' is not JSON"),
        ("configuration", DEEP, "its 'configuration' is not JSON"),
        ("configuration", None, "its 'configuration' is not JSON"),
    ],
)
def test_what_it_says_of_its_experiment(store, table, name, text, match):
    say(store, name, text)
    refused(store, match)
    if name != "configuration":  # a run goes by its own
        with pytest.raises(ValueError, match=match):
            Experiment(table).run(store)


@pytest.mark.parametrize("name", ["settings", "summary", "fingerprint"])
def test_what_it_does_not_say(store, name):
    execute(store, ("DELETE FROM about WHERE name = ?", (name,)))
    refused(store, f"its `{name}` is not what a run writes")


OTHER = "a trial is not what a run writes"


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"status": "party"}, OTHER),
        ({"status": "pending"}, OTHER),
        ({"fit": "../../../../tmp/x"}, OTHER),
        ({"fit": "/etc/passwd"}, OTHER),
        ({"fit": b"x"}, OTHER),
        ({"seconds": float("inf")}, OTHER),
        ({"seconds": None}, OTHER),
        ({"training_rows": 2**60}, OTHER),
        ({"training_rows": "many"}, OTHER),
        ({"error": b"x"}, OTHER),
        ({"intervention": 3}, None),  # SQLite makes a text of it
        ({"intervention": b"x"}, OTHER),
        ({"model": -3}, OTHER),
        ({"model": "x"}, OTHER),
        ({"settings": "x"}, "a trial is not JSON"),
        ({"settings": DEEP}, "a trial is not JSON"),
        ({"settings": "null"}, OTHER),
        ({"settings": '{"alpha": NaN}'}, "a trial is not JSON"),
        ({"settings": '{"status": "done"}'}, OTHER),
        ({"settings": json.dumps({"alpha": 2**2000})}, OTHER),
        ({"settings": '{"alpha": "x"}'}, "'alpha' of 'x', which is not"),
        ({"settings": '{"n_estimators": 1}'}, OTHER),
        ({"parameters": '{"alpha": 1}'}, "'alpha', which is a setting"),
        ({"metrics": "[1]"}, OTHER),
        ({"metrics": "nothing"}, "the metrics of a trial is not JSON"),
        ({"metrics": '{"test_tpr": 5.0}'}, OTHER),
        ({"metrics": '{"test_tpr": -0.5}'}, OTHER),
        ({"metrics": '{"status": 0.5}'}, OTHER),
        ({"metrics": '{"test_tpr": "x"}'}, OTHER),
        ({"metrics": '{"test_tpr": null}'}, OTHER),
    ],
)
def test_its_trials(store, fields, match):
    enter(store, **fields)
    if match is None:
        with pytest.warns(UserWarning, match="damaged"):  # and the seal is not of a text
            Results.load(store)
    else:
        refused(store, match)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON trials BEGIN DELETE FROM trials; END",
        "CREATE VIEW v AS SELECT * FROM trials",
        "CREATE TABLE more (x)",
        "CREATE INDEX i ON trials (status)",
        "ALTER TABLE trials ADD COLUMN x",
        "DROP TABLE scores",
        "PRAGMA journal_mode = WAL",
    ],
)
def test_other_tables_triggers_and_views(undisturbed, store, table, statement):
    execute(store, (statement,))
    refused(store, "is damaged")
    with pytest.warns(UserWarning, match="a new one was made, with"):
        results = Experiment(table).run(store, n_jobs=1)
    assert results.frame.equals(undisturbed[1].frame)


def test_a_journal_that_names_another_file_leaves_that_file_alone(store, tmp_path):
    """SQLite would take the file for a journal of several databases, and delete it when it is done."""
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    name = str(victim).encode()
    header = bytes.fromhex("d9d505f920a163d7") + (0).to_bytes(4) + bytes(4) + (1).to_bytes(4)
    header += (512).to_bytes(4) + (4096).to_bytes(4)
    tail = (0x40000000 // 4096 + 1).to_bytes(4) + name + len(name).to_bytes(4)
    tail += sum(name).to_bytes(4) + bytes.fromhex("d9d505f920a163d7")
    (store / f"{DATABASE}-journal").write_bytes(header.ljust(512, b"\0") + tail)
    refused(store, "its journal names another file")
    assert victim.read_text() == "mine"


def test_a_store_that_is_only_read_is_not_written(store):
    def state():
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in store.rglob("*")}

    before = state()
    connection = sqlite3.connect(store / DATABASE)
    connection.execute("BEGIN IMMEDIATE")  # a runner is about to write: readers need not wait for it
    Results.load(store)
    connection.close()
    assert state() == before


def test_what_is_no_file_is_not_read(store):
    victim = next((store / "values").iterdir())
    victim.unlink()
    os.mkfifo(victim)  # reading it would wait for ever
    refused(store, "is not what a store holds there")


def test_what_it_says_is_escaped_in_the_report(store, tmp_path):
    hostile = "</script><img src=x onerror=alert(1)>"
    say(store, "positive", json.dumps(hostile))
    say(store, "settings", json.dumps({hostile: hostile}))
    groups = [{"part": hostile, "group": hostile, "rows": 100, "positives": 10}]
    say(store, "summary", json.dumps(groups))
    enter(store, intervention=hostile, settings=json.dumps({hostile: hostile}))
    enter(store, status="failed", metrics=None, error=hostile)
    Results.load(store).report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "onerror=alert" in text
    assert "<img src=x" not in text
