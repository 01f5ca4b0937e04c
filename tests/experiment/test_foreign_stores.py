"""A store that somebody else wrote is data: it is read as what it must be, or refused in one sentence."""

import json
import os
import shutil
import sqlite3

import pyarrow as pa
import pyarrow.parquet
import pytest

from fado.experiment import Experiment, Results
from fado.experiment.store import Store
from fado.experiment.store._content import check_metrics
from fado.experiment.store._ledger import _seal
from fado.experiment.store._store import _seal as seal_of_fit

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def store(undisturbed, tmp_path):
    shutil.copytree(undisturbed[0] / "store", tmp_path / "store")
    return tmp_path / "store"


def execute(store, *statements):
    connection = sqlite3.connect(store / "ledger.sqlite")
    for statement in statements:
        connection.execute(*statement)
    connection.commit()
    connection.close()


def say(store, name, text):
    """Change what a store says of its experiment, with a seal that is right."""
    execute(store, ("UPDATE about SET text = ?, seal = ? WHERE name = ?", (text, _seal([name, text]), name)))


def enter(store, which, **fields):
    """Change a record of some kind, with a seal that is right."""
    with Store.reading(store) as opened:
        record = next(record for record in opened.records.values() if record.kind == which)
    row = vars(record) | fields
    seal = _seal(list(row.values()))
    execute(
        store,
        ("DELETE FROM records WHERE kind = ? AND key = ?", (record.kind, record.key)),
        ("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", (*row.values(), seal)),
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
        ("format", "true", "its `format` is no number"),
        ("fingerprint", "-1", "its `fingerprint` is not"),
        ("positive", "[]", "its `positive` is no text"),
        ("plugins", "{}", "its `plugins` are not what a run writes"),
        (
            "plugins",
            '[{"kind": "valuator", "name": 3, "module": "", "package": ""}]',
            "its `plugins` are not",
        ),
        ("summary", '[{"part": "train", "group": "a", "rows": 1e308, "positives": 0}]', "its `summary` is"),
        ("summary", '[{"part": "train", "group": "a", "rows": 3, "positives": 4}]', "its `summary` is"),
        ("configuration", "{}", "its configuration is none"),
        ("configuration", "NaN", "its 'configuration' is no JSON"),
        ("configuration", DEEP, "its 'configuration' is no JSON"),
        ("configuration", None, "its 'configuration' is no JSON"),
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


TRIAL = {"intervention": "RW", "settings": {}, "model": 0, "parameters": {"n_estimators": 3}, "set": "0" * 32}


@pytest.mark.parametrize(
    ("kind", "fields", "match"),
    [
        ("fit", {"kind": "party"}, "a record of kind 'party', which this release does not know"),
        ("fit", {"key": "../../../../tmp/x"}, "a record of kind 'fit' has an impossible key"),
        ("fit", {"key": "/etc/passwd"}, "has an impossible key"),
        ("values", {"key": "../fits/x"}, "has an impossible key"),
        ("fit", {"state": "proposed"}, "the unknown state 'proposed'"),
        ("fit", {"checksum": ""}, "does not go with its checksum"),
        ("fit", {"checksum": b"x"}, "has fields of other types"),
        ("fit", {"seconds": -1.0}, "has fields of other types"),
        ("fit", {"seconds": float("inf")}, "has fields of other types"),
        ("fit", {"seconds": None}, "has fields of other types"),
        ("set", {"state": "done", "text": "x"}, "is no JSON"),
        ("set", {"state": "done", "text": DEEP}, "is no JSON"),
        ("set", {"state": "done", "text": '{"digest": "d", "rows": 1e308}'}, "is not what a run writes"),
        ("set", {"state": "done", "text": '{"digest": "d", "rows": NaN}'}, "is no JSON"),
        ("set", {"checksum": "0" * 64}, "names a file, and has none"),
        ("trial", {"key": "x"}, "is not what a run writes"),
        ("trial", {"text": "null"}, "is not what a run writes"),
        ("trial", {"text": json.dumps(TRIAL | {"settings": None})}, "is not what a run writes"),
        ("trial", {"text": json.dumps(TRIAL | {"model": 2**70})}, "is not what a run writes"),
        ("trial", {"text": json.dumps(TRIAL | {"settings": {"status": "done"}})}, "is not what a run writes"),
        ("trial", {"text": json.dumps(TRIAL | {"settings": {"alpha": 2**2000}})}, "is not what a run writes"),
        ("trial", {"text": json.dumps(TRIAL | {"settings": {"alpha": "x"}})}, "'alpha' of 'x', which is no"),
        (
            "trial",
            {"text": json.dumps(TRIAL | {"settings": {"n_estimators": 1}})},
            "is not what a run writes",
        ),
        ("trial", {"text": json.dumps(TRIAL | {"parameters": {"alpha": 1}})}, "'alpha', which is a setting"),
    ],
)
def test_its_records(store, kind, fields, match):
    enter(store, kind, **fields)
    refused(store, match)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END",
        "CREATE VIEW v AS SELECT * FROM records",
        "CREATE TABLE more (x)",
        "CREATE INDEX i ON records (state)",
        "ALTER TABLE records ADD COLUMN x",
        "DROP TABLE records",
        "PRAGMA journal_mode = WAL",
    ],
)
def test_other_tables_triggers_and_views(undisturbed, store, table, statement):
    execute(store, (statement,))
    refused(store, "is damaged")
    with pytest.warns(UserWarning, match="a new one was made from the files of 20 fit"):
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
    (store / "ledger.sqlite-journal").write_bytes(header.ljust(512, b"\0") + tail)
    refused(store, "its journal names another file")
    assert victim.read_text() == "mine"


