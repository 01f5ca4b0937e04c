"""One process at a time, with the system's locks and without."""

import errno
import json
import os
import socket
import subprocess
import sys
import threading

import pytest

import fado._storage as locks
from fado._storage import InUseError, Lock, claims_of, holder_of

HERE = socket.gethostname()
# Holds a lock until it is ended; without fcntl there are none of the system.
HOLD = """
import sys
if sys.argv[2] == "without fcntl":
    sys.modules["fcntl"] = None
from pathlib import Path
from fado._storage import InUseError, Lock
try:
    with Lock(Path(sys.argv[1]), "The store"):
        print("held", flush=True)
        sys.stdin.read()
except InUseError as error:
    print(error, flush=True)
"""
KINDS = ["with fcntl", "without fcntl"]


def hold(path, kind):
    words = [sys.executable, "-W", "error", "-c", HOLD, path, kind]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def without_locks(monkeypatch):
    monkeypatch.setattr(locks, "FileLock", locks.SoftFileLock)


def test_a_lock_names_its_holder_and_refuses_a_second(tmp_path):
    path = tmp_path / "lock"
    with Lock(path, "The store 's'"):
        assert holder_of(path)["pid"] == os.getpid()
        sentence = rf"^The store 's' is in use by process {os.getpid()} on host {HERE}: wait for it, or stop"
        with pytest.raises(InUseError, match=sentence), Lock(path, "The store 's'"):
            pass
    assert holder_of(path) == {}
    assert claims_of(path) == []
    with Lock(path):
        pass


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_process_is_refused_and_a_killed_ones_lock_is_taken_over(tmp_path, kind):
    path = tmp_path / "lock"
    first = hold(path, kind)
    assert first.stdout.readline() == "held\n"
    second = hold(path, kind)
    told, _ = second.communicate()
    assert told.startswith(f"The store is in use by process {first.pid} on host {HERE}: wait for it")
    first.kill()
    first.communicate()
    assert len(claims_of(path)) == 1
    third = hold(path, kind)
    assert third.stdout.readline() == "held\n"
    assert holder_of(path)["pid"] == third.pid
    third.communicate()
    assert claims_of(path) == []


def test_of_many_that_come_at_once_at_most_one_gets_in_without_locks(tmp_path, without_locks):
    """Also where a dead holder's claim is to be taken over: it is there that two could slip in."""
    inside, most, refused = [], [], []
    start = threading.Barrier(8)

    def come():
        start.wait()
        for _ in range(25):
            try:
                with Lock(tmp_path / "lock"):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
            except InUseError:
                refused.append(1)

    dead = {"pid": 2**22 + 1, "host": HERE, "boot": locks._boot(), "started": 1}
    (tmp_path / "lock.0123abcd.holder").write_text(json.dumps(dead))
    threads = [threading.Thread(target=come) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) + len(refused) == 200
    assert set(most) <= {1}
    assert claims_of(tmp_path / "lock") == []


def claim(path, told):
    path.with_name(f"{path.name}.0123abcd.holder").write_text(told)


def test_without_locks_process_start_and_host_decide(tmp_path, without_locks):
    path = tmp_path / "lock"
    me = locks._identity(os.getpid())
    claim(path, json.dumps(me))
    with pytest.raises(InUseError, match=rf"process {os.getpid()} .*; if it has ended, delete"), Lock(path):
        pass
    claim(path, json.dumps(me | {"started": me["started"] - 1}))  # our number was a dead process's before
    with Lock(path):
        assert len(claims_of(path)) == 1
    claim(path, json.dumps(me | {"boot": "another"}))
    with Lock(path):
        pass
    for told in (json.dumps(me | {"host": "elsewhere"}), "", "{"):  # of which nothing can be known
        claim(path, told)
        with pytest.raises(InUseError, match=r"if it has ended, delete '.*lock\.\*\.holder'"), Lock(path):
            pass
        assert len(claims_of(path)) == 1


def test_without_start_times_a_living_number_counts(tmp_path, without_locks, monkeypatch):
    """As on a Mac: a process is there or not; when it began nobody says."""
    monkeypatch.setattr(locks, "_boot", lambda: None)
    monkeypatch.setattr(locks, "_started", lambda pid: None)
    path = tmp_path / "lock"
    claim(path, json.dumps(locks._identity(os.getpid())))
    with pytest.raises(InUseError, match="if it has ended, delete"), Lock(path):
        pass
    claim(path, json.dumps(locks._identity(2**22 + 1)))
    with Lock(path):
        pass


def test_a_file_system_without_locks_is_one_where_claims_decide(tmp_path, monkeypatch):
    import fcntl

    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "lock"
    claim(path, json.dumps(locks._identity(os.getpid())))
    with pytest.raises(InUseError, match=f"process {os.getpid()}"), Lock(path):
        pass


def test_a_network_file_system_is_warned_of_and_another_hosts_claim_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "on_network", lambda path: True)
    path = tmp_path / "lock"
    claim(path, json.dumps(locks._identity(2**22 + 1)))  # of this host the system's locks show
    with pytest.warns(UserWarning, match="^The store is on a network file system"), Lock(path, "The store"):
        pass
    claim(path, json.dumps({"pid": 7, "host": "elsewhere"}))
    with pytest.raises(InUseError, match="process 7 on host elsewhere"), Lock(path):
        pass


def test_a_link_is_no_lock(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "lock").symlink_to(tmp_path / "mine.txt")
    with pytest.raises(ValueError, match=r"lock' is a link and not a lock file: delete it"):
        Lock(tmp_path / "lock").__enter__()
    assert (tmp_path / "mine.txt").read_text() == "mine"
