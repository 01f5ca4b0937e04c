import errno
import os
import stat
import subprocess
import sys
from contextlib import suppress

import pytest

from fado._storage import WriteError, replacing, replacing_directory, writing


def test_the_file_appears_whole_and_readable_as_any_other_or_stays_what_it_was(tmp_path):
    path, before = tmp_path / "out.txt", os.umask(0o022)
    try:
        with replacing(path, "The text") as temporary:
            temporary.write_text("done")
            assert not path.exists()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    with suppress(RuntimeError), replacing(path, "The text") as temporary:
        temporary.write_text("half")
        raise RuntimeError("half way")
    assert path.read_text() == "done"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        ("a/b", FileNotFoundError, "does not exist: create it first"),
        ("", IsADirectoryError, "is a directory: name a file"),
    ],
)
def test_impossible_places_are_refused(tmp_path, place, error, message):
    with pytest.raises(error, match=message), replacing(tmp_path / place, "The text"):
        pass


ABANDON = """
import os, sys
from fado._storage import replacing
with replacing(sys.argv[1], "The text") as temporary:
    temporary.write_text("half")
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), 9)
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_writer_left_is_removed_and_a_living_writers_is_not(tmp_path):
    path = tmp_path / "out [1].txt"
    other = tmp_path / ".out [1].txt.mine.part"  # not of the form that we leave behind
    other.write_text("mine")
    subprocess.run([sys.executable, "-c", ABANDON, path, "killed"], check=False)
    (left,) = {found for found in tmp_path.iterdir() if found != other}
    assert left.name.startswith(".out [1].txt.")
    with subprocess.Popen(
        [sys.executable, "-c", ABANDON, path, "living"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as living:
        assert living.stdout.readline() == b"writing\n"
        assert not left.exists()  # the second writer has put away what the first left
        with replacing(path, "The text") as temporary:
            temporary.write_text("whole")
        assert path.read_text() == "whole"
        assert len(list(tmp_path.glob(".out*.part"))) == 2
        living.stdin.close()
        assert living.wait() == 0
    assert path.read_text() == "half"
    assert sorted(tmp_path.iterdir()) == [other, path]


def fail(code, *named):
    raise OSError(code, os.strerror(code), *named)


@pytest.mark.parametrize(
    ("code", "named", "reason"),
    [
        (errno.ENOSPC, [], r"No space left on device, .+ are free\): make"),
        (errno.EIO, [], r"Input/output error\): fix that and run again\.$"),
        (errno.EIO, ["other.csv"], r"'other\.csv': Input/output error\)"),  # that is read meanwhile
        (errno.EACCES, None, r"Permission denied\): fix"),  # before anything is written
    ],
)
def test_what_cannot_be_written_is_told_with_its_place_and_the_reason(
    code, named, reason, tmp_path, monkeypatch
):
    path = tmp_path / "out.txt"
    if named is None:
        monkeypatch.setattr(type(tmp_path), "mkdir", lambda path, *_: fail(code, str(path)))
    message = rf"^The report cannot be written to '{path}' \({reason}"
    with pytest.raises(WriteError, match=message), replacing(path, "The report"):
        fail(code, *named)
    assert list(tmp_path.iterdir()) == []


def test_files_of_a_directory_are_told_by_the_place_that_they_will_have(tmp_path):
    path = tmp_path / "model" / "card.md"
    with (
        pytest.raises(
            WriteError, match=rf"^The card cannot be written to '{path}' \(No space .*; all is kept\.$"
        ),
        writing(tmp_path, "The store", "; all is kept"),
        replacing_directory(tmp_path / "model", "The model") as folder,
        replacing(folder / "card.md", "The card", tidy=False),
    ):
        fail(errno.ENOSPC)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileExistsError, match=r"^name another\.$"), writing(tmp_path, "The text"):
        raise FileExistsError("name another.")  # a sentence of our own stays as it is