def test_a_store_that_is_only_read_is_not_written(store):
    def state():
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in store.rglob("*")}

    before = state()
    connection = sqlite3.connect(store / "ledger.sqlite")
    connection.execute("BEGIN IMMEDIATE")  # a runner is about to write: readers need not wait for it
    Results.load(store)
    connection.close()
    assert state() == before


def test_what_is_no_file_is_not_read(store):
    victim = next((store / "fits").iterdir())
    victim.unlink()
    os.mkfifo(victim)  # reading it would wait for ever
    refused(store, "is not what a store holds there")


@pytest.mark.parametrize(
    "metrics",
    [{"test_tpr": 5.0}, {"test_tpr": -0.5}, {"status": 0.5}, {"test_tpr": "x"}, {"test_tpr": None}],
)
def test_a_fit_with_metrics_that_no_model_has_is_damaged(store, metrics):
    victim = next((store / "fits").iterdir())
    sealed = json.dumps({"format": 1, "key": victim.stem, "seal": seal_of_fit(victim.stem, metrics)})
    columns = pa.table({"metric": list(metrics), "value": list(metrics.values())})
    pyarrow.parquet.write_table(columns.replace_schema_metadata({b"fado.fit": sealed.encode()}), victim)
    with Store.reading(store) as opened:
        assert opened.load_fit(victim.stem) is None
    assert not check_metrics(metrics)
    assert "damaged" in " ".join(Results.load(store).frame["error"].dropna())


def test_what_it_says_is_escaped_in_the_report(store, tmp_path):
    hostile = "</script><img src=x onerror=alert(1)>"
    say(store, "positive", json.dumps(hostile))
    say(store, "settings", json.dumps({hostile: hostile}))
    groups = [{"part": hostile, "group": hostile, "rows": 100, "positives": 10}]
    say(store, "summary", json.dumps(groups))
    enter(store, "set", state="failed", text=hostile)
    enter(store, "trial", text=json.dumps(TRIAL | {"intervention": hostile, "settings": {hostile: hostile}}))
    Results.load(store).report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "onerror=alert" in text
    assert "<img src=x" not in text
