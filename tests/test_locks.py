"""One process at a time."""

import os
import socket
import subprocess
import sys

import pytest

import fado._storage as storage
from fado._storage import InUseError, Lock, holder_of, lock_files

# Holds a lock until it is ended.
HOLD = """
import sys
from pathlib import Path
from fado._storage import InUseError, Lock
try:
    with Lock(Path(sys.argv[1]), "The store"):
        print("held", flush=True)
        sys.stdin.read()
except InUseError as error:
    print(error, flush=True)
"""


def hold(path):
    words = [sys.executable, "-W", "error", "-c", HOLD, path]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_lock_names_its_holder_and_refuses_a_second(tmp_path):
    path, place = tmp_path / "lock", f"process {os.getpid()} on host {socket.gethostname()}"
    with Lock(path, "The store 's'"):
        assert holder_of(path) == place
        with pytest.raises(InUseError, match=rf"^The store 's' is in use by {place}: wait for it, or"):
            Lock(path, "The store 's'").__enter__()
    assert holder_of(path) == "another process"
    with Lock(path), pytest.raises(InUseError, match="lock' is in use by another process: wait"):
        Lock(path).__enter__()
    assert set(tmp_path.iterdir()) <= set(lock_files(path))


def test_a_second_process_is_refused_and_a_killed_ones_lock_is_taken_over(tmp_path):
    path = tmp_path / "lock"
    first = hold(path)
    assert first.stdout.readline() == "held\n"
    second = hold(path)
    answer, _ = second.communicate()
    assert answer.startswith(f"The store is in use by process {first.pid} on host {socket.gethostname()}: ")
    first.kill()
    first.communicate()
    third = hold(path)
    assert third.stdout.readline() == "held\n"
    assert holder_of(path).startswith(f"process {third.pid} ")
    third.communicate()
    assert holder_of(path) == "another process"


def test_a_link_is_no_lock_and_no_holder_and_a_network_file_system_is_warned_of(tmp_path, monkeypatch):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "lock").symlink_to(tmp_path / "mine.txt")
    with pytest.raises(ValueError, match=r"lock' is a link and not a lock file: delete it"):
        Lock(tmp_path / "lock").__enter__()
    (tmp_path / "other.holder").symlink_to(tmp_path / "mine.txt")
    with Lock(tmp_path / "other", "The store"):
        pass
    assert (tmp_path / "mine.txt").read_text() == "mine"
    monkeypatch.setattr(storage, "on_network", lambda path: True)
    with pytest.warns(UserWarning, match="^The store is on a network file system"):
        Lock(tmp_path / "far", "The store").__enter__().__exit__()
